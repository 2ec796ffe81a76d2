"""What a call asks its person, put to the client's own user: a form (elicitation), and the answer to it.

Never an approval: a form says nothing of who filled it in, and decisions are made at Deputy's pages. Only a
token that speaks as its person, by a scope given to it by name, is asked; for others the question waits at
Deputy.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import mcp_types as types

from groups.actors import Actor, Via
from policy.authority import NotAllowed, Verb, can
from runs.actions.message import message
from runs.actions.signal import SignalRefused, offered
from runs.execution import calls
from runs.execution.calls import Look
from runs.gate import repeats
from runs.log.log import RunGone
from runs.mcp.session import McpSession
from runs.models import Run
from runs.models.choices import WaitKind

ANSWER = "answer"  # the form's only field


def speaker(session: McpSession) -> Actor:
    """The token as it speaks elsewhere: over MCP it would not be heard as the person, whatever it says, but
    this is no word of a model's, it is what the client's user puts into a form that Deputy made.
    """
    return replace(session.actor, via=Via.TOKEN)


def form(session: McpSession, run: Run, look: Look) -> dict[str, types.ElicitRequest] | None:
    """The open question as MCP asks it, under a key that is this question's alone; None where there is none
    that this client may answer.
    """
    waits = look.waits_for
    if waits is None or waits.kind != WaitKind.INPUT or waits.correlation_key.startswith(repeats.PREFIX):
        return None
    if not can(speaker(session), Verb.ANSWER, run):
        return None
    choices = offered(run.pk, waits.correlation_key)
    field: dict[str, Any] = {"type": "string", "title": "Answer", "maxLength": 10_000}
    if choices:
        field["description"] = f"One of: {', '.join(choices)}; or something else."
    schema = {"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]}
    asked = types.ElicitRequestFormParams(message=waits.question or "", requested_schema=schema)
    return {waits.correlation_key: types.ElicitRequest(params=asked)}


def take(session: McpSession, run: Run, call_id: str, responses: Mapping[str, Any] | None) -> None:
    """Give the run the answer to its open question, where it is among the responses. Others are ignored, and
    so is a question that was declined: it stays open, for the person to answer at Deputy.
    """
    look = calls.look(run, call_id)
    asked = form(session, run, look) or {}
    for key in asked:
        said = _answer((responses or {}).get(key))
        if said:
            try:
                message(run.pk, said, speaker(session), key)
            except (NotAllowed, SignalRefused, RunGone):
                return  # answered elsewhere meanwhile, or too late: the call shows how it stands


def _answer(response: Any) -> str:
    """The words of an accepted form; empty without any. A form of one field may call it as it likes."""
    if isinstance(response, types.ElicitResult):
        response = response.model_dump(by_alias=True)
    if not isinstance(response, Mapping) or response.get("action") != "accept":
        return ""
    content = response.get("content")
    if not isinstance(content, Mapping):
        return ""
    said = content.get(ANSWER, next(iter(content.values())) if len(content) == 1 else None)
    if isinstance(said, bool):
        return "yes" if said else "no"
    return str(said).strip() if isinstance(said, str | int | float) else ""
