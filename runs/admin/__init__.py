"""The admin of runs and approvals."""

from . import approvals, history, runs

__all__ = ["approvals", "history", "runs"]
