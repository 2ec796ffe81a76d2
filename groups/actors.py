"""Who acts, and by which door they came in.

An `Actor` is made at the doors (API, MCP, admin, terminal, workers) and nowhere else; actions take one and
ask policy/authority.py what it may do. It is frozen: what was known at the door holds for the request, but
for an action that begins later or waits, which asks about them as they stand then (groups/today.py).
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from django.conf import settings

from common.columns import Columns
from groups import current
from groups.models import CustomRole, Membership, Token
from groups.models.organizations import MembershipKind
from groups.scopes import reach

MEMBERSHIP, CUSTOM_ROLE = Columns(Membership, "m"), Columns(CustomRole, "custom")
MEMBER = f"{MEMBERSHIP.sql}, {CUSTOM_ROLE.sql}"  # for statements that read a membership along
CONFIRMED_AT = "deputy_confirmed_at"  # the session's key: when its user last gave their password, in seconds


class Via(StrEnum):
    """The door."""

    SESSION = "session"
    TOKEN = "token"  # noqa: S105 - the door's name
    MCP = "mcp"
    MAIL_LINK = "mail_link"
    SYSTEM = "system"
    TERMINAL = "terminal"
    SIGNAL = "signal"
    SCHEDULE = "schedule"
    CHAT = "chat"
    A2A = "a2a"


@dataclass(frozen=True)
class Actor:
    """`membership` in the organization at hand, None without an active one there. `scopes`: None is every
    scope. `interactive`: a browser session whose user signed in or confirmed their password within
    CONFIRMED_SECONDS. `acts_for`: the person a program acts for. `chat`: where it was
    pressed, of what comes from one (runs/gate/chats.py). `at`: when they were looked up, by time.monotonic().
    """

    user: Any
    membership: Membership | None
    via: Via
    scopes: frozenset[str] | None = None
    interactive: bool = False
    token_id: str | None = None
    acts_for: Any | None = None
    chat: str | None = None
    at: float = field(default_factory=time.monotonic, compare=False, repr=False)

    @classmethod
    def of_request(cls, request: Any, organization_id: str | None = None, via: Via | None = None) -> "Actor":
        """Whoever sent the request, once it is authenticated.

        API and MCP requests have found their membership already; a page of the admin names the organization,
        or means the current one.
        """
        known: Actor | None = getattr(request, "actor", None)
        if known is None or organization_id not in (None, known.organization_id):
            if organization_id is None and (mine := current.membership_of(request.user)):
                organization_id = mine.organization_id
            here = [one for one in actors_of(request) if one.organization_id == organization_id]
            known = here[0] if here else cls.of_session(request, request.user, None)
        return known if via is None else replace(known, via=via)

    @classmethod
    def of_session(cls, request: Any, user: Any, membership: Membership | None) -> "Actor":
        """Who is signed in to Deputy's pages."""
        confirmed = is_confirmed(request, membership)
        return cls(user, membership, Via.SESSION, None, confirmed, at=current.looked_up_at(user))

    @classmethod
    def of_token(cls, token: Token, membership: Membership | None, via: Via = Via.TOKEN) -> "Actor":
        """The program that holds the token, with the rights of the token's user."""
        at = current.looked_up_at(token.user)
        return cls(token.user, membership, via, reach(token.scopes), False, token.pk, token.user, at=at)

    @classmethod
    def system(cls, organization_id: str) -> "Actor":
        """Deputy itself: the sweep, deadlines, what follows from other events."""
        return cls(None, None, Via.SYSTEM)

    @classmethod
    def terminal(cls, user: Any, organization: Any) -> "Actor":
        """A command on Deputy's own machine, in the name of a user."""
        return cls(user, active_membership(user, organization.pk), Via.TERMINAL)

    @classmethod
    def of_schedule(cls, user: Any, organization_id: str, scopes: frozenset[str]) -> "Actor":
        """A time that a person set has come: it acts in their name as they stand today, within the scopes."""
        return cls(user, active_membership(user, organization_id), Via.SCHEDULE, scopes, acts_for=user)

    def signalling(self) -> "Actor":
        """The same, deciding by a signal."""
        return replace(self, via=Via.SIGNAL)

    def has_scope(self, scope: str) -> bool:
        return self.scopes is None or scope in self.scopes

    @property
    def user_id(self) -> int | None:
        return None if self.user is None else self.user.pk

    @property
    def organization_id(self) -> str | None:
        return None if self.membership is None else self.membership.organization_id

    @property
    def is_person(self) -> bool:
        """Whether the membership is a person's; a service account is none."""
        return self.membership is not None and self.membership.kind == MembershipKind.HUMAN

    def __str__(self) -> str:
        return "" if self.user is None else str(self.user.get_username())


def active_membership(user: Any, organization_id: str | None) -> Membership | None:
    """The user's active membership in the organization, or None."""
    if organization_id is None or not getattr(user, "is_active", False):
        return None
    found = Membership.objects.filter(user=user, organization_id=organization_id, active=True)
    return found.select_related("custom_role").first()


def member_of(values: Iterator[Any]) -> Membership | None:
    """The membership with its role, of the values that MEMBER gave; None where there was none."""
    found, role = MEMBERSHIP.take(values), CUSTOM_ROLE.take(values)
    if found is not None:
        found.custom_role = role
    return found


def actors_of(request: Any) -> list[Actor]:
    """Whoever is signed in, in each organization they are a member of; one query a request."""
    kept: list[Actor] | None = getattr(request, "_deputy_actors", None)
    if kept is None:
        user = request.user
        kept = [Actor.of_session(request, user, each) for each in current.memberships_of(user)]
        request._deputy_actors = kept
    return kept


def confirm(request: Any, at: int | None = None) -> None:
    """Note that the session's user has proved who they are: just now, or at a time, in seconds since 1970."""
    request.session[CONFIRMED_AT] = int(time.time()) if at is None else at


def is_confirmed(request: Any, membership: Membership | None = None) -> bool:
    """Whether a person's session has been confirmed within CONFIRMED_SECONDS."""
    if membership is not None and membership.kind != MembershipKind.HUMAN:
        return False
    session = getattr(request, "session", None)
    confirmed_at = session.get(CONFIRMED_AT) if session is not None else None
    if not isinstance(confirmed_at, int):
        return False
    return 0 <= time.time() - confirmed_at < settings.CONFIRMED_SECONDS
