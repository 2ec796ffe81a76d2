"""What a client asks an authorization server's token endpoint, and what it is granted.

OAuth 2.1 (RFC 6749), RFC 7009 (revocation), RFC 8693 (exchange). Every question goes by the guard of
everything that leaves Deputy; nothing of an answer is repeated but error codes.
"""

import base64
import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings

from common.outbound import Fetched, OutboundError, check_headers, fetch

SECONDS = 8.0  # of one question, at most
MAX_ANSWER = 100_000  # bytes
MAX_TOKEN = 16_000  # characters
MAX_LIFE = 10 * 365 * 24 * 3600  # seconds


class NotGranted(Exception):
    """The authorization server refuses, and will again. `reason`: words for the log, nothing secret in it;
    `code`: RFC 6749's, where it gave one.
    """

    def __init__(self, reason: str, code: str = "") -> None:
        super().__init__(reason)
        self.reason, self.code = reason, code


class Away(Exception):
    """The authorization server gave no usable answer; asked later, it may."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Tokens:
    """What was granted. `seconds`: how long the access token lasts, where that was said. `issued`: the type
    that an exchange names.
    """

    access: str = field(repr=False)
    refresh: str = field(repr=False)
    seconds: int | None
    scopes: str
    issued: str = ""


@dataclass(frozen=True)
class Client:
    """As whom Deputy asks. `allow`: what may be reached though not public, as common.outbound has it."""

    id: str
    secret: str = field(repr=False)
    in_body: bool
    allow: Collection[str]


def granted(client: Client, address: str, told: dict[str, str]) -> Tokens:
    """What the token endpoint grants for this. Raises NotGranted, Away."""
    status, found = answered(client, address, told)
    if status in (400, 401, 403):
        raise _refused(found)
    if status != 200:
        raise Away(f"it answered {status}")
    return tokens_of(found)


def answered(client: Client, address: str, told: dict[str, str]) -> tuple[int, dict[str, Any]]:
    """The status and the JSON object of the answer. Raises Away."""
    answer = ask(client, address, told)
    try:
        found = json.loads(answer.text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Away(f"it answered {answer.status} without JSON")
    return answer.status, found


def revoke(client: Client, address: str, token: str, kind: str) -> None:
    """Tell the revocation endpoint that a token is not used any more. Raises Away."""
    answer = ask(client, address, {"token": token, "token_type_hint": kind})
    if answer.status != 200:
        raise Away(f"it answered {answer.status} to a revocation")


def tokens_of(found: dict[str, Any]) -> Tokens:
    """The tokens in a token endpoint's answer. Raises NotGranted for what is no usable bearer token."""
    access, refresh, scope, issued = (
        found.get(name) or "" for name in ("access_token", "refresh_token", "scope", "issued_token_type")
    )
    if str(found.get("token_type", "")).lower() != "bearer":
        raise NotGranted("it gave a token that is no bearer token")
    if not all(isinstance(one, str) and len(one) <= MAX_TOKEN for one in (access, refresh, scope, issued)):
        raise NotGranted("it gave no token")
    try:
        check_headers({"Authorization": f"Bearer {access}"})
    except OutboundError:
        raise NotGranted("it gave a token that cannot be sent") from None
    if not access:
        raise NotGranted("it gave no token")
    return Tokens(access, refresh, _seconds(found.get("expires_in")), scope[:1000], issued[:200])


def ask(client: Client, address: str, told: dict[str, str]) -> Fetched:
    """The answer to a form that the client sends. Raises Away."""
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    told = {**told, "client_id": client.id}
    if client.secret and client.in_body:
        told["client_secret"] = client.secret
    elif client.secret:
        pair = f"{quote(client.id, safe='')}:{quote(client.secret, safe='')}"
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
            allow_private=client.allow,
        )
    except OutboundError as error:
        raise Away(f"it gave no answer: {error.code}") from None


def _refused(found: dict[str, Any]) -> NotGranted:
    """With RFC 6749's error code, which is a few plain characters."""
    code = found.get("error")
    plain = isinstance(code, str) and len(code) < 60 and code.replace("_", "").isalnum() and code.isascii()
    return NotGranted(f"it refuses: {code}", str(code)) if plain else NotGranted("it refuses")


def _seconds(told: Any) -> int | None:
    try:
        found = int(told)
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(found, 0), MAX_LIFE)
