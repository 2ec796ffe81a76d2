"""The organization somebody acts in at the moment: a token's, the one chosen in the session, or the only one.

Their role there says what they may do. What they are elsewhere does not count.
"""

from collections.abc import Callable
from typing import Any

from django.contrib.auth import middleware
from django.contrib.auth.backends import ModelBackend
from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin
from django.utils.functional import SimpleLazyObject

from groups import changes, member_permissions
from groups.models import Door, Membership, Organization

CHOSEN = "deputy_organization"  # the session's key: the id of the organization
OWN_PAGES = "web"  # the namespace of people's own pages
STANDING = "_deputy_membership"  # on a request's user: the membership, or None
ALL = "_deputy_memberships"  # on a session's user: every membership
CHOICE = "_deputy_chosen"  # on a session's user: the id of the organization


def memberships_of(user: Any) -> list[Membership]:
    """The user's active memberships, by the organization's name; for a session's user found once."""
    if not getattr(user, "is_active", False):
        return []
    if hasattr(user, ALL):
        known: list[Membership] = getattr(user, ALL)
        return known
    found = Membership.objects.filter(user_id=user.pk, active=True).select_related(
        "organization", "custom_role"
    )
    rows = list(found.order_by("organization__name", "organization_id"))
    if hasattr(user, CHOICE):
        setattr(user, ALL, rows)
    return rows


def membership_of(user: Any) -> Membership | None:
    """The membership by which the user acts now.

    For a request it is found once. Without a request there is no choice: somebody who belongs to several
    organizations acts in none of them.
    """
    if hasattr(user, STANDING):
        standing: Membership | None = getattr(user, STANDING)
        return standing
    found = memberships_of(user)
    if not hasattr(user, CHOICE):
        return found[0] if len(found) == 1 else None
    chosen = [each for each in found if each.organization_id == getattr(user, CHOICE)]
    standing = next(iter(chosen or found), None)
    stand(user, standing)
    return standing


def holds(user: Any, organization_id: str, permission: str) -> bool:
    """Whether the user's membership in that organization, wherever they act now, carries the permission."""
    found = Membership.objects.filter(user_id=user.pk, organization_id=organization_id, active=True)
    return found.filter(member_permissions.holding(permission), user__is_active=True).exists()


def stand(user: Any, membership: Membership | None) -> None:
    """Let the user act by this membership for the rest of the request."""
    setattr(user, STANDING, membership)


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
        changes.made_by(lambda: changes.By(request.user, _door(request)))

    def process_response(self, request: HttpRequest, response: Any) -> Any:
        changes.made_by(None)
        return response


def _door(request: HttpRequest) -> Door:
    """Which of Deputy's pages were asked for; the API says so itself, once it knows who asks."""
    found = request.resolver_match
    return Door.PAGE if found is not None and OWN_PAGES in found.namespaces else Door.ADMIN


def _of_session(request: HttpRequest) -> Any:
    user = middleware.get_user(request)
    if user.is_authenticated:
        setattr(user, CHOICE, request.session.get(CHOSEN))
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
