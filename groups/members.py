"""Who may change whose place in an organization, and which roles: one rule for every door.

Nobody changes their own membership, and nobody gives, changes or takes away a role that carries more than
their own. A superuser runs the installation and may change everybody's but their own.
"""

from collections.abc import Collection
from typing import Any

from django.utils.translation import gettext as _

from groups import current, member_permissions
from groups.models import AgentInstance, CustomRole, Membership, Project
from groups.models.providers import INSTALLATION


def whole(user: Any) -> bool:
    """Whether the user's membership names no projects: what holds for all of them is theirs to arrange."""
    if user.is_superuser:
        return True
    mine = current.membership_of(user)
    return mine is not None and mine.projects is None


# Of a project, what says what calls take: there, or where programs ask for it by name.
SETTINGS = ("slug", "allow_self_approval", "approval_profile", "owner")
OF_NEW = ("allow_self_approval", "owner")  # of these, what is more than a new project has without being asked
RULES = "policy.change_capabilityrule"


def settles(user: Any) -> bool:
    """Whether the user may say who approves what in a project: a member of all who may change rules."""
    mine = current.membership_of(user)
    return bool(user.is_superuser) or (whole(user) and RULES in member_permissions.of(mine))


def wider(was: Collection[str] | None, will: Collection[str] | None) -> bool:
    """Whether a list lets more pass; None is no restriction."""
    return was is not None and (will is None or bool({*will} - {*was}))


def says_who_approves(before: Project | None, wanted: Project) -> bool:
    """Whether the change, or the new project where there is none before, says who approves what there."""
    was, names = (before, SETTINGS) if before is not None else (Project(), OF_NEW)
    return any(getattr(was, name) != getattr(wanted, name) for name in names)


def refuses_project(user: Any, before: Project | None, wanted: Project) -> str:
    """Why the user may not change a project so, or add it where there is none before; empty where they may.

    Who approves what is for those who may change rules: what the organization's rules demand there is not for
    members of some projects to take back, nor for who arranges projects alone; and nobody makes themself the
    owner of a project that is there, whom rules may name as a decider.
    """
    if not says_who_approves(before, wanted):
        return ""
    if not settles(user):
        return _("Who approves what takes a member of the whole organization who may change rules.")
    mine = current.membership_of(user)
    if before is None or user.is_superuser or mine is None:
        return ""
    own = before.owner_id != mine.pk == wanted.owner_id
    return _("Nobody makes themself the owner of a project; ask another administrator.") if own else ""


def refuses_agent(user: Any, wanted: AgentInstance) -> str:
    """Why the user may not save an agent so; empty where they may. Nobody says which role their own agent
    has, and so what it may use.
    """
    before = AgentInstance.objects.filter(pk=wanted.pk).first()
    was = None if before is None else (before.user_id, before.role_id)
    own = user.pk in ({wanted.user_id} if before is None else {before.user_id, wanted.user_id})
    if user.is_superuser or not own or was == (wanted.user_id, wanted.role_id):
        return ""
    return _("Nobody gives their own agent another role; ask another administrator.")


def refuses_membership(user: Any, target: Membership) -> str:
    """Why the user may not save, change or remove this membership; empty where they may.

    Asked of the membership as it is, and again as it is wanted.
    """
    if target.user_id == user.pk and not (target._state.adding and user.is_superuser):
        return _("Nobody changes their own membership; ask another administrator.")
    return _refuses(user, target.organization_id, member_permissions.of_role(*_role_of(target)))


def refuses_role(user: Any, target: CustomRole) -> str:
    """Why the user may not save, change or remove this role; empty where they may."""
    mine = current.membership_of(user)
    if mine is not None and mine.custom_role_id == target.pk and not target._state.adding:
        return _("Nobody changes the role they hold themselves; ask another administrator.")
    return _refuses(user, target.organization_id, frozenset(target.permissions or ()))


def refuses_provider(user: Any, organization_id: str) -> str:
    """Why the user may not arrange who vouches for the organization's people; empty where they may."""
    return _refuses(user, organization_id, member_permissions.every())


def refuses_exchange(user: Any, organization_id: str, provider_id: str) -> str:
    """Why the user may not say what people's sign-ins at this provider are exchanged for; empty where they
    may. Nobody is asked again before it is done in their name. Sign-ins at the installation's provider are a
    superuser's to give, for they are those of other organizations' people, too.
    """
    if provider_id == INSTALLATION and not user.is_superuser:
        return _("Only a superuser has sign-ins at the installation's provider exchanged.")
    return refuses_provider(user, organization_id)


def _refuses(user: Any, organization_id: str, carried: Collection[str]) -> str:
    if user.is_superuser:
        return ""
    mine = current.membership_of(user)
    if mine is None or mine.organization_id != organization_id or mine.projects is not None:
        return _("This takes a member of the whole organization.")
    if set(carried) - member_permissions.of(mine):
        return _("This role carries more than your own.")
    return ""


def _role_of(membership: Membership) -> tuple[str, list[str] | None]:
    own = membership.custom_role
    return membership.role, own.permissions if own else None
