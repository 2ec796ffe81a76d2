"""The admin of organizations, people, agents and groups."""

from . import agents, changes, groups, members, organizations, people, providers, tokens

__all__ = ["agents", "changes", "groups", "members", "organizations", "people", "providers", "tokens"]
