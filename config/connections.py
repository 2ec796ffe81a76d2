"""Whether PostgreSQL allows the connections that a web process needs."""

import psycopg
from django.conf import settings

from common import connections, sessions


def check() -> None:
    """Raises BadSetting where it does not. A server that is away may come: `/readyz` says which."""
    needed = connections.of_web(settings.WEB_THREADS, sessions.is_pooled())
    try:
        sessions.check(needed, f"a web process with WEB_THREADS={settings.WEB_THREADS}")
    except psycopg.OperationalError:
        return
