"""The spans of a run: its model's replies, its tool calls, refusals, and the run itself; and those of MCP."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from urllib.parse import urlsplit

from django.db import transaction

from common import conventions as names
from common import trace_context, tracing
from common.current import Work
from common.db import row
from common.trace_context import TRACEPARENT, Ids
from common.trace_ids import span_id, trace_id
from common.tracing import Attributes, Span
from runs.providers import registry
from runs.providers.base import Reply
from runs.providers.keys import Own

ASKED_BY = "SELECT traceparent FROM runs_run WHERE id = %s"
DEFAULT_PORTS = {"http": 80, "https": 443}


def of_model(
    model: str, agent_id: str, agent: str, conversation: str, own: Own | None
) -> AbstractContextManager[Span]:
    """While a model is asked."""
    attributes: Attributes = {
        **(server_of(registry.url_of(model, own)) if tracing.exporting else {}),
        names.PROVIDER: names.provider(model),
        names.REQUEST_MODEL: names.bare(model),
        names.AGENT_ID: agent_id,
        names.AGENT_NAME: agent,
        names.CONVERSATION: conversation,
    }
    return tracing.span(names.CHAT, names.bare(model), attributes)


def said(reply: Reply) -> Attributes:
    """What a reply adds to its span."""
    reason = "length" if reply.truncated else "tool_calls" if reply.tool_calls else "stop"
    return {
        names.RESPONSE_MODEL: reply.model or None,
        names.FINISH_REASONS: (reason,),
        names.INPUT_TOKENS: reply.usage.input_tokens,
        names.OUTPUT_TOKENS: reply.usage.output_tokens,
    }


def of_tool(name: str, call_id: str, agent_id: str) -> AbstractContextManager[Span]:
    """While a tool runs."""
    return tracing.span(names.EXECUTE_TOOL, name, _of_call(name, call_id, agent_id))


def refused(tool: str, call_id: str, agent_id: str, code: str, effect: str) -> None:
    """A call that does not run leaves a span too: that is what people look for."""
    attributes = {**_of_call(tool, call_id, agent_id), "deputy.policy.effect": effect or None}
    with tracing.span(names.EXECUTE_TOOL, tool, attributes) as span:
        span.fail(code)


def server_of(url: str) -> Attributes:
    """Where a request goes; nothing where that is no URL with a host."""
    parts = urlsplit(url)
    if not parts.hostname:
        return {}
    return {
        names.SERVER_ADDRESS: parts.hostname,
        names.SERVER_PORT: parts.port or DEFAULT_PORTS.get(parts.scheme),
    }


@contextmanager
def to_mcp(method: str, url: str) -> Iterator[Span]:
    """While an MCP server is asked. A tool's call has a span already, which is told of it instead of making
    another, as the conventions want it.
    """
    told: Attributes = {names.MCP_METHOD: method, **server_of(url), **OVER_HTTP} if tracing.exporting else {}
    if method == names.TOOLS_CALL and tracing.innermost() is not tracing.NOBODY:
        tracing.innermost().tell(told)
        yield tracing.innermost()
        return
    with tracing.request("client", method, told) as span:
        yield span


OVER_HTTP = {names.TRANSPORT: "tcp", names.PROTOCOL: "http"}


def from_mcp(
    method: str, tool: str, attributes: Attributes, parent: Ids | None, link: Ids | None
) -> AbstractContextManager[Span]:
    """While a request of an MCP client is answered. `tool` is empty unless there is such a tool: whatever
    else a client writes there names no span.
    """
    told: Attributes = {
        names.MCP_METHOD: method,
        names.OPERATION: names.EXECUTE_TOOL if method == names.TOOLS_CALL else None,
        names.TOOL_NAME: tool or None,
        **OVER_HTTP,
        **attributes,
    }
    return tracing.request("server", f"{method} {tool}".strip(), told, parent, link)


def _of_call(tool: str, call_id: str, agent_id: str) -> Attributes:
    return {names.TOOL_NAME: tool, names.TOOL_CALL: call_id, names.AGENT_ID: agent_id}


def run_ended(
    work: Work, parent_run_id: str | None, kind: str, status: str, error: dict[str, Any] | None, tokens: int
) -> None:
    """The whole run, once its end is committed."""
    if not tracing.exporting:
        return
    attributes: Attributes = {"deputy.run.status": status, "deputy.run.tokens": tokens}
    code = (error or {}).get("code", "") if status == "failed" else ""
    found = row(ASKED_BY, [work.run_id])
    asked_by = trace_context.read(found[0]) if found else None
    transaction.on_commit(lambda: tracing.run_ended(work, parent_run_id, kind, attributes, code, asked_by))


def began(run_id: str) -> str:
    """The run begins for the request at hand: the request's span leads to it. Returns what the run's row is
    to say of that; empty where no request from outside is known.
    """
    asked_by = tracing.asked_by()
    if asked_by is None:
        return ""
    tracing.innermost().tell({"deputy.run.id": run_id})
    tracing.innermost().link(run_id, run_id)
    return str(asked_by)


def header(run_id: str, root_id: str) -> dict[str, str]:
    """The header that tells a receiver of which run's span it hears; nothing where none are exported."""
    if not tracing.exporting:
        return {}
    return {TRACEPARENT: str(Ids(trace_id(root_id), span_id(run_id)))}
