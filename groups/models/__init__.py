"""Who there is: organizations, people, tokens, roles, agents and groups."""

from .absences import Absence
from .agents import AgentInstance, Role
from .changes import Change, ChangeAction, Door
from .groups import Group, GroupMember, RoutingExample
from .member_roles import CustomRole, MemberRole
from .organizations import Membership, Organization, Project
from .tokens import Token

__all__ = [
    "Absence",
    "AgentInstance",
    "Change",
    "ChangeAction",
    "CustomRole",
    "Door",
    "Group",
    "GroupMember",
    "MemberRole",
    "Membership",
    "Organization",
    "Project",
    "Role",
    "RoutingExample",
    "Token",
]
