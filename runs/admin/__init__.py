"""The admin of runs and approvals."""

from . import approvals, history, mcp, runs, webhooks

__all__ = ["approvals", "history", "mcp", "runs", "webhooks"]
