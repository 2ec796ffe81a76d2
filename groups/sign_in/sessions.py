"""What a browser's session knows of how it was opened, and what follows from it at every request."""

import time
from dataclasses import dataclass
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from groups import accounts, actors
from groups.models import IdentityProvider, ProviderSession
from groups.models.providers import INSTALLATION
from groups.sign_in.openid import LEEWAY
from groups.sign_in.providers import Provider, find

BEGAN_AT, SEEN_AT = "deputy_began_at", "deputy_seen_at"  # the session's keys, in seconds since 1970
SID = 255  # characters of a provider's session's name by which it is looked for
SEEN_EVERY = 60  # seconds: how exactly it is kept when a session was last used
ENTERING = "_deputy_entering"  # on a request
THROUGH = "deputy_through"  # the session's key: by which provider its user signed in


@dataclass(frozen=True)
class Through:
    """The provider that vouched for the session's user. `organization`: the only one the session is in."""

    provider: str
    organization: str | None
    session: str = ""  # the provider's own (`sid`), for its logout


def enter(request: HttpRequest, provider: Provider, claims: dict[str, Any], user: Any) -> None:
    """Note, before the sign-in is complete, by whom it is; it counts for this user alone."""
    organization = provider.organization_id if isinstance(provider, IdentityProvider) else None
    told = {"user": user.pk, "provider": provider.pk, "organization": organization}
    request.session[THROUGH] = told | {"sid": str(claims.get("sid") or ""), "at": proven_at(provider, claims)}
    setattr(request, ENTERING, True)


def is_entering(request: HttpRequest) -> bool:
    """Whether this request comes back from a provider that vouches for somebody."""
    return hasattr(request, ENTERING)


def forget_provider(request: HttpRequest) -> None:
    """Whoever signs in now comes by no provider."""
    request.session.pop(THROUGH, None)


def note(request: HttpRequest) -> None:
    """Keep by which provider this session was opened where the provider's logout finds it: anew whenever the
    session got another key, as it does when somebody is signed in and when a password changes.
    """
    session = request.session
    told = session.get(THROUGH) if session.accessed else None
    if not isinstance(told, dict):
        return
    if session.session_key is None:
        session.save()
    if told.get("noted") == session.session_key:
        return
    said = {"provider": told["provider"], "user_id": told["user"], "session": told["sid"][:SID]}
    ProviderSession.objects.update_or_create(session_key=session.session_key, defaults=said)
    session[THROUGH] = told | {"noted": session.session_key}


def that_may_be(provider: Provider, claims: dict[str, Any]) -> QuerySet[Session]:
    """The sessions among which are those that such a logout ends."""
    found = ProviderSession.objects.filter(provider=provider.pk)
    if sid := claims.get("sid"):
        found = found.filter(session=str(sid)[:SID])
    else:
        linked = SocialAccount.objects.filter(provider=provider.pk, uid=str(claims["sub"]))
        found = found.filter(user__in=linked.values("user"))
    return Session.objects.filter(pk__in=found.values("session_key"))


def forget() -> int:
    """Drop what was noted of sessions that are gone; how many."""
    there = Session.objects.filter(pk=OuterRef("pk"))
    return int(ProviderSession.objects.filter(~Exists(there)).delete()[0])


def proven_at(provider: Provider, claims: dict[str, Any]) -> int:
    """When the person proved to the provider who they are, by its clock; 0 where it does not say, or names a
    time to come, and where its own entry has been changed so lately that somebody else's may be asked.
    """
    changed = getattr(provider, "changed_at", None)
    if changed is not None and changed > timezone.now() - accounts.VOID_FOR:
        return 0
    at, now = claims.get("auth_time"), int(time.time())
    if not isinstance(at, (int, float)) or at > now + LEEWAY:
        return 0
    return min(int(at), now)


def confirmed_at(request: HttpRequest, user: Any) -> int | None:
    """When who signs in now proved to a provider who they are; None where it is no provider's sign-in."""
    told = _told(request.session, user)
    return None if told is None else int(told["at"])


def confirm(request: HttpRequest, provider: Provider, claims: dict[str, Any], begun_at: float) -> bool:
    """Count the session as confirmed if the person has just proved themselves to the provider."""
    if proven_at(provider, claims) < begun_at - LEEWAY:
        return False
    actors.confirm(request)
    return True


def through(session: Any, user: Any) -> Through | None:
    """How the session's user signed in, if by a provider."""
    told = _told(session, user)
    return None if told is None else Through(told["provider"], told["organization"], told["sid"])


def _told(session: Any, user: Any) -> dict[str, Any] | None:
    told = session.get(THROUGH)
    return told if isinstance(told, dict) and told.get("user") == user.pk else None


def over(session: Any, user: Any) -> bool:
    """Whether the session has to end: its provider is gone, its user became a superuser, or the installation
    takes sign-ins only through its provider.
    """
    how = through(session, user)
    only = bool(settings.OIDC and settings.OIDC["only"])
    if how is None:
        return only and not user.is_superuser
    if how.organization is not None and user.is_superuser:
        return True
    if only and how.provider != INSTALLATION and not user.is_superuser:
        return True
    return find(how.provider) is None


def begin(request: HttpRequest) -> None:
    """Note that somebody has just signed in by this session."""
    request.session[BEGAN_AT] = request.session[SEEN_AT] = int(time.time())


def timed_out(request: HttpRequest) -> bool:
    """Whether the session is older than SESSION_SECONDS or has been left alone for SESSION_IDLE_SECONDS.

    Opening a page or sending a form is use; what a page left open asks for by itself is not.
    """
    session, now = request.session, int(time.time())
    began, seen = session.get(BEGAN_AT), session.get(SEEN_AT)
    if not isinstance(began, int) or not isinstance(seen, int):
        begin(request)  # of a version that kept no times
        return False
    if now - began >= settings.SESSION_SECONDS or now - seen >= settings.SESSION_IDLE_SECONDS:
        return True
    by_itself = request.method == "GET" and request.headers.get("Sec-Fetch-Mode", "navigate") != "navigate"
    if now - seen >= SEEN_EVERY and not by_itself:
        session[SEEN_AT] = now
    return False
