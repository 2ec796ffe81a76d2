"""The spans of a run: its model's replies, its tool calls, refusals, and the run itself."""

from contextlib import AbstractContextManager
from typing import Any

from django.db import transaction

from common import tracing
from common.current import Work
from common.tracing import Attributes, Span


def of_model(model: str, agent_id: str, agent: str, conversation: str) -> AbstractContextManager[Span]:
    """While a model is asked."""
    attributes: Attributes = {
        "gen_ai.provider.name": model.partition(":")[0],
        "gen_ai.request.model": model,
        "gen_ai.agent.id": agent_id,
        "gen_ai.agent.name": agent,
        "gen_ai.conversation.id": conversation,
    }
    return tracing.span("chat", model, attributes)


def usage(model: str, input_tokens: int, output_tokens: int) -> Attributes:
    return {
        "gen_ai.response.model": model or None,
        "gen_ai.usage.input_tokens": input_tokens,
        "gen_ai.usage.output_tokens": output_tokens,
    }


def of_tool(name: str, call_id: str, agent_id: str) -> AbstractContextManager[Span]:
    """While a tool runs."""
    return tracing.span("execute_tool", name, _of_call(name, call_id, agent_id))


def refused(tool: str, call_id: str, agent_id: str, code: str, effect: str) -> None:
    """A call that does not run leaves a span too: that is what people look for."""
    attributes = {**_of_call(tool, call_id, agent_id), "deputy.policy.effect": effect or None}
    with tracing.span("execute_tool", tool, attributes) as span:
        span.fail(code)


def _of_call(tool: str, call_id: str, agent_id: str) -> Attributes:
    return {"gen_ai.tool.name": tool, "gen_ai.tool.call.id": call_id, "gen_ai.agent.id": agent_id}


def run_ended(
    work: Work, parent_run_id: str | None, kind: str, status: str, error: dict[str, Any] | None, tokens: int
) -> None:
    """The whole run, once its end is committed."""
    if not tracing.exporting:
        return
    attributes: Attributes = {"deputy.run.status": status, "deputy.run.tokens": tokens}
    code = (error or {}).get("code", "") if status == "failed" else ""
    transaction.on_commit(lambda: tracing.run_ended(work, parent_run_id, kind, attributes, code))
