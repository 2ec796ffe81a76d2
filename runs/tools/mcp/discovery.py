"""Where people authorize Deputy at an MCP server, as the server and its authorization server publish it.

RFC 9728 (protected resources), RFC 8414 (authorization servers), in the order that MCP's authorization names.
"""

import json
from typing import Any

from django.conf import settings

from common.outbound import Fetched, OutboundError, fetch
from runs.models import McpServer
from runs.models.accounts import refused
from runs.tools.mcp.client import McpError

MAX_DOCUMENT = 200_000  # bytes
MAX_SCOPES, MAX_ISSUER, MAX_ADDRESS = 1000, 500, 2000  # characters
JSON_RPC = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
PING = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
NAMED = ("authorization_endpoint", "token_endpoint", "revocation_endpoint")  # the last one need not be there


def discover(server: McpServer) -> dict[str, Any]:
    """The columns of the server that say where people authorize Deputy. Raises McpError (OAUTH_UNKNOWN)."""
    asked = _challenge(server)
    protected = _protected(server, _told(asked, "resource_metadata"))
    issuers = protected.get("authorization_servers")
    if not isinstance(issuers, list) or not issuers or not isinstance(issuers[0], str):
        raise _unknown(server, "names no authorization server")
    if problem := refused(issuers[0]) or ("it is too long" if len(issuers[0]) > MAX_ISSUER else ""):
        raise _unknown(server, f"names an authorization server that is refused: {problem}")
    found = _server_of(server, issuers[0])
    wanted = server.scopes or _told(asked, "scope") or _joined(protected.get("scopes_supported"))
    return {
        **found,
        "issuer": issuers[0],
        "resource": str(protected["resource"]),
        "scopes": wanted if len(wanted) <= MAX_SCOPES else "",
    }


def _protected(server: McpServer, address: str) -> dict[str, Any]:
    """What the server says about itself. It speaks for this server, or for all that is below its address."""
    from mcp.client.auth.utils import build_protected_resource_metadata_discovery_urls
    from mcp.shared.auth_utils import check_resource_allowed

    for each in build_protected_resource_metadata_discovery_urls(address or None, server.url):
        found = _document(each)
        if found is None:
            continue
        resource = found.get("resource")
        if not isinstance(resource, str) or len(resource) > MAX_ADDRESS:
            raise _unknown(server, "does not say which address it describes")
        if not check_resource_allowed(server.url, resource):
            raise _unknown(server, "describes another address than its own")
        return found
    raise _unknown(server, "does not say where people authorize Deputy")


def _server_of(server: McpServer, issuer: str) -> dict[str, Any]:
    """The authorization server's endpoints, where it is what it says it is and has PKCE."""
    from mcp.client.auth.utils import build_oauth_authorization_server_metadata_discovery_urls

    for each in build_oauth_authorization_server_metadata_discovery_urls(issuer, server.url):
        found = _document(each)
        if found is None:
            continue
        if found.get("issuer") != issuer:
            raise _unknown(server, "names an authorization server that calls itself otherwise")
        if "S256" not in (found.get("code_challenge_methods_supported") or ()):
            raise _unknown(server, "names an authorization server without PKCE (S256)")
        return _endpoints(server, found)
    raise _unknown(server, "names an authorization server that does not describe itself")


def _endpoints(server: McpServer, found: dict[str, Any]) -> dict[str, Any]:
    told = {name: found.get(name) or "" for name in NAMED}
    for name, address in told.items():
        if not isinstance(address, str) or len(address) > MAX_ADDRESS or not (address or name == NAMED[-1]):
            raise _unknown(server, f"names an authorization server without {name}")
        if address and (problem := refused(address)):
            raise _unknown(server, f"names a {name} that is refused: {problem}")
    methods = found.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    return {
        **told,
        "secret_in_body": "client_secret_basic" not in methods and "client_secret_post" in methods,
        "names_issuer": found.get("authorization_response_iss_parameter_supported") is True,
    }


def _challenge(server: McpServer) -> str:
    """What the server answers to whom it does not know: the header that says how to be known."""
    try:
        answer = _fetch(server.url, method="POST", headers=JSON_RPC, content=PING)
    except OutboundError as error:
        raise McpError(error.code, f"The MCP server '{server}' gave no answer: {error.message}.") from None
    return answer.headers.get("www-authenticate", "") if answer.status == 401 else ""


def _told(header: str, name: str) -> str:
    """A parameter of a WWW-Authenticate header."""
    import httpx2
    from mcp.client.auth.utils import extract_field_from_www_auth

    answer = httpx2.Response(401, headers={"WWW-Authenticate": header} if header else {})
    return extract_field_from_www_auth(answer, name) or ""


def _document(address: str) -> dict[str, Any] | None:
    """A JSON object from there; None where there is none."""
    try:
        answer = _fetch(address, headers={"Accept": "application/json"})
        found = json.loads(answer.text)
    except (OutboundError, ValueError, RecursionError):
        return None
    return found if answer.status == 200 and isinstance(found, dict) else None


def _fetch(address: str, **how: Any) -> Fetched:
    allowed = frozenset(settings.MCP_ALLOW)
    return fetch(address, max_redirects=0, max_bytes=MAX_DOCUMENT, allow_private=allowed, **how)


def _joined(scopes: Any) -> str:
    return (
        " ".join(scopes) if isinstance(scopes, list) and all(isinstance(one, str) for one in scopes) else ""
    )


def _unknown(server: McpServer, why: str) -> McpError:
    return McpError("OAUTH_UNKNOWN", f"The MCP server '{server}' {why}; enter issuer and endpoints by hand.")
