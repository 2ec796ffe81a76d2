"""`manage.py cluster`: the workers."""

from typing import Any

from django.core.management.base import BaseCommand

from runs.workers import watchdog


class Command(BaseCommand):
    help = "Run the workers that carry runs, and replace them when they die or hang. SIGTERM stops them."
    requires_system_checks = ()  # they take a second, and web has made them

    def handle(self, *args: Any, **options: Any) -> None:
        watchdog.run()
