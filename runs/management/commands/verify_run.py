"""manage.py verify_run RUN… | --all"""

import sys
from collections.abc import Iterable
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.log import verify
from runs.log.verify import RunUnknown, Verdict
from runs.models import Run


class Command(BaseCommand):
    help = "Check that runs' logs are whole: the chain of digests, and the row against its events."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("runs", nargs="*", metavar="RUN", help="a run's id")
        parser.add_argument("--all", action="store_true", help="every run; prints the broken ones")

    def handle(self, *args: Any, **options: Any) -> None:
        if bool(options["runs"]) == options["all"]:
            raise CommandError("Name runs by their ids, or say --all.")
        every = Run.objects.order_by("pk").values_list("pk", flat=True).iterator()
        broken = self.verify(every if options["all"] else options["runs"], quiet=options["all"])
        if broken:
            sys.exit(1)

    def verify(self, run_ids: Iterable[str], quiet: bool) -> int:
        """Print what was found; returns how many runs are broken."""
        checked = broken = 0
        for run_id in run_ids:
            try:
                verdict = verify.verify(run_id)
            except RunUnknown:
                if quiet:  # deleted meanwhile
                    continue
                raise CommandError(f"There is no run '{run_id}'.") from None
            checked += 1
            broken += bool(verdict.broken)
            if verdict.broken or not quiet:
                self.stdout.write(sentence(verdict))
        if quiet:
            self.stdout.write(f"{checked} runs checked, {broken} broken.")
        return broken


def sentence(verdict: Verdict) -> str:
    kept = "pruned, its month is gone" if verdict.gone else "whole, pruned" if verdict.pruned else "whole"
    found = f"BROKEN: {verdict.broken}" if verdict.broken else kept
    return f"{verdict.run_id}: {verdict.status}, {verdict.events} events, {found}"
