"""Whether PostgreSQL allows the connections that a web process needs."""

import os

import psycopg
from django.conf import settings

from common import connections
from common.db import own_connection


def check() -> None:
    """Raises BadSetting where it does not. A server that is away may come: `/readyz` says which."""
    needed = connections.of_web(settings.WEB_THREADS)
    try:
        with own_connection() as own, own_connection() as other:
            connections.check_sessions(own, other)
            what = f"a web process with WEB_THREADS={settings.WEB_THREADS}"
            connections.check(own, needed, what, embedded="DATABASE_URL" not in os.environ)
    except psycopg.OperationalError:
        return
