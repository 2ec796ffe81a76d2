"""Deputy as an OAuth 2.1 authorization server for its own doors: what django-oauth-toolkit leaves open.

Clients are public, name themselves by the address of a document about them (OAuth Client ID Metadata
Document), and get tokens by the code flow with PKCE alone. RFC 8707: a token is for the addresses it names.
"""

import hashlib
import json
from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from oauth2_provider.cimd import CIMDError
from oauth2_provider.models import AccessToken, Grant, RefreshToken
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauth2_provider.scopes import BaseScopes
from oauthlib.oauth2 import InvalidGrantError

from common.outbound import OutboundError, fetch
from groups import changes
from groups.models import Connection, Membership, Organization, Token
from groups.scopes import SCOPES

GRANTS = ("authorization_code", "refresh_token")
RESOURCES = ("/api", "/mcp", "/a2a")  # and everything below them
LOOPBACK = ("127.0.0.1", "::1", "localhost")
DOCUMENT_SECONDS = 3600  # that a client's document is kept
DOCUMENT_BYTES = 16_384


class ConnectedElsewhere(Exception):
    """The program acts for this person in an organization that their session does not reach."""


class Scopes(BaseScopes):
    """Those of Deputy's own tokens."""

    def get_all_scopes(self) -> dict[str, str]:
        return dict(SCOPES)

    def get_available_scopes(self, *args: Any, **kwargs: Any) -> list[str]:
        return list(SCOPES)

    def get_default_scopes(self, *args: Any, **kwargs: Any) -> list[str]:
        return ["runs:read"]


class Validator(OAuth2Validator):
    def validate_grant_type(self, client_id: Any, grant_type: str, *args: Any, **kwargs: Any) -> bool:
        return grant_type in GRANTS and bool(
            super().validate_grant_type(client_id, grant_type, *args, **kwargs)
        )

    def validate_response_type(self, client_id: Any, response_type: str, *args: Any, **kwargs: Any) -> bool:
        return response_type == "code"

    def validate_redirect_uri(self, client_id: Any, redirect_uri: str, *args: Any, **kwargs: Any) -> bool:
        """https, or a program on the person's own machine."""
        to = urlsplit(redirect_uri)
        safe = to.scheme == "https" or (to.scheme == "http" and to.hostname in LOOPBACK)
        return safe and bool(super().validate_redirect_uri(client_id, redirect_uri, *args, **kwargs))

    def validate_refresh_token(
        self, refresh_token: str, client: Any, request: Any, *args: Any, **kw: Any
    ) -> bool:
        """One that was used before ends them all; so does a revoked connection."""
        if not super().validate_refresh_token(refresh_token, client, request, *args, **kw):
            return False
        return _token_of(client, request.user) is not None

    @transaction.atomic
    def save_bearer_token(self, token: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Raises InvalidGrantError for a code or a refresh token that was used or ended since it was looked
        at: `connect` locks the person as well, and what it has ended comes to no tokens.
        """
        get_user_model().objects.select_for_update(no_key=True).get(pk=request.user.pk)
        code = getattr(request, "code", None)
        if code and not Grant.objects.filter(code=code, application=request.client).exists():
            raise InvalidGrantError(request=request)
        if looked_at := getattr(request, "refresh_token_instance", None):
            there = RefreshToken.objects.select_for_update().filter(pk=looked_at.pk, revoked=None)
            if there.first() is None:
                raise InvalidGrantError(request=request)
        return super().save_bearer_token(token, request, *args, **kwargs)


class Documents:
    """Fetches clients' documents by the guard of everything that leaves Deputy."""

    def fetch(self, client_id: str) -> tuple[dict[str, Any], int]:
        try:
            answer = fetch(
                client_id,
                headers={"Accept": "application/json"},
                max_redirects=0,
                max_bytes=DOCUMENT_BYTES,
                timeout=5.0,
                allow_private=frozenset(settings.IDENTITY_ALLOW),
            )
            found = json.loads(answer.text)
        except (OutboundError, ValueError, RecursionError) as error:
            raise CIMDError(f"no document: {error}") from None
        if answer.status != 200 or not isinstance(found, dict):
            raise CIMDError(f"no document: the server answered {answer.status}")
        return found, DOCUMENT_SECONDS


def is_resource(address: str) -> bool:
    """Whether tokens may be asked for this address: it is Deputy's API, MCP or A2A."""
    own = settings.PUBLIC_URL.rstrip("/")
    return (
        any(_covers(own + path, address) for path in RESOURCES) and "?" not in address and "#" not in address
    )


def _covers(resource: str, address: str) -> bool:
    whole = resource.rstrip("/")
    return address.rstrip("/") == whole or address.startswith(whole + "/")


def live(secret: str, path: str) -> Token | None:
    """The connection's token for an OAuth access token that counts at this path, with what the two have in
    common of scopes; None. A token that names no address is for the API.
    """
    digest = hashlib.sha256(secret.encode()).hexdigest()
    found = AccessToken.objects.filter(token_checksum=digest, expires__gt=timezone.now())
    access = found.select_related("user", "application").first()
    if access is None or not access.user or not access.user.is_active:
        return None
    own = settings.PUBLIC_URL.rstrip("/")
    if not any(_covers(each, own + path) for each in access.resource or [own + RESOURCES[0]]):
        return None
    token = _token_of(access.application, access.user)
    if token is not None:
        token.scopes = [scope for scope in token.scopes if scope in access.scope.split()]
    return token if token is not None and token.scopes else None


def _token_of(application: Any, user: Any) -> Token | None:
    """The token of somebody's connection with a program, where it is not revoked and has not expired."""
    found = Token.objects.filter(connection__application=application, connection__user=user, revoked_at=None)
    found = found.filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()))
    return found.select_related("user", "organization").first()


@transaction.atomic
def connect(
    application: Any, user: Any, organization: Organization, scopes: list[str], reached: Collection[str]
) -> Token:
    """Let the program act in the user's name, here and as far as the scopes. What it had before ends.

    `reached`: the organizations of the session in which the person says so. Raises ConnectedElsewhere.
    """
    get_user_model().objects.select_for_update(no_key=True).get(pk=user.pk)  # one connection at a time
    before = Connection.objects.select_for_update().filter(application=application, user=user).first()
    if before is not None and _works_beyond(before, reached):
        raise ConnectedElsewhere
    for model in (AccessToken, RefreshToken, Grant):
        model.objects.filter(application=application, user=user).delete()
    if before is not None:
        changes.update(Token.objects.filter(pk=before.token_id, revoked_at=None), revoked_at=timezone.now())
        before.delete()
    host = urlsplit(application.client_id).hostname or application.client_id
    name = f"{application.name or host} ({host})"
    token, _ = Token.objects.issue(organization, user, name[:100], scopes=scopes)
    Connection.objects.create(application=application, user=user, token=token)
    return token


def _works_beyond(connection: Connection, reached: Collection[str]) -> bool:
    """Whether it works in an organization that is none of these."""
    token = connection.token
    member = Membership.objects.filter(user=token.user_id, organization=token.organization_id, active=True)
    return token.organization_id not in reached and token.revoked_at is None and member.exists()
