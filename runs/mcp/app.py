"""The entrance of MCP clients, in front of Django: /mcp, /mcp/projects/{project}, /mcp/runs/{run}.

Asks what the API would ask (token, scope, allowance, tenancy), and what MCP asks of servers: no request of
a page of another origin, whatever name it reached Deputy by.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from io import BytesIO
from typing import Any

from asgiref.sync import ThreadSensitiveContext
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.db import OperationalError
from rest_framework.exceptions import APIException

from common.api.errors import CONTENT_TYPE, Problem, handler
from groups import changes
from groups.today import AT_ONCE

App = Callable[[Any, Any, Any], Awaitable[None]]


_server: Any = None


def with_mcp(django: App) -> App:
    """`django`, with MCP beside it."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and (scope["path"] == "/mcp" or scope["path"].startswith("/mcp/")):
            async with ThreadSensitiveContext():
                await enter(scope, receive, send)
        else:
            await django(scope, receive, send)

    return app


async def enter(scope: Any, receive: Any, send: Any) -> None:
    """Let a request in, or say why not."""
    server = await sdk()
    http = ASGIRequest(scope, BytesIO())
    with changes.one_request():
        try:
            check(http)
            session = await server.in_thread(_find, http)
            receive = await _received(receive)
            # a token may have been revoked before the body came
            if time.monotonic() - session.entered.at > AT_ONCE:
                session = await server.in_thread(_find, http)
        except (APIException, OperationalError) as refused:
            await refuse(refused, send)
            return
        await server.serve({**scope, "deputy": session}, receive, send)


async def _received(receive: Any) -> Any:
    """`receive` once the whole body is here; what comes after it is heard as it comes."""
    pieces = []
    while True:
        pieces.append(await receive())
        if pieces[-1]["type"] != "http.request" or not pieces[-1].get("more_body", False):
            break
    left = iter(pieces)

    async def again() -> Any:
        for piece in left:
            return piece
        return await receive()

    return again


async def sdk() -> Any:
    """runs.mcp.server. It takes over a second to import: at the first request, and in a thread."""
    global _server
    if _server is None:
        _server = await asyncio.to_thread(import_module, "runs.mcp.server")
    return _server


def check(http: ASGIRequest) -> None:
    """What can be said without knowing who asks. Raises Problem."""
    try:
        host = http.get_host()
    except DisallowedHost:
        raise Problem(400, "BAD_REQUEST", "Deputy does not answer to this name.") from None
    if getattr(settings, "SECURE_SSL_REDIRECT", False) and not http.is_secure():
        raise Problem(403, "HTTPS_REQUIRED", "Ask over https: a token has come in the clear.")
    origin = http.headers.get("Origin")
    own = {f"{http.scheme}://{host}", settings.PUBLIC_URL, *settings.CSRF_TRUSTED_ORIGINS}
    if origin is not None and origin not in own:
        raise Problem(403, "ORIGIN_REFUSED", "Pages of this origin may not ask.")
    if http.method != "POST":  # nothing is kept between requests: no stream to GET, no session to DELETE
        problem = Problem(405, "METHOD_NOT_ALLOWED", "MCP clients POST here.", headers={"Allow": "POST"})
        raise problem


def _find(http: ASGIRequest) -> Any:
    from runs.mcp import session

    return session.find(http)


def challenge() -> str:
    """RFC 9728 (5.1): where a client reads how to get a token, and what to ask for."""
    described = f"{settings.PUBLIC_URL.rstrip('/')}/.well-known/oauth-protected-resource/mcp"
    return f'Bearer realm="deputy", resource_metadata="{described}", scope="runs:read runs:write"'


async def refuse(refused: Exception, send: Any) -> None:
    """The API's own answer: problem+json."""
    response = handler(refused, {})
    assert response is not None  # noqa: S101 - it knows both kinds
    headers = {**response.headers, "Content-Type": CONTENT_TYPE}
    if response.status_code == 401:
        headers["WWW-Authenticate"] = challenge()
    raw = [(name.lower().encode(), str(value).encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": response.status_code, "headers": raw})
    await send({"type": "http.response.body", "body": json.dumps(response.data).encode()})
