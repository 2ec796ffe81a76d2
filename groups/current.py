"""The organization somebody acts in at the moment: a token's, the one chosen in the session, or the only one.

Their role there says what they may do. What they are elsewhere does not count.
"""

import time
from collections.abc import Callable
from typing import Any

from django.contrib.auth import middleware
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin
from django.utils.functional import SimpleLazyObject

from groups import changes, member_permissions
from groups.models import Door, IdentityProvider, Membership, Move, MoveState, Organization

CHOSEN = "deputy_organization"  # the session's key: the id of the organization
OWN_PAGES = "web"  # the namespace of people's own pages
ALL = "_deputy_memberships"  # on a session's user: every membership
LOOKED_UP = "_deputy_looked_up"  # and when these, or the token, were read, by time.monotonic()
CHOICE = "_deputy_chosen"  # on a session's user: the id of the organization
THROUGH = "_deputy_through"  # on a session's user: by which provider they signed in, or None


def memberships_of(user: Any) -> list[Membership]:
    """The user's active memberships, by the organization's name; for a session's user found once."""
    if not getattr(user, "is_active", False):
        return []
    if hasattr(user, ALL):
        known: list[Membership] = getattr(user, ALL)
        return known
    found = here(Membership.objects.filter(user_id=user.pk, active=True)).select_related(
        "organization", "custom_role"
    )
    if hasattr(user, THROUGH):
        found = vouched_for(found, user)
    now = time.monotonic()
    rows = list(found.order_by("organization__name", "organization_id"))
    if hasattr(user, CHOICE):
        setattr(user, ALL, rows)
        setattr(user, LOOKED_UP, now)
    return rows


def looked_up_at(user: Any) -> float:
    """When the memberships of a session's user, or a token's, were read, by time.monotonic(); now where none
    were.
    """
    return float(getattr(user, LOOKED_UP, time.monotonic()))


def here(found: QuerySet[Membership]) -> QuerySet[Membership]:
    """Those of organizations that are in this cell."""
    gone = Move.objects.filter(state__in=[MoveState.MOVED, MoveState.ARRIVING])
    return found.exclude(organization_id__in=gone.values("organization_id"))


def vouched_for(found: QuerySet[Membership], user: Any) -> QuerySet[Membership]:
    """Those of a session's memberships that its sign-in reaches. An organization's provider opens that
    organization alone; where an organization takes sign-ins only by providers it says so of, others open it
    for superusers.
    """
    through = getattr(user, THROUGH)
    if through is not None and through.organization is not None:
        found = found.filter(organization_id=through.organization)
    if user.is_superuser:
        return found
    only = IdentityProvider.objects.filter(
        organization_id=OuterRef("organization_id"), active=True, only=True
    )
    own = only.filter(pk=through.provider if through else "")
    return found.filter(~Exists(only) | Exists(own))


def membership_of(user: Any) -> Membership | None:
    """The membership by which the user acts now.

    For a request it is found once; who has chosen none acts where they have been longest. Without a request
    there is no choice: somebody who belongs to several organizations acts in none of them.
    """
    if hasattr(user, changes.STANDING):
        membership: Membership | None = getattr(user, changes.STANDING)
        return membership
    found = memberships_of(user)
    if not hasattr(user, CHOICE):
        return found[0] if len(found) == 1 else None
    chosen = [each for each in found if each.organization_id == getattr(user, CHOICE)]
    # nobody else puts them anywhere by taking them into another one, or by what that is called
    longest = sorted(found, key=lambda each: (each.created_at, each.pk))
    membership = next(iter(chosen or longest), None)
    stand(user, membership)
    return membership


def holds(user: Any, organization_id: str, permission: str) -> bool:
    """Whether the user's membership in that organization, wherever they act now, carries the permission."""
    found = Membership.objects.filter(user_id=user.pk, organization_id=organization_id, active=True)
    return found.filter(member_permissions.holding(permission), user__is_active=True).exists()


def stand(user: Any, membership: Membership | None) -> None:
    """Let the user act by this membership for the rest of the request."""
    setattr(user, changes.STANDING, membership)


def choose(request: HttpRequest, organization_id: str) -> Organization | None:
    """Act in this organization from now on; None where the session's user is no member of it."""
    for membership in memberships_of(request.user):
        if membership.organization_id == organization_id:
            request.session[CHOSEN] = organization_id
            stand(request.user, membership)
            return membership.organization
    return None


class CurrentOrganization(MiddlewareMixin):
    """Tells a session's user which organization was chosen, and the record of changes who makes them. Nothing
    is read before somebody asks.
    """

    get_response: Callable[[HttpRequest], Any]

    def process_request(self, request: HttpRequest) -> None:
        request.user = SimpleLazyObject(lambda: _of_session(request))  # type: ignore[assignment]
        changes.made_by(lambda: changes.By(request.user, _door(request), confirmed=_confirmed(request)))

    def process_response(self, request: HttpRequest, response: Any) -> Any:
        changes.made_by(None)
        return response


def _door(request: HttpRequest) -> Door:
    """Which of Deputy's pages were asked for; the API says so itself, once it knows who asks."""
    found = request.resolver_match
    return Door.PAGE if found is not None and OWN_PAGES in found.namespaces else Door.ADMIN


def _confirmed(request: HttpRequest) -> bool:
    from groups import actors

    return actors.is_confirmed(request)


def _of_session(request: HttpRequest) -> Any:
    from groups.sign_in import sessions

    user = middleware.get_user(request)
    if user.is_authenticated and (sessions.timed_out(request) or sessions.over(request.session, user)):
        request.session.flush()
        return AnonymousUser()
    if user.is_authenticated:
        setattr(user, CHOICE, request.session.get(CHOSEN))
        setattr(user, THROUGH, sessions.through(request.session, user))
    return user


class MembershipBackend(ModelBackend):
    """Signs people in by password, and takes their permissions from the role of their membership.

    A superuser runs the installation: Django lets them pass everywhere. What is decided for an organization
    asks the membership itself (policy/authority.py).
    """

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        if not user_obj.is_active or user_obj.is_anonymous or obj is not None:
            return set()
        return set(member_permissions.of(membership_of(user_obj)))

    def get_user_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        return set()

    def get_group_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        return self.get_all_permissions(user_obj, obj)

    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        return perm in self.get_all_permissions(user_obj, obj)

    def has_module_perms(self, user_obj: Any, app_label: str) -> bool:
        return any(name.startswith(f"{app_label}.") for name in self.get_all_permissions(user_obj))
