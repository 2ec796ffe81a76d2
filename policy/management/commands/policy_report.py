import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from common.jsonl import BadFile
from policy import replay_files
from policy.replay import MOST_COUNTED, Policy, Report, Score, profiles, replay

COLUMNS = ("autonomy", "asks", "denials", "breach")
PROFILES = tuple(profiles(()))
BASELINES = ("allow-all", "approve-side-effects")
MOST_TOLD = 60  # wrong decisions printed of one policy


class Command(BaseCommand):
    help = (
        "Replay PATH/traces.jsonl (with tools.jsonl and labels.jsonl) through policy. Without --rules or "
        "--profile: the baselines. Tells every wrong decision of a policy asked for. Needs no database."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path, metavar="PATH")
        parser.add_argument("--rules", type=Path, metavar="FILE.json", help="the policy to replay")
        parser.add_argument("--profile", action="append", choices=PROFILES, help="may be given repeatedly")
        parser.add_argument(
            "--declarations", type=Path, metavar="FILE.json", help="what is declared of tools' values"
        )
        parser.add_argument(
            "--asks-at-most",
            type=int,
            metavar="N",
            choices=range(MOST_COUNTED),
            help="tell also how many benign traces mean at most N questions, and how many of those solved",
        )
        parser.add_argument("--json", action="store_true", help="print the report as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            reports = reports_of(
                options["path"], options["rules"], options["profile"] or [], options["declarations"]
            )
        except BadFile as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            found = {name: report.as_dict() for name, report in reports.items()}
            self.stdout.write(json.dumps(found, ensure_ascii=False, indent=2))
            return
        told = {*(options["profile"] or []), *([options["rules"].name] if options["rules"] else [])}
        for name, report in reports.items():
            share = at_most(report, options["asks_at_most"]) if options["asks_at_most"] is not None else ()
            for line in (*lines(name, report), *share, *(wrong(report) if name in told else ())):
                self.stdout.write(line)
        for line in beside(reports):
            self.stdout.write(line)


def reports_of(
    path: Path, rules: Path | None, wanted: list[str], declarations: Path | None = None
) -> dict[str, Report]:
    """The report of each policy asked for, by its name. Raises BadFile."""
    tools = replay_files.read_tools(path / "tools.jsonl")
    if declarations:
        tools = replay_files.declared(declarations, tools)
    traces = replay_files.read_traces(path / "traces.jsonl", path / "labels.jsonl", tools)
    known = profiles(name for named in tools.values() for name in named)
    policies: dict[str, Policy] = {}
    if rules:
        policies[rules.name] = replay_files.read_policy(rules, tools)
    for name in wanted or ([] if rules else BASELINES):
        policies[name] = known[name]
    return {name: replay(traces, tools, policy) for name, policy in policies.items()}


def lines(name: str, report: Report) -> list[str]:
    rows = [*sorted(report.suites.items()), ("overall", report.overall)]
    heads = "".join(f"{column:>10}" for column in COLUMNS)
    return [f"{name:<24}{'benign':>8}{'attacks':>9}{heads}", *(_line(*row) for row in rows), ""]


def at_most(report: Report, number: int) -> list[str]:
    """How many benign traces mean at most so many questions, of all and of those that were solved."""
    score = report.overall
    solved = score.of_solved.total()
    rows = [f"  at most {number} questions: {_figure(score.at_most(number))} of {score.benign} benign traces"]
    if solved:
        share = _figure(score.at_most(number, solved=True))
        rows.append(f"  at most {number} questions: {share} of the {solved} solved")
    return [*rows, ""]


def wrong(report: Report) -> list[str]:
    """The wrong decisions, as many as fit on a screen or two."""
    found = [
        f"  {one.kind:<8}{one.trace}, call {one.call + 1}, {one.tool}: {one.why}"
        for one in report.wrong[:MOST_TOLD]
    ]
    more = len(report.wrong) - len(found)
    return [*found, *([f"  and {more} more: --json has them all"] if more else []), ""]


def beside(reports: dict[str, Report]) -> list[str]:
    """The policies beside each other, where there are several."""
    if len(reports) < 2:
        return []
    rows = [_line(name, report.overall) for name, report in reports.items()]
    heads = "".join(f"{column:>10}" for column in COLUMNS)
    return [f"{'over all suites':<24}{'benign':>8}{'attacks':>9}{heads}", *rows]


def _line(suite: str, score: Score) -> str:
    found = score.as_dict()
    figures = "".join(f"{_figure(found[column]):>10}" for column in COLUMNS)
    return f"  {suite:<22}{score.benign:>8}{score.attacks:>9}{figures}"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
