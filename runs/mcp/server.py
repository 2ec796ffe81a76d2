"""Deputy as an MCP server: the SDK's handlers. Stateless: any web process answers any request."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from django.conf import settings
from django.utils.crypto import salted_hmac
from jsonschema import Draft202012Validator
from mcp import MCPError
from mcp.server.caching import CacheHint
from mcp.server.context import HandlerResult
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from common.api import slots
from common.api.errors import Problem
from common.canonical import NotJson, normalise
from runs.api.patience import Awaited
from runs.execution import calls
from runs.mcp import offer, questions, requests, subscriptions, tasks, tracing
from runs.mcp.offer import COMPLETE, OWN, RESULT, START, Answer, Refused
from runs.mcp.requests import Client, Context, in_thread, session_of
from runs.models import Run
from runs.tools import registry

PROGRESS_SECONDS = 5.0  # between two words to a client that wants to hear of progress
STATE_SECONDS = 86_400.0  # how long a client may take for its user's answer; then it asks for the call anew
INSTRUCTIONS = (
    "Tools under Deputy's policy. A call may have to wait for a person's approval: the answer says so, and "
    f"{RESULT} brings the result once it is decided. Deputy runs an approved call by itself, once."
)

Called = tuple[Run, str]


async def list_tools(ctx: Context, params: Any) -> types.ListToolsResult:
    found = await in_thread(offer.listed, session_of(ctx))
    return types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in found])


async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> Any:
    """A result, a question for the client's user, or a task. Raises MCPError for a tool there is not."""
    try:
        return await answer(ctx, params)
    except Refused as refused:
        error = {"code": refused.code, "message": refused.message}
        return tasks.in_full(Answer(f"{refused.code}: {refused.message}", True, {"error": error}))


async def answer(ctx: Context, params: types.CallToolRequestParams) -> HandlerResult:
    """One call, from the question to what the client is told. Raises Refused, MCPError."""
    session, name, arguments = session_of(ctx), params.name, params.arguments or {}
    check(name, arguments, dict(ctx.meta or {}))
    if not await in_thread(offer.exists, session, name):
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {name[:80]}")
    if name == START:
        return tasks.in_full(await in_thread(offer.started, session, arguments))
    if name == COMPLETE:
        return tasks.in_full(await in_thread(offer.completed, session, arguments))
    run, call_id = await called(ctx, params)
    tracing.tell_of(run, call_id)
    return await outcome(ctx, name, run, call_id)


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


async def called(ctx: Context, params: types.CallToolRequestParams) -> Called:
    """The call this request is about: an earlier one, one that comes back with an answer, or another."""
    session, arguments = session_of(ctx), params.arguments or {}
    if params.request_state is not None:
        call = await in_thread(tasks.find, session, params.request_state)
        await in_thread(questions.take, session, call.run, call.call_id, params.input_responses)
        return call.run, call.call_id
    if params.name == RESULT:
        return await in_thread(offer.earlier, session, arguments)
    return await in_thread(offer.ask, session, params.name, arguments, dict(ctx.meta or {}))


async def outcome(ctx: Context, name: str, run: Run, call_id: str) -> HandlerResult:
    """What the client is told once the call has ended, or has taken as long as the client wants to wait."""
    session, client = session_of(ctx), Client.of(ctx)
    here = client.forms and (not client.tasks or await in_thread(offer.asks_at_once, session, name))
    patience = Patience(time.monotonic(), requests.hold(ctx, client))
    await wait_until_ended(ctx, run, call_id, patience, or_parked=here or client.tasks)
    if here and (asked := await in_thread(_asked, session, run, call_id)):
        return asked
    if not client.tasks:
        await wait_until_ended(ctx, run, call_id, patience)
    if client.tasks and name != RESULT and await in_thread(_is_open, run, call_id):
        return await in_thread(tasks.created, session, run, call_id, client)
    return tasks.in_full(await in_thread(_told, run, call_id, requests.has_gone(ctx)))


def _asked(session: Any, run: Run, call_id: str) -> types.InputRequiredResult | None:
    """The call's open question, for the client to put to its user and to come back with."""
    asked = questions.form(session, run, calls.look(run, call_id))
    if not asked:
        return None
    call = offer.own_calls(session).get(run=run, call_id=call_id)
    return types.InputRequiredResult(input_requests=dict(asked), request_state=call.pk)


def _is_open(run: Run, call_id: str) -> bool:
    return calls.look(run, call_id).open


def _told(run: Run, call_id: str, gone: bool) -> Answer:
    said = offer.answer(run, call_id)
    if not gone:
        calls.told(run.pk, call_id)
    return said


@dataclass(frozen=True)
class Patience:
    """`seconds` since `began`, by this process's clock."""

    began: float
    seconds: float

    @property
    def spent(self) -> float:
        return time.monotonic() - self.began

    @property
    def left(self) -> float:
        return self.seconds - self.spent


async def wait_until_ended(
    ctx: Context, run: Run, call_id: str, patience: Patience, or_parked: bool = False
) -> None:
    """Return when the call has ended, or patience has; with `or_parked` also when it waits for somebody.
    Holds no connection meanwhile. Raises MCPError where the client may hear no more.
    """
    if patience.left <= 0:
        return

    async def tell(_: float, parked: bool) -> None:
        doing = "waits for a decision" if parked else "is being executed"
        await ctx.session.report_progress(patience.spent, patience.seconds, f"The call {doing}.")

    session = session_of(ctx)
    try:
        slot = slots.take(session.user, session.token, session.project.organization_id)
    except Problem:
        return  # what it is waiting for is told at once
    try:
        awaited = Awaited(run.pk, run.root_id, call_id, patience.left, or_parked)
        await awaited.come(tell, PROGRESS_SECONDS)
    finally:
        slot.give_back()
    if not await in_thread(session.reader.may_now):
        raise MCPError(types.INVALID_REQUEST, "Your token, its scope or your membership has ended.")


def input_schema(name: str) -> Mapping[str, Any] | None:
    """The schema by which headers `Mcp-Param-…` are compared with arguments; of registered tools."""
    tool = registry.get(name)
    return tool.parameters if tool is not None and name not in offer.NOT_FOR_OUTSIDE else None


def principal(ctx: Context) -> str:
    """Whose a sealed `requestState` is: another token cannot use it."""
    return str(session_of(ctx).token.pk)


def made() -> Server[Any]:
    """The server, with what it says about itself."""
    server: Server[Any] = Server(
        "deputy",
        version="0.1.0",
        title="Deputy",
        instructions=INSTRUCTIONS,
        cache_hints={"tools/list": CacheHint(0, "private"), "server/discover": CacheHint(0, "private")},
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=subscriptions.listen,
        get_tool_input_schema=input_schema,
    )
    key = salted_hmac("deputy.mcp.request_state", "", algorithm="sha256").digest()
    security = RequestStateSecurity(keys=[key], ttl=STATE_SECONDS, bind_principal=principal)
    server.middleware[:] = [tracing.traced]  # the SDK's own puts what clients and tools say into spans
    server.middleware.append(RequestStateBoundary(security, default_audience="deputy"))
    tasks.register(server)
    return server


server = made()


async def serve(scope: Any, receive: Any, send: Any) -> None:
    """Answer one request. A manager of its own: nothing is kept from one to the next.

    A client that closes its connection ends its waiting, and nothing else: the call it asked for stands, as
    docs/mcp.md says, and the same words again are the same call.
    """

    async def watched() -> Any:
        received = await receive()
        if received["type"] == "http.disconnect":
            scope["deputy.gone"] = True
        return received

    manager = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=settings.BODY_BYTES)
    async with manager.run():
        await manager.handle_request(scope, watched, send)
