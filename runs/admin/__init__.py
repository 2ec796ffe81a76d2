"""The admin of runs and approvals."""

from . import approvals, history, mcp, models, runs, schedules, webhooks

__all__ = ["approvals", "history", "mcp", "models", "runs", "schedules", "webhooks"]
