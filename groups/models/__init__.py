"""Who there is: organizations, people, tokens, roles, agents and groups."""

from .absences import Absence
from .agents import AgentInstance, Role
from .cells import Cell, Move, MovedPerson, MovedToken, MoveState, OtherCell
from .changes import Change, ChangeAction, Door
from .connections import Connection
from .groups import Group, GroupMember, RoutingExample
from .member_roles import CustomRole, MemberRole
from .organizations import Membership, Organization, Project
from .proposals import ProposalState, ProposedChange
from .providers import IdentityProvider, KeptSignIn, ProviderSession
from .readers import Reader
from .storage import StorageUse
from .tokens import Token

__all__ = [
    "Absence",
    "AgentInstance",
    "Cell",
    "Change",
    "ChangeAction",
    "Connection",
    "CustomRole",
    "Door",
    "Group",
    "GroupMember",
    "IdentityProvider",
    "KeptSignIn",
    "MemberRole",
    "Membership",
    "Move",
    "MoveState",
    "MovedPerson",
    "MovedToken",
    "Organization",
    "OtherCell",
    "Project",
    "ProposalState",
    "ProposedChange",
    "ProviderSession",
    "Reader",
    "Role",
    "RoutingExample",
    "StorageUse",
    "Token",
]
