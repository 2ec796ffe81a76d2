"""Who asks, and in which organization: by token, or by the session of the admin.

Both leave `request.organization` and `request.membership` behind; nothing is asked without them.
"""

import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone
from rest_framework import authentication

from common.api.errors import Problem
from groups import bearer, cells, changes, current, oauth
from groups.actors import Actor, is_confirmed
from groups.models import Door, Membership, Token

USED_WITHIN = timedelta(minutes=1)  # how exactly last_used_at is kept
SCHEMES = ("token", "bearer")


class TokenAuthentication(authentication.BaseAuthentication):
    """`Authorization: Token dpt_…`; Bearer is understood too, with such a token or one of OAuth."""

    def authenticate(self, request: Any) -> tuple[Any, Token] | None:
        scheme, _, secret = request.headers.get("Authorization", "").strip().partition(" ")
        if scheme.lower() not in SCHEMES:
            return None
        began = time.monotonic()
        found = bearer.live(secret.strip()) or _through_oauth(secret.strip(), request.path)
        if found is None:
            elsewhere(cells.address_of_token(secret.strip()))
            raise Problem(
                401,
                "BAD_TOKEN",
                "The token is unknown, revoked or expired.",
                headers={"WWW-Authenticate": self.authenticate_header(request)},
            )
        token, membership = found
        setattr(token.user, current.LOOKED_UP, began)
        stand(request, token.user, [membership] if membership else [])
        touch(token)
        scopes = tuple(token.scopes)
        changes.made_by(lambda: changes.By(token.user, Door.API, token.pk, scopes=scopes))
        request.actor = Actor.of_token(token, request.membership)
        return token.user, token

    def authenticate_header(self, request: Any) -> str:
        return 'Token realm="deputy"'


class SessionAuthentication(authentication.SessionAuthentication):
    """The admin's session, with CSRF. Where somebody is in several organizations, `X-Organization: slug`
    says which is meant, or what was chosen in the admin.
    """

    def authenticate(self, request: Any) -> tuple[Any, None] | None:
        found = super().authenticate(request)
        if found is None:
            return None
        stand(request, found[0], current.memberships_of(found[0]), request.session.get(current.CHOSEN))
        changes.made_by(lambda: changes.By(found[0], Door.API, confirmed=is_confirmed(request)))
        request.actor = Actor.of_session(request, found[0], request.membership)
        return found[0], None

    def enforce_csrf(self, request: Any) -> None:
        try:
            super().enforce_csrf(request)
        except Exception as error:
            if getattr(error, "status_code", 0) != 403:
                raise
            detail = f"{error}. Send the cookie's token as X-CSRFToken."
            raise Problem(403, "CSRF_FAILED", detail) from None


def stand(request: Any, user: Any, memberships: list[Membership], chosen: str | None = None) -> None:
    """Put the asker into an organization. Raises Problem when there is none, or no telling which."""
    wanted = request.headers.get("X-Organization", "")
    if wanted:
        memberships = [each for each in memberships if each.organization.slug == wanted]
    if not memberships:
        elsewhere(cells.address_of_slug(wanted) if wanted else None)
        raise Problem(403, "NOT_A_MEMBER", "You have no active membership in this organization.")
    if len(memberships) > 1:
        memberships = [each for each in memberships if each.organization_id == chosen] or memberships
    if len(memberships) > 1:
        slugs = ", ".join(each.organization.slug for each in sorted(memberships, key=_slug))
        raise Problem(
            400, "ORGANIZATION_MISSING", f"Say which organization you mean with X-Organization: {slugs}."
        )
    request.membership = memberships[0]
    request.organization = memberships[0].organization
    current.stand(user, memberships[0])


def elsewhere(address: str | None) -> None:
    """Raises Problem where the organization is in another cell. No redirect: programs would follow it
    without their token, or with it to wherever it leads.
    """
    if address:
        detail = f"The organization is in another cell: ask {address}."
        raise Problem(421, "MOVED", detail, cell=address)


def _through_oauth(secret: str, path: str) -> tuple[Token, Membership | None] | None:
    token = oauth.live(secret, path)
    if token is None:
        return None
    found = Membership.objects.filter(user=token.user, organization=token.organization, active=True)
    memberships = current.here(found)
    return token, memberships.select_related("organization", "custom_role").first()


def _slug(membership: Membership) -> str:
    return membership.organization.slug


def touch(token: Token) -> None:
    """Note that the token is in use, at most once a minute, where the database can write."""
    if token.last_used_at and token.last_used_at > timezone.now() - USED_WITHIN:
        return
    stale = Q(last_used_at=None) | Q(last_used_at__lt=Now() - USED_WITHIN)
    with suppress(DatabaseError), transaction.atomic():
        Token.objects.filter(stale, pk=token.pk).update(last_used_at=Now())
