"""Spans of MCP clients' requests, and the trace that their senders name (SEP-414).

What a client says of its trace gives a span its parent or a link. Nothing is decided by it, and a run keeps
its own trace.
"""

from typing import Any

from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult

from common import conventions as names
from common import trace_context, tracing
from common.trace_context import TRACEPARENT
from common.tracing import Attributes, Span
from runs.mcp.offer import OWN
from runs.mcp.requests import Context, session_of
from runs.models import Run
from runs.observe.tracing import from_mcp
from runs.tools import registry


async def traced(ctx: Context, call_next: CallNext) -> HandlerResult:
    """The SDK's middleware around every request."""
    if not tracing.exporting:
        return await call_next(ctx)
    in_meta = trace_context.read(dict(ctx.meta or {}).get(TRACEPARENT))
    in_header = trace_context.read(ctx.request.headers.get(TRACEPARENT)) if ctx.request is not None else None
    parent, link = in_meta or in_header, in_header if in_meta != in_header and in_meta else None
    with (
        from_mcp(ctx.method, _tool(ctx), _attributes(ctx), parent, link) as span,
        tracing.working_for_request(span.ids),
    ):
        return await _answered(ctx, call_next, span)


async def _answered(ctx: Context, call_next: CallNext, span: Span) -> HandlerResult:
    try:
        result = await call_next(ctx)
    except MCPError as error:
        span.tell({names.RESPONSE_CODE: str(error.error.code)})
        span.fail(str(error.error.code))
        raise
    if _is_error(result):
        span.fail(names.TOOL_ERROR)
    return result


def _is_error(result: HandlerResult) -> bool:
    """Whether a tool says that it has failed. A result may have been written as JSON by now."""
    said = result.get("isError") if isinstance(result, dict) else getattr(result, "is_error", False)
    return said is True


def _attributes(ctx: Context) -> Attributes:
    asked = None if ctx.request_id is None else str(ctx.request_id)[:64]
    organization = session_of(ctx).project.organization_id
    return {
        names.MCP_VERSION: ctx.protocol_version,
        names.REQUEST_ID: asked,
        "deputy.organization.id": organization,
    }


def _tool(ctx: Context) -> str:
    """The name of Deputy's own tool that is called. An MCP server's goes without: whether there is one is not
    known yet.
    """
    name = (ctx.params or {}).get("name") if ctx.method == names.TOOLS_CALL else None
    return name if isinstance(name, str) and (name in OWN or registry.get(name)) else ""


def tell_of(run: Run, call_id: str) -> None:
    """Which call of which run the request turned out to be about."""
    span: Any = tracing.innermost()
    span.tell({"deputy.run.id": run.pk, names.TOOL_CALL: call_id})
    span.link(run.pk, run.root_id)
