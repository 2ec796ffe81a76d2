"""Who there is: organizations, people, tokens, roles, agents and groups."""

from .agents import AgentInstance, Role
from .groups import Group, GroupMember, RoutingExample
from .organizations import Membership, Organization, Project
from .tokens import Token

__all__ = [
    "AgentInstance",
    "Group",
    "GroupMember",
    "Membership",
    "Organization",
    "Project",
    "Role",
    "RoutingExample",
    "Token",
]
