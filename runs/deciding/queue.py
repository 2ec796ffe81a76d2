"""The queue of what waits for a decision: one order at every door, and what stands together in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.db.models import QuerySet

from runs.deciding.view import Shown, single_only
from runs.models import Approval, Run
from runs.models.choices import ApprovalStatus

ORDER = "pk"  # the oldest first: ids sort by time


@dataclass(frozen=True)
class Group:
    """Calls of one tool by one run, one after the other in the queue."""

    tool: str
    run: Run
    entries: list[Shown]

    @property
    def together(self) -> bool:
        """Whether they are one question, which one decision can answer."""
        return len(self.entries) > 1 and not any(single_only(one.approval, like=True) for one in self.entries)


def in_order(rows: QuerySet[Approval]) -> QuerySet[Approval]:
    """The pending ones as every door lists them and opens the next one."""
    return rows.order_by(ORDER)


@dataclass(frozen=True)
class Rows:
    """The same of rows that nothing was worked out for yet."""

    tool: str
    entries: list[Approval]


def grouped_rows(found: Sequence[Approval]) -> list[Rows]:
    """The pending ones among them by tool and run, and so by person, without changing their order."""
    pending = [one for one in found if one.status == ApprovalStatus.PENDING]
    groups = groupby(pending, key=_key)
    return [Rows(tool, list(entries)) for (_, tool), entries in groups]


def _key(approval: Approval) -> tuple[str, str]:
    return approval.run_id, approval.tool_call.tool


def grouped(found: Sequence[Shown]) -> list[Group]:
    """The queue by tool and run, and so by person, without changing its order."""
    groups = groupby(found, key=lambda one: _key(one.approval))
    return [_group(list(entries)) for _key, entries in groups]


def _group(entries: list[Shown]) -> Group:
    first = entries[0].approval
    return Group(first.tool_call.tool, first.run, entries)


def place(waits: Sequence[str], current: str) -> dict[str, Any]:
    """Where an approval stands in the queue of this person, and its neighbours, for its page."""
    return {
        "queue": waits,
        "place": waits.index(current) + 1 if current in waits else 0,
        "next": next_after(waits, current),
        "previous": next_after(waits[::-1], current),
    }


def next_after(waits: Sequence[str], current: str) -> str | None:
    """The one that comes after the current one, from the front again after the last; None for no other."""
    others = [pk for pk in waits if pk != current]
    if not others:
        return None
    at = waits.index(current) if current in waits else 0
    return others[at] if at < len(others) else others[0]
