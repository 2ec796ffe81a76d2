"""Every decision of policy in every run, also those that let a call pass: one query, and its export."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import datetime
from typing import Any

from common import replica
from common.db import rows

MOST = 500  # rows at once
EFFECTS = ("allow", "require_approval", "require_human", "deny")
FORMULA = tuple("=+-@\t\r\n＝＋－＠")

# The types stand here as text, so that the partial index of these events is used.
QUERY = """
SELECT e.created_at, e.run_id, e.seq, r.project_id, person.username, e.agent, e.payload->>'call_id',
       e.payload->>'tool', e.payload->'decision'->>'effect', e.payload->'decision'->>'reason_code',
       COALESCE(e.payload->'decision'->>'rule', ''), COALESCE(e.payload->'decision'->>'grant', ''),
       COALESCE(e.payload->'error'->>'message', e.payload->>'message', ''),
       (SELECT string_agg((shadow->>'rule') || ': ' || (shadow->>'effect'), '; ')
        FROM jsonb_array_elements(e.payload->'decision'->'shadowed') shadow),
       e.payload->'decision'->>'policy', a.id, a.status, decider.username
FROM runs_runevent e
JOIN runs_run r ON r.id = e.run_id
JOIN {users} person ON person.id = r.user_id
LEFT JOIN LATERAL (
    SELECT p.id, p.status, p.decided_by_id FROM runs_approval p
    WHERE p.id = e.payload->>'approval'
       OR (e.payload->'decision'->>'reason_code' = 'approved' AND p.consumed_at IS NOT NULL
           AND p.tool_call_id = (SELECT c.id FROM runs_toolcall c
                                 WHERE c.run_id = e.run_id AND c.call_id = e.payload->>'call_id'))
    ORDER BY p.id DESC LIMIT 1
) a ON true
LEFT JOIN {users} decider ON decider.id = a.decided_by_id
WHERE e.organization_id = %s
  AND e.type IN ('tool.called', 'tool.blocked', 'tool.requires_approval')
  AND {where}
ORDER BY e.created_at DESC, e.run_id DESC, e.seq DESC
LIMIT %s
"""


@dataclass(frozen=True)
class Asked:
    """Which decisions to show. None and empty mean any; `projects` () means none at all."""

    organization: str
    projects: Sequence[str] | None = None
    user: int | None = None
    run: str = ""
    tool: str = ""
    effect: str = ""
    rule: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class Row:
    """One decision. `decider` decided the approval the call asked for, or was let through by."""

    time: datetime
    run: str
    seq: int
    project: str
    user: str
    agent: str
    call: str
    tool: str
    effect: str
    reason_code: str
    rule: str
    grant: str
    message: str
    shadowed: str | None
    policy: str
    approval: str | None
    approval_status: str | None
    decider: str | None

    @property
    def position(self) -> tuple[datetime, str, int]:
        """Where the row stands in the order: what comes after it is asked for with `before`."""
        return self.time, self.run, self.seq


HEADS = tuple(field.name for field in fields(Row))


def decisions(asked: Asked, limit: int = 100, before: tuple[datetime, str, int] | None = None) -> list[Row]:
    """The newest decisions first; `before` continues after a row's position. May be read from a replica."""
    where, values = _where(asked, before)
    query = QUERY.format(where=where, users=_users())
    parameters = [asked.organization, *values, min(limit, MOST)]
    return [Row(*found) for found in replica.reading(lambda alias: rows(query, parameters, using=alias))]


def every(asked: Asked) -> Iterator[Row]:
    """All decisions, the newest first, some hundred at a time."""
    before = None
    while found := decisions(asked, MOST, before):
        yield from found
        before = found[-1].position


def as_csv(asked: Asked) -> Iterator[str]:
    """The decisions as lines of CSV, a line of heads first. No cell is taken for a formula."""
    writer = csv.writer(Echo())
    yield writer.writerow(HEADS)
    for row in every(asked):
        yield writer.writerow([guarded(value) for value in astuple(row)])


def guarded(value: Any) -> str:
    """The value as text that a spreadsheet shows and does not evaluate."""
    if value is None:
        return ""
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA) else text


class Echo:
    """csv writes a line here and gets it back."""

    def write(self, line: str) -> str:
        return line


def _where(asked: Asked, before: tuple[datetime, str, int] | None) -> tuple[str, list[Any]]:
    conditions: dict[str, Any] = {
        "r.project_id = ANY(%s)": None if asked.projects is None else list(asked.projects),
        "r.user_id = %s": asked.user,
        "e.run_id = %s": asked.run or None,
        "e.payload->>'tool' = %s": asked.tool or None,
        "e.payload->'decision'->>'effect' = %s": asked.effect or None,
        "e.payload->'decision'->>'rule' = %s": asked.rule or None,
        "e.created_at >= %s": asked.since,
        "e.created_at < %s": asked.until,
    }
    kept = {text: value for text, value in conditions.items() if value is not None}
    parts, values = list(kept), list(kept.values())
    if before is not None:
        parts.append("(e.created_at, e.run_id, e.seq) < (%s, %s, %s)")
        values += before
    return " AND ".join(parts) or "true", values


def _users() -> str:
    from django.contrib.auth import get_user_model

    return str(get_user_model()._meta.db_table)
