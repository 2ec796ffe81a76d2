"""manage.py ask "…" [--as member] [--project atlas] [--group ID] [--session KEY] [--json] [--inline]

Ends with 0 when the run completed, 1 when it failed or was cancelled, 3 when it still waits.
"""

import io
import json
import os
import sys
from typing import Any, TextIO, cast

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.text import Text

from groups.actors import Actor
from groups.catalog import list_groups_with_roles
from groups.models import Membership, Project
from policy.authority import NotAllowed
from runs.actions import start
from runs.models.choices import RunStatus
from runs.terminal.follow import Follower, base_url
from runs.terminal.lines import clean
from runs.terminal.tail import Heard, Seen

STILL_WAITS = 3
NAMED = 20  # of what exists, in an error


class Command(BaseCommand):
    help = "Ask your agent, and watch what it does. Exit status: 0 completed, 1 failed or cancelled, 3 waits."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("goal", help="what is to be done; - reads it from standard input")
        parser.add_argument(
            "--as", dest="user", default="member", metavar="NAME", help="whose agent (member)"
        )
        parser.add_argument("--project", default="atlas", help="a project's slug or id (atlas)")
        parser.add_argument("--group", metavar="ID", help="the group the goal goes to, by id or name")
        parser.add_argument(
            "--session", default="", metavar="KEY", help="carry on the conversation of this key"
        )
        parser.add_argument("--context", default="", help="what else the agent should know")
        parser.add_argument("--json", action="store_true", help="print one JSON object and no progress")
        parser.add_argument(
            "--events", action="store_true", help="with --json: the events of the whole tree too"
        )
        parser.add_argument("--inline", action="store_true", help="do the work here, without workers")
        parser.add_argument(
            "--no-wait", dest="wait", action="store_false", help="leave when only a person can go on with it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self.speak_utf8()
        user = find_user(given(options["user"]))
        project = find_project(given(options["project"]), user)
        group = find_group(given(options["group"]), project) if options["group"] else None
        actor = Actor.terminal(user, project.organization)
        try:
            run_id = start.start(
                actor=actor,
                project=project,
                goal=read(options["goal"]),
                context=given(options["context"]),
                session_key=given(options["session"]),
                group_id=group,
            )
        except (start.CannotStart, NotAllowed) as error:
            raise CommandError(error.message) from None
        console = None if options["json"] else Console(file=self.out, highlight=False)
        follower = Follower(run_id, actor, console, drives=options["inline"], waits=options["wait"])
        interrupted = False
        try:
            follower.follow()
        except KeyboardInterrupt:
            interrupted = True
        follower.show()
        root = follower.tail.root
        if console is None:
            self.stdout.write(as_json(root, follower.events if options["events"] else None))
        else:
            conclude(console, follower, interrupted)
        if root.status != RunStatus.COMPLETED:
            failed = root.status in (RunStatus.FAILED, RunStatus.CANCELLED)
            sys.exit(1 if failed else STILL_WAITS)

    @property
    def out(self) -> TextIO:
        """The stream itself: Django's wrapper would end every piece with a new line."""
        return cast(TextIO, self.stdout._out)

    def speak_utf8(self) -> None:
        """Whatever the locale says: answers are in any language."""
        if isinstance(self.out, io.TextIOWrapper):
            self.out.reconfigure(encoding="utf-8", errors="replace")


def conclude(console: Console, follower: Follower, interrupted: bool) -> None:
    """The answer, or why there is none."""
    root = follower.tail.root
    if root.status == RunStatus.COMPLETED and follower.answered:
        return  # it has been printed as it was said
    console.print()
    if root.status == RunStatus.COMPLETED:
        console.print(Text(clean(root.output or "(no words)")), soft_wrap=True)
    elif root.status in (RunStatus.FAILED, RunStatus.CANCELLED):
        error = root.error or {}
        words = f"The run {root.status}: {error.get('message', '')} ({error.get('code', '')})"
        console.print(Text(clean(words), "red"), soft_wrap=True)
    else:
        console.print(Text(clean(waiting_words(follower, interrupted)), "yellow"), soft_wrap=True)


def waiting_words(follower: Follower, interrupted: bool) -> str:
    kind = follower.tail.waits_for_a_person
    what = {
        "approval": "It waits for an approval and goes on when somebody decides",
        "input": "It waits for an answer and goes on when one comes",
        "review": "It waits until a person says what became of an interrupted call",
    }.get(kind or "", "It goes on without this terminal, as soon as a worker has time")
    return f"{what}: {follower.tail.root_id} in {base_url()}/admin/."


def as_json(root: Seen, events: list[Heard] | None) -> str:
    told: dict[str, Any] = {
        "run": root.id,
        "status": root.status,
        "output": root.output,
        "error": root.error,
    }
    if events is not None:
        told["events"] = [
            {
                "run": heard.run.id,
                "seq": heard.event.seq,
                "type": heard.event.type,
                "agent": heard.event.agent,
                "payload": heard.event.payload,
                "created_at": heard.event.created_at.isoformat(),
            }
            for heard in events
        ]
    return json.dumps(told, ensure_ascii=False)


# What was typed


def read(goal: str) -> str:
    """The goal, or what standard input holds."""
    if goal != "-":
        return given(goal)
    raw = sys.stdin.buffer.read() if hasattr(sys.stdin, "buffer") else sys.stdin.read().encode()
    return raw.decode("utf-8", "replace").replace("\x00", "")


def given(argument: str) -> str:
    """An argument as UTF-8, in which terminals send it whatever LANG says."""
    try:
        return os.fsencode(argument).decode("utf-8", "replace")
    except UnicodeEncodeError:  # not from a command line
        return argument


# What it names


def find_user(name: str) -> Any:
    users = get_user_model().objects.filter(is_active=True)
    user = users.filter(username=name).first()
    if user is None:
        there = named(users.order_by("username").values_list("username", flat=True)[: NAMED + 1])
        raise CommandError(
            f"There is no user '{name}'; there are: {there or 'none; `manage.py demo` makes some'}."
        )
    return user


def find_project(name: str, user: Any) -> Project:
    """A project this user is a member of, by id or slug."""
    memberships = {m.organization_id: m for m in Membership.objects.filter(user=user, active=True)}
    projects = [
        project
        for project in Project.objects.filter(organization__in=memberships)
        .select_related("organization")
        .order_by("slug", "pk")
        if memberships[project.organization_id].sees_project(project.pk)
    ]
    found = [project for project in projects if name in (project.pk, project.slug)]
    if not found:
        there = named([project.slug for project in projects])
        raise CommandError(f"{user} has no project '{name}'; there are: {there or 'none'}.")
    if len(found) > 1:
        ids = named([project.pk for project in found])
        raise CommandError(f"{user} has several projects '{name}'; name one by its id: {ids}.")
    return found[0]


def find_group(name: str, project: Project) -> str:
    """The id of an active group of the project, by id or name."""
    groups = list_groups_with_roles(project.pk)
    found = next((group for group in groups if name in (group.id, group.name)), None)
    if found is None:
        there = named([f"{group.id} ({group.name})" for group in groups])
        raise CommandError(f"There is no group '{name}' in {project.slug}; there are: {there or 'none'}.")
    return found.id


def named(names: Any) -> str:
    listed = list(names)
    return ", ".join(listed[:NAMED]) + (", …" if len(listed) > NAMED else "")
