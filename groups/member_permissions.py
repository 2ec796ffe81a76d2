"""Which permissions a membership carries: those of its role, in its own organization and nowhere else.

Permissions have Django's names, such as `runs.decide_approval`. Django's own tables of permissions are not
asked: they would hold in every organization at once.
"""

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from django.apps import apps
from django.db.models import Q

if TYPE_CHECKING:
    from groups.models import Membership

APPS = ("groups", "policy", "runs", "memory")

LOOKS = (
    *("groups.view_group", "groups.view_groupmember", "groups.view_role", "groups.view_agentinstance"),
    *("groups.view_routingexample", "groups.view_project", "groups.view_organization"),
    *("runs.view_run", "runs.view_toolcall", "runs.view_wait", "runs.view_runevent"),
    *("runs.view_approval", "runs.view_approvaldecision", "memory.view_memory"),
)
STARTS = ("runs.start_run",)
DECIDES = (
    *("runs.decide_approval", "runs.resolve_review", "runs.cancel_run"),
    *("policy.view_capabilityrule", "policy.view_capability", "policy.view_toolbinding"),
    *(
        "policy.view_tooldeclaration",
        "policy.view_outsideentity",
        "policy.view_grant",
        "policy.view_grantuse",
    ),
    *("policy.add_grant", "policy.change_grant"),  # what they may decide, they may allow in advance
)
CURATES = (
    "memory.curate_memory",
    *("groups.add_routingexample", "groups.change_routingexample", "groups.delete_routingexample"),
)
PEOPLE = ("auth.view_user",)  # the accounts of the organization's own members


@cache
def every() -> frozenset[str]:
    """Every permission a role may carry: those of Deputy's own models, and a look at accounts."""
    found = set(PEOPLE)
    for app in APPS:
        for model in apps.get_app_config(app).get_models():
            meta = model._meta
            own = [name for name, _ in meta.permissions]
            codenames = [*(f"{verb}_{meta.model_name}" for verb in meta.default_permissions), *own]
            found.update(f"{app}.{codename}" for codename in codenames)
    return frozenset(found)


@cache
def standard() -> dict[str, frozenset[str]]:
    """What each of the standard roles carries."""
    viewer = frozenset(LOOKS)
    member = viewer | set(STARTS)
    return {
        "viewer": viewer,
        "member": member,
        "decider": member | set(DECIDES),
        "curator": member | set(CURATES),
        "administrator": every(),
    }


def of_role(role: str, custom: Iterable[str] | None = None) -> frozenset[str]:
    """A standard role's permissions, or those of an organization's own role in its place."""
    if custom is not None:
        return frozenset(custom) & every()
    return standard().get(role, frozenset())


def of(membership: "Membership | None") -> frozenset[str]:
    """What the membership carries; nothing where there is none, or it is not active."""
    if membership is None or not membership.active:
        return frozenset()
    own = membership.custom_role
    return of_role(membership.role, own.permissions if own else None)


def holding(permission: str) -> Q:
    """The filter for memberships that carry the permission. Whether they are active is asked apart."""
    roles = [role for role, carried in standard().items() if permission in carried]
    return Q(custom_role=None, role__in=roles) | Q(custom_role__permissions__contains=[permission])
