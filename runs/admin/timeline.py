"""A run's log as people read it: what was said, what was called, what it waited for."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from common import times
from runs.admin import words
from runs.admin.words import Line
from runs.choices import EventType, WaitKind
from runs.models import Run, RunEvent, ToolCall

SHOWN_EVENTS = 200
MOST_EVENTS = 5_000
LANES = 8  # colours

# what the plain events are called; {x} comes from the payload
TITLES = {
    EventType.RUN_CREATED: "Asked for",
    EventType.RUN_STARTED: "Started",
    EventType.RUN_WAITING: "Waits",
    EventType.RUN_RESUMED: "Goes on",
    EventType.RUN_COMPLETED: "Completed",
    EventType.RUN_FAILED: "Failed",
    EventType.RUN_CANCELLED: "Cancelled",
    EventType.MODEL_RETRIED: "The model did not answer",
    EventType.TOOL_CALLED: "Called",
    EventType.TOOL_COMPLETED: "Returned",
    EventType.TOOL_FAILED: "Failed",
    EventType.TOOL_BLOCKED: "Denied by policy",
    EventType.TOOL_WAITS: "Waits for an answer",
    EventType.TOOL_REQUIRES_APPROVAL: "Needs an approval",
    EventType.TOOL_APPROVED: "Approved",
    EventType.TOOL_REJECTED: "Rejected",
    EventType.TOOL_EXPIRED: "Nobody decided in time",
    EventType.TOOL_OUTCOME_UNKNOWN: "Interrupted: somebody has to say what happened",
    EventType.WAIT_COMPLETED: "The wait is over",
    EventType.CHILD_CREATED: "Handed to a group",
    EventType.MEMORY_WRITTEN: "Remembered",
    EventType.MEMORY_DEPOSITED: "Left knowledge behind",
    EventType.CONTEXT_CHANGED: "Changed its working memory",
}
REASONS = {kind.value: kind.label.lower() for kind in WaitKind}
BAD = {
    EventType.RUN_FAILED,
    EventType.TOOL_FAILED,
    EventType.TOOL_BLOCKED,
    EventType.TOOL_REJECTED,
    EventType.TOOL_EXPIRED,
    EventType.TOOL_OUTCOME_UNKNOWN,
    EventType.MODEL_RETRIED,
}
WARN = {EventType.TOOL_REQUIRES_APPROVAL, EventType.TOOL_WAITS, EventType.RUN_WAITING}
GOOD = {EventType.RUN_COMPLETED, EventType.TOOL_COMPLETED, EventType.TOOL_APPROVED}


@dataclass(frozen=True)
class Card:
    """A tool call: what was asked, what policy said, what came of it."""

    tool: str
    status: str
    status_label: str
    tone: str
    arguments: list[Line]
    asked: list[Line]  # the original arguments, where they were changed
    decision: str
    rule: str
    result: list[Line]
    error: list[Line]
    duration: str
    approval: str


@dataclass
class Entry:
    """One event."""

    seq: int
    type: str
    title: str
    tone: str
    at: datetime
    lane: int
    who: str
    agent: str = ""
    is_message: bool = False
    from_person: bool = False
    tag: str = ""
    text: str = ""
    detail: str = ""
    child: str = ""
    card: Card | None = None
    requests: list[str] = field(default_factory=list)
    memories: list[dict[str, Any]] = field(default_factory=list)  # {id, tier}, as the prompt held them
    knew: list[Any] = field(default_factory=list)  # the same, for people: runs.admin.knew


@dataclass(frozen=True)
class Timeline:
    """The last events of a run, oldest first."""

    entries: list[Entry]
    earlier: int  # events before the first one shown
    lanes: list[tuple[int, str]]
    questions: dict[str, str]  # correlation key -> the question an agent asks


def timeline(run: Run, shown: int = SHOWN_EVENTS) -> Timeline:
    """The run's last `shown` events and their calls: three queries."""
    shown = max(1, min(shown, MOST_EVENTS))
    events = list(RunEvent.objects.filter(run=run).order_by("-seq")[:shown])[::-1]
    if not events:
        return Timeline([], 0, [], {})
    names = _names(run, events)
    call_ids = {event.payload["call_id"] for event in events if "call_id" in event.payload}
    calls = {call.call_id: call for call in ToolCall.objects.filter(run=run, call_id__in=call_ids)}
    facts = _facts(events)
    entries, carded = [], set()
    for event in events:
        entry = _entry(event, names)
        call = calls.get(event.payload.get("call_id", ""))
        if call and call.call_id not in carded:
            carded.add(call.call_id)
            entry.card = _card(call, facts.get(call.call_id, {}))
            entry.detail = ""
        elif call:
            entry.detail = entry.detail or call.tool
        entries.append(entry)
    lanes = [(lane, name) for name, lane in dict(names.values()).items()]
    return Timeline(entries, events[0].seq - 1, lanes, _questions(events))


def _names(run: Run, events: list[RunEvent]) -> dict[str, tuple[str, int]]:
    """Who an event's agent is, as the log itself says, and the agent's lane."""
    first = events[0]
    if first.type != EventType.RUN_CREATED:
        first = RunEvent.objects.filter(run=run, seq=1).first() or first
    members = first.payload.get("members", []) if first.type == EventType.RUN_CREATED else []
    names = {m["agent"]: (str(m["role"]), 1 + i % (LANES - 1)) for i, m in enumerate(members)}
    for event in events:
        if event.agent and event.agent not in names:
            names[event.agent] = (event.agent, 1 + len(names) % (LANES - 1))
    return names


def _facts(events: list[RunEvent]) -> dict[str, dict[str, Any]]:
    """What the log says of each call beside its row: policy's decision, the approval, the refusal."""
    facts: dict[str, dict[str, Any]] = {}
    for event in events:
        call_id = event.payload.get("call_id")
        if not call_id:
            continue
        known = facts.setdefault(call_id, {})
        if event.type == EventType.TOOL_CALLED:
            known["decision"] = event.payload.get("decision") or {}
        elif event.type == EventType.TOOL_REQUIRES_APPROVAL:
            known["asked"] = event.payload
        elif event.type == EventType.TOOL_BLOCKED:
            known["blocked"] = event.payload
    return facts


def _entry(event: RunEvent, names: dict[str, tuple[str, int]]) -> Entry:
    type, payload = EventType(event.type), event.payload
    who, lane = names.get(event.agent, ("", 0))
    entry = Entry(
        seq=event.seq,
        type=event.type,
        title=TITLES.get(type, event.type),
        tone="bad" if type in BAD else "warn" if type in WARN else "good" if type in GOOD else "",
        at=event.created_at,
        lane=lane,
        who=who,
        agent=event.agent,
    )
    if type == EventType.MESSAGE_CREATED:
        entry.is_message = True
        entry.from_person = payload.get("role") == "user"
        entry.who = str(payload.get("author") or "Somebody") if entry.from_person else who
        entry.tag = str(payload.get("message_type", ""))
        entry.text = str(payload.get("content", ""))
        entry.requests = [str(request.get("name")) for request in payload.get("tool_calls", [])]
        entry.memories = payload.get("memories") or []
    entry.detail = _detail(type, payload)
    entry.child = str(payload.get("child_run", ""))
    return entry


def _detail(type: EventType, payload: dict[str, Any]) -> str:
    """The few words that make the event clear."""
    error = payload.get("error")
    if isinstance(error, dict):
        return f"{error.get('message', '')} ({error.get('code', '')})"
    if type == EventType.RUN_WAITING:
        reason = payload.get("reason", "")
        return f"for {REASONS.get(reason, reason)}"
    if type == EventType.TOOL_WAITS:
        return str(payload.get("question", ""))
    if type == EventType.TOOL_REQUIRES_APPROVAL:
        return str(payload.get("message", ""))
    if type == EventType.TOOL_APPROVED:
        return f"by {payload['by']}" if payload.get("by") else ""
    if type == EventType.WAIT_COMPLETED:
        return str(payload.get("outcome", ""))
    if type == EventType.MODEL_RETRIED:
        return f"{payload.get('message', '')} ({payload.get('code', '')})"
    if type == EventType.MEMORY_DEPOSITED:
        count = len(payload.get("memories", []))
        return f"{count} entries" + (", waiting for review" if payload.get("review") else "")
    return ""


def _card(call: ToolCall, facts: dict[str, Any]) -> Card:
    decision = facts.get("decision") or {}
    asked = facts.get("asked") or {}
    blocked = facts.get("blocked") or {}
    if blocked:
        said = str((blocked.get("error") or {}).get("message", "Denied"))
    elif asked:
        said = str(asked.get("message", "")) or "Needs an approval"
    else:
        said = EFFECTS.get(str(decision.get("effect")), "")
    changed = call.arguments != call.effective_arguments
    return Card(
        tool=call.tool,
        status=call.status,
        status_label=call.get_status_display(),
        tone=words.tone(call.status),
        arguments=words.readable(call.effective_arguments),
        asked=words.readable(call.arguments) if changed else [],
        decision=said,
        rule=str(blocked.get("rule") or asked.get("rule") or decision.get("rule") or ""),
        result=words.readable(call.result) if call.result is not None else [],
        error=words.readable(call.error) if call.error else [],
        duration=times.between(call.created_at, call.ended_at),
        approval=str(asked.get("approval", "")),
    )


EFFECTS = {"allow": "Allowed", "deny": "Denied"}


def _questions(events: list[RunEvent]) -> dict[str, str]:
    return {
        str(event.payload["correlation_key"]): str(event.payload.get("question", ""))
        for event in events
        if event.type == EventType.TOOL_WAITS and event.payload.get("kind") == "input"
    }
