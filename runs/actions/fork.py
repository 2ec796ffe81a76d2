"""Run again from here: a new run that knows what the old one knew at an event, and goes on from there.

The old run is not touched. The new log starts with a run.created of its own, which names where it comes
from, and has the events up to there, chained anew. What they did has been done and is not done again: a
point is an event at which no call is open. Rights and budgets are today's; what the copied events have used
does not count.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

from django.db import transaction

from common import ids
from common.canonical import digest
from common.db import execute, row
from groups import today
from groups.actors import Actor
from groups.catalog import find_group
from policy.authority import Verb, can, may
from policy.cache import compiled, live_boundary
from policy.delegation import authority, delegate, narrowed
from policy.terms import AgentContext, DelegatedPermissions
from runs.actions.message import said
from runs.actions.signal import marks
from runs.actions.start import (
    MAX_CONTEXT,
    PRUNED,
    CannotStart,
    NewRun,
    begin,
    default_budgets,
    personal_agent,
)
from runs.gate.admission import gate_of
from runs.log import log as run_log
from runs.log import waits
from runs.log.log import Event, RunGone
from runs.log.state import State, fold
from runs.models import Run, ToolCall, Wait
from runs.models.choices import Driver, EventType, MessageType, RunKind

Members = tuple[dict[str, Any], ...]
Above = tuple[str | None, str | None]  # in which role, and by which group, a run was asked for

# A run can be gone on with after a message, and after what became of a call.
POINTS = frozenset(
    {
        EventType.MESSAGE_CREATED.value,
        EventType.TOOL_COMPLETED.value,
        EventType.TOOL_FAILED.value,
        EventType.TOOL_BLOCKED.value,
        EventType.TOOL_REJECTED.value,
        EventType.TOOL_EXPIRED.value,
    }
)
# The working memory stays the old run's; its changes leave their places in the log, and nothing else.
LEFT_OUT = EventType.RUN_RESUMED

AT = "SELECT digest FROM runs_runevent WHERE run_id = %s AND seq = %s"
COPY_CALLS = """
INSERT INTO runs_toolcall (id, organization_id, run_id, call_id, agent, seat, role_id, tool, arguments,
    effective_arguments, request_digest, idempotency_key, status, attempt, result, error,
    ended_at, created_at)
SELECT made.id, c.organization_id, %s, c.call_id, c.agent, c.seat, c.role_id, c.tool, c.arguments,
    c.effective_arguments, c.request_digest, made.key, c.status, 0, c.result, c.error,
    c.ended_at, c.created_at
FROM unnest(%s::text[], %s::text[], %s::text[]) AS made(id, call_id, key)
JOIN runs_toolcall c ON c.run_id = %s AND c.call_id = made.call_id
"""


def fork(run_id: str, seq: int, actor: Actor, content: str = "", session_key: str = "") -> str:
    """Start a run that goes on from the event `seq` of another, with a further word if there is one.

    `session_key`: of the conversation that begins with it. It works for the same user, who alone may ask
    for it. Returns its id. Raises NotAllowed, RunGone and CannotStart: EXTERNAL_RUN, NO_SUCH_EVENT,
    NOT_A_POINT, AGENT_CHANGED, GROUP_NOT_ALLOWED, CONTENT_TOO_LONG, and as `start` does NOT_A_MEMBER,
    QUEUE_FULL and STORAGE_FULL.
    """
    if len(content) > MAX_CONTEXT:
        raise CannotStart("CONTENT_TOO_LONG", "The message is too long.")
    old = Run.objects.select_related("project", "user").filter(pk=run_id).first()
    if old is None:
        raise RunGone(run_id)
    events, state = point(old, seq, actor)
    with transaction.atomic():
        agent, now = personal_agent(old.user, old.project, queued=True)  # refuses who is no member now
        actor = today.since(actor)
        may(actor, Verb.FORK, old)
        members = _members(old, events[0].payload, agent)
        above = _above(old, agent)
        log = begin(_new(old, state, _origin(old, seq), events[0].payload, members, above, session_key), now)
        own = can(actor, Verb.SPEAK_AS_PERSON, old)
        put_in = {seq for seq, _ in state.put_in}
        for event in events[1:]:
            log.append(*_copied(event, own, event.seq in put_in))
        if content.strip():
            words = said(actor, content.strip(), MessageType.STATUS, own)
            log.append(EventType.MESSAGE_CREATED, {**words, **marks(old.root_id, content)})
        may(today.since(actor), Verb.FORK, old)  # copying may have taken a while
        waits.flush_and_enqueue(log)
        _copy_calls(old.pk, log.id, state)
    return log.id


def point(run: Run, seq: int, actor: Actor) -> tuple[list[Event], State]:
    """The events up to `seq` and what they add up to. Raises NotAllowed, CannotStart where nobody could."""
    may(actor, Verb.FORK, run)
    if run.driver == Driver.EXTERNAL:
        raise CannotStart("EXTERNAL_RUN", "An outside agent drives this run; Deputy cannot run it again.")
    events = [event for event in run_log.read(run.pk) if event.seq <= seq]
    if seq < 1 or len(events) < seq:
        raise CannotStart("NO_SUCH_EVENT", f"The run has no event {seq}.")
    state = fold(events)
    problem = _unsettled(events[-1], state)
    if problem:
        raise CannotStart("NOT_A_POINT", problem)
    return events, state


def _unsettled(event: Event, state: State) -> str:
    if state.pruned:
        return PRUNED
    if event.type not in POINTS:
        return "A run can be gone on with after a message or after the result of a call."
    if state.open_calls:
        return "A call was still open at this event: choose the result of the last one."
    if state.finished or state.gave_up or state.ended:
        return "Nothing was left to be done after this event: choose an earlier one."
    return ""


def _origin(old: Run, seq: int) -> dict[str, Any]:
    """Which event the new run goes on from; the digest stands for all before it."""
    (chained,) = row(AT, [old.pk, seq])
    return {"run": old.pk, "seq": seq, "digest": chained}


def _new(
    old: Run,
    state: State,
    origin: dict[str, Any],
    created: dict[str, Any],
    members: tuple[dict[str, Any], ...],
    above: Sequence[Above],
    session_key: str,
) -> NewRun:
    """The run's row and run.created, with today's rights, agent, model and budgets."""
    kept: dict[str, Any] = {
        name: created[name] for name in ("escalate_to", "group", "inherited") if name in created
    }
    roles_above, groups_above = _levels(above)
    return NewRun(
        organization_id=old.organization_id,
        project_id=old.project_id,
        user_id=old.user_id,
        kind=old.kind,
        goal=old.goal,
        context=old.context,
        session_key=session_key,
        members=members,
        budgets=_budgets(state),
        deadline=None,
        group_id=old.group_id,
        agent_instance_id=old.agent_instance_id,
        role_id=old.role_id,
        delegated_permissions=_delegated(old, above),
        roles_above=roles_above,
        groups_above=groups_above,
        max_rounds=state.max_rounds,
        snapshot={**kept, "forked_from": origin},
    )


def _members(old: Run, created: dict[str, Any], agent: dict[str, Any]) -> Members:
    """Who speaks: those who spoke before, each in the role that they or their seats have today."""
    if old.kind == RunKind.GROUP:
        return _seated(old, created["members"])
    if agent["agent"] != created["members"][0]["agent"]:
        raise CannotStart("AGENT_CHANGED", "You have another agent now; it does not know what this one said.")
    return (agent,)


def _seated(old: Run, members: list[dict[str, Any]]) -> Members:
    """The members in the roles of their seats today."""
    seats = _seats(old, [member["agent"] for member in members])
    today = [(member, seats[member["agent"]]) for member in members]
    return tuple({**member, "role_id": seat.role_id, "role": seat.role} for member, seat in today)


def _seats(run: Run, agents: list[str]) -> dict[str, Any]:
    """The group's seats by their agents. Who has left the group may do nothing in it any more."""
    group = find_group(run.project_id, run.group_id or "")
    seats = {seat.agent: seat for seat in group.seats} if group else {}
    if any(agent not in seats for agent in agents):
        raise CannotStart("AGENT_CHANGED", "The group is closed or has other members now: start a new run.")
    return seats


def _budgets(state: State) -> dict[str, int]:
    """Today's limits for what is still to be done: what the copied events have used does not count."""
    used = {"steps": state.steps, "tokens": state.tokens, "children": state.children}
    return {name: limit + used.get(name, 0) for name, limit in default_budgets().items()}


def _delegated(old: Run, above: Sequence[Above]) -> dict[str, Any] | None:
    """What a group's run was given, as far as its user's boundary and the roles above it allow it today."""
    if old.delegated_permissions is None:
        return None
    given = DelegatedPermissions.from_json(old.delegated_permissions)
    today = live_boundary(old.organization_id, old.user_id, old.project_id)
    policy = compiled(old.organization_id, today.version)
    for role_id, _ in above:
        role = policy.role(role_id)
        agent = AgentContext("", role.id, role.allowed_tools, role.denied_tools)
        given = narrowed(given, authority(agent, today.boundary, role.delegable_tools))
    return delegate(given, today.boundary).to_json()


def _above(run: Run, agent: dict[str, Any]) -> list[Above]:
    """In which role of today, and by which group, the run and those above it were asked for, the nearest
    first. `agent` is the person's own. Raises CannotStart where that would not be asked today.
    """
    found: list[Above] = []
    asked: list[tuple[Run, ToolCall, str | None]] = []
    while run.depth or run.kind == RunKind.GROUP:
        if not run.parent_run_id:  # made again itself: what it was made of has had a parent
            created = run.events.filter(seq=1).values_list("payload", flat=True).first() or {}
            of = Run.objects.filter(pk=(created.get("forked_from") or {}).get("run")).first()
            if of is None:
                return [(None, None)]  # nobody knows who asked, so nothing is passed on
            run = of
            continue
        waited = Wait.objects.filter(run_id=run.parent_run_id, child_run_id=run.pk)
        wait = waited.select_related("tool_call", "run").first()
        if wait is None or wait.tool_call is None:
            return [(None, None)]
        asked.append((wait.run, wait.tool_call, run.group_id))
        run = wait.run
        found.append((_role_of_asker(wait.run, wait.tool_call, agent), run.group_id))
    for place, (asker, call, group_id) in enumerate(asked):
        _may_be_asked(_as_today(asker, found[place + 1 :]), call, found[place][0], group_id)
    return found


def _as_today(run: Run, above: Sequence[Above]) -> Run:
    """The run as it would be below the roles of today."""
    found = copy(run)
    found.delegated_permissions = _delegated(run, above)
    found.roles_above, found.groups_above = _levels(above)
    return found


def _levels(above: Sequence[Above]) -> tuple[list[str], list[str]]:
    """The roles and the groups, as rows have them: the farthest first."""
    roles = [role for role, _ in reversed(above) if role]
    return roles, [group for _, group in reversed(above) if group]


def _may_be_asked(run: Run, call: ToolCall, role_id: str | None, group_id: str | None) -> None:
    """Raises CannotStart where the call by which the group was asked would not pass today by itself, as it
    was made and with the group that was found: what people decided was about that call, once.
    """
    gate = gate_of(run)
    tool, agent = gate.tools.get(call.tool), gate.agent(call.agent, role_id)
    made = call.effective_arguments
    named = {**made, "group_id": group_id}
    for arguments in (made, named) if made != named else (made,):
        decision = gate.decide(agent, tool, arguments, profile_aside=True) if tool else None
        if decision is None or not decision.allowed or decision.grant_id:
            raise CannotStart(
                "GROUP_NOT_ALLOWED",
                "By today's rules the group is not asked without a decision: ask it anew.",
            )


def _role_of_asker(run: Run, call: ToolCall, agent: dict[str, Any]) -> str:
    """The role that the person's agent, or the seat that asked, has today."""
    if run.kind != RunKind.GROUP:
        return str(agent["role_id"])
    return str(_seats(run, [call.agent])[call.agent].role_id)


def _copied(event: Event, own: bool, put_in: bool) -> tuple[EventType, dict[str, Any], str]:
    """The event as the new log has it: without the old run's working memory. `put_in`: by it the agent read
    there what others had put in.

    What the person has said or answered they do not say again where a program has it repeated (`own` False).
    """
    if event.type == EventType.CONTEXT_CHANGED:
        by_others = {"outside": True} if event.payload.get("by") else {}
        return LEFT_OUT, {"left_out": event.type, **by_others}, event.agent
    payload = {name: value for name, value in event.payload.items() if name != "context"}
    if put_in and event.type == EventType.MESSAGE_CREATED:
        payload["others_pages"] = True
    if payload.get("memories"):  # what they said then is found by when it was
        payload.setdefault("recalled_at", event.created_at.isoformat())
    if not own and (event.type == EventType.TOOL_COMPLETED or payload.get("role") == "user"):
        payload["outside"] = True
    return EventType(event.type), payload, event.agent


def _copy_calls(old: str, new: str, state: State) -> None:
    """The tool calls that have been done, for its results. The keys are the new run's: no effect follows."""
    call_ids: Iterable[str] = list(state.calls)
    keys = [digest("forked", new, call_id) for call_id in call_ids]
    execute(COPY_CALLS, [new, [ids.call_id() for _ in keys], list(call_ids), keys, old])
