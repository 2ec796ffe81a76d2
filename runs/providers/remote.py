"""The seat of a remote agent: its "model" is somebody else's agent, asked over A2A (runs/tools/a2a).

Nothing here asks anybody. The seat's reply is the call of the tool `NAME.send_message` with what the seat has
heard, so that the gate, budgets and provenance are those of every call; with the call's result, the reply is
what the remote agent said, quoted: no line of it reads as a DECISION of the group's or as another's words.
"""

import json
from collections.abc import Sequence
from typing import Any

from runs.providers.base import Message, ModelSettings, ProviderError, Reply, ToolRequest, ToolSchema

MAX_TEXT = 50_000  # characters, as the tool takes them
CUT = "[…]\n"


class RemoteSeat:
    """`settings.model` is the remote agent's name. Stateless."""

    def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], settings: ModelSettings
    ) -> Reply:
        """The call that asks the agent, or its answer. Raises ProviderError where there is no answer and
        nobody else in the run to go on without it.
        """
        name, model = settings.model, f"a2a:{settings.model}"
        asked = _asked(messages)
        result = messages[-1] if messages and messages[-1].role == "tool" else None
        if asked is not None and result is not None:
            return Reply(_told(name, _result(result, settings.facts), settings.facts), model=model)
        arguments = {"text": _words(messages, asked, settings.facts)}
        if context := _context(messages, settings.facts):
            arguments["context_id"] = context
        return Reply("", (ToolRequest(f"{name}.send_message", arguments),), model=model)


def _asked(messages: Sequence[Message]) -> int | None:
    """Where the seat's last call stands."""
    return next((i for i in reversed(range(len(messages))) if messages[i].tool_calls), None)


def _words(messages: Sequence[Message], asked: int | None, facts: dict[str, Any]) -> str:
    """What the agent is told: the goal and its context, and what was said since it was asked last."""
    group = facts.get("kind") == "group"
    since = [one for one in messages[0 if asked is None else asked + 1 :] if one.role == "user"]
    if asked is None and not group:
        since = since[-1:]  # of a person's earlier runs it knows what its own context holds
    words = [f"{one.name}: {one.content}" if one.name else one.content for one in since]
    if asked is None and (context := str(facts.get("context") or "")):
        words.insert(1, context)
    said = "\n\n".join(filter(None, words)) or str(facts.get("goal") or "")
    return said if len(said) <= MAX_TEXT else CUT + said[len(CUT) - MAX_TEXT :]


def _context(messages: Sequence[Message], facts: dict[str, Any]) -> str:
    """The conversation with the agent that this run has begun."""
    for one in reversed(messages):
        if one.role == "tool" and isinstance(found := _result(one, facts).get("context_id"), str):
            return found
    return ""


def _result(message: Message, facts: dict[str, Any]) -> dict[str, Any]:
    """The call's result, also of one that the message shows the beginning of."""
    found = (facts.get("results") or {}).get(message.tool_call_id)
    if found is None:
        try:
            found = json.loads(message.content)
        except ValueError:
            found = None
    return found if isinstance(found, dict) else {"text": message.content}


def _told(name: str, result: dict[str, Any], facts: dict[str, Any]) -> str:
    """What the seat says: the answer, or why there is none. Raises ProviderError."""
    error = result.get("error")
    if error is None:
        said = str(result.get("text") or "") or "(nothing)"
        return f"{name} says:\n\n" + "\n".join(f"> {line}" for line in said.splitlines())
    why = str(error.get("message", "")) if isinstance(error, dict) else str(error)
    if facts.get("is_lead") or facts.get("kind") != "group":
        raise ProviderError(_code(error), f"The remote agent '{name}' gave no answer. {why}")
    return f"{name} gave no answer.\n\n" + "\n".join(f"> {line}" for line in why.splitlines())


def _code(error: Any) -> str:
    return str(error.get("code") or "A2A_FAILED") if isinstance(error, dict) else "A2A_FAILED"
