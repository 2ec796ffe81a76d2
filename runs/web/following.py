"""An approval of one's own run as its person follows it: with whom it is, and who was told."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from runs.deciding import words
from runs.gate import demands
from runs.gate.deciders import who_may_decide
from runs.models import Approval, ApprovalNotice
from runs.models.notices import TO_DECIDERS

SHOWN_NAMES = 3


@dataclass(frozen=True)
class Followed:
    """`deciders`: with whom it is; `told`: whether one of them was written to; `reminded`: how often."""

    approval: Approval
    lines: list[words.Line]
    deciders: str
    told: bool
    reminded: int


def followed(approval: Approval) -> Followed:
    return all_followed([approval])[0]


def all_followed(approvals: Sequence[Approval]) -> list[Followed]:
    """One query for whom was written to, and one for each kind of question who may decide it."""
    written = ApprovalNotice.objects.filter(approval__in=approvals, kind__in=TO_DECIDERS)
    told = set(written.exclude(sent_at=None).values_list("approval_id", flat=True))
    asked: dict[Any, list[Any]] = {}
    found = []
    for approval in approvals:
        run = approval.run
        demand = demands.of_approval(approval, run.project.allow_self_approval)
        key = (run.project_id, run.user_id, demand)
        if key not in asked:
            asked[key] = who_may_decide(run.project, run.user_id, demand)
        found.append(_followed(approval, asked[key], approval.pk in told))
    return found


def _followed(approval: Approval, people: Sequence[Any], told: bool) -> Followed:
    names = ", ".join(str(person) for person in people[:SHOWN_NAMES])
    more = len(people) - SHOWN_NAMES
    if more > 0:
        names = _("{names} and {count} more").format(names=names, count=more)
    lines = words.readable(approval.arguments)[:4]
    return Followed(approval, lines, names, told, reminded(approval))


def reminded(approval: Approval) -> int:
    """How often its deciders were reminded; nothing watches it once it is decided."""
    return approval.watch.reminded if hasattr(approval, "watch") else 0
