"""The client's side of MCP's Tasks (extension io.modelcontextprotocol/tasks, SEP-2663), read strictly.

A server may answer a call with a task instead of a result. Its id is the server's; the wishes of the server
(how often it is asked) count within limits.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from common import conventions as names
from runs.models import McpServer
from runs.observe import tracing
from runs.tools.mcp import client
from runs.tools.mcp.client import Asked, McpError, Task

if TYPE_CHECKING:
    from mcp import Client

ENDED = ("completed", "failed", "cancelled")
STATUSES = ("working", "input_required", *ENDED)
POLL_SECONDS = 10.0  # that a question about a task may take


@dataclass(frozen=True)
class Detail:
    """How far a task is. `said`: its result, its error or what it asks, as JSON."""

    status: str
    seconds: float
    said: dict[str, Any]

    @property
    def ended(self) -> bool:
        return self.status in ENDED


def get(server: McpServer, task_id: str, token: str = "") -> Detail:
    """How far it is. Raises McpError: MCP_TASK_UNKNOWN where the server does not know it."""
    found = _ask(server, names.TASKS_GET, {"taskId": task_id}, token)
    status = found.get("status")
    if found.get("taskId") != task_id or status not in STATUSES:
        raise McpError("MCP_BAD_ANSWER", f"The MCP server '{server}' speaks of another task, or of none.")
    said = found.get(
        {"completed": "result", "failed": "error", "input_required": "inputRequests"}.get(status, "")
    )
    return Detail(status, client.pause(found.get("pollIntervalMs")), said if isinstance(said, dict) else {})


def update(server: McpServer, task_id: str, responses: dict[str, Any], token: str = "") -> Task:
    """Give the task what it asked for; the same again changes nothing. Raises McpError."""
    _ask(server, names.TASKS_UPDATE, {"taskId": task_id, "inputResponses": responses}, token)
    return Task(task_id, client.LEAST_PAUSE)


def cancel(server: McpServer, task_id: str, token: str = "") -> None:
    """Ask the server to end it. Raises McpError."""
    _ask(server, names.TASKS_CANCEL, {"taskId": task_id}, token)


def answer(server: McpServer, detail: Detail) -> dict[str, Any] | Asked:
    """What an ended task leaves, as a call's result, or what it asks. Raises McpError."""
    import mcp_types as types
    from pydantic import ValidationError

    if detail.status == "cancelled":
        raise McpError("MCP_TASK_CANCELLED", f"The MCP server '{server}' has cancelled the call.")
    if detail.status == "failed":
        said = str(detail.said.get("message", ""))[:500]
        raise McpError("MCP_REFUSED", f"The MCP server '{server}' answered: {said}")
    try:
        if detail.status == "input_required":
            asks = {"resultType": "input_required", "inputRequests": detail.said}
            return client.asked_of(server, types.InputRequiredResult.model_validate(asks))
        found = client.answer_of(server, types.CallToolResult.model_validate(detail.said))
    except ValidationError:
        raise McpError(
            "MCP_BAD_ANSWER", f"The MCP server '{server}' gave a result that is not MCP."
        ) from None
    assert isinstance(found, dict)  # noqa: S101 - a CallToolResult asks nothing
    return found


def _ask(server: McpServer, method: str, params: dict[str, Any], token: str) -> dict[str, Any]:
    async def ask(connected: "Client") -> dict[str, Any]:
        import mcp_types as types
        from pydantic import TypeAdapter

        class Asking(types.Request[dict[str, Any], Literal["tasks/get", "tasks/update", "tasks/cancel"]]):
            name_param: ClassVar[str | None] = "taskId"

        asking: Any = Asking(method=method, params=params)  # type: ignore[arg-type]
        raw: TypeAdapter[Any] = TypeAdapter(dict[str, Any])
        found: dict[str, Any] = await connected.session.send_request(asking, raw)
        return found

    with tracing.to_mcp(method, server.url) as span:
        return client.connected(server, ask, span, token=token, mode=client.MODERN, within=POLL_SECONDS)
