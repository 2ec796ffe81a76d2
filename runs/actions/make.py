"""Make a group with its seats in somebody's name."""

from collections.abc import Sequence

from groups import making
from groups.actors import Actor
from groups.making import NewSeat
from groups.models import AgentInstance, Group, GroupMember, Project, Role
from policy.authority import About, may_arrange


def make_group(
    actor: Actor, project: Project, name: str, description: str, seats: Sequence[NewSeat]
) -> Group:
    """The group, as groups/making.py makes it. Raises NotAllowed, CannotMake."""
    may_make(actor, project)
    if any(seat.role is None for seat in seats):
        may_make_roles(actor)
    return making.make_group(project, name, description, seats)


def may_make(actor: Actor, project: Project) -> None:
    """Raises NotAllowed unless the actor may add groups with seats to the project. An agent that is made
    with its seat belongs to that, and so to the project.
    """
    for model in (Group, GroupMember, AgentInstance):
        may_arrange(actor, "add", model, [project])


def may_make_roles(actor: Actor) -> None:
    """Raises NotAllowed unless the actor may add roles, which are the whole organization's."""
    may_arrange(actor, "add", Role, [About(actor.organization_id or "")])
