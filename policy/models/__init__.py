"""May they: capabilities, what binds tools to them, rules and standing approvals."""

from .capabilities import Capability, ToolBinding
from .declarations import ToolDeclaration
from .entities import OutsideEntity
from .grants import Grant, GrantUse
from .rules import CapabilityRule
from .version import PolicyVersion

__all__ = [
    "Capability",
    "CapabilityRule",
    "Grant",
    "GrantUse",
    "OutsideEntity",
    "PolicyVersion",
    "ToolBinding",
    "ToolDeclaration",
]
