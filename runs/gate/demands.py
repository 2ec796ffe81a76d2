"""What an approval has to satisfy, and which of its decisions count today.

Asked when a decision is taken and once more when the call is about to run: the demand is that of the policy
and the arguments of that moment, and a decision counts as long as whoever took it could still take it.
"""

from dataclasses import dataclass
from typing import Any

from groups.actors import Actor, Via
from groups.models import Membership, Token
from policy.authority import About, Demand, NotAllowed, may_decide, seats
from policy.terms import Decision
from runs.models import Approval, ApprovalDecision

REVOKED = "the token it was taken with was revoked"


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
    """How many approvals of exactly these arguments count. Two or three queries, and each one's rights."""
    decisions = ApprovalDecision.objects.filter(
        approval_id=approval_id, arguments_digest=arguments_digest, approved=True
    ).select_related("user")
    actors = taken_by(list(decisions.order_by("id")), about.organization_id)
    judged = [(actor, *_judged(actor, demand, about)) for actor in actors]
    void = [f"{actor}: {why}" for actor, why, _ in judged if why]
    places = [found for _, why, found in judged if not why]
    count = seated(places)
    if count < len(places):
        void.append("two of them decided in the place of the same person")
    return Counted(count, demand.deciders_needed, tuple(void))


def _judged(actor: Actor, demand: Demand, about: About) -> tuple[str, list[str]]:
    """Why the decision does not count, empty where it does; and in whose place it was taken."""
    if actor.scopes is not None:
        return REVOKED, []
    try:
        return "", seats(actor, demand, about)
    except NotAllowed as refused:
        return refused.message, []


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
    tokens = {decision.token_id for decision in decisions if decision.token_id}
    revoked = set(Token.objects.filter(pk__in=tokens).exclude(revoked_at=None).values_list("pk", flat=True))
    return [
        _taker(decision, members.get(decision.user_id), decision.token_id in revoked)
        for decision in decisions
    ]


def _taker(decision: ApprovalDecision, membership: Membership | None, revoked: bool) -> Actor:
    """A decision of before doors were recorded is nobody's at Deputy's pages. That of a token which was taken
    back reaches nowhere any more; one that has merely expired could decide when it did.
    """
    user: Any = decision.user
    active = membership if user.is_active else None
    via = Via(decision.via or Via.TOKEN.value)
    scopes: frozenset[str] | None = frozenset() if revoked else None
    return Actor(user, active, via, scopes, decision.as_human, decision.token_id)


def refusal(actor: Actor, demand: Demand, about: About) -> str:
    """Why this decision does not count; empty where it does."""
    try:
        may_decide(actor, demand, about)
    except NotAllowed as refused:
        return refused.message
    return ""
