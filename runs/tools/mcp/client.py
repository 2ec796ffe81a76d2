"""Ask an MCP server: which tools it has, and to run one. Through the official SDK, one connection a question.

The SDK takes more than a second to import, so it is there only in processes that use it.
"""

import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from django.conf import settings

from common import conventions as names
from common.sealed import Unreadable
from common.trace_context import TRACEPARENT
from common.tracing import Span
from runs.models import McpServer
from runs.observe import tracing
from runs.providers import loop
from runs.tools.mcp.definitions import MAX_RESOURCES

if TYPE_CHECKING:
    from mcp import Client

    from runs.tools.mcp.transport import Guarded

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_TOOLS = 500  # of one server
MAX_PAGES = 50
MAX_TEXT = 100_000  # characters of a result that reach the log
MAX_TASK_ID, MAX_MIME_TYPE = 1000, 200  # characters
MODERN = "2026-07-28"  # the first version with tasks, and with forms in the middle of a call
LEAST_PAUSE, MOST_PAUSE, PAUSE = 1.0, 60.0, 5.0  # seconds between two questions about a task
INVALID_PARAMS, METHOD_NOT_FOUND = -32602, -32601  # of JSON-RPC
IDEMPOTENCY_KEY = "deputy/idempotency-key"  # in _meta: the same call again has the same


class McpError(Exception):
    """The server gave no usable answer. `code` is stable, the message can be shown.

    TIMEOUT, CONNECTION, ADDRESS_REFUSED and the other codes of common.outbound; MCP_UNAUTHORIZED,
    MCP_REFUSED (the server's own error), MCP_BAD_ANSWER, MCP_INPUT_REQUIRED, MCP_SECRETS.
    `silent`: a call of a tool has left and got no answer, so that it may have been carried out.
    """

    def __init__(self, code: str, message: str, silent: bool = False) -> None:
        super().__init__(message)
        self.code, self.message, self.silent = code, message, silent


class Unauthorized(McpError):
    """The server answered 401 before anything was done: it wants a person's authorization, or another one."""

    def __init__(self, server: McpServer) -> None:
        super().__init__(
            "MCP_UNAUTHORIZED", f"The MCP server '{server}' wants a person's authorization (401)."
        )


@dataclass(frozen=True)
class Asked:
    """The server wants forms filled in before it answers: by key, each one's message and schema. The call is
    to be made again with the answers and with `token`, unchanged.
    """

    requests: dict[str, tuple[str, dict[str, Any]]]
    token: str | None


@dataclass(frozen=True)
class Task:
    """The server has made a task of the call, and is to be asked about it after so many `seconds`."""

    id: str
    seconds: float


def list_tools(server: McpServer, token: str = "") -> list[dict[str, Any]]:
    """The server's tools as JSON, in its order; to whom the `token` belongs. Raises McpError."""

    async def ask(client: "Client") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor = None
        for _ in range(MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            found += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
            cursor = page.next_cursor
            if not cursor or len(found) > MAX_TOOLS:
                break
        if cursor or len(found) > MAX_TOOLS:
            raise McpError("TOO_LARGE", f"The MCP server '{server}' lists more than {MAX_TOOLS} tools.")
        return found

    with tracing.to_mcp(names.TOOLS_LIST, server.url) as span:
        return connected(server, ask, span, token=token)


def list_resources(server: McpServer, token: str = "") -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The server's resources and templates as JSON; none where it offers none. Raises McpError."""

    async def ask(client: "Client") -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        if client.server_capabilities.resources is None:
            return [], []
        resources = await _pages(server, client.list_resources, "resources")
        return resources, await _pages(server, client.list_resource_templates, "resource_templates")

    with tracing.to_mcp(names.RESOURCES_LIST, server.url) as span:
        return connected(server, ask, span, token=token)


async def _pages(server: McpServer, ask: Callable[..., Awaitable[Any]], name: str) -> list[dict[str, Any]]:
    """What a list has on all of its pages, a little more than is of use at most; nothing where the server
    does not answer to it. Raises McpError.
    """
    from mcp import MCPError

    found: list[dict[str, Any]] = []
    cursor = None
    for _ in range(MAX_PAGES):
        try:
            page = await ask(cursor=cursor)
        except MCPError as error:
            if error.error.code != METHOD_NOT_FOUND:
                raise
            return []
        listed = getattr(page, name)
        found += [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in listed]
        cursor = page.next_cursor
        if not cursor or len(found) > MAX_RESOURCES:
            return found
    raise McpError("TOO_LARGE", f"The MCP server '{server}' lists more than {MAX_PAGES} pages of resources.")


def read_resource(server: McpServer, uri: str, token: str = "") -> dict[str, Any]:
    """The text of a resource: {uri, text, mime_type?, others?, truncated?}. The server reads it, wherever its
    address points. Raises McpError, also where it holds no text (MCP_NOT_TEXT).
    """

    async def ask(client: "Client") -> Any:
        import mcp_types as types
        from pydantic import TypeAdapter

        asked = types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=uri))
        expected: TypeAdapter[Any] = TypeAdapter(types.ReadResourceResult | types.InputRequiredResult)
        return await client.session.send_request(asked, expected)

    with tracing.to_mcp(names.RESOURCES_READ, server.url) as span:
        result = connected(server, ask, span, token=token)
    contents = getattr(result, "contents", None)
    if contents is None:
        raise input_refused(server, "more before it reads a resource, and forms are for tools only")
    texts = [one for one in contents if hasattr(one, "text")]
    others = [_blob(one) for one in contents if not hasattr(one, "text")]
    if not texts:
        kinds = ", ".join(sorted({one["mime_type"] for one in others})) or "nothing"
        raise McpError("MCP_NOT_TEXT", f"'{uri[:200]}' holds no text ({kinds[:200]}), and only text is read.")
    text = "\n".join(one.text for one in texts)
    told = {"uri": uri, "text": text[:MAX_TEXT]}
    kept = {
        "mime_type": (texts[0].mime_type or "")[:MAX_MIME_TYPE],
        "others": others,
        "truncated": len(text) > MAX_TEXT,
    }
    return {**told, **{name: value for name, value in kept.items() if value}}


def _blob(one: Any) -> dict[str, Any]:
    """A piece of a resource that is no text, without its bytes."""
    return {
        "uri": one.uri,
        "mime_type": (one.mime_type or "bytes")[:MAX_MIME_TYPE],
        "size": len(one.blob) * 3 // 4,
    }


def call_tool(
    server: McpServer,
    name: str,
    arguments: dict[str, Any],
    idempotency_key: str,
    schema: dict[str, Any],
    token: str = "",
    filled: dict[str, Any] | None = None,
    tasks: bool = False,
) -> dict[str, Any] | Asked | Task:
    """What the tool answered: {text, structured?, others?, truncated?}; or what it asks, or the task that it
    has become, where `tasks` may be. Raises McpError.

    `schema` is the accepted one of its arguments, `token` a person's own, `filled` the form that it asked for
    last, with the `responses`. `isError` becomes MCP_TOOL_ERROR, in the tool's own words.
    """

    async def ask(client: "Client") -> Any:
        import mcp_types as types
        from pydantic import TypeAdapter

        # Not Client.call_tool: after the effect it would list all tools to check the result's schema.
        meta: Any = {IDEMPOTENCY_KEY: idempotency_key}  # the SDK adds traceparent (SEP-414)
        params = types.CallToolRequestParams(name=name, arguments=arguments, _meta=meta, **responses(filled))
        raw: TypeAdapter[Any] = TypeAdapter(dict[str, Any])
        found = await client.session.send_request(types.CallToolRequest(params=params), raw)
        if found.get("resultType") == "task":
            return task_of(server, found, tasks and client.protocol_version >= MODERN)
        expected: TypeAdapter[Any] = TypeAdapter(types.CallToolResult | types.InputRequiredResult)
        return expected.validate_python(found, by_name=False)

    with tracing.to_mcp(names.TOOLS_CALL, server.url) as span:
        result = connected(server, ask, span, param_headers(schema, arguments), token, tasks)
        if getattr(result, "is_error", False):
            span.fail(names.TOOL_ERROR)
        return result if isinstance(result, Task) else answer_of(server, result)


def responses(filled: dict[str, Any] | None) -> dict[str, Any]:
    """What a call says of the form that was filled in for it."""
    if filled is None:
        return {}
    return {"inputResponses": filled["responses"], "requestState": filled["token"]}


def trace_of(span: Span) -> dict[str, str]:
    """The header that tells the other side which span asks; nothing without one."""
    return {TRACEPARENT: str(span.ids)} if span.ids else {}


def param_headers(schema: dict[str, Any], arguments: dict[str, Any]) -> dict[str, str]:
    """The `Mcp-Param-*` headers for the arguments that the schema marks with `x-mcp-header`.

    None where a mark breaks MCP's rules (2026-07-28, transports): its server then says what it misses.
    """
    from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map

    if find_invalid_x_mcp_header(schema):
        return {}
    return mcp_param_headers(x_mcp_header_map(schema), arguments)


def connected(
    server: McpServer,
    ask: Callable[["Client"], Awaitable[T]],
    span: Span,
    of_call: dict[str, str] | None = None,
    token: str = "",
    tasks: bool = False,
    mode: str = "auto",
    within: float = math.inf,
) -> T:
    """The result of `ask` with a client that speaks to the server; calls of tools have the headers `of_call`,
    too, and say whether `tasks` may become of them. With a person's `token` none of the server's own headers
    go. `mode`: the version of the protocol, where it is known. `within` so many seconds, where the server's
    own limit is not shorter. Raises McpError.
    """
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    from runs.tools.mcp.transport import Guarded

    try:
        headers = {"Authorization": f"Bearer {token}"} if token else server.headers
    except Unreadable as error:
        raise McpError("MCP_SECRETS", str(error)) from None
    allow = frozenset(settings.MCP_ALLOW)
    seconds = min(server.timeout_seconds, within)
    transport = Guarded(seconds, allow, of_call or {}, trace_of(span), tasks)

    async def speak() -> T:
        async with httpx2.AsyncClient(transport=transport, headers=headers, timeout=None) as http:
            streams = streamable_http_client(server.url, http_client=http)
            async with Client(streams, cache=None, mode=mode) as client:
                span.tell({names.MCP_VERSION: client.protocol_version})
                return await ask(client)

    try:
        return loop.call(speak, seconds)
    except Exception as error:
        failed = explained(server, transport, error)
        tell_of(span, error, failed)
        raise failed from None
    finally:
        if transport.asked is not None:
            span.tell({names.REQUEST_ID: str(transport.asked)})


def tell_of(span: Span, error: Exception, failed: McpError) -> None:
    """Why it failed: the server's own code where it gave one."""
    from mcp import MCPError

    cause = root(error)
    if isinstance(cause, MCPError):
        span.tell({names.RESPONSE_CODE: str(cause.error.code)})
        span.fail(str(cause.error.code))
    span.fail(failed.code)


def explained(server: McpServer, transport: "Guarded", error: Exception) -> McpError:
    """Why there is no answer, in words that tell a person where to look."""
    from mcp import MCPError

    cause = root(error)
    said = f"The MCP server '{server}'"
    if isinstance(cause, McpError):
        return cause
    if transport.held:
        return McpError(transport.held.code, transport.held.message)
    if transport.failure:
        silent = transport.may_have_acted and transport.failure.silent
        return McpError(
            transport.failure.code, f"{said} gave no answer: {transport.failure.message}.", silent
        )
    if transport.unanswered:
        status = "" if transport.status < 300 else f" but the status {transport.status}"
        return McpError("MCP_BAD_ANSWER", f"{said} was told the call and said nothing of it{status}.", True)
    if isinstance(cause, TimeoutError):
        late = f"{said} gave no answer within {transport.timeout:g} seconds."
        return McpError("TIMEOUT", late, transport.may_have_acted)
    if transport.status == 401 and server.as_person and not transport.may_have_acted:
        return Unauthorized(server)
    if transport.status in (401, 403):
        return McpError("MCP_UNAUTHORIZED", f"{said} refuses Deputy's credentials ({transport.status}).")
    if isinstance(cause, MCPError) and transport.said != "result":
        if cause.error.code == INVALID_PARAMS and transport.about_task:
            return McpError("MCP_TASK_UNKNOWN", f"{said} does not know the call's task any more.")
        status = f" ({transport.status})" if transport.status >= 400 else ""
        return McpError("MCP_REFUSED", f"{said} answered{status}: {cause.message[:500]}")
    logger.warning("%s was not understood", said, exc_info=cause)
    what = f"{said} gave an answer that is not MCP ({type(cause).__name__})."
    return McpError("MCP_BAD_ANSWER", what, transport.may_have_acted)


def root(error: BaseException) -> BaseException:
    """The one failure inside the SDK's groups of failures."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


# Results


def answer_of(server: McpServer, result: Any) -> dict[str, Any] | Asked:
    """A result as the log keeps it, or what is asked. Raises McpError."""
    from mcp_types import CallToolResult

    if not isinstance(result, CallToolResult):
        return asked_of(server, result)
    text = "\n".join(block.text for block in result.content if block.type == "text")
    if result.is_error:
        raise McpError("MCP_TOOL_ERROR", text[:2000] or "The tool failed and did not say why.")
    answer: dict[str, Any] = {"text": text[:MAX_TEXT]}
    if result.structured_content is not None:
        answer["structured"] = result.structured_content
    others = [other(block) for block in result.content if block.type != "text"]
    if others:
        answer["others"] = others
    if len(text) > MAX_TEXT:
        answer["truncated"] = True
    return answer


def task_of(server: McpServer, found: dict[str, Any], wanted: bool) -> Task:
    """The task that a call has become. Raises McpError."""
    id = found.get("taskId")
    if not wanted:
        raise McpError(
            "MCP_BAD_ANSWER", f"The MCP server '{server}' answered with a task nobody asked for.", True
        )
    if not isinstance(id, str) or not 0 < len(id) <= MAX_TASK_ID or not id.isprintable():
        raise McpError("MCP_BAD_ANSWER", f"The MCP server '{server}' made a task without a usable id.", True)
    return Task(id, pause(found.get("pollIntervalMs")))


def pause(milliseconds: Any) -> float:
    """Seconds until a task is asked about, as its server wishes within limits."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int):
        return PAUSE
    return min(max(milliseconds, 1000 * LEAST_PAUSE), 1000 * MOST_PAUSE) / 1000


def asked_of(server: McpServer, result: Any) -> Asked:
    """The forms that the server asks for. Raises McpError for whatever else it asks."""
    from mcp_types import ElicitRequest, ElicitRequestFormParams

    found = {}
    for key, request in (result.input_requests or {}).items():
        if not isinstance(request, ElicitRequest) or not isinstance(request.params, ElicitRequestFormParams):
            what = "an address to be opened" if isinstance(request, ElicitRequest) else f"'{request.method}'"
            raise input_refused(server, f"{what}, and only forms are filled in here")
        found[key] = (request.params.message, dict(request.params.requested_schema))
    if not found:
        raise input_refused(server, "the same call once more, without saying what for")
    return Asked(found, result.request_state)


def input_refused(server: McpServer, why: str) -> McpError:
    return McpError("MCP_INPUT_REQUIRED", f"The MCP server '{server}' asks for further input: {why}.")


def other(block: Any) -> dict[str, Any]:
    """A piece that is no text: what it is, without its bytes."""
    told: dict[str, Any] = {"type": block.type}
    if block.type == "resource_link":
        return {**told, "uri": str(block.uri), "name": block.name}
    if block.type == "resource":
        text = getattr(block.resource, "text", None)
        return {**told, "uri": str(block.resource.uri), **({"text": text[:MAX_TEXT]} if text else {})}
    return {**told, "mime_type": block.mime_type, "size": len(block.data) * 3 // 4}
