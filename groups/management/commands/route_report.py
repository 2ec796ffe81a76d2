import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from common import jsonl
from groups.routing_report import report


class Command(BaseCommand):
    help = "Measure routing on PATH/groups.jsonl and PATH/goals.jsonl. Needs no database."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path, metavar="PATH")
        parser.add_argument(
            "--examples", action="store_true", help="let the groups learn from their examples"
        )
        parser.add_argument("--json", action="store_true", help="print the report as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        groups = read_jsonl(options["path"] / "groups.jsonl", id=str)
        goals = read_jsonl(options["path"] / "goals.jsonl", text=str, gold=list)
        found = report(groups, goals, options["examples"])
        if options["json"]:
            self.stdout.write(json.dumps(found, ensure_ascii=False, indent=2))
            return
        for line in lines(found):
            self.stdout.write(line)


# What else a row may hold that the report reads.
OPTIONAL = {"name": str, "description": str, "capabilities": list, "roles": list, "examples": list}


def read_jsonl(path: Path, **required: type) -> list[dict[str, Any]]:
    """The file's rows. Raises CommandError naming file and line of what cannot be read."""
    try:
        return [_checked(row, place, required) for place, row in jsonl.read(path)]
    except jsonl.BadFile as error:
        raise CommandError(str(error)) from error


def _checked(row: dict[str, Any], place: str, required: dict[str, type]) -> dict[str, Any]:
    for name, kind in (OPTIONAL | required).items():
        if name not in row and name not in required:
            continue
        if name not in row:
            raise CommandError(f"{place}: {name} is missing")
        if not isinstance(row[name], kind):
            raise CommandError(f"{place}: {name} is not a {kind.__name__}")
        if kind is list and not all(isinstance(item, str) for item in row[name]):
            raise CommandError(f"{place}: {name} holds something that is not text")
    return row


def lines(found: dict[str, Any]) -> list[str]:
    shown = [
        f"{found['goals']} goals, {found['groups']} groups, "
        + ("with examples" if found["with_examples"] else "without examples")
        + (", by words and meaning" if found["by_meaning"] else ""),
        f"accuracy@1     {_figure(found['accuracy_at_1'])}   (always the first group: "
        f"{_figure(found['always_first'])})",
        f"joint accuracy {_figure(found['joint_accuracy'])}   (right, or rightly none)",
        f"recall@3       {_figure(found['recall_at_3'])}",
        f"time           {_figure(found['milliseconds_per_goal'])} ms a goal, "
        f"{_figure(found['seconds_to_build'])} s to build",
    ]
    if none := found["no_group"]:
        shown += [
            f"no group fits  AUROC {_figure(none['auroc'])}, best F1 {_figure(none['best_f1'])} "
            f"(below {_figure(none['best_f1_threshold'])})",
            f"               as shipped (below {_figure(none['threshold'])}): F1 {_figure(none['f1'])}, "
            f"accuracy {_figure(none['accuracy'])}, found {_figure(none['found'])}, "
            f"falsely refused {_figure(none['falsely_refused'])}",
        ]
    if found["confusions"]:
        shown.append("worst confusions (right, taken, times)")
        shown += [f"  {right}  {taken}  {count}" for right, taken, count in found["confusions"]]
    return shown


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
