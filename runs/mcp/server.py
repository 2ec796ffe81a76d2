"""Deputy as an MCP server: the SDK's handlers. Stateless: any web process answers any request."""

from collections.abc import Callable
from typing import Any, TypeVar

import mcp_types as types
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection
from jsonschema import Draft202012Validator
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from common.api import slots
from common.api.errors import Problem
from common.canonical import NotJson, normalise
from runs.api.patience import Awaited
from runs.mcp import offer
from runs.mcp.offer import COMPLETE, OWN, RESULT, START, Answer, Refused
from runs.mcp.session import McpSession
from runs.models import Run

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]

WAIT_SECONDS = 45.0  # for a result; many clients give up after a minute
PROGRESS_SECONDS = 5.0  # between two words to a client that wants to hear of progress
INSTRUCTIONS = (
    "Tools under Deputy's policy. A call may have to wait for a person's approval: the answer says so, and "
    f"{RESULT} brings the result once it is decided. Deputy runs an approved call by itself, once."
)


async def list_tools(ctx: Context, params: Any) -> types.ListToolsResult:
    found = await in_thread(offer.listed, session_of(ctx))
    return types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in found])


async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    try:
        return told(await answer(ctx, params.name, params.arguments or {}))
    except Refused as refused:
        error = {"code": refused.code, "message": refused.message}
        return told(Answer(f"{refused.code}: {refused.message}", failed=True, structured={"error": error}))


async def answer(ctx: Context, name: str, arguments: dict[str, Any]) -> Answer:
    """One call, from the question to what the client is told. Raises Refused."""
    session, meta = session_of(ctx), dict(ctx.meta or {})
    check(name, arguments, meta)
    if name == START and session.run_id is None:
        return await in_thread(offer.started, session, arguments)
    if name == COMPLETE:
        return await in_thread(offer.completed, session, arguments)
    if name == RESULT:
        run, call_id = await in_thread(offer.earlier, session, arguments)
    else:
        run, call_id = await in_thread(offer.ask, session, name, arguments, meta)
    await wait_until_ended(ctx, run, call_id)
    return await in_thread(offer.answer, run, call_id)


def check(name: str, arguments: dict[str, Any], meta: dict[str, Any]) -> None:
    """Raises Refused for what no database keeps, and for arguments of Deputy's own tools that do not fit."""
    try:
        normalise([name, arguments, meta.get(offer.CALL_ID_KEY)])
    except NotJson as error:
        raise Refused("INVALID_ARGUMENTS", f"The call cannot be kept: {error}") from None
    if name not in OWN:
        return
    problem = next(Draft202012Validator(OWN[name]["parameters"]).iter_errors(arguments), None)
    if problem is not None:
        raise Refused("INVALID_ARGUMENTS", problem.message[:300])


async def wait_until_ended(ctx: Context, run: Run, call_id: str) -> None:
    """Return when the call has ended, or after WAIT_SECONDS. Holds no connection meanwhile."""

    async def tell(spent: float, parked: bool) -> None:
        doing = "waits for a decision" if parked else "is being executed"
        await ctx.session.report_progress(spent, WAIT_SECONDS, f"The call {doing}.")

    session = session_of(ctx)
    try:
        slot = slots.take(session.user, session.token)
    except Problem:
        return  # what it is waiting for is told at once
    try:
        await Awaited(run.pk, run.root_id, call_id, WAIT_SECONDS).come(tell, PROGRESS_SECONDS)
    finally:
        slot.give_back()


def told(said: Answer) -> types.CallToolResult:
    text = types.TextContent(type="text", text=said.text)
    return types.CallToolResult(content=[text], structured_content=said.structured, is_error=said.failed)


def session_of(ctx: Context) -> McpSession:
    """What the entrance found out about whoever asks."""
    if ctx.request is None:
        raise MCPError(types.INVALID_REQUEST, "This comes past the entrance.")
    session: McpSession = ctx.request.scope["deputy"]
    return session


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Run database work in the request's thread; its connection is let go of at once."""
    return await sync_to_async(_and_let_go)(function, *arguments)


def _and_let_go(function: Callable[..., T], *arguments: Any) -> T:
    try:
        return function(*arguments)
    finally:
        if not connection.in_atomic_block:
            connection.close()


server: Server[Any] = Server(
    "deputy",
    version="0.1.0",
    title="Deputy",
    instructions=INSTRUCTIONS,
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    get_tool_input_schema=lambda name: None,
)


async def serve(scope: Any, receive: Any, send: Any) -> None:
    """Answer one request. A manager of its own: nothing is kept from one to the next."""
    manager = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=settings.BODY_BYTES)
    async with manager.run():
        await manager.handle_request(scope, receive, send)
