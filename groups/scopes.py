"""How far a token may reach: the names of its scopes. What each address asks for stands at its view."""

from collections.abc import Sequence

SCOPES = {
    "runs:read": "Look at runs, their events, calls and views, and at the tools",
    "runs:write": "Start runs, speak to them, signal, cancel; drive a run from outside",
    "speak_as_person": "Have what it says to runs count as its user's own words",
    "approvals:read": "Look at approvals",
    "approvals:decide": "Decide approvals, and say what became of an interrupted call",
    "groups:read": "Look at groups, members, roles and projects; ask where a goal would go",
    "groups:write": "Arrange groups, members, roles, projects and what routing learnt",
    "policy:read": "Look at rules and standing approvals; ask what policy would decide",
    "policy:write": "Arrange rules; revoke standing approvals",
    "memory:read": "Look at memories and search them",
    "memory:write": "Write and curate memories",
    "webhooks:read": "Look at webhooks and what they were told",
    "webhooks:write": "Arrange webhooks, try them, send again",
    "tokens:read": "Look at one's own tokens",
    "tokens:write": "Issue and revoke one's own tokens",
}
DEFAULT = tuple(name for name in SCOPES if name.endswith(":read"))  # of a token that asks for none
BY_NAME = frozenset({"speak_as_person"})  # says whose words a token's are; no address asks for it


def reach(scopes: Sequence[str]) -> frozenset[str]:
    """What a token with these scopes reaches: those, and nothing where there are none."""
    return frozenset(scopes)
