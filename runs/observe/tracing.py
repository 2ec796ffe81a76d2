"""The spans of a run: its model's replies, its tool calls, refusals, and the run itself."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from django.db import transaction

from common import tracing
from common.current import Work
from common.tracing import Attributes, Span
from runs.providers.base import Reply
from runs.tools.base import ToolContext

if TYPE_CHECKING:
    from runs.context.prompts import Prompt
    from runs.log.claimed import Session
    from runs.log.log import RunLog
    from runs.log.state import Call


def of_model(session: "Session", prompt: "Prompt") -> AbstractContextManager[Span]:
    """While a model is asked."""
    attributes: Attributes = {
        "gen_ai.provider.name": prompt.model.partition(":")[0],
        "gen_ai.request.model": prompt.model,
        "gen_ai.agent.id": prompt.member.agent,
        "gen_ai.agent.name": prompt.member.role,
        "gen_ai.conversation.id": session.session_key or session.root_id,
    }
    return tracing.span("chat", prompt.model, attributes)


def usage(reply: Reply) -> Attributes:
    return {
        "gen_ai.response.model": reply.model or None,
        "gen_ai.usage.input_tokens": reply.usage.input_tokens,
        "gen_ai.usage.output_tokens": reply.usage.output_tokens,
    }


def of_tool(name: str, context: ToolContext) -> AbstractContextManager[Span]:
    """While a tool runs."""
    attributes: Attributes = {
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": context.call_id,
        "gen_ai.agent.id": context.agent_id,
    }
    return tracing.span("execute_tool", name, attributes)


def refused(call: "Call", code: str, effect: str) -> None:
    """A call that does not run leaves a span too: that is what people look for."""
    attributes: Attributes = {
        "gen_ai.tool.name": call.tool,
        "gen_ai.tool.call.id": call.call_id,
        "gen_ai.agent.id": call.agent,
        "deputy.policy.effect": effect or None,
    }
    with tracing.span("execute_tool", call.tool, attributes) as span:
        span.fail(code)


def run_ended(log: "RunLog", status: str, error: dict[str, Any] | None, tokens: int) -> None:
    """The whole run, once its end is committed."""
    if not tracing.exporting:
        return
    work = Work(log.id, log.root_id, log.organization_id)
    attributes: Attributes = {"deputy.run.status": status, "deputy.run.tokens": tokens}
    code = (error or {}).get("code", "") if status == "failed" else ""
    transaction.on_commit(lambda: tracing.run_ended(work, log.parent_run_id, log.kind, attributes, code))
