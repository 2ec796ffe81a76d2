"""For whom somebody may issue an API token: themselves, and service accounts; never another person."""

from collections.abc import Collection
from typing import Any

from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from groups import changes, current, member_permissions, members
from groups.models import Change, ChangeAction, CustomRole, Membership, Organization, Token
from groups.models.organizations import MembershipKind


def issued_by(user: Any) -> QuerySet[Membership]:
    """The memberships for which the user may have tokens made, as far as a list can tell."""
    found = Membership.objects.filter(active=True)
    if user.is_superuser:
        return found.filter(Q(user=user) | Q(kind=MembershipKind.SERVICE))
    mine = current.membership_of(user)
    if mine is None:
        return found.none()
    services = Q(kind=MembershipKind.SERVICE, user__is_superuser=False)
    return found.filter(Q(user=user) | services, organization_id=mine.organization_id)


def end(organization_id: str, user_id: int) -> None:
    """Revoke the user's tokens in the organization: who comes back gets new ones, of their new place."""
    live = Token.objects.filter(organization_id=organization_id, user_id=user_id, revoked_at=None)
    changes.update(live, revoked_at=Now())


def places(of: Membership | CustomRole) -> dict[str, Membership]:
    """The memberships of service accounts that this is or that have this member role, as they are stored."""
    about = {"pk": of.pk} if isinstance(of, Membership) else {"custom_role": of.pk}
    found = Membership.objects.filter(kind=MembershipKind.SERVICE, **about)
    return {member.pk: member for member in found.select_related("custom_role")}


def end_of_promoted(before: dict[str, Membership], of: Membership | CustomRole) -> None:
    """Where a service account may do more than before, revoke its tokens that others have issued who could
    issue none for it now: nobody keeps what they would not get.
    """
    for member_id, now in places(of).items():
        was = before.get(member_id)
        if was is None or _exceeds(now, was):
            _end_of_lesser(now)


def _end_of_lesser(member: Membership) -> None:
    live = Token.objects.filter(
        organization_id=member.organization_id, user_id=member.user_id, revoked_at=None
    )
    made = Change.objects.filter(
        model="groups.token", action=ChangeAction.ADDED, object_id__in=live.values("pk")
    ).exclude(user_id=member.user_id)
    lesser = [one.object_id for one in made.select_related("user") if _is_less(one.user, member)]
    changes.update(live.filter(pk__in=lesser), revoked_at=Now())


def _is_less(user: Any, member: Membership) -> bool:
    """Whether the user may do less in the organization than the member; Deputy itself does not."""
    if user is None or user.is_superuser:
        return False
    theirs = Membership.objects.filter(organization_id=member.organization_id, user=user, active=True)
    mine = theirs.select_related("custom_role").first() if user.is_active else None
    return mine is None or _exceeds(member, mine)


def _exceeds(one: Membership, other: Membership) -> bool:
    """Whether one membership reaches further: by its permissions, its projects or what its agents may use."""
    return bool(
        member_permissions.of(one) - member_permissions.of(other)
        or _wider(one.projects, other.projects)
        or _wider(one.allowed_tools, other.allowed_tools)
        or {*other.denied_tools} - {*one.denied_tools}
    )


def _wider(one: Collection[str] | None, other: Collection[str] | None) -> bool:
    """Of two lists, of which a missing one restricts nothing."""
    return other is not None and (one is None or bool({*one} - {*other}))


def refuses(by: Any, organization: Organization, user: Any) -> str:
    """Why `by` may not issue a token for the user in the organization; empty where they may."""
    target = issued_by(by).filter(organization=organization, user=user).select_related("custom_role").first()
    if target is None:
        return _("A token is issued for oneself or for a service account of the organization.")
    if user.pk == by.pk or by.is_superuser:
        return ""
    mine = current.membership_of(by)
    if mine is None or not members.whole(by) or _exceeds(target, mine):
        return _("This service account may do more than you.")
    return ""
