"""The admin of organizations, people, agents and groups."""

from . import agents, groups, organizations, people, tokens

__all__ = ["agents", "groups", "organizations", "people", "tokens"]
