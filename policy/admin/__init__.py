"""The admin of capabilities, rules and standing approvals."""

from . import capabilities, declarations, entities, grants, rules

__all__ = ["capabilities", "declarations", "entities", "grants", "rules"]
