"""Who decided what, when, by which door and why, with the arguments as they ran: for those who answer for it.

One query for every door, and its exports. Secrets are masked, and what is another person's own
(runs/observe/showing.py).
"""

import csv
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import IO, Any

from django.db.models import Q, QuerySet

from common import replica
from common.canonical import canonical
from groups.actors import Actor
from policy.authority import Verb, visible
from runs.models import ApprovalDecision
from runs.observe import showing
from runs.observe.audit import Echo, guarded

PAGE = 500  # rows read at once
MOST_ROWS = 100_000  # of a spreadsheet; CSV and JSONL have no end
LONGEST_CELL = 32_767  # characters, by Excel's specification
CUT = "… (cut: see the export as JSONL)"


@dataclass(frozen=True)
class Asked:
    """Which decisions. Empty means any. `decider` is a username, `project` an id or a slug."""

    decider: str = ""
    tool: str = ""
    project: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class Row:
    """One decider's word. `arguments`: those that ran, or that were decided about where nothing ran."""

    time: datetime
    decider: str
    decision: str
    via: str
    as_person: bool
    reason: str
    tool: str
    project: str
    user: str
    run: str
    approval: str
    status: str
    ran_at: datetime | None
    arguments: Any
    arguments_digest: str


HEADS = tuple(field.name for field in fields(Row))


def seen(actor: Actor) -> QuerySet[ApprovalDecision]:
    """The decisions the actor may look at: all of their projects for those who may look at what happened in
    all runs; else those about their own runs, and those they took themselves.
    """
    rows, mine = ApprovalDecision.objects.all(), actor.membership
    if mine is None or not mine.active or not actor.has_scope("approvals:read"):
        return rows.none()
    here = Q(organization_id=mine.organization_id)
    if mine.projects is not None:
        here &= Q(approval__run__project_id__in=mine.projects)
    audited = visible(actor, Verb.AUDIT, rows, "approval__run__").values("pk")
    return rows.filter(Q(pk__in=audited) | (here & Q(user=actor.user)))


def filtered(rows: QuerySet[ApprovalDecision], asked: Asked) -> QuerySet[ApprovalDecision]:
    """Those that were asked for, the newest first."""
    wanted = {
        "user__username": asked.decider,
        "approval__tool_call__tool": asked.tool,
        "created_at__gte": asked.since,
        "created_at__lt": asked.until,
    }
    found = rows.filter(**{name: value for name, value in wanted.items() if value})
    if asked.project:
        project = asked.project
        found = found.filter(Q(approval__run__project_id=project) | Q(approval__run__project__slug=project))
    related = ("user", "approval__tool_call", "approval__run__user", "approval__run__project")
    return found.select_related(*related).order_by("-id")


def row(decision: ApprovalDecision, reader_id: int | None) -> Row:
    approval = decision.approval
    call, run = approval.tool_call, approval.run
    return Row(
        time=decision.created_at,
        decider=str(decision.user),
        decision="approved" if decision.approved else "rejected",
        via=decision.via,
        as_person=decision.as_human,
        reason=decision.reason,
        tool=call.tool,
        project=str(run.project),
        user=str(run.user),
        run=run.pk,
        approval=approval.pk,
        status=approval.status,
        ran_at=approval.consumed_at,
        arguments=showing.call(call.tool, approval.arguments, own=run.user_id == reader_id),
        arguments_digest=decision.arguments_digest,
    )


def newest(
    found: QuerySet[ApprovalDecision], most: int, reader_id: int | None, before: int | None = None
) -> list[tuple[int, Row]]:
    """The first of them, of those before a key, each with its key. May be read from a replica."""
    wanted = (found if before is None else found.filter(pk__lt=before))[:most]
    return replica.reading(lambda alias: [(one.pk, row(one, reader_id)) for one in wanted.using(alias)])


def every(found: QuerySet[ApprovalDecision], reader_id: int | None) -> Iterator[Row]:
    """All of them, some hundred at a time."""
    last: int | None = None
    while True:
        page = newest(found, PAGE, reader_id, last)
        yield from (one for _, one in page)
        if len(page) < PAGE:
            return
        last = page[-1][0]


def as_csv(rows: Iterator[Row]) -> Iterator[str]:
    """Lines of CSV, a line of heads first. No cell is taken for a formula."""
    writer = csv.writer(Echo())
    yield writer.writerow(HEADS)
    for one in rows:
        yield writer.writerow([guarded(cell) for cell in _cells(one)])


def as_jsonl(rows: Iterator[Row]) -> Iterator[str]:
    """One JSON object a line."""
    for one in rows:
        told = {name: getattr(one, name) for name in HEADS}
        times = {name: at.isoformat() for name, at in told.items() if isinstance(at, datetime)}
        yield json.dumps(told | times, ensure_ascii=False) + "\n"


def as_xlsx(rows: Iterator[Row]) -> IO[bytes]:
    """A workbook of one sheet, read from its beginning. Every text is a text: no formula and no link."""
    import xlsxwriter  # which nobody else needs

    file = tempfile.TemporaryFile()  # noqa: SIM115 - whoever sends it closes it
    options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    book = xlsxwriter.Workbook(file, {**options, "strings_to_numbers": False, "default_date_format": DATES})
    sheet = book.add_worksheet("decisions")
    for column, name in enumerate(HEADS):
        sheet.write_string(0, column, name)
    for number, one in enumerate(rows, 1):
        if number > MOST_ROWS:
            sheet.write_string(number, 0, CUT)
            break
        for column, cell in enumerate(_cells(one)):
            _write(sheet, number, column, cell)
    book.close()
    file.seek(0)
    return file


DATES = "yyyy-mm-dd hh:mm:ss"


def _write(sheet: Any, number: int, column: int, cell: Any) -> None:
    if isinstance(cell, datetime):  # a spreadsheet knows no zones: the times are in UTC
        sheet.write_datetime(number, column, cell.astimezone(UTC).replace(tzinfo=None))
    elif cell is not None:
        text = str(cell)
        whole = text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - len(CUT)] + CUT
        sheet.write_string(number, column, whole)


def _cells(one: Row) -> list[Any]:
    values = [getattr(one, name) for name in HEADS]
    return [canonical(value) if isinstance(value, dict | list) else value for value in values]


TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


def exported(form: str, found: QuerySet[ApprovalDecision], reader_id: int | None) -> Any:
    """What a streamed answer sends, for one of TYPES."""
    rows = every(found, reader_id)
    if form == "xlsx":
        return as_xlsx(rows)
    return as_csv(rows) if form == "csv" else as_jsonl(rows)
