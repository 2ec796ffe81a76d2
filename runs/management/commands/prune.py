"""manage.py prune [--organization SLUG] [--dry-run] [--detach] [--months]"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.sessions.models import Session
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError
from django.db.models import QuerySet
from django.db.models.functions import Now

from common import months
from common.db import is_locked
from groups.models import Organization
from runs.actions import prune, prune_months
from runs.log.months import TABLE

BATCH = 1_000  # rows deleted at once


class Command(BaseCommand):
    help = "Remove what old runs said, as each organization wishes, and what nobody needs any more."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--organization", metavar="SLUG", help="only this one's runs")
        parser.add_argument("--dry-run", action="store_true", help="say what would go; nothing goes")
        parser.add_argument(
            "--detach", action="store_true", help="leave the tables of months that go, for an archive"
        )
        parser.add_argument(
            "--months", action="store_true", help="make the log's partitions that are missing, and no more"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["months"]:
            self.make_months()
            return
        chosen = Organization.objects.order_by("slug")
        if options["organization"]:
            chosen = chosen.filter(slug=options["organization"])
            if not chosen:
                raise CommandError(f"There is no organization '{options['organization']}'.")
        for organization in chosen:
            self.prune(organization, options["dry_run"])
        if not options["organization"]:
            self.tidy(options["dry_run"])
            self.prune_months(options["detach"], options["dry_run"])

    def prune(self, organization: Organization, dry_run: bool) -> None:
        if organization.retention_days is None:
            self.stdout.write(f"{organization.slug}: keeps everything")
            return
        done = prune.prune(organization, dry_run=dry_run)
        words = "would be pruned" if dry_run else "pruned"
        self.stdout.write(f"{organization.slug}: {done.runs} runs with {done.events} events {words}")

    def prune_months(self, detach: bool, dry_run: bool) -> None:
        """Months of the log that no organization keeps the record of."""
        verb = ("would be " if dry_run else "") + ("detached" if detach else "removed")
        with unlocked():
            for month in prune_months.prune_months(detach=detach, dry_run=dry_run):
                kept = month.kept_by and "kept, by {} of {} and maybe more".format(*month.kept_by)
                self.stdout.write(f"{month.name} ({month.bytes / 1e6:,.0f} MB): {kept or verb}")

    def make_months(self) -> None:
        """With as many rows as there are to be moved, while appending waits."""
        with unlocked():
            made = months.create(TABLE, moved=sys.maxsize)
        self.stdout.write(f"made: {', '.join(made) or 'nothing, all are there'}")

    def tidy(self, dry_run: bool) -> None:
        """What outlived its use, whatever organizations wish."""
        ended = Session.objects.filter(expire_date__lt=Now())
        number = ended.count() if dry_run else deleted(ended)
        self.stdout.write(f"{number} ended sign-in sessions {'would be removed' if dry_run else 'removed'}")


@contextmanager
def unlocked() -> Iterator[None]:
    """Raises CommandError where somebody else holds the log's lock for too long."""
    try:
        yield
    except OperationalError as error:
        if not is_locked(error):
            raise
        raise CommandError(f"Somebody holds a lock on {TABLE}. Nothing is lost; call it again.") from None


def deleted(outlived: QuerySet[Any]) -> int:
    """Delete the rows, some at a time; returns how many there were."""
    total = 0
    while keys := list(outlived.values_list("pk", flat=True)[:BATCH]):
        total += outlived.model._default_manager.filter(pk__in=keys).delete()[0]
    return total
