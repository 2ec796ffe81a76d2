"""How an event reads in a terminal: one line or a few, never markup, never control characters."""

import json
import re
from collections.abc import Callable
from typing import Any

from rich.text import Text

from runs.models.choices import EventType, RunKind, WaitKind
from runs.terminal.tail import Heard

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
SHOWN_LINES = 6  # of what an agent says on the way
SHOWN_CHARACTERS = 160  # of arguments

Line = tuple[str, str]  # what is said, in which style


def line(heard: Heard) -> Text | None:
    """The event for a reader, or None for one that says nothing new."""
    describe = DESCRIBED.get(heard.event.type)
    said = describe(heard.event.payload, heard) if describe else None
    if said is None:
        return None
    words, style = said
    margin = "  " * (heard.run.depth + 1)
    who = (
        f"{heard.run.group} · {heard.who}" if heard.run.group and heard.who else heard.run.group or heard.who
    )
    text = Text(margin)
    if who:
        text.append(f"{clean(who)}: ", style="bold")
    text.append(clean(words).replace("\n", f"\n{margin}  "), style=style)
    return text


def clean(text: str) -> str:
    """Without what would move the cursor, change colours or turn the writing around."""
    return CONTROLS.sub("", text)


def _message(payload: dict[str, Any], heard: Heard) -> Line | None:
    if payload["role"] == "user":
        return None if heard.event.seq <= 2 else (f"{payload['author']}: {payload['content']}", "cyan")
    last = heard.run.kind == RunKind.PERSONAL and not payload.get("tool_calls")
    if last or not payload["content"].strip():
        return None  # the answer is printed at the end
    lines = payload["content"].strip().splitlines()
    more = ["…"] if len(lines) > SHOWN_LINES else []
    return "\n".join(lines[:SHOWN_LINES] + more), ""


def _retried(payload: dict[str, Any], heard: Heard) -> Line:
    if payload.get("gave_up"):
        return f"the model failed: {payload['message']}", "red"
    return f"the model failed ({payload['code']}), asking again in {payload['delay_ms'] / 1000:g} s", "yellow"


def _called(payload: dict[str, Any], heard: Heard) -> Line | None:
    if payload["tool"] == "escalate_to_group":
        return None  # child.created says it better
    return f"uses {payload['tool']} {_short(payload['arguments'])}", "dim"


def _child(payload: dict[str, Any], heard: Heard) -> Line:
    return f"passes it on to {payload['group']}", "magenta"


def _asks(payload: dict[str, Any], heard: Heard) -> Line | None:
    asks = payload.get("question") and payload.get("kind") != WaitKind.TIMER
    return (f"asks: {payload['question']}", "yellow") if asks else None


def _approval(payload: dict[str, Any], heard: Heard) -> Line:
    return f"needs an approval for {payload['tool']} {_short(payload['arguments'])}", "yellow"


def _approved(payload: dict[str, Any], heard: Heard) -> Line:
    return f"approved by {payload.get('by') or 'a person'}", "green"


def _unknown(payload: dict[str, Any], heard: Heard) -> Line:
    what = "may have been done after the backup" if payload.get("restored") else "was interrupted"
    return f"{payload['tool']} {what}; a person has to say what happened", "yellow"


def _failed(payload: dict[str, Any], heard: Heard) -> Line:
    return f"{payload['tool']}: {payload['error'].get('message', '')}", "red"


def _deposited(payload: dict[str, Any], heard: Heard) -> Line | None:
    count = len(payload["memories"])
    words = "1 entry" if count == 1 else f"{count} entries"
    return (f"leaves {words} in the project's knowledge", "dim") if count else None


def _ended(payload: dict[str, Any], heard: Heard) -> Line | None:
    if heard.run.depth == 0:
        return None
    error = payload.get("error") or {}
    return (f"ended: {error['message']}", "red") if error.get("message") else ("done", "green")


DESCRIBED: dict[str, Callable[[dict[str, Any], Heard], Line | None]] = {
    EventType.MESSAGE_CREATED.value: _message,
    EventType.MODEL_RETRIED.value: _retried,
    EventType.TOOL_CALLED.value: _called,
    EventType.CHILD_CREATED.value: _child,
    EventType.TOOL_WAITS.value: _asks,
    EventType.TOOL_REQUIRES_APPROVAL.value: _approval,
    EventType.TOOL_APPROVED.value: _approved,
    EventType.TOOL_OUTCOME_UNKNOWN.value: _unknown,
    EventType.TOOL_FAILED.value: _failed,
    EventType.TOOL_BLOCKED.value: _failed,
    EventType.TOOL_REJECTED.value: _failed,
    EventType.TOOL_EXPIRED.value: _failed,
    EventType.MEMORY_DEPOSITED.value: _deposited,
    EventType.RUN_COMPLETED.value: _ended,
    EventType.RUN_FAILED.value: _ended,
    EventType.RUN_CANCELLED.value: _ended,
}


def _short(arguments: dict[str, Any]) -> str:
    text = " ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
