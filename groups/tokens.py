"""For whom somebody may issue an API token: themselves, and service accounts; never another person."""

from typing import Any

from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from groups import changes, current, member_permissions, members
from groups.models import Membership, Organization, Token
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
