"""What happens in a turn, line by line, for the person it happens for."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.admin import words
from runs.models import Run, RunEvent
from runs.models.choices import EventType, WaitKind
from runs.tools.base import ESCALATE

SHOWN_WORDS = 400  # characters of a group member's words in the story
DOES = {  # a tool, and what the agent does with it
    "memory_search": gettext_lazy("Searches memory"),
    "memory_write": gettext_lazy("Remembers something"),
    "blackboard_write": gettext_lazy("Writes on the group's blackboard"),
    "list_available_groups": gettext_lazy("Looks up the groups"),
    "http_get": gettext_lazy("Reads a page"),
    "send_email": gettext_lazy("Sends an e-mail"),
}


@dataclass(frozen=True)
class Line:
    """One line of the turn's story. `depth` is how far below the person's own agent it happened."""

    text: str
    who: str
    at: datetime
    depth: int
    tone: str = ""
    said: str = ""


def line_of(run: Run, event: RunEvent, names: dict[str, str]) -> Line | None:
    """The event as a line of the story; None for one that says nothing new."""
    told = _told(run, event)
    if told is None:
        return None
    text, tone, said = told
    group = run.group.name if run.group else ""
    who = " · ".join(filter(None, [group, names.get(event.agent, "")]))
    return Line(text, who, event.created_at, run.depth, tone, said)


def _told(run: Run, event: RunEvent) -> tuple[str, str, str] | None:
    """What it says, its tone, and words that are quoted."""
    kind, payload = event.type, event.payload
    tool = str(payload.get("tool", ""))
    if kind == EventType.MESSAGE_CREATED:
        if payload.get("role") == "user" or not run.depth or not str(payload.get("content", "")).strip():
            return None
        said = str(payload["content"])
        return _("says"), "", said if len(said) <= SHOWN_WORDS else f"{said[:SHOWN_WORDS].rstrip()}…"
    if kind == EventType.CHILD_CREATED:
        return _("Asks the group {name}").format(name=payload.get("group", "")), "", ""
    if kind == EventType.TOOL_CALLED:
        return None if tool == ESCALATE else (doing(tool), "", "")
    if kind == EventType.TOOL_WAITS and payload.get("kind") == WaitKind.TIMER:
        return None
    if kind == EventType.TOOL_WAITS and payload.get("server"):
        return _("{server} works on it").format(server=payload["server"]), "", ""
    if kind == EventType.TOOL_WAITS:
        return _("Asks you"), "warn", str(payload.get("question", ""))
    if kind == EventType.TOOL_REQUIRES_APPROVAL:
        return _("Needs an approval for {tool}").format(tool=tool), "warn", ""
    if kind == EventType.APPROVAL_FOLLOWED_UP:
        return words.followed_up(payload), "bad" if payload.get("what") == "alarm" else "warn", ""
    if kind == EventType.TOOL_APPROVED:
        return _("Approved by {who}").format(who=payload.get("by") or _("a person")), "good", ""
    if kind in (EventType.TOOL_REJECTED, EventType.TOOL_EXPIRED):
        return _rejected(kind, payload), "bad", ""
    if kind in (EventType.TOOL_FAILED, EventType.TOOL_BLOCKED):
        return str((payload.get("error") or {}).get("message", "")), "bad", ""
    if kind == EventType.TOOL_OUTCOME_UNKNOWN and payload.get("restored"):
        perhaps = _("{tool} may have been done after the backup was made; a person has to say")
        return perhaps.format(tool=tool), "warn", ""
    if kind == EventType.TOOL_OUTCOME_UNKNOWN:
        return _("{tool} was interrupted; a person has to say what happened").format(tool=tool), "warn", ""
    if kind == EventType.MODEL_RETRIED:
        return _("The model did not answer: {why}").format(why=payload.get("message", "")), "bad", ""
    if kind in (EventType.RUN_FAILED, EventType.RUN_CANCELLED) and run.depth:
        return str((payload.get("error") or {}).get("message", "")), "bad", ""
    return None


def _rejected(kind: str, payload: dict[str, Any]) -> str:
    if kind == EventType.TOOL_EXPIRED:
        return _("Nobody decided in time")
    return str((payload.get("error") or {}).get("message", "")) or _("Rejected")


def doing(tool: str) -> str:
    """What the agent does with a tool, in words."""
    said = DOES.get(tool)
    return str(said) if said else _("Uses {tool}").format(tool=tool)


def without_looks(events: Iterable[RunEvent]) -> Iterator[RunEvent]:
    """A run's events, with each call once: one that waits for a time begins again whenever it looks."""
    called = set()
    for event in events:
        if event.type == EventType.TOOL_CALLED:
            if event.payload.get("call_id") in called:
                continue
            called.add(event.payload.get("call_id"))
        yield event
