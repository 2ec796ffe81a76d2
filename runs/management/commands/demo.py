"""manage.py demo [--json] [--reset-secrets]"""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memory.knowledge import UnreadableFile
from runs.demo import content
from runs.demo.world import SETS, World, load


class Command(BaseCommand):
    help = (
        "Make the demo: organization demo, four accounts, and a project with groups and knowledge in English "
        "(atlas) and in Chinese (atlas-zh). Safe to run again: "
        "what is there stays as it is."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument(
            "--reset-secrets",
            action="store_true",
            help="new passwords and tokens for the demo's accounts; the old tokens are revoked",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            world = load(options["reset_secrets"])
        except UnreadableFile as error:
            raise CommandError(f"{error}. Nothing was made.") from None
        self.stdout.write(as_json(world) if options["json"] else as_text(world))


def as_json(world: World) -> str:
    users = {name: {"password": one.password, "token": one.token} for name, one in world.users.items()}
    return json.dumps(
        {"users": users, "project": world.project.pk, "groups": world.groups}, ensure_ascii=False
    )


def as_text(world: World) -> str:
    lines = [
        f"Demo: organization {world.organization.slug}, projects {_named()}, {len(world.groups)} groups "
        f"({', '.join(world.groups)}), {world.knowledge} pieces of knowledge.",
    ]
    if world.issued:
        lines += ["", "Accounts, shown this once:", "", *_accounts(world)]
    else:
        lines.append("The accounts are there already; --reset-secrets gives them new passwords and tokens.")
    if world.waiting_run:
        lines += ["", f"A first run waits for an approval: “{content.FIRST_GOAL}”."]
        lines.append("Sign in as approver to decide it, under “Waiting for me”.")
    return "\n".join(lines)


def _named() -> str:
    """The projects by their short names, with their languages."""
    return ", ".join(f"{one.project[0]} ({one.language})" for one in SETS)


def _accounts(world: World) -> list[str]:
    table = [("name", "password", "API token")]
    for name, one in world.users.items():
        if one.foreign:
            table.append((name, "(an account of your own)", ""))
        else:
            table.append((name, one.password or "(as before)", one.token or "(as before)"))
    widths = [max(len(row[column]) for row in table) for column in (0, 1)]
    return [
        f"  {name:<{widths[0]}}  {password:<{widths[1]}}  {token}".rstrip() for name, password, token in table
    ]
