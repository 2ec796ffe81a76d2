"""What Deputy asks an authorization server as a client: redeem a code, refresh, revoke; and where a person is
sent. OAuth 2.1; RFC 7636 (PKCE), RFC 7009 (revocation), RFC 8707 (resources).
"""

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings
from django.urls import reverse

from common.outbound import Fetched, OutboundError, check_headers, fetch
from common.sealed import Unreadable
from runs.models import McpServer

SECONDS = 8.0  # of one question, at most
MAX_ANSWER = 100_000  # bytes
MAX_TOKEN = 16_000  # characters
MAX_LIFE = 10 * 365 * 24 * 3600  # seconds


class NotGranted(Exception):
    """The authorization server refuses, and will again. `reason`: words for the log, nothing secret in it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Away(Exception):
    """The authorization server gave no usable answer; asked later, it may."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Tokens:
    """What was granted. `seconds`: how long the access token lasts, where that was said."""

    access: str
    refresh: str
    seconds: int | None
    scopes: str


def callback_address(server: McpServer) -> str:
    """Where people come back to from this server's authorization server, and from no other's."""
    return settings.PUBLIC_URL.rstrip("/") + reverse("web:account_callback", args=[server.pk])


def authorization_address(server: McpServer, state: str, verifier: str) -> str:
    """Where the person is sent."""
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    asked = {
        "response_type": "code",
        "client_id": server.client_id,
        "redirect_uri": callback_address(server),
        "scope": server.scopes,
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "resource": resource(server),
    }
    joint = "&" if "?" in server.authorization_endpoint else "?"
    told = {name: value for name, value in asked.items() if value}
    return f"{server.authorization_endpoint}{joint}{urlencode(told)}"


def resource(server: McpServer) -> str:
    return server.resource or server.url.partition("#")[0]


def redeem(server: McpServer, code: str, verifier: str) -> Tokens:
    """The tokens for a code. Raises NotGranted, Away."""
    told = {"code": code, "redirect_uri": callback_address(server), "code_verifier": verifier}
    return _granted(server, {"grant_type": "authorization_code", **told, "resource": resource(server)})


def refresh(server: McpServer, token: str) -> Tokens:
    """New tokens for a refresh token, which may be used up by that. Raises NotGranted, Away."""
    told = {"grant_type": "refresh_token", "refresh_token": token, "resource": resource(server)}
    found = _granted(server, told)
    return found if found.refresh else Tokens(found.access, token, found.seconds, found.scopes)


def revoke(server: McpServer, token: str, kind: str) -> None:
    """Raises NotGranted, Away."""
    answer = _ask(server, server.revocation_endpoint, {"token": token, "token_type_hint": kind})
    if answer.status != 200:
        raise Away(f"it answered {answer.status} to a revocation")


def _granted(server: McpServer, told: dict[str, str]) -> Tokens:
    answer = _ask(server, server.token_endpoint, told)
    try:
        found = json.loads(answer.text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Away(f"it answered {answer.status} without JSON")
    if answer.status in (400, 401, 403):
        raise NotGranted(_error(found))
    if answer.status != 200:
        raise Away(f"it answered {answer.status}")
    return _tokens(found)


def _error(found: dict[str, Any]) -> str:
    """RFC 6749's error code, which is a few plain characters; nothing else of the answer is repeated."""
    code = found.get("error")
    plain = isinstance(code, str) and len(code) < 60 and code.replace("_", "").isalnum() and code.isascii()
    return f"it refuses: {code}" if plain else "it refuses"


def _tokens(found: dict[str, Any]) -> Tokens:
    access, refresh, scope = (found.get(name) or "" for name in ("access_token", "refresh_token", "scope"))
    if str(found.get("token_type", "")).lower() != "bearer":
        raise NotGranted("it gave a token that is no bearer token")
    if not all(isinstance(one, str) and len(one) <= MAX_TOKEN for one in (access, refresh, scope)):
        raise NotGranted("it gave no token")
    try:
        check_headers({"Authorization": f"Bearer {access}"})
    except OutboundError:
        raise NotGranted("it gave a token that cannot be sent") from None
    if not access:
        raise NotGranted("it gave no token")
    return Tokens(access, refresh, _seconds(found.get("expires_in")), scope[:1000])


def _seconds(told: Any) -> int | None:
    try:
        found = int(told)
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(found, 0), MAX_LIFE)


def _ask(server: McpServer, address: str, told: dict[str, str]) -> Fetched:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    told = {**told, "client_id": server.client_id}
    try:
        secret = server.secret
    except Unreadable:
        raise Away("the client secret cannot be read") from None
    if secret and server.secret_in_body:
        told["client_secret"] = secret
    elif secret:
        pair = f"{quote(server.client_id, safe='')}:{quote(secret, safe='')}"
        headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    try:
        return fetch(
            address,
            method="POST",
            headers=headers,
            content=urlencode(told),
            timeout=min(SECONDS, settings.LEASE_SECONDS * 0.8),  # idle transactions are ended: a row is held
            max_bytes=MAX_ANSWER,
            max_redirects=0,
            allow_private=frozenset(settings.MCP_ALLOW),
        )
    except OutboundError as error:
        raise Away(f"it gave no answer: {error.code}") from None
