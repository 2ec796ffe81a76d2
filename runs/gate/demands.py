"""What an approval has to satisfy, and which of its decisions count today.

Asked when a decision is taken and once more when the call is about to run: the demand is that of the policy
and the arguments of that moment, and a decision counts as long as whoever took it could still take it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from common.db import rows
from groups import today
from groups.actors import Actor, Via
from policy.authority import About, Demand, NotAllowed, may_decide, may_take, seats
from policy.terms import Decision
from runs.gate import chats
from runs.models import Approval

REVOKED = "the token it was taken with was revoked"
TAKER, JOINS = today.doer("d.user_id", "d.token_id", "%s")
TAKEN = f"""
SELECT d.created_at, d.chat, d.via, d.as_human, d.token_id, {TAKER} FROM runs_approvaldecision d {JOINS}
WHERE d.approval_id = %s AND d.arguments_digest = %s AND d.approved ORDER BY d.id
"""  # noqa: S608 - the names of our own columns


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
    """How many approvals of exactly these arguments count. One query, and each one's rights."""
    taken = taken_by(approval_id, arguments_digest, about.organization_id)
    judged = [(actor, *_judged(actor, at, demand, about)) for actor, at in taken]
    void = [f"{actor}: {why}" for actor, why, _ in judged if why]
    places = [found for _, why, found in judged if not why]
    count = seated(places)
    if count < len(places):
        void.append("two of them decided in the place of the same person")
    return Counted(count, demand.deciders_needed, tuple(void))


def _judged(actor: Actor, at: datetime, demand: Demand, about: About) -> tuple[str, list[str]]:
    """Why the decision does not count, empty where it does; and in whose place it was taken.

    It was taken about what was demanded then, which may be more by now.
    """
    if actor.scopes is not None and not actor.scopes:
        return REVOKED, []
    if actor.via == Via.CHAT and not chats.counts(actor, about):
        return chats.NOT_VOUCHED_FOR, []
    try:
        places = seats(actor, demand, about)
        may_take(actor, demand, at)
        return "", places
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


def taken_by(approval_id: str, arguments_digest: str, organization_id: str) -> list[tuple[Actor, datetime]]:
    """Whoever approved these arguments, as they are today, by the door they did it at; and when."""
    found = rows(TAKEN, [organization_id, approval_id, arguments_digest])
    return [(_taker(*one[1:5], values=iter(one[5:])), one[0]) for one in found]


def _taker(
    chat: str | None, door: str, as_human: bool, token_id: str | None, *, values: Iterator[Any]
) -> Actor:
    """Who took a decision. One from before doors were recorded, without any, counts as a token's, never as
    made on Deputy's pages.
    """
    return replace(today.taken(door, token_id, values, as_human), chat=chat)


def refusal(actor: Actor, demand: Demand, about: About) -> str:
    """Why this decision does not count; empty where it does."""
    try:
        may_decide(actor, demand, about)
    except NotAllowed as refused:
        return refused.message
    return ""
