"""The admin of runs and approvals."""

from . import (
    approvals,
    channels,
    history,
    mcp,
    models,
    organizations,
    prices,
    proposals,
    remote_agents,
    runs,
    schedules,
    webhooks,
)

__all__ = [
    "approvals",
    "channels",
    "history",
    "mcp",
    "models",
    "organizations",
    "prices",
    "proposals",
    "remote_agents",
    "runs",
    "schedules",
    "webhooks",
]
