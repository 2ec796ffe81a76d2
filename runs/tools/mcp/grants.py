"""What Deputy asks an MCP server's authorization server as a client: redeem a code, refresh, revoke; and
where a person is sent. OAuth 2.1; RFC 7636 (PKCE), RFC 7009 (revocation), RFC 8707 (resources).
"""

import base64
import hashlib
from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse

from common import token_endpoint
from common.sealed import Unreadable
from common.token_endpoint import Away, Client, NotGranted, Tokens
from runs.models import McpServer

__all__ = [
    "Away",
    "NotGranted",
    "Tokens",
    "authorization_address",
    "callback_address",
    "redeem",
    "refresh",
    "resource",
    "revoke",
]


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
    """Raises Away."""
    token_endpoint.revoke(_client(server), server.revocation_endpoint, token, kind)


def _granted(server: McpServer, told: dict[str, str]) -> Tokens:
    return token_endpoint.granted(_client(server), server.token_endpoint, told)


def _client(server: McpServer) -> Client:
    """Raises Away."""
    try:
        secret = server.secret
    except Unreadable:
        raise Away("the client secret cannot be read") from None
    return Client(server.client_id, secret, server.secret_in_body, frozenset(settings.MCP_ALLOW))
