"""The admin of capabilities, rules and standing approvals."""

from . import capabilities, grants, rules

__all__ = ["capabilities", "grants", "rules"]
