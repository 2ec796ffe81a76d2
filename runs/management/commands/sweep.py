"""`manage.py sweep`: one round of what the workers do by themselves every few seconds."""

from typing import Any

from django.core.management.base import BaseCommand

from runs.workers import line, sweep


class Command(BaseCommand):
    help = "Bring back runs whose worker has gone, end what is overdue, queue what nobody took."

    def handle(self, *args: Any, **options: Any) -> None:
        line.look()
        line.check_sessions()
        self.stdout.write(str(sweep.sweep()))
