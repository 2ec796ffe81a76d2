"""Make a group with its seats in one go; roles that are not there yet are made with it."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from groups.models import AgentInstance, Group, GroupMember, Project, Role

MOST_SEATS = 20


@dataclass(frozen=True)
class NewSeat:
    """A seat for a `role` that is there, or for a new one of this name, told this, with this model."""

    role: Role | None = None
    name: str = ""
    prompt: str = ""
    model: str = ""
    is_lead: bool = False


class CannotMake(Exception):
    """The group cannot be made, and nothing has changed. `code`: NO_SEATS, TOO_MANY_SEATS, SEVERAL_LEADS,
    FOREIGN_ROLE, INVALID, EXISTS; the message says what to do.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def make_group(project: Project, name: str, description: str, seats: Sequence[NewSeat]) -> Group:
    """The group; its members speak in the order of the seats, the lead last. Raises CannotMake."""
    _check(project, seats)
    try:
        with transaction.atomic():
            group = Group(
                organization_id=project.organization_id, project=project, name=name, description=description
            )
            group.full_clean()
            group.save()
            for ordinal, seat in enumerate(seats):
                _sit(group, seat, ordinal)
    except ValidationError as error:
        raise CannotMake("INVALID", " ".join(error.messages)) from None
    except IntegrityError:
        raise CannotMake("EXISTS", "A group or a role of this name is there already.") from None
    return group


def _check(project: Project, seats: Sequence[NewSeat]) -> None:
    if not seats:
        raise CannotMake("NO_SEATS", "A group needs at least one seat: choose a role, or name a new one.")
    if len(seats) > MOST_SEATS:
        raise CannotMake("TOO_MANY_SEATS", f"A group has at most {MOST_SEATS} seats.")
    if sum(seat.is_lead for seat in seats) > 1:
        raise CannotMake("SEVERAL_LEADS", "Only one seat can lead.")
    if any(seat.role and seat.role.organization_id != project.organization_id for seat in seats):
        raise CannotMake("FOREIGN_ROLE", "The role belongs to another organization.")


def _sit(group: Group, seat: NewSeat, ordinal: int) -> None:
    role = seat.role or _role(group, seat)
    agent = AgentInstance.objects.create(organization_id=group.organization_id, role=role, name=role.name)
    GroupMember.objects.create(
        organization_id=group.organization_id,
        group=group,
        role=role,
        agent_instance=agent,
        ordinal=ordinal,
        is_lead=seat.is_lead,
    )


def _role(group: Group, seat: NewSeat) -> Role:
    role = Role(
        organization_id=group.organization_id, name=seat.name, system_prompt=seat.prompt, model=seat.model
    )
    role.full_clean()
    role.save()
    return role
