"""The working memory of agents: segments of pages they open, fold, write and rearrange (seed 002)."""

from .agent import AgentContext
from .changes import Change, apply_change
from .errors import ContextError, InvalidOperation, NotFound, PermissionDenied
from .system import ContextSystem
from .tree import Tree

__all__ = [
    "AgentContext",
    "Change",
    "ContextError",
    "ContextSystem",
    "InvalidOperation",
    "NotFound",
    "PermissionDenied",
    "Tree",
    "apply_change",
]
