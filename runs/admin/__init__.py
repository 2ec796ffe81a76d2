"""The admin of runs and approvals."""

from . import approvals, history, mcp, runs, schedules, webhooks

__all__ = ["approvals", "history", "mcp", "runs", "schedules", "webhooks"]
