"""How far a token may reach: the names of its scopes. What each address asks for stands at its view."""

from collections.abc import Sequence

from django.utils.translation import gettext_noop

SCOPES = {
    "runs:read": gettext_noop("Look at runs, their events, calls and views, and at the tools"),
    "runs:write": gettext_noop("Start runs, speak to them, signal, cancel; drive a run from outside"),
    "speak_as_person": gettext_noop("Have what it says to runs count as its user's own words"),
    "approvals:read": gettext_noop("Look at approvals"),
    "approvals:decide": gettext_noop("Decide approvals, and say what became of an interrupted call"),
    "groups:read": gettext_noop("Look at groups, members, roles and projects; ask where a goal would go"),
    "groups:write": gettext_noop("Arrange groups, members, roles, projects and what routing learnt"),
    "policy:read": gettext_noop("Look at rules and standing approvals; ask what policy would decide"),
    "policy:write": gettext_noop("Arrange rules; revoke standing approvals"),
    "memory:read": gettext_noop("Look at memories and search them"),
    "memory:write": gettext_noop("Write and curate memories"),
    "webhooks:read": gettext_noop("Look at webhooks and what they were told"),
    "webhooks:write": gettext_noop("Arrange webhooks, try them, send again"),
    "channels:read": gettext_noop("Look at the channels by which oneself is told"),
    "channels:write": gettext_noop("Arrange and try them; it takes speak_as_person too"),
    "accounts:read": gettext_noop("Look at one's own accounts at servers that agents use"),
    "accounts:write": gettext_noop("End one's own accounts there"),
    "tokens:read": gettext_noop("Look at one's own tokens"),
    "tokens:write": gettext_noop("Issue and revoke one's own tokens"),
}
DEFAULT = tuple(name for name in SCOPES if name.endswith(":read"))  # of a token that asks for none
BY_NAME = frozenset({"speak_as_person"})  # says whose words a token's are; no address asks for it


def reach(scopes: Sequence[str]) -> frozenset[str]:
    """What a token with these scopes reaches: those, and nothing where there are none."""
    return frozenset(scopes)
