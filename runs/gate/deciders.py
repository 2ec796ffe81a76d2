"""Who may decide an approval, as a list: of approvals for one actor, of people for one approval.

policy/authority.py has the rule for one actor and one approval; a test holds these lists to it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from groups import accounts
from groups.actors import Actor, Via
from groups.member_permissions import holding
from groups.models import Absence, Membership, Project
from policy.authority import (
    OWNER,
    VERBS,
    About,
    Demand,
    NotAllowed,
    Verb,
    holds,
    may_decide,
    may_take,
    names_of,
)
from runs.gate import demands
from runs.models import Approval, ApprovalDecision
from runs.models.choices import ApprovalEffect, ApprovalStatus

# of an approval, to say who may decide it: not its arguments, nor its run's words
NEEDED = ("effect", "deciders_needed", "deciders", "run__organization_id", "run__project_id", "run__user_id")
(PERMISSION,) = VERBS[Verb.DECIDE].permissions


def decidable(actor: Actor, rows: QuerySet[Approval]) -> QuerySet[Approval]:
    """Those of the approvals that wait for the actor."""
    return rows.filter(waits_for(actor))


def waits_for(actor: Actor) -> Q:
    """Which pending approvals wait for the actor: whose decision would count and is not taken yet.

    A person's session counts as confirmed: it can be. One query for the approvals whose rules name deciders.
    """
    mine = actor.membership
    if mine is None:
        return Q(pk__in=[])
    here = Q(organization_id=mine.organization_id, status=ApprovalStatus.PENDING)
    if mine.projects is not None:
        here &= Q(run__project_id__in=mine.projects)
    taken = ApprovalDecision.objects.filter(
        approval=OuterRef("pk"), user=actor.user, arguments_digest=OuterRef("arguments_digest"), approved=True
    )
    found = Q(pk__in=_named(actor, Approval.objects.filter(here)))
    if holds(actor, PERMISSION) and actor.has_scope(VERBS[Verb.DECIDE].scope):
        found = found | _anybodys(actor)
    more = Q(effect=ApprovalEffect.REQUIRE_HUMAN) | Q(deciders_needed__gt=1) | ~Q(deciders=[])
    touched = more & Q(accounts.is_changed_by_another(actor.user, mine.organization_id))
    touched |= ~Q(deciders=[]) & Q(accounts.is_placed_by_another(mine))
    return here & found & ~touched & ~Q(Exists(taken))


def _anybodys(actor: Actor) -> Q:
    """Of the approvals whose rules name nobody, those that one who may decide approvals may decide."""
    people = Q(effect=ApprovalEffect.REQUIRE_HUMAN)
    strict = (people | Q(deciders_needed__gt=1)) & Q(run__project__allow_self_approval=False)
    found = Q(deciders=[]) & ~(strict & Q(run__user=actor.user))
    if not actor.is_person:
        return found & ~people & Q(deciders_needed=1)
    return found if actor.via == Via.SESSION else found & ~people


def _named(actor: Actor, pending: QuerySet[Approval]) -> list[str]:
    """Of the approvals whose rules name their deciders, those the actor may decide."""
    some = pending.exclude(deciders=[]).annotate(allowed=F("run__project__allow_self_approval"))
    there = replace(actor, interactive=actor.via == Via.SESSION)
    small = some.select_related("run").only(*NEEDED)
    return [one.pk for one in small if _counts(there, one, one.allowed)]


def _counts(actor: Actor, approval: Approval, allow_self_approval: bool) -> bool:
    run = approval.run
    about = About(run.organization_id, run.project_id, run.user_id)
    return not demands.refusal(actor, demands.of_approval(approval, allow_self_approval), about)


def who_may_decide(project: Project, user_id: int, demand: Demand, people_only: bool = False) -> list[Any]:
    """The active users who may decide a call of this user's run, by name."""
    about = About(project.organization_id, project.pk, user_id)
    members = Membership.objects.filter(organization_id=project.organization_id, active=True)
    some = members.filter(holding(PERMISSION) | Q(user=user_id), user__is_active=True)
    some = some.select_related("user", "custom_role")
    actors = [Actor(one.user, one, Via.SESSION, interactive=True) for one in some]
    found = [one for one in actors if _may(one, demand, about) and (one.is_person or not people_only)]
    return sorted((one.user for one in found), key=lambda user: str(user.get_username()))


def addressed(approval: Approval, people_only: bool = True) -> list[Any]:
    """The people the approval waits for, or service accounts too: who may decide it and have not."""
    run = approval.run
    demand = demands.of_approval(approval, run.project.allow_self_approval)
    said = approval.decisions.filter(approved=True, arguments_digest=approval.arguments_digest)
    taken = set(said.values_list("user_id", flat=True))
    able = who_may_decide(run.project, run.user_id, demand, people_only)
    return [person for person in able if person.pk not in taken]


def _may(actor: Actor, demand: Demand, about: About) -> bool:
    try:
        may_decide(actor, demand, about)
        may_take(actor, demand)
    except NotAllowed:
        return False
    return True


def away(organization_id: str) -> set[int]:
    """The users who are away now and have somebody stand in for them."""
    now = Absence.objects.filter(
        organization_id=organization_id, starts_at__lte=Now(), ends_at__gt=Now(), stand_in__active=True
    )
    return set(now.values_list("membership__user_id", flat=True))


def in_order(approval: Approval, people: Sequence[Any]) -> list[list[Any]]:
    """These people, in the order in which the approval names them; who is named by none stands last: a
    stand-in, with the absent member's place.
    """
    members = Membership.objects.filter(organization_id=approval.organization_id, active=True)
    by_user = {one.user_id: one for one in members.select_related("custom_role")}
    stand_ins = {
        absence.stand_in.user_id: absence.membership
        for absence in Absence.objects.filter(
            organization_id=approval.organization_id, starts_at__lte=Now(), ends_at__gt=Now()
        ).select_related("stand_in", "membership__custom_role")
        if absence.stand_in is not None
    }
    owner = f"member:{approval.run.project.owner_id}"
    names = [owner if name == OWNER else name for name in approval.deciders[0]]
    ranks: dict[int, list[Any]] = {}
    for person in people:
        places = [
            _place(names, one, person.pk == approval.run.user_id)
            for one in (by_user.get(person.pk), stand_ins.get(person.pk))
        ]
        ranks.setdefault(min(places), []).append(person)
    return [ranks[place] for place in sorted(ranks)]


def _place(names: Sequence[str], membership: Membership | None, own: bool) -> int:
    mine = names_of(membership, own)
    return next((number for number, name in enumerate(names) if name in mine), len(names))
