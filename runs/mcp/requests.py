"""A request of an MCP client: who asks, what its client can do, and how long it wants to be held."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import mcp_types as types
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from runs.mcp.session import McpSession

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]

TASKS = "io.modelcontextprotocol/tasks"  # the extension's name
HOLD_KEY = "deputy/hold-seconds"  # in _meta; for clients that cannot set headers
LONGEST_HOLD = 45.0  # seconds; proxies in between give up after a minute
AS_TASK = 0.5  # seconds: what has ended by then is answered as it is, the rest becomes a task
WAIT = re.compile(r"(?:^|[,;\s])wait=(\d{1,4})(?![\d.])")  # RFC 7240, section 4.3


@dataclass(frozen=True)
class Client:
    """What the client has declared in this request. `forms`: it asks its user what Deputy wants to know."""

    modern: bool
    tasks: bool
    forms: bool

    @classmethod
    def of(cls, ctx: Context) -> "Client":
        """Only what stands in this request counts: nothing is kept from one to the next."""
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        told = ctx.session.client_capabilities if modern else None
        if told is None:
            return cls(modern, False, False)
        asks = told.elicitation
        forms = asks is not None and (asks.form is not None or asks.url is None)
        return cls(modern, TASKS in (told.extensions or {}), forms)


def hold(ctx: Context, client: Client) -> float:
    """For how many seconds to wait for a result before saying that there is none yet: as the client says with
    `Prefer: wait=…` (RFC 7240) or in `_meta`, otherwise less than any known client waits for an answer.
    """
    said = _said(ctx)
    if said is None:
        return AS_TASK if client.tasks else float(settings.MCP_HOLD_SECONDS)
    return min(max(said, 0.0), LONGEST_HOLD)


def _said(ctx: Context) -> float | None:
    in_meta = dict(ctx.meta or {}).get(HOLD_KEY)
    if isinstance(in_meta, int | float) and not isinstance(in_meta, bool):
        # NaN is no number of seconds, and an integer may be too large for a float.
        return float(min(in_meta, LONGEST_HOLD)) if in_meta == in_meta else None
    found = WAIT.search(ctx.request.headers.get("prefer", "").lower()) if ctx.request is not None else None
    return float(found[1]) if found else None


def session_of(ctx: Context) -> McpSession:
    """What the entrance found out about whoever asks."""
    if ctx.request is None:
        raise MCPError(types.INVALID_REQUEST, "This comes past the entrance.")
    session: McpSession = ctx.request.scope["deputy"]
    return session


def has_gone(ctx: Context) -> bool:
    """Whether the client has closed the connection: then nobody hears the answer."""
    return ctx.request is not None and bool(ctx.request.scope.get("deputy.gone"))


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Run database work in the request's thread; its connection is let go of at once."""
    return await sync_to_async(_and_let_go)(function, *arguments)


def _and_let_go(function: Callable[..., T], *arguments: Any) -> T:
    try:
        return function(*arguments)
    finally:
        if not connection.in_atomic_block:
            connection.close()
