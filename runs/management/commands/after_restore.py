"""manage.py after_restore [--stopped-at TIME | --nothing-lost]"""

from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive

from runs.actions.schedule import now
from runs.workers import line, restored
from runs.workers.restored import Found, StillRunning

LISTED = 50


class Command(BaseCommand):
    help = "Once after a restore, before clusters start: put to review what may have been done since."

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group()
        what.add_argument(
            "--stopped-at",
            metavar="TIME",
            help="when the installation of the backup did its last work, with its zone "
            "(2026-05-01T12:00:00Z); without it, it may have worked until now",
        )
        what.add_argument(
            "--nothing-lost",
            action="store_true",
            help="a standby with everything has taken over, or the server was upgraded: only say so",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        line.check_sessions()
        if options["nothing_lost"]:
            changed = restored.accept()
            self.stdout.write("Noted." if changed else "Nothing to note: the database is the one it was.")
            return
        moment = time_of(options["stopped_at"]) if options["stopped_at"] else now()
        try:
            found = restored.after_restore(moment)
        except StillRunning:
            raise CommandError(
                "Workers or carriers are running, or were at the backup's time less than "
                f"{restored.ALIVE_SECONDS} seconds ago. Stop them, wait that long, and say this again."
            ) from None
        self.tell(found)

    def tell(self, found: Found) -> None:
        point = f"{found.point:%Y-%m-%d %H:%M:%S} UTC" if found.point else "not known"
        self.stdout.write(f"Last sign of life in this database: {point}.")
        self.stdout.write(
            f"{found.runs} runs had not ended. They go on; what they do outside waits for a person first."
        )
        for run_id, call_id in found.in_flight[:LISTED]:
            self.stdout.write(f"  under way at that time: call {call_id} of {run_id}")
        if len(found.in_flight) > LISTED:
            self.stdout.write(f"  and {len(found.in_flight) - LISTED} more")
        self.stdout.write(f"{found.schedules} schedules were due meanwhile and have started nothing.")


def time_of(said: str) -> datetime:
    """Raises CommandError."""
    try:
        found = parse_datetime(said)
    except ValueError:
        found = None
    if found is None or is_naive(found):
        raise CommandError("--stopped-at is no time with its zone, such as 2026-05-01T12:00:00Z.")
    return found
