"""For whom somebody may issue an API token: themselves, and service accounts; never another person."""

from collections.abc import Collection
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from groups import changes, current, member_permissions, members
from groups.models import (
    AgentInstance,
    Change,
    ChangeAction,
    CustomRole,
    Membership,
    Organization,
    Role,
    Token,
)
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
    lesser = [token.pk for token in live if _is_less(_issuer(token.pk, member.user_id), member)]
    changes.update(live.filter(pk__in=lesser), revoked_at=Now())


def _issuer(token_id: str, own: int) -> Any:
    """Who had the token made: of one that a token of the account itself has issued, who had that made."""
    seen: set[str] = set()
    while token_id and token_id not in seen:
        seen.add(token_id)
        made = Change.objects.filter(model="groups.token", action=ChangeAction.ADDED, object_id=token_id)
        change = made.select_related("user").first()
        if change is None or change.user_id != own:
            return change.user if change is not None else None
        token_id = change.token
    return None


def _is_less(user: Any, member: Membership) -> bool:
    """Whether the user may do less in the organization than the member; Deputy itself does not."""
    if user is None or user.is_superuser:
        return False
    theirs = Membership.objects.filter(organization_id=member.organization_id, user=user, active=True)
    mine = theirs.select_related("custom_role").first() if user.is_active else None
    return mine is None or _exceeds(member, mine)


def _exceeds(one: Membership, other: Membership) -> bool:
    """Whether one membership reaches further: by its permissions, its projects, what its agents may use, or
    the role that its own agent has.
    """
    more = member_permissions.of(one) - member_permissions.of(other) or _wider(one.projects, other.projects)
    return bool(more) or _may_use_more(one, other) or _may_use_more(_agents_role(one), _agents_role(other))


def _agents_role(member: Membership) -> Role:
    """The role of the member's own agent, or of the one that it will get."""
    here = {"organization_id": member.organization_id}
    own = AgentInstance.objects.filter(**here, user_id=member.user_id).select_related("role").first()
    usual = Role.objects.filter(**here, name=settings.PERSONAL_ROLE).first()
    return own.role if own is not None else usual or Role(**here)


def _may_use_more(one: Membership | Role, other: Membership | Role) -> bool:
    return _wider(one.allowed_tools, other.allowed_tools) or bool({*other.denied_tools} - {*one.denied_tools})


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
