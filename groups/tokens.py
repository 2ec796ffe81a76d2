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


def carried(place: Membership | CustomRole) -> dict[str, frozenset[str]]:
    """What each service account carries by this membership or member role, as it is stored."""
    about = {"pk": place.pk} if isinstance(place, Membership) else {"custom_role": place.pk}
    found = Membership.objects.filter(kind=MembershipKind.SERVICE, **about)
    return {member.pk: member_permissions.of(member) for member in found.select_related("custom_role")}


def end_of_promoted(before: dict[str, frozenset[str]], place: Membership | CustomRole) -> None:
    """Revoke the tokens of service accounts that others have issued who do not carry what these gain: nobody
    issues one for an account that may do more than they, and so nobody keeps one.
    """
    for member_id, now in carried(place).items():
        if gained := now - before.get(member_id, frozenset()):
            _end_of_lesser(Membership.objects.get(pk=member_id), gained)


def _end_of_lesser(member: Membership, gained: Collection[str]) -> None:
    live = Token.objects.filter(
        organization_id=member.organization_id, user_id=member.user_id, revoked_at=None
    )
    made = Change.objects.filter(
        model="groups.token", action=ChangeAction.ADDED, object_id__in=live.values("pk")
    ).exclude(user_id=member.user_id)
    lesser = [one.object_id for one in made.select_related("user") if not _carries(one.user, member, gained)]
    changes.update(live.filter(pk__in=lesser), revoked_at=Now())


def _carries(user: Any, beside: Membership, wanted: Collection[str]) -> bool:
    """Whether the user, in the organization of the member, carries all that; Deputy itself does."""
    if user is None or user.is_superuser:
        return True
    theirs = Membership.objects.filter(organization_id=beside.organization_id, user=user, active=True)
    found = theirs.select_related("custom_role").first()
    return user.is_active and not set(wanted) - member_permissions.of(found)


def refuses(by: Any, organization: Organization, user: Any) -> str:
    """Why `by` may not issue a token for the user in the organization; empty where they may."""
    target = issued_by(by).filter(organization=organization, user=user).select_related("custom_role").first()
    if target is None:
        return _("A token is issued for oneself or for a service account of the organization.")
    if user.pk == by.pk or by.is_superuser:
        return ""
    if not members.whole(by) or member_permissions.of(target) - member_permissions.of(
        current.membership_of(by)
    ):
        return _("This service account may do more than you.")
    return ""
