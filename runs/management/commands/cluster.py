"""`manage.py cluster`: the workers."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from common import connections, sessions
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
    workers, pooled = settings.WORKERS, sessions.is_pooled()
    needed = connections.of_cluster(workers, settings.CARRIERS, settings.CARRIER_ERRANDS, pooled)
    line.check_sessions(needed, f"a cluster with WORKERS={workers}")
