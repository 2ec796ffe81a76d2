"""May they: one function decides about every tool call (policy/evaluate.py)."""

from policy.terms import AgentContext, DelegatedPermissions

__all__ = ["AgentContext", "DelegatedPermissions"]
