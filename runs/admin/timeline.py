"""What a run and all below it said, called and waited for: one story, a lane for each agent."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from common import redact, times
from common.canonical import same
from runs.actions.fork import POINTS
from runs.admin import words
from runs.admin.words import Line
from runs.models import Run, RunEvent, ToolCall
from runs.models.choices import EventType, WaitKind, WaitOutcome
from runs.observe import showing
from runs.tools.base import ESCALATE

SHOWN_EVENTS = 200
MOST_EVENTS = 5_000
LANES = 8  # colours
BRIEF = 6  # lines of a result that is shown unfolded

# what the plain events are called; {x} comes from the payload
TITLES = {
    EventType.RUN_CREATED: gettext_lazy("Asked for"),
    EventType.RUN_STARTED: gettext_lazy("Started"),
    EventType.RUN_WAITING: gettext_lazy("Waits"),
    EventType.RUN_RESUMED: gettext_lazy("Goes on"),
    EventType.RUN_COMPLETED: gettext_lazy("Completed"),
    EventType.RUN_FAILED: gettext_lazy("Failed"),
    EventType.RUN_CANCELLED: gettext_lazy("Cancelled"),
    EventType.RUN_RESTORED: gettext_lazy("Restored from a backup: what it did after that is not in its log"),
    EventType.MODEL_RETRIED: gettext_lazy("The model did not answer"),
    EventType.TOOL_CALLED: gettext_lazy("Called"),
    EventType.TOOL_COMPLETED: gettext_lazy("Returned"),
    EventType.TOOL_FAILED: gettext_lazy("Failed"),
    EventType.TOOL_BLOCKED: gettext_lazy("Denied by policy"),
    EventType.TOOL_WAITS: gettext_lazy("Waits for an answer"),
    EventType.TOOL_REQUIRES_APPROVAL: gettext_lazy("Needs an approval"),
    EventType.TOOL_APPROVED: gettext_lazy("Approved"),
    EventType.APPROVAL_EDITED: gettext_lazy("A decider changed the arguments"),
    EventType.APPROVAL_FOLLOWED_UP: gettext_lazy("The approval was followed up"),
    EventType.TOOL_REJECTED: gettext_lazy("Rejected"),
    EventType.TOOL_EXPIRED: gettext_lazy("Nobody decided in time"),
    EventType.TOOL_OUTCOME_UNKNOWN: gettext_lazy("Interrupted: somebody has to say what happened"),
    EventType.WAIT_COMPLETED: gettext_lazy("The wait is over"),
    EventType.CHILD_CREATED: gettext_lazy("Handed to a group"),
    EventType.MEMORY_WRITTEN: gettext_lazy("Remembered"),
    EventType.MEMORY_DEPOSITED: gettext_lazy("Left knowledge behind"),
    EventType.CONTEXT_CHANGED: gettext_lazy("Changed its working memory"),
}
REASONS = {
    WaitKind.CHILD: gettext_lazy("for a group's result"),
    WaitKind.APPROVAL: gettext_lazy("for a decision"),
    WaitKind.INPUT: gettext_lazy("for an answer"),
    WaitKind.REVIEW: gettext_lazy("for word on what happened"),
    WaitKind.TIMER: gettext_lazy("for a point in time"),
    WaitKind.SIGNAL: gettext_lazy("for a signal"),
}
LEFT_OUT = gettext_lazy("Changed its working memory (not carried over)")
BAD = {
    EventType.RUN_FAILED,
    EventType.TOOL_FAILED,
    EventType.TOOL_BLOCKED,
    EventType.TOOL_REJECTED,
    EventType.TOOL_EXPIRED,
    EventType.TOOL_OUTCOME_UNKNOWN,
    EventType.MODEL_RETRIED,
}
WARN = {EventType.RUN_RESTORED, EventType.TOOL_REQUIRES_APPROVAL, EventType.TOOL_WAITS, EventType.RUN_WAITING}
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

    @property
    def brief(self) -> bool:
        """Whether the result is small enough to stand there unfolded."""
        return len(self.result) <= BRIEF


@dataclass
class Entry:
    """One event."""

    run: str
    seq: int
    type: str
    title: str
    tone: str
    at: datetime
    lane: int
    who: str
    own: bool = True  # of the page's run, not of one below it
    again: bool = False  # whether the run may be gone on with from here
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
    recalled: list[Any] = field(default_factory=list)  # the same, for people: runs.admin.recalled

    @property
    def long(self) -> bool:
        return len(self.text) > words.FOLDED


@dataclass(frozen=True)
class Timeline:
    """The last events of a run and those below it, oldest first."""

    entries: list[Entry]
    earlier: int  # events before the first one shown
    lanes: list[tuple[int, str]]
    last: str = ""  # `{run}:{seq}` of the last one, as the stream counts


Lanes = dict[str, tuple[str, int]]  # agent -> name, lane
Call = tuple[str, str]  # run, call id


def timeline(
    run: Run, below: Sequence[str] = (), total: int = 0, shown: int = SHOWN_EVENTS, own: bool = False
) -> Timeline:
    """The last `shown` of `total` events of the run and the runs `below` it: three queries. `own`: for the
    person the run works for.
    """
    shown = max(1, min(shown, MOST_EVENTS))
    latest = RunEvent.objects.filter(run_id__in=[run.pk, *below]).order_by("-created_at", "-run_id", "-seq")
    events = list(latest[:shown])[::-1]
    for event in events:
        event.payload = showing.payload(event.type, event.payload, own)
    if not events:
        return Timeline([], 0, [])
    created = _created(events)
    lanes, calls, facts = _lanes(events, created), _calls(events), _facts(events)
    entries, carded = [], set()
    for event in events:
        entry = _entry(event, lanes)
        entry.own = event.run_id == run.pk
        entry.who = entry.who or ("" if entry.own else str(created.get(event.run_id, {}).get("group", "")))
        key = (event.run_id, event.payload.get("call_id", ""))
        call = calls.get(key)
        if call and key not in carded:
            carded.add(key)
            entry.card = _card(call, facts.get(key, {}), own)
            entry.detail = ""
        elif call:
            entry.detail = entry.detail or call.tool
            if entry.type == EventType.TOOL_COMPLETED and failed_inside(call):
                entry.tone = "bad"
        entries.append(entry)
    legend = sorted({(lane, name) for name, lane in lanes.values()})
    last = f"{events[-1].run_id}:{events[-1].seq}"
    return Timeline(entries, max(total - len(events), 0), legend, last)


def _created(events: list[RunEvent]) -> dict[str, dict[str, Any]]:
    """What the first event of each of their runs says, by run."""
    ids = {event.run_id for event in events}
    firsts = RunEvent.objects.filter(run_id__in=ids, seq=1).order_by("run_id")
    return dict(firsts.values_list("run_id", "payload"))


def _lanes(events: list[RunEvent], created: dict[str, dict[str, Any]]) -> Lanes:
    """Who speaks, as the runs' first events say, and in which lane; a lane is an agent's in all its runs."""
    lanes: Lanes = {}
    for first in created.values():
        for member in first.get("members", []):
            name = f"{first['group']}: {member['role']}" if first.get("group") else str(member["role"])
            lanes.setdefault(member["agent"], (name, 1 + len(lanes) % (LANES - 1)))
    for event in events:
        if event.agent:
            lanes.setdefault(event.agent, (event.agent, 1 + len(lanes) % (LANES - 1)))
    spoke = {event.agent for event in events}
    return {agent: lane for agent, lane in lanes.items() if agent in spoke}


def _calls(events: list[RunEvent]) -> dict[Call, ToolCall]:
    """The tool calls these events speak of."""
    keys = {(event.run_id, event.payload["call_id"]) for event in events if "call_id" in event.payload}
    found = ToolCall.objects.filter(run_id__in={key[0] for key in keys}, call_id__in={key[1] for key in keys})
    return {(call.run_id, call.call_id): call for call in found}


def _facts(events: list[RunEvent]) -> dict[Call, dict[str, Any]]:
    """What the log says of each call beside its row: policy's decision, the approval, the refusal."""
    facts: dict[Call, dict[str, Any]] = {}
    for event in events:
        call_id = event.payload.get("call_id")
        if not call_id:
            continue
        known = facts.setdefault((event.run_id, call_id), {})
        if event.type == EventType.TOOL_CALLED:
            known["decision"] = event.payload.get("decision") or {}
        elif event.type == EventType.TOOL_REQUIRES_APPROVAL:
            known["asked"] = event.payload
        elif event.type == EventType.TOOL_BLOCKED:
            known["blocked"] = event.payload
    return facts


def _entry(event: RunEvent, lanes: Lanes) -> Entry:
    type, payload = EventType(event.type), event.payload
    who, lane = lanes.get(event.agent, ("", 0))
    waits = type == EventType.TOOL_WAITS and payload.get("kind") == WaitKind.TIMER  # for nobody's answer
    shown = EventType.RUN_WAITING if waits else type
    title = LEFT_OUT if "left_out" in payload else TITLES.get(shown, event.type)
    entry = Entry(
        run=event.run_id,
        seq=event.seq,
        type=event.type,
        title=str(title),
        tone="bad" if type in BAD else "warn" if type in WARN else "good" if type in GOOD else "",
        at=event.created_at,
        lane=lane,
        who=who,
        agent=event.agent,
    )
    if type == EventType.MESSAGE_CREATED:
        entry.is_message = True
        entry.from_person = payload.get("role") == "user"
        entry.who = str(payload.get("author") or _("Somebody")) if entry.from_person else who
        entry.tag = str(payload.get("message_type", ""))
        entry.text = str(payload.get("content", ""))
        entry.requests = [str(request.get("name")) for request in payload.get("tool_calls", [])]
        entry.memories = payload.get("memories") or []
    entry.detail = _detail(type, payload)
    entry.child = str(payload.get("child_run", ""))
    entry.again = type in POINTS and not payload.get("tool_calls")
    return entry


def _detail(type: EventType, payload: dict[str, Any]) -> str:
    """The few words that make the event clear."""
    error = payload.get("error")
    if isinstance(error, dict):
        return f"{error.get('message', '')} ({error.get('code', '')})"
    if type == EventType.RUN_WAITING:
        reason = payload.get("reason", "")
        return str(REASONS.get(reason, reason))
    if type == EventType.RUN_CREATED:
        origin = payload.get("forked_from")
        return _("from event {seq} of {run}").format(**origin) if origin else ""
    if type == EventType.TOOL_WAITS:
        if payload.get("server"):
            return _("{server} works on it").format(server=payload["server"])
        return str(payload.get("question", ""))
    if type == EventType.TOOL_REQUIRES_APPROVAL:
        return str(payload.get("message", ""))
    if type == EventType.TOOL_APPROVED:
        return _("by {who}").format(who=payload["by"]) if payload.get("by") else ""
    if type == EventType.APPROVAL_FOLLOWED_UP:
        return words.followed_up(payload)
    if type == EventType.WAIT_COMPLETED:
        outcome = payload.get("outcome", "")
        return str(OUTCOMES.get(outcome, outcome))
    if type == EventType.MODEL_RETRIED:
        return f"{payload.get('message', '')} ({payload.get('code', '')})"
    if type == EventType.MEMORY_DEPOSITED:
        count = len(payload.get("memories", []))
        said = ngettext("{count} entry", "{count} entries", count).format(count=count)
        return f"{said}, {_('waiting for review')}" if payload.get("review") else said
    return ""


def _card(call: ToolCall, facts: dict[str, Any], own: bool) -> Card:
    decision = facts.get("decision") or {}
    asked = facts.get("asked") or {}
    blocked = facts.get("blocked") or {}
    if blocked:
        said = str((blocked.get("error") or {}).get("message", _("Denied")))
    elif asked:
        said = str(asked.get("message", "")) or _("Needs an approval")
    else:
        said = str(EFFECTS.get(str(decision.get("effect")), ""))
    changed = not same(call.arguments, call.effective_arguments)
    brought_nothing = failed_inside(call)
    return Card(
        tool=call.tool,
        status=call.status,
        status_label=_("The group failed") if brought_nothing else str(call.get_status_display()),
        tone="bad" if brought_nothing else words.tone(call.status),
        arguments=words.shown(showing.call(call.tool, call.effective_arguments, own)),
        asked=words.shown(showing.call(call.tool, call.arguments, own)) if changed else [],
        decision=said,
        rule=str((blocked or asked).get("decision", decision).get("rule") or ""),
        result=words.shown(showing.call(call.tool, call.result, own)) if call.result is not None else [],
        error=words.shown(showing.call(call.tool, call.error, own)) if call.error else [],
        duration=times.between(call.created_at, call.ended_at),
        approval=str(asked.get("approval", "")),
    )


def failed_inside(call: ToolCall) -> bool:
    """Whether the call succeeded only in asking a group, and the group failed or was cancelled."""
    result = call.result
    return call.tool == ESCALATE and isinstance(result, dict) and result.get("success") is False


EFFECTS = {"allow": gettext_lazy("Allowed"), "deny": gettext_lazy("Denied")}
OUTCOMES = {
    WaitOutcome.COMPLETED: gettext_lazy("completed"),
    WaitOutcome.APPROVED: gettext_lazy("approved"),
    WaitOutcome.REJECTED: gettext_lazy("rejected"),
    WaitOutcome.FAILED: gettext_lazy("failed"),
    WaitOutcome.CANCELLED: gettext_lazy("cancelled"),
    WaitOutcome.EXPIRED: gettext_lazy("expired"),
    WaitOutcome.SUPERSEDED: gettext_lazy("superseded"),
}


def questions(run: Run, keys: Sequence[str]) -> dict[str, str]:
    """What the run asks, by correlation key; no query where it asks nothing."""
    if not keys:
        return {}
    asked = RunEvent.objects.filter(run=run, type=EventType.TOOL_WAITS, payload__correlation_key__in=keys)
    payloads = asked.order_by("seq").values_list("payload", flat=True)
    return {str(said["correlation_key"]): redact.shown(str(said.get("question", ""))) for said in payloads}
