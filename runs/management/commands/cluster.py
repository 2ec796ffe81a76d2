"""`manage.py cluster`: the workers."""

import os
import sys
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand

from common import connections
from common.db import own_connection
from runs.workers import line, watchdog


class Command(BaseCommand):
    help = "Run the workers that carry runs, and replace them when they die or hang. SIGTERM stops them."
    requires_system_checks = ()  # they take a second, and web has made them

    def handle(self, *args: Any, **options: Any) -> None:
        line.guard()
        check_connections()
        watchdog.run()


def check_connections() -> None:
    """Raises BadSetting where the server allows fewer than the cluster needs; one that is away may come."""
    needed = connections.of_cluster(settings.WORKERS, settings.CARRIERS, settings.CARRIER_ERRANDS)
    try:
        with own_connection() as own, own_connection() as other:
            connections.check_sessions(own, other)
            what = f"a cluster with WORKERS={settings.WORKERS}"
            connections.check(own, needed, what, embedded="DATABASE_URL" not in os.environ)
    except psycopg.OperationalError as error:
        sys.stderr.write(f"deputy: the database cannot be reached yet: {type(error).__name__}\n")
