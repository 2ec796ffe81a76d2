"""Whether PostgreSQL, and its replica if one is named, allow the connections that a web process needs."""

from contextlib import suppress

import psycopg
from django.conf import settings

from common import connections, replica, sessions


def check() -> None:
    """Raises BadSetting where it does not. A server that is away may come: `/readyz` says which."""
    needed = connections.of_web(settings.WEB_THREADS, sessions.is_pooled())
    what = f"a web process with WEB_THREADS={settings.WEB_THREADS}"
    with suppress(psycopg.OperationalError):
        sessions.check(needed, what)
    if replica.is_set():
        with suppress(psycopg.OperationalError):
            replica.check_sessions(settings.WEB_THREADS, f"{what} that reads lists from a replica")
