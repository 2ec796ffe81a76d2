"""manage.py load_knowledge PATH… --project atlas [--organization demo]"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from groups.models import Organization, Project
from memory.knowledge import UnreadableFile, load


class Command(BaseCommand):
    help = "Load Markdown and text files, or folders of them, into a project's knowledge."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH")
        parser.add_argument("--project", required=True, help="the project's slug")
        parser.add_argument(
            "--organization", default=None, help="the organization's slug, if there are several"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        project = _project(options["project"], options["organization"])
        try:
            loaded = load(options["paths"], project.organization_id, project.id)
        except UnreadableFile as error:
            raise CommandError(f"{error}. Nothing was loaded.") from None
        self.stdout.write(
            f"{loaded.files} files: {loaded.added} sections added, {loaded.unchanged} unchanged,"
            f" {loaded.superseded} superseded."
        )


def _project(slug: str, organization: str | None) -> Project:
    projects = Project.objects.filter(slug=slug)
    if organization is not None:
        if not Organization.objects.filter(slug=organization).exists():
            raise CommandError(f"There is no organization {organization!r}.")
        projects = projects.filter(organization__slug=organization)
    found = list(projects[:2])
    if not found:
        raise CommandError(f"There is no project {slug!r}.")
    if len(found) > 1:
        raise CommandError(f"Several organizations have a project {slug!r}: say which with --organization.")
    return found[0]
