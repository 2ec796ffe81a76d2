"""A database as a release leaves it: runs parked, started and done, for later releases to go on with.

    python -m tests.upgrades NAME

writes tests/data/upgrades/NAME.sql with the code at hand; tests/integration/test_upgrades.py migrates every
such file and carries its runs on. Make one before each release, from its own checkout, and keep the old ones.
Times that would run out are put far into the future, so that a file stays good.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from launch import binaries, postgres
from launch.home import PROJECT

FOLDER = Path(__file__).resolve().parent / "data" / "upgrades"
MODEL = "scripted:tests.upgrades.play"
FAR = "'2100-01-01'"
NOT_BEFORE_17 = "SET transaction_timeout"


def play(messages: Sequence[Any], facts: dict[str, Any]) -> Any:
    """`asks` asks a person, `mails` sends a letter: the personal agent passes both on to its group."""
    from tests.scripted import call, say

    answered = [message.content for message in messages if message.role == "tool"]
    if answered or facts["goal"] == "brief":
        return say(f"DECISION: {answered[-1] if answered else 'yes'}")
    if facts["kind"] == "personal":
        to = {"goal": facts["goal"], "group_id": facts["context"]}
        return call(("escalate_to_group", to))
    if facts["goal"] == "asks":
        return call(("ask_user", {"question": "Which year?"}))
    return call(("send_email", LETTER))


LETTER = {"to": ["ines@example.org"], "subject": "Hello", "body": "Text"}


def main() -> None:
    (name,) = sys.argv[1:]
    home = postgres.temporary_home()
    server = postgres.ensure(home, durable=False, temporary=True)
    os.environ |= {"DATABASE_URL": postgres.url(home), "DEPUTY_HOME": str(home)}
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    try:
        import django

        django.setup()
        runs = fill()
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / f"{name}.sql").write_text(head(runs) + dump(os.environ["DATABASE_URL"]), "utf-8")
    finally:
        if server:
            server.leave()


def fill() -> dict[str, str]:
    """Migrate and make the runs; returns their ids by what they are for."""
    from django.core.management import call_command
    from django.test import override_settings

    from common.db import execute
    from runs.actions.claim import claim
    from runs.execution import executor
    from tests.acting import request_call, signal, start
    from tests.factories import GroupFactory, MemberFactory, MembershipFactory, ProjectFactory

    call_command("migrate", verbosity=0)
    project = ProjectFactory()
    user = MembershipFactory(organization=project.organization, user__username="mia").user
    MembershipFactory(organization=project.organization, user__username="ada")
    group = GroupFactory(project=project, max_rounds=1)
    MemberFactory(group=group, role__name="lead", is_lead=True)

    def begin(goal: str, **fields: Any) -> str:
        return start(user=user, project=project, goal=goal, context=group.pk, **fields)

    with override_settings(DEPUTY_MODEL=MODEL):
        runs = {
            name: begin(name if name in ("asks", "mails") else "brief")
            for name in ("asks", "mails", "completed", "started", "pending")
        }
        for name in ("asks", "mails", "completed"):
            executor.run(runs[name])
        claim(runs["started"])  # its worker is gone by the time somebody looks again
        runs["outside"] = begin("outside", driver="external")
    request_call(runs["outside"], "c1", "send_email", LETTER)
    signal(runs["pending"], "early", {"answer": 1})
    execute(f"UPDATE runs_run SET deadline = {FAR}")
    execute(f"UPDATE runs_approval SET expires_at = {FAR}")
    execute(f"UPDATE runs_wait SET expires_at = {FAR} WHERE expires_at IS NOT NULL AND kind <> 'child'")
    return runs


def head(runs: dict[str, str]) -> str:
    """Which code made it, and which run is which."""
    asked = ["git", "log", "-1", "--format=%h of %as"]
    commit = subprocess.run(asked, cwd=PROJECT, capture_output=True, text=True).stdout.strip()
    return f"-- made by {os.environ.get('MADE_BY') or commit}\n-- {json.dumps(runs)}\n"


def dump(url: str) -> str:
    """Schema and rows as plain SQL, without what only psql or a newer server understands."""
    command = [
        binaries.find() / "pg_dump",
        "--inserts",
        "--no-owner",
        "--no-privileges",
        "--no-comments",
        url,
    ]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    kept = (line for line in text.splitlines() if line and not line.startswith(("--", "\\", NOT_BEFORE_17)))
    return "\n".join(kept) + "\n"


if __name__ == "__main__":
    main()
