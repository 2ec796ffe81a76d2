"""A run's whole tree: the root and all below it, in a constant number of queries."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from common import redact, times
from common.db import from_json, row, rows
from runs.admin import words
from runs.models.choices import ACTIVE, RunKind, RunStatus

SHOWN_CHILDREN = 20  # of one run, until somebody asks for more
MOST = 2_000  # runs read at all
LISTENERS = 50  # offered when somebody says something

ROWS = """
SELECT r.id, r.parent_run_id, r.kind, r.status, r.waiting_reason, left(r.goal, 200), g.name, o.name,
       r.usage, coalesce(r.started_at, r.created_at), coalesce(r.ended_at, clock_timestamp()), r.ended_at,
       r.last_seq
FROM runs_run r
LEFT JOIN groups_group g ON g.id = r.group_id
LEFT JOIN groups_role o ON o.id = r.role_id
WHERE r.root_id = %s AND r.organization_id = %s ORDER BY r.id LIMIT %s
"""
WAITS = """
SELECT w.run_id, w.kind, w.child_run_id, w.expires_at, c.tool, a.id
FROM runs_wait w
JOIN runs_run r ON r.id = w.run_id
LEFT JOIN runs_toolcall c ON c.id = w.tool_call_id
LEFT JOIN runs_approval a ON a.tool_call_id = w.tool_call_id AND a.status = 'pending'
WHERE r.root_id = %s AND r.organization_id = %s AND w.resolved_at IS NULL ORDER BY w.id LIMIT %s
"""
STAMP = """
SELECT count(*), coalesce(sum(last_seq), 0), count(*) FILTER (WHERE status = ANY(%s))
FROM runs_run WHERE root_id = %s AND organization_id = %s
"""
PATH = """
WITH RECURSIVE up AS (
    SELECT id, parent_run_id, depth, goal, group_id FROM runs_run WHERE id = %s
    UNION ALL
    SELECT r.id, r.parent_run_id, r.depth, r.goal, r.group_id
    FROM runs_run r JOIN up ON r.id = up.parent_run_id
)
SELECT up.id, left(up.goal, 200), g.name FROM up LEFT JOIN groups_group g ON g.id = up.group_id
ORDER BY up.depth
"""


@dataclass(frozen=True)
class WaitingFor:
    """One thing a run waits for; `link` names the object that would end the wait."""

    kind: str
    child: str | None
    expires_at: datetime | None
    tool: str | None
    approval: str | None


@dataclass
class Kin:
    """One run of the tree."""

    id: str
    parent: str | None
    kind: str
    status: str
    waiting_reason: str | None
    goal: str
    group: str | None
    role: str | None
    tokens: int
    duration: str
    is_active: bool
    tone: str
    last_seq: int = 0
    waits: list[WaitingFor] = field(default_factory=list)
    children: list["Kin"] = field(default_factory=list)

    @property
    def who(self) -> str:
        return self.group or self.role or str(RunKind(self.kind).label)

    @property
    def status_label(self) -> str:
        return _(RunStatus(self.status).label)


@dataclass(frozen=True)
class Branch:
    """One piece of the tree as the template prints it, top to bottom."""

    kin: Kin | None = None  # a run; its children follow until the branch that closes it
    open: bool = False  # whether children follow
    current: bool = False
    hidden: int = 0  # children left out here
    parent: str | None = None

    @property
    def close(self) -> bool:
        return self.kin is None and not self.hidden


@dataclass(frozen=True)
class RunTree:
    """The tree, flattened for printing, and what is true of it as a whole."""

    branches: list[Branch]
    size: int
    active: int
    truncated: bool
    here: list[Kin] = field(default_factory=list)  # the run looked at and all below it

    @property
    def listeners(self) -> list[Kin]:
        """Those of them that somebody can still say something to."""
        return [kin for kin in self.here if kin.is_active][:LISTENERS]

    @property
    def events(self) -> int:
        return sum(kin.last_seq for kin in self.here)


def stamp(root_id: str, organization_id: str) -> tuple[str, bool]:
    """A text that changes with every event of the tree, and whether any of it is active."""
    count, total, active = row(STAMP, [sorted(ACTIVE), root_id, organization_id])
    return f"{count}.{total}", bool(active)


def path(run_id: str) -> list[dict[str, Any]]:
    """The runs from the root down to this one."""
    return [
        {"id": id, "goal": redact.shown(goal), "group": group} for id, goal, group in rows(PATH, [run_id])
    ]


def run_tree(root_id: str, organization_id: str, current: str, shown: int = SHOWN_CHILDREN) -> RunTree:
    """The tree of a root: two queries, whatever its size. `shown` children of each run are printed."""
    found = {made.id: made for made in map(_kin, rows(ROWS, [root_id, organization_id, MOST + 1]))}
    truncated = len(found) > MOST
    for run_id, kind, child, expires_at, tool, approval in rows(WAITS, [root_id, organization_id, MOST]):
        if run_id in found:
            found[run_id].waits.append(WaitingFor(kind, child, expires_at, tool, approval))
    for kin in found.values():
        if kin.parent in found:
            found[kin.parent].children.append(kin)
    keep = _ancestry(found, current)
    root = found.get(root_id)
    branches = list(_print(root, current, keep, shown)) if root else []
    here = list(_below(found[current])) if current in found else []
    return RunTree(branches, len(found), sum(kin.is_active for kin in found.values()), truncated, here)


def _kin(values: Any) -> Kin:
    id, parent, kind, status, reason, goal, group, role, usage, began, until, ended, last = values
    return Kin(
        id=id,
        parent=parent,
        kind=kind,
        status=status,
        waiting_reason=reason,
        goal=redact.shown(goal),
        group=group,
        role=role,
        tokens=words.tokens(from_json(usage)),
        duration=times.between(began, until),
        is_active=ended is None,
        tone=words.tone(status),
        last_seq=last,
    )


def _below(top: Kin) -> Iterator[Kin]:
    """The run and all below it, without recursion."""
    left = [top]
    while left:
        kin = left.pop()
        yield kin
        left += reversed(kin.children)


def _ancestry(found: dict[str, Kin], current: str) -> set[str]:
    keep: set[str] = set()
    at: str | None = current
    while at in found and at not in keep:
        keep.add(at)
        at = found[at].parent
    return keep


def _print(root: Kin, current: str, keep: set[str], shown: int) -> Iterator[Branch]:
    """The tree in reading order, without recursion: a chain of runs may be long."""
    stack: list[Kin | Branch] = [root]
    while stack:
        item = stack.pop()
        if isinstance(item, Branch):
            yield item
            continue
        printed = _chosen(item.children, keep, shown)
        yield Branch(kin=item, open=bool(item.children), current=item.id == current, parent=item.parent)
        if item.children:
            stack.append(Branch())
            if len(printed) < len(item.children):
                stack.append(Branch(hidden=len(item.children) - len(printed), parent=item.id))
            stack.extend(reversed(printed))


def _chosen(children: list[Kin], keep: set[str], shown: int) -> list[Kin]:
    """The children to print: where we are, what is active, then the first ones; in their order."""
    if len(children) <= shown:
        return children
    first = sorted(children, key=lambda kin: (kin.id not in keep, not kin.is_active, kin.id))[:shown]
    return sorted(first, key=lambda kin: kin.id)
