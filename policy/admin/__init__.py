"""The admin of capabilities, rules and standing approvals."""

from . import capabilities, declarations, grants, rules

__all__ = ["capabilities", "declarations", "grants", "rules"]
