"""An approval of one's own run as its person follows it: with whom it is, and who was told."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from runs.deciding import words
from runs.gate import demands
from runs.gate.deciders import who_may_decide
from runs.models import Approval
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
    run = approval.run
    demand = demands.of_approval(approval, run.project.allow_self_approval)
    people = who_may_decide(run.project, run.user_id, demand)
    names = ", ".join(str(person) for person in people[:SHOWN_NAMES])
    more = len(people) - SHOWN_NAMES
    if more > 0:
        names = _("{names} and {count} more").format(names=names, count=more)
    told = approval.notices.filter(kind__in=TO_DECIDERS).exclude(sent_at=None).exists()
    lines = words.readable(approval.arguments)[:4]
    return Followed(approval, lines, names, told, reminded(approval))


def reminded(approval: Approval) -> int:
    """How often its deciders were reminded; nothing watches it once it is decided."""
    return approval.watch.reminded if hasattr(approval, "watch") else 0
