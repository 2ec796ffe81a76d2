"""manage.py prune [--organization SLUG] [--dry-run]"""

from typing import Any

from django.contrib.sessions.models import Session
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import QuerySet
from django.db.models.functions import Now

from groups.models import Organization
from runs.actions import prune

BATCH = 1_000  # rows deleted at once


class Command(BaseCommand):
    help = "Remove what old runs said, as each organization wishes, and what nobody needs any more."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--organization", metavar="SLUG", help="only this one's runs")
        parser.add_argument("--dry-run", action="store_true", help="say what would go; nothing goes")

    def handle(self, *args: Any, **options: Any) -> None:
        chosen = Organization.objects.order_by("slug")
        if options["organization"]:
            chosen = chosen.filter(slug=options["organization"])
            if not chosen:
                raise CommandError(f"There is no organization '{options['organization']}'.")
        for organization in chosen:
            self.prune(organization, options["dry_run"])
        if not options["organization"]:
            self.tidy(options["dry_run"])

    def prune(self, organization: Organization, dry_run: bool) -> None:
        if organization.retention_days is None:
            self.stdout.write(f"{organization.slug}: keeps everything")
            return
        done = prune.prune(organization, dry_run=dry_run)
        words = "would be pruned" if dry_run else "pruned"
        self.stdout.write(f"{organization.slug}: {done.runs} runs with {done.events} events {words}")

    def tidy(self, dry_run: bool) -> None:
        """What outlived its use, whatever organizations wish."""
        ended = Session.objects.filter(expire_date__lt=Now())
        number = ended.count() if dry_run else deleted(ended)
        self.stdout.write(f"{number} ended sign-in sessions {'would be removed' if dry_run else 'removed'}")


def deleted(outlived: QuerySet[Any]) -> int:
    """Delete the rows, some at a time; returns how many there were."""
    total = 0
    while keys := list(outlived.values_list("pk", flat=True)[:BATCH]):
        total += outlived.model._default_manager.filter(pk__in=keys).delete()[0]
    return total
