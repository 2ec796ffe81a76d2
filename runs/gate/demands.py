"""What an approval has to satisfy, and which of its decisions count today.

Asked when a decision is taken and once more when the call is about to run: the demand is that of the policy
and the arguments of that moment, and a decision counts as long as whoever took it could still take it.
"""

from dataclasses import dataclass
from typing import Any

from groups.actors import Actor, Via
from groups.models import Membership
from policy.authority import About, Demand, NotAllowed, may_decide, seats
from policy.terms import Decision
from runs.models import Approval, ApprovalDecision


@dataclass(frozen=True)
class Counted:
    """How many decisions count, of how many that are needed; `void` says why the others do not."""

    count: int
    needed: int
    void: tuple[str, ...] = ()

    @property
    def enough(self) -> bool:
        return self.count >= self.needed

    @property
    def why(self) -> str:
        """Why an approval that was given does not suffice any more."""
        told = f"{self.count} of {self.needed} approvals it now needs count"
        return f"{told} ({'; '.join(self.void)})" if self.void else told


def of_decision(decision: Decision, allow_self_approval: bool) -> Demand:
    """What policy's answer demands. A call that would pass without a decision is satisfied by anybody's."""
    effect = decision.effect if decision.unlockable else "require_approval"
    needed, deciders = (decision.deciders_needed, decision.deciders) if decision.unlockable else (1, ())
    return Demand(effect, needed, deciders, allow_self_approval)


def of_approval(approval: Approval, allow_self_approval: bool) -> Demand:
    """What the approval said when it was asked for."""
    named = tuple(tuple(names) for names in approval.deciders)
    return Demand(approval.effect, approval.deciders_needed, named, allow_self_approval)  # type: ignore[arg-type]


def counted(approval_id: str, arguments_digest: str, demand: Demand, about: About) -> Counted:
    """How many approvals of exactly these arguments count. Two queries, and each decider's rights."""
    decisions = ApprovalDecision.objects.filter(
        approval_id=approval_id, arguments_digest=arguments_digest, approved=True
    ).select_related("user")
    actors = taken_by(list(decisions.order_by("id")), about.organization_id)
    void, places = [], []
    for actor in actors:
        try:
            places.append(seats(actor, demand, about))
        except NotAllowed as refused:
            void.append(f"{actor}: {refused.message}")
    count = seated(places)
    if count < len(places):
        void.append("two of them decided in the place of the same person")
    return Counted(count, demand.deciders_needed, tuple(void))


def seated(places: list[list[str]]) -> int:
    """How many can sit, one in each place: so that nobody counts for themself and again by a stand-in."""
    taken: dict[str, int] = {}

    def sit(number: int, tried: set[str]) -> bool:
        for place in places[number]:
            if place in tried:
                continue
            tried.add(place)
            if place not in taken or sit(taken[place], tried):
                taken[place] = number
                return True
        return False

    return sum(sit(number, set()) for number in range(len(places)))


def taken_by(decisions: list[ApprovalDecision], organization_id: str) -> list[Actor]:
    """Whoever took these decisions, as they are today, by the door they took them at."""
    users = [decision.user_id for decision in decisions]
    mine = Membership.objects.filter(organization_id=organization_id, user__in=users, active=True)
    members = {membership.user_id: membership for membership in mine}
    return [_taker(decision, members.get(decision.user_id)) for decision in decisions]


def _taker(decision: ApprovalDecision, membership: Membership | None) -> Actor:
    """A decision of before doors were recorded is nobody's at Deputy's pages."""
    user: Any = decision.user
    active = membership if user.is_active else None
    via = Via(decision.via or Via.TOKEN.value)
    return Actor(user, active, via, None, decision.as_human, decision.token_id)


def refusal(actor: Actor, demand: Demand, about: About) -> str:
    """Why this decision does not count; empty where it does."""
    try:
        may_decide(actor, demand, about)
    except NotAllowed as refused:
        return refused.message
    return ""
