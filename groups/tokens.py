"""For whom somebody may issue an API token: themselves, and service accounts; never another person."""

from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from groups import changes, current, member_permissions, members
from groups.models import AgentInstance, Membership, Organization, Role, Token
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


def _exceeds(one: Membership, other: Membership) -> bool:
    """Whether agents of one member may use more: by the membership, or by the role of its own agent."""
    return _may_use_more(one, other) or _may_use_more(_agents_role(one), _agents_role(other))


def _agents_role(member: Membership) -> Role:
    """The role of the member's own agent, or of the one that it will get."""
    here = {"organization_id": member.organization_id}
    own = AgentInstance.objects.filter(**here, user_id=member.user_id).select_related("role").first()
    usual = Role.objects.filter(**here, name=settings.PERSONAL_ROLE).first()
    return own.role if own is not None else usual or Role(**here)


def _may_use_more(one: Membership | Role, other: Membership | Role) -> bool:
    allowed = members.wider(other.allowed_tools, one.allowed_tools)
    return allowed or bool({*other.denied_tools} - {*one.denied_tools})


def refuses(by: Any, organization: Organization, user: Any) -> str:
    """Why `by` may not issue a token for the user in the organization; empty where they may.

    Whoever holds a service account's token may do what the account comes to do by whatever others arrange.
    """
    target = issued_by(by).filter(organization=organization, user=user).select_related("custom_role").first()
    if target is None:
        return _("A token is issued for oneself or for a service account of the organization.")
    if user.pk == by.pk or by.is_superuser:
        return ""
    mine = current.membership_of(by)
    administers = members.whole(by) and member_permissions.every() <= member_permissions.of(mine)
    if mine is None or not administers or _exceeds(target, mine):
        return _("Tokens of service accounts are for administrators, whose own agents may use as much.")
    return ""
