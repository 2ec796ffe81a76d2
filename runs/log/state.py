"""A run as the sum of its events. Pure: no clock, no database, no model."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from common.canonical import digest, same
from runs.log.log import Event
from runs.models.choices import FORMS, Driver, EventType, MessageType, RunKind, WaitKind, WaitOutcome

USER = "user"  # the author of a person's messages
PAGE = ("name", "description", "detail")  # of a page's words

# How far a call has come.
ASKED = "asked"  # the model wants it
CALLED = "called"  # tool.called is in the log, its result is not
WAITING = "waiting"  # parked
READY = "ready"  # what it waited for has come
ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Member:
    """Who may speak in a run, as run.created recorded it."""

    agent: str
    role_id: str
    role: str
    ordinal: int
    is_lead: bool = False
    seat: str = ""  # the GroupMember's id; a personal agent has none


@dataclass(slots=True)
class Call:
    """One tool call and what became of it."""

    call_id: str
    tool: str
    arguments: dict[str, Any]
    agent: str
    turn: int = 0  # index into the members: who asked; one agent may sit twice in runs of before
    seat: str = ""
    role_id: str = ""
    problem: str | None = None  # why it is not run
    problem_code: str = ""
    phase: str = ASKED
    wait_kind: str = ""
    correlation_key: str = ""
    outcome: str = ""
    payload: Any = field(default_factory=dict)
    idempotency_key: str = ""
    effective_arguments: dict[str, Any] | None = None
    child_run: str = ""
    reserved: int = 0  # tokens set aside for the child
    result: Any = None
    stored: bool = False  # the result is on the ToolCall row; the event carries a preview
    outside: bool = False  # a program has repeated it: an answer in it is not the person's own
    error: dict[str, Any] | None = None
    ended: int = 0  # seq of the event that ended it
    reviewed: int = 0  # seq of the event by which a person said what became of it
    repeats: bool = False  # what it waits for is no answer: the call is made again then
    form: dict[str, Any] | None = None  # what it asked to be filled in last
    filled: dict[str, Any] | None = None  # the same with the `responses`, once they are there
    forms: int = 0  # how many it has asked for


@dataclass(slots=True)
class Said:
    """One message, in the order of the log."""

    seq: int
    author: str
    name: str
    content: str
    message_type: str
    round: int
    calls: tuple[str, ...] = ()
    saw: int = 0  # the last seq its author had seen
    outside: bool = False  # of what reached the run: not its person's own words
    chosen: bool = False  # an answer that the agent has put to its question
    copied: bool = False  # it repeats an address that somebody else has named first


@dataclass(slots=True)
class Viewed:
    """What the run's log says of an agent's stored view: which it is, and where its pages came from."""

    view: str
    version: int = 0
    sources: set[str] = field(default_factory=set)
    by_others: bool = False  # another run has changed it since its agent was last shown it


@dataclass
class State:
    """All that the next step depends on."""

    seq: int = 0
    kind: str = RunKind.PERSONAL
    goal: str = ""
    context: str = ""
    escalate_to: dict[str, str] | None = None  # the group the person asked for: group_id and name
    members: tuple[Member, ...] = ()
    max_rounds: int = 1
    budgets: dict[str, int] = field(default_factory=dict)
    model: str = ""
    messages: list[Said] = field(default_factory=list)
    calls: dict[str, Call] = field(default_factory=dict)
    open_calls: list[str] = field(default_factory=list)
    round: int = 1
    turn: int = 0  # index into the members: whose turn it is
    steps: int = 0
    tokens: int = 0  # used here and by children that have ended
    reserved: int = 0  # set aside for children that have not
    children: int = 0
    retries: int = 0  # model.retried since the last reply
    backoff: bool = False  # a timer wait for the model is open
    gave_up: tuple[str, str] | None = None  # code and message of the model's last failure
    repeats: int = 0
    last_batch: str = ""
    heard: int = 0  # seq of the last message from a person
    finished: bool = False  # the last speaker has closed the run's work
    ended: str = ""
    pruned: bool = False  # what was said is gone; how it ended is left
    inherited: list[dict[str, Any]] = field(default_factory=list)  # pages of the parent's view
    views: dict[str, Viewed] = field(default_factory=dict)  # by agent; those that were changed in this run
    put_in: list[tuple[int, str]] = field(default_factory=list)  # (seq, words) that others put into a view
    restored: int = 0  # seq of the last event that says the run comes from a backup
    copied: int = 0  # seq of the last event that it has from the run it repeats
    external: bool = False  # an outside agent drives it, and nobody knows what that has read

    @property
    def speaker(self) -> Member:
        return self.members[self.turn]

    @property
    def closer(self) -> Member:
        """Whose word ends a round: the lead, or whoever speaks last."""
        return self.members[-1]

    @property
    def last_said(self) -> Said | None:
        """The last thing an agent said."""
        return next((said for said in reversed(self.messages) if said.author != USER), None)

    @property
    def usage(self) -> dict[str, int]:
        """What the run has used so far, its ended children included in the tokens."""
        return {"steps": self.steps, "tokens": self.tokens, "children": self.children}

    @property
    def tokens_left(self) -> int:
        return self.budgets["tokens"] - self.tokens - self.reserved

    def asker(self, call: Call) -> Member:
        """Who asked for the call, by seat: the rights of its role are what the gate looks at."""
        return self.members[call.turn]

    def unfinished(self, phase: str) -> list[Call]:
        """The open calls in this phase, in the order they were asked for."""
        return [call for call in map(self.calls.__getitem__, self.open_calls) if call.phase == phase]

    def waiting_for(self, correlation_key: str) -> Call | None:
        return next(
            (
                call
                for call in map(self.calls.__getitem__, self.open_calls)
                if call.correlation_key == correlation_key
            ),
            None,
        )


def fold(events: Iterable[Event], state: State | None = None) -> State:
    """The state after these events; goes on from `state` when given."""
    state = state or State()
    for event in events:
        apply(state, event)
    return state


def apply(state: State, event: Event) -> None:
    """Take in one event. Unknown types change nothing: an old worker survives a newer log."""
    state.seq = event.seq
    state.pruned = state.pruned or event.pruned
    handler = HANDLERS.get(event.type)
    if handler and (not event.pruned or handler is _ended):
        handler(state, event)


def _created(state: State, event: Event) -> None:
    payload = event.payload
    state.kind = payload["kind"]
    state.goal = payload["goal"]
    state.context = payload.get("context", "")
    state.escalate_to = payload.get("escalate_to")
    state.members = tuple(Member(**member) for member in payload["members"])
    state.max_rounds = payload.get("max_rounds", 1)
    state.budgets = payload.get("budgets", {})
    state.model = payload.get("model", "")
    state.inherited = payload.get("inherited", [])
    state.restored = event.seq if payload.get("restored") else 0
    state.external = payload.get("driver") == Driver.EXTERNAL
    state.copied = (payload.get("forked_from") or {}).get("seq", 0)


def _message(state: State, event: Event) -> None:
    payload = event.payload
    requests = payload.get("tool_calls", [])
    said = Said(
        seq=event.seq,
        author=USER if payload["role"] == "user" else event.agent,
        name=payload.get("author", ""),
        content=payload["content"],
        message_type=payload.get("message_type", ""),
        round=state.round,
        calls=tuple(request.get("call_id", f"{event.seq}.{i}") for i, request in enumerate(requests)),
        saw=payload.get("saw", event.seq),
        outside=payload.get("outside", False),
        chosen=payload.get("chosen", False),
        copied=payload.get("copied", False),
    )
    state.messages.append(said)
    if said.author == USER:
        state.heard = event.seq
        return
    if "context" in payload:
        _shown(state, event)
    elif payload.get("others_pages"):
        state.put_in.append((event.seq, ""))
    usage = payload.get("usage", {})
    state.steps += 1
    state.retries = 0
    state.tokens += usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
    if requests:
        _ask(state, said, requests)
    else:
        _end_turn(state, said)


def _ask(state: State, said: Said, requests: list[dict[str, Any]]) -> None:
    asks = state.speaker
    for call_id, request in zip(said.calls, requests, strict=True):
        state.calls[call_id] = Call(
            call_id=call_id,
            tool=request["name"],
            arguments=request["arguments"],
            agent=said.author,
            turn=state.turn,
            seat=asks.seat,
            role_id=asks.role_id,
            problem=request.get("problem"),
            problem_code=request.get("code", "INVALID_ARGUMENTS"),
        )
        state.open_calls.append(call_id)
    batch = digest(said.author, [[r["name"], r["arguments"]] for r in requests])
    state.repeats = state.repeats + 1 if batch == state.last_batch else 1
    state.last_batch = batch


def _end_turn(state: State, said: Said) -> None:
    """Hand the word on: to the next member, to another round, or to nobody.

    Whoever would speak last speaks once more when a person has said something they had not seen.
    """
    state.repeats, state.last_batch = 0, ""
    if state.kind == RunKind.PERSONAL:
        state.finished = said.saw >= state.heard
    elif state.turn + 1 < len(state.members):
        state.turn += 1
    elif said.message_type == MessageType.TASK and state.round < state.max_rounds:
        state.round, state.turn = state.round + 1, 0
    else:
        state.finished = said.saw >= state.heard  # a word that came meanwhile is read first (ruling 47)


def _retried(state: State, event: Event) -> None:
    state.retries += 1
    state.backoff = bool(event.payload.get("correlation_key"))
    if event.payload.get("gave_up"):
        state.gave_up = (event.payload["code"], event.payload["message"])


def _called(state: State, event: Event) -> None:
    call = _call(state, event)
    call.phase = CALLED
    call.idempotency_key = event.payload.get("idempotency_key", "")
    call.effective_arguments = event.payload.get("arguments", call.arguments)


def _waits(state: State, event: Event, kind: str) -> None:
    call = _call(state, event)
    call.phase = WAITING
    call.wait_kind = kind
    call.correlation_key = event.payload["correlation_key"]
    call.repeats = event.payload.get("repeats", False)
    if kind == WaitKind.TIMER:  # whoever was told the answer has it: the next look takes none along
        call.filled = None
    if event.payload.get("form"):
        call.form, call.filled, call.forms = event.payload["form"], None, call.forms + 1


def _child(state: State, event: Event) -> None:
    state.children += 1
    _waits(state, event, "child")
    call = _call(state, event)
    call.child_run = event.payload["child_run"]
    call.reserved = event.payload.get("tokens", 0)
    state.reserved += call.reserved


def _resolved(state: State, event: Event) -> None:
    call = state.waiting_for(event.payload["correlation_key"])
    if call is None:
        state.backoff = False if event.payload["correlation_key"].startswith("retry-") else state.backoff
        return
    call.phase = READY
    call.outcome = event.payload["outcome"]
    call.reviewed = event.seq if call.wait_kind == WaitKind.REVIEW else call.reviewed
    payload = event.payload.get("payload")
    call.payload = {} if payload is None else payload
    if call.correlation_key.startswith(FORMS) and call.outcome == WaitOutcome.COMPLETED:
        call.filled = {**(call.form or {}), "responses": call.payload["responses"]}
    state.reserved -= call.reserved
    state.tokens += call.payload.get("tokens", 0) if call.child_run else 0


def _completed(state: State, event: Event) -> None:
    call = _end(state, event)
    call.result = event.payload.get("result", event.payload.get("preview"))
    call.stored = "sha256" in event.payload
    call.outside = event.payload.get("outside", False)


def _failed(state: State, event: Event) -> None:
    _end(state, event).error = event.payload["error"]


def _end(state: State, event: Event) -> Call:
    call = _call(state, event)
    call.phase = ENDED
    call.ended = event.seq
    state.open_calls.remove(call.call_id)
    return call


def _approved(state: State, event: Event) -> None:
    """Decided: the call stands before the gate once more, with the arguments as approved. What was decided
    of it before, perhaps of other arguments, counts no more; what its person answered about others goes with
    none of these.
    """
    call = _call(state, event)
    call.phase = ASKED
    approved = event.payload.get("arguments", call.effective_arguments)
    if call.filled is not None and not same(approved, call.effective_arguments):
        call.filled = None
    call.effective_arguments = approved


def _call(state: State, event: Event) -> Call:
    return state.calls[event.payload["call_id"]]


def _viewed(state: State, event: Event) -> None:
    viewed = state.views.setdefault(event.agent, Viewed(event.payload["view"]))
    for change in event.payload["changes"]:
        missing = change["op"] != "open" and change["seq"] > viewed.version + 1
        viewed.by_others, viewed.version = viewed.by_others or missing, change["seq"]
        made = change["pages"] if change["op"] == "open" else [change]
        viewed.sources.update(filter(None, (page.get("source") for page in made)))
    if event.payload.get("by"):
        words = words_put_in(event.payload["changes"])
        state.put_in += [(event.seq, words)] if words else []


def words_put_in(changes: Iterable[Mapping[str, Any]]) -> str:
    """What changes of a view say on its pages."""
    texts = [change.get(part) for change in changes for part in PAGE]
    return "\n".join(text for text in texts if isinstance(text, str))


def _shown(state: State, event: Event) -> None:
    """A prompt showed a stored view, which the runs of a conversation share: what another has put there since
    the last time was read now. Its words are in that run's log.
    """
    told = event.payload["context"]
    viewed = state.views.setdefault(event.agent, Viewed(told["view"]))
    if viewed.by_others or told["version"] > viewed.version:
        state.put_in.append((event.seq, ""))
    viewed.version, viewed.by_others = max(viewed.version, told["version"]), False


def _left_out(state: State, event: Event) -> None:
    """A page that others put into the view of the run that this one repeats: its words stayed there."""
    if event.payload.get("outside"):
        state.put_in.append((event.seq, ""))


def _ended(state: State, event: Event) -> None:
    state.ended = event.type


def _restored(state: State, event: Event) -> None:
    state.restored = event.seq


def _parked_call(kind: str) -> Any:
    return lambda state, event: _waits(state, event, kind)


HANDLERS = {
    EventType.RUN_CREATED.value: _created,
    EventType.MESSAGE_CREATED.value: _message,
    EventType.MODEL_RETRIED.value: _retried,
    EventType.TOOL_CALLED.value: _called,
    EventType.TOOL_COMPLETED.value: _completed,
    EventType.TOOL_FAILED.value: _failed,
    EventType.TOOL_BLOCKED.value: _failed,
    EventType.TOOL_REJECTED.value: _failed,
    EventType.TOOL_EXPIRED.value: _failed,
    EventType.TOOL_APPROVED.value: _approved,
    EventType.TOOL_WAITS.value: lambda state, event: _waits(state, event, event.payload["kind"]),
    EventType.TOOL_REQUIRES_APPROVAL.value: _parked_call("approval"),
    EventType.TOOL_OUTCOME_UNKNOWN.value: _parked_call("review"),
    EventType.CHILD_CREATED.value: _child,
    EventType.WAIT_COMPLETED.value: _resolved,
    EventType.CONTEXT_CHANGED.value: _viewed,
    EventType.RUN_RESUMED.value: _left_out,
    EventType.RUN_COMPLETED.value: _ended,
    EventType.RUN_FAILED.value: _ended,
    EventType.RUN_CANCELLED.value: _ended,
    EventType.RUN_RESTORED.value: _restored,
}
