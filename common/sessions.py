"""Whether the connections of a process lead where they have to, asked when it starts (docs/operating.md)."""

import os
from contextlib import closing

from django.conf import settings

from common import connections
from common.db import own_connection, pooled_connection
from common.postgres import STILL_SECONDS


def is_pooled() -> bool:
    """Whether Django's connections go through a pooler in transaction mode."""
    return bool(settings.SESSION_DATABASE != "default")


def check(needed: int = 0, what: str = "") -> None:
    """Raises BadSetting where this process gets no sessions of its own, or fewer than it needs; and
    psycopg.OperationalError where the database cannot be asked.
    """
    with closing(own_connection()) as own, closing(own_connection()) as other:
        connections.check_sessions(own, other, is_pooled())
        connections.check(own, needed, what, embedded="DATABASE_URL" not in os.environ)
        if is_pooled():
            with closing(pooled_connection()) as pooled:
                connections.check_pooler(own, pooled, settings.LOCK_SECONDS, STILL_SECONDS)
