"""The spans of a run: its model's replies, its tool calls, refusals, and the run itself."""

from contextlib import AbstractContextManager
from typing import Any

from django.db import transaction

from common import conventions as names
from common import tracing
from common.current import Work
from common.tracing import Attributes, Span
from runs.providers.base import Reply


def of_model(model: str, agent_id: str, agent: str, conversation: str) -> AbstractContextManager[Span]:
    """While a model is asked."""
    attributes: Attributes = {
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
    transaction.on_commit(lambda: tracing.run_ended(work, parent_run_id, kind, attributes, code))
