"""Groups with their roles: one query a project, kept until a group, a member or a role changes."""

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from common.db import row, rows

TTL = 300  # seconds, at most; a change of any group shows at once through the project's version
KEPT_PROJECTS = 500
SHOWN_IN_PROMPT = 5

VERSION = "SELECT catalog_version FROM groups_project WHERE id = %s"

GROUPS_WITH_ROLES = """
SELECT g.id, g.name, g.description, g.capabilities, g.max_rounds,
       m.agent_instance_id, m.ordinal, m.is_lead, r.id, r.name, r.description, m.id
FROM groups_group g
LEFT JOIN groups_groupmember m ON m.group_id = g.id
LEFT JOIN groups_role r ON r.id = m.role_id
WHERE g.project_id = %s AND g.active
ORDER BY g.created_at, g.id, m.is_lead, m.ordinal
"""


@dataclass(frozen=True)
class Seat:
    """A member: the agent, its role, whether it leads; `id` of the GroupMember."""

    agent: str
    ordinal: int
    is_lead: bool
    role_id: str
    role: str
    description: str
    id: str = ""

    def as_member(self) -> dict[str, Any]:
        """The member as run.created records it."""
        return {
            "agent": self.agent,
            "role_id": self.role_id,
            "role": self.role,
            "ordinal": self.ordinal,
            "is_lead": self.is_lead,
            "seat": self.id,
        }


@dataclass(frozen=True)
class GroupWithRoles:
    """An active group; its seats in speaking order, the lead last."""

    id: str
    name: str
    description: str
    capabilities: tuple[str, ...]
    max_rounds: int
    seats: tuple[Seat, ...]

    @property
    def members(self) -> tuple[dict[str, Any], ...]:
        return tuple(seat.as_member() for seat in self.seats)

    def as_dict(self) -> dict[str, Any]:
        """The shape `list_available_groups` returns (seed 003, 2)."""
        return {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "capabilities": list(self.capabilities),
            "members": [{"role": seat.role, "description": seat.description} for seat in self.seats],
        }


_kept: OrderedDict[str, tuple[int, float, tuple[GroupWithRoles, ...]]] = OrderedDict()


def version(project_id: str) -> int:
    """A number that grows whenever a group, member or role of the project changes."""
    found = row(VERSION, [project_id])
    return found[0] if found else 0


def list_groups_with_roles(project_id: str) -> tuple[GroupWithRoles, ...]:
    """The project's active groups in order of creation, memberless ones too (seed 003, 4.1)."""
    return edition(project_id)[1]


def edition(project_id: str, current: int | None = None) -> tuple[int, tuple[GroupWithRoles, ...]]:
    """The groups and the version they are of. One query while nothing changes, two when it has; one less
    where the caller has read the `current` version.
    """
    current = version(project_id) if current is None else current
    kept = _kept.get(project_id)
    if kept and kept[0] == current and kept[1] > time.monotonic():
        return current, kept[2]
    groups = _load(project_id)
    _kept[project_id] = (current, time.monotonic() + TTL, groups)
    while len(_kept) > KEPT_PROJECTS:
        _kept.popitem(last=False)
    return current, groups


def find_group(project_id: str, group_id: str) -> GroupWithRoles | None:
    """An active group of the project, by id."""
    return next((group for group in list_groups_with_roles(project_id) if group.id == group_id), None)


def _load(project_id: str) -> tuple[GroupWithRoles, ...]:
    heads: dict[str, tuple[Any, ...]] = {}
    seats: dict[str, list[Seat]] = {}
    for found in rows(GROUPS_WITH_ROLES, [project_id]):
        heads[found[0]] = found[:5]
        seats.setdefault(found[0], [])
        if found[5]:
            seats[found[0]].append(Seat(*found[5:]))
    return tuple(
        GroupWithRoles(id, name, description, tuple(capabilities), max_rounds, tuple(seats[id]))
        for id, name, description, capabilities, max_rounds in heads.values()
    )


def prompt_section(groups: list[GroupWithRoles], more: int) -> str:
    """The prompt's catalog of groups, in seed 003's format; `more` groups are left out of it."""
    lines = [
        "## Available Groups",
        "",
        "You have access to the following specialized groups for complex tasks:",
        "",
    ]
    for number, group in enumerate(groups, 1):
        lines += [
            f"{number}. **{group.name}** ({group.id})",
            f"   - Capabilities: {', '.join(group.capabilities) or 'not stated'}",
            f"   - Members: {', '.join(seat.role for seat in group.seats)}",
            f"   - Use when: {' '.join(group.description.split()) or 'not stated'}",
            "",
        ]
    if more:
        lines += [f"{more} more: use `list_available_groups` to see them.", ""]
    lines += [
        "To escalate a task to a group, use the `escalate_to_group` tool. You can either:",
        "- Specify a group_id explicitly if you know which group to use",
        "- Let the system auto-select by only providing the goal",
        "- Use `list_available_groups` to see all available groups first",
    ]
    return "\n".join(lines)
