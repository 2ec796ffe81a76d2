"""The admin of runs and approvals."""

from . import approvals, history, mcp, runs

__all__ = ["approvals", "history", "mcp", "runs"]
