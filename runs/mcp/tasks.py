"""MCP's Tasks (extension io.modelcontextprotocol/tasks, SEP-2663): a call that takes longer, as a task.

A call that waits for somebody's decision is `working`: `input_required` is for what the caller's own user
answers. A task is the call itself: nothing of it is kept twice.
"""

from datetime import UTC, datetime
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value

from policy.authority import NotAllowed
from runs.actions.withdraw import withdraw
from runs.execution import calls
from runs.execution.calls import Look
from runs.log.log import RunGone
from runs.mcp import offer, questions
from runs.mcp.offer import Answer
from runs.mcp.requests import TASKS, Client, Context, in_thread, session_of
from runs.mcp.session import McpSession
from runs.models import Run, ToolCall, Wait
from runs.models.choices import CallStatus

POLL_MS = 2000
DAY_MS = 86_400_000
MOST_RESPONSES = 32


class TaskParams(types.RequestParams):
    """Of tasks/get and tasks/cancel."""

    task_id: str


class UpdateParams(TaskParams):
    """Of tasks/update: `input_responses` by the keys of what was asked."""

    input_responses: dict[str, Any]


def register(server: Server[Any]) -> None:
    """Let the server say that it has tasks, and answer for them."""
    server.extensions[TASKS] = {}
    server.add_request_handler("tasks/get", TaskParams, get)
    server.add_request_handler("tasks/update", UpdateParams, update)
    server.add_request_handler("tasks/cancel", TaskParams, cancel)


async def get(ctx: Context, params: TaskParams) -> dict[str, Any]:
    check(ctx, params.task_id)
    return await in_thread(detailed, session_of(ctx), params.task_id, Client.of(ctx))


async def update(ctx: Context, params: UpdateParams) -> dict[str, Any]:
    check(ctx, params.task_id)
    if len(params.input_responses) > MOST_RESPONSES:
        raise MCPError(types.INVALID_PARAMS, f"A task takes at most {MOST_RESPONSES} responses at once.")
    await in_thread(_take, session_of(ctx), params.task_id, params.input_responses)
    return {"resultType": "complete"}


async def cancel(ctx: Context, params: TaskParams) -> dict[str, Any]:
    check(ctx, params.task_id)
    await in_thread(_withdraw, session_of(ctx), params.task_id)
    return {"resultType": "complete"}


def check(ctx: Context, task_id: str) -> None:
    """Raises MCPError unless the client has declared tasks in this request and its header names this one."""
    client = Client.of(ctx)
    if not client.modern:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found")
    if not client.tasks:
        wanted: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, f"Declare the extension {TASKS}.", wanted)
    named = ctx.request.headers.get(MCP_NAME_HEADER) if ctx.request is not None else None
    if decode_header_value(named) != task_id:
        raise MCPError(types.HEADER_MISMATCH, "The header Mcp-Name does not name this task.")


def find(session: McpSession, task_id: str) -> ToolCall:
    """The caller's own call. Raises MCPError, the same for what does not exist and for another's."""
    call = offer.own_calls(session).filter(pk=task_id).first() if "\x00" not in task_id else None
    if call is None:
        raise MCPError(types.INVALID_PARAMS, "There is no such task.")
    return call


def created(session: McpSession, run: Run, call_id: str, client: Client) -> dict[str, Any]:
    """The answer to tools/call that makes the call a task."""
    call = ToolCall.objects.select_related("run", "run__organization").get(run=run, call_id=call_id)
    look = calls.look(run, call_id)
    return {"resultType": "task", **_envelope(call, look, _status(session, call.run, look, client))}


def detailed(session: McpSession, task_id: str, client: Client) -> dict[str, Any]:
    """The answer to tasks/get."""
    call = find(session, task_id)
    look = calls.look(call.run, call.call_id)
    status = _status(session, call.run, look, client)
    told: dict[str, Any] = {"resultType": "complete", **_envelope(call, look, status)}
    if status == "input_required":
        asked = questions.form(session, call.run, look) or {}
        told["inputRequests"] = {key: _dumped(each) for key, each in asked.items()}
    elif status == "completed":
        told["result"] = _dumped(in_full(offer.answer(call.run, call.call_id)))
    calls.told(call.run_id, call.call_id)
    return told


def in_full(said: Answer) -> types.CallToolResult:
    """The answer as the SDK writes it."""
    text = types.TextContent(type="text", text=said.text)
    return types.CallToolResult(content=[text], structured_content=said.structured, is_error=said.failed)


def _status(session: McpSession, run: Run, look: Look, client: Client) -> str:
    if look.open:
        asked = questions.form(session, run, look) if client.forms else None
        return "input_required" if asked else "working"
    return "cancelled" if look.status == CallStatus.CANCELLED else "completed"


def _envelope(call: ToolCall, look: Look, status: str) -> dict[str, Any]:
    """`statusMessage` names no decider and has no stranger's words in it."""
    kept = call.run.organization.retention_days
    wait = Wait.objects.filter(tool_call=call).order_by("id").last()
    moved = call.ended_at or (wait and (wait.resolved_at or wait.created_at)) or call.created_at
    told = {
        "taskId": call.pk,
        "status": status,
        "createdAt": _time(call.created_at),
        "lastUpdatedAt": _time(moved),
        "ttlMs": None if kept is None else kept * DAY_MS,
        "pollIntervalMs": POLL_MS,
    }
    words = offer.DOING.get(look.waits_for.kind if look.waits_for else "", "It is being executed.")
    return {**told, "statusMessage": words} if look.open else told


def _take(session: McpSession, task_id: str, responses: dict[str, Any]) -> None:
    call = find(session, task_id)
    questions.take(session, call.run, call.call_id, responses)


def _withdraw(session: McpSession, task_id: str) -> None:
    """What has begun goes on, as the extension allows; what still waits is taken back."""
    call = find(session, task_id)
    try:
        withdraw(call.run_id, call.call_id, session.actor)
    except (NotAllowed, RunGone):
        raise MCPError(types.INVALID_PARAMS, "There is no such task.") from None


def _dumped(model: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = model.model_dump(by_alias=True, mode="json", exclude_none=True)
    return dumped


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
