"""Carry calls through the gate and their answers into the log. All of it inside a step's transaction."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction

from common.canonical import NotJson, digest, normalise
from policy import grants as standing
from policy.terms import AgentContext
from runs.actions import escalate, mcp_tasks
from runs.context import working_memory
from runs.gate import approvals, lineage, repeats
from runs.gate.opening import open_gate
from runs.log import tool_calls, waits
from runs.log.claimed import ClaimedRun
from runs.log.log import RunLog
from runs.log.state import Call, Member, State
from runs.models.choices import TASKS, CallStatus, Driver, EventType, WaitKind, WaitOutcome
from runs.observe import tracing
from runs.queue import put
from runs.tools import forms
from runs.tools.base import Answer, Done, Failed, Spawn, Tool, ToolContext, Unknown, WaitFor
from runs.tools.call import Admitted, Approved, Gate, Refused, Stopped, perform


@dataclass(frozen=True)
class Ready:
    """An admitted call and the context it runs in."""

    call_id: str
    admitted: Admitted
    context: ToolContext


@dataclass(frozen=True)
class Passed:
    """The gate let the call pass; `approval_id` is the approval that is spent on it, if one is, and
    `row_id` then the call's row. `satisfies`: whether that suffices for what policy demands.
    """

    admitted: Admitted
    approval_id: str | None
    row_id: str
    satisfies: Approved


@dataclass(frozen=True)
class Child:
    """A child run was made; the claimed run stores it with its own log."""

    log: RunLog


DELEGATED = ("delegated_denied", "delegated_not_allowed")  # the reasons that an ancestor gave
Outcome = tuple[Ready, ...] | Child | None


class GateOnDemand:
    """The gate of one transaction, opened with the first call that comes before it."""

    def __init__(self, claimed: ClaimedRun) -> None:
        self.claimed = claimed
        self._gate: Gate | None = None

    def __call__(self) -> Gate:
        if self._gate is None:
            self._gate = open_gate(self.claimed)
        return self._gate


def start(claimed: ClaimedRun, gate: GateOnDemand, call: Call) -> Outcome:
    """Bring a call before the gate and do what follows; returns calls to be run outside, or a child."""
    outcome = start_one(claimed, gate, call)
    if not isinstance(outcome, Ready):
        return outcome
    together = [outcome]
    if outcome.admitted.tool.concurrent:
        together += _companions(claimed, gate)
    return tuple(together)


def _companions(claimed: ClaimedRun, gate: GateOnDemand) -> list[Ready]:
    """The calls right after it that may run side by side with it."""
    found = []
    for call in claimed.state.unfinished("asked"):
        tool = gate().tools.get(call.tool)
        if tool is None or tool.transactional or not tool.concurrent:
            break
        outcome = start_one(claimed, gate, call)
        if isinstance(outcome, Ready):
            found.append(outcome)
    return found


def start_one(claimed: ClaimedRun, gate: GateOnDemand, call: Call) -> Ready | Child | None:
    """One call: refused, stopped for a decision, done at once, or ready to be run outside."""
    passed = ask(claimed, gate, call)
    return begin(claimed, gate, call, passed) if passed else None


def ask(claimed: ClaimedRun, gate: GateOnDemand, call: Call) -> Passed | None:
    """Ask the gate about a call. One that may not pass is refused, or stopped for a decision, here."""
    if call.problem:
        refuse(claimed, gate, call, Refused(call.problem_code, call.problem))
        return None
    agent = agent_of(claimed, gate, call)
    arguments = call.arguments if call.effective_arguments is None else call.effective_arguments
    held = approvals.held(claimed.run_id, call, arguments)
    said = gate().admit(agent, call.tool, arguments, (claimed.run_id, call.call_id), held.satisfies)
    if isinstance(said, Refused):
        refuse(claimed, gate, call, said)
        return None
    if isinstance(said, Stopped):
        stop(claimed, gate, call, said, held)
        return None
    return Passed(said, held.approval_id, held.row_id, held.satisfies)


def stop(claimed: ClaimedRun, gate: GateOnDemand, call: Call, said: Stopped, held: approvals.Held) -> None:
    """Ask people about the call; `held` is an approval it came with that does not suffice."""
    before = None if held.approval_id else approvals.rejected_before(claimed.state, call, said.arguments)
    if before is not None:
        approvals.reject_again(claimed, call, said, before)
    elif full := approvals.too_many(_log(claimed)):
        refuse(claimed, gate, call, Refused("TOO_MANY_APPROVALS", full))
    else:
        approvals.request(claimed, call, said, gate().record(said.decision), held)


def begin(claimed: ClaimedRun, gate: GateOnDemand, call: Call, passed: Passed) -> Ready | Child | None:
    """Write down that the call runs now; run it at once when it only touches this database."""
    log, said = _log(claimed), passed.admitted
    if perhaps_done(claimed.state, call, said.tool):
        status = CallStatus.UNKNOWN
        tool_calls.open_call(log, call, said.arguments, said.idempotency_key, status, passed.row_id)
        outcome_unknown(claimed, call, restored=True)
        return None
    if not approvals.use_grant(log, said):  # others have used it, or held it, meanwhile
        gate().weighed = True
        return start_one(claimed, gate, call)
    running = CallStatus.RUNNING
    row_id = tool_calls.open_call(log, call, said.arguments, said.idempotency_key, running, passed.row_id)
    approvals.consume(log, passed.approval_id)
    claimed.append(EventType.TOOL_CALLED, called(call, said, gate(), claimed.user_id), agent=call.agent)
    ready = Ready(call.call_id, said, context_of(claimed, call, said))
    if not said.tool.transactional:
        return ready
    claimed.flush_before()
    answer = perform(said, ready.context, savepoint=not claimed.trusting)
    agent = agent_of(claimed, gate, call)
    if isinstance(answer, Spawn) and not said.arguments.get("group_id"):
        answer = group_found(gate(), agent, passed, answer)
    return record_answer(claimed, call.call_id, answer, gate=gate, agent=agent, row_id=row_id)


def group_found(gate: Gate, agent: AgentContext, passed: Passed, wanted: Spawn) -> Spawn | Failed:
    """The group that was found for a goal, if rules let the call name it."""
    said, group = passed.admitted, wanted.group
    named = {**said.arguments, "group_id": group.id}
    decision = gate.decide(agent, said.tool, named, passed.satisfies, profile_aside=True)
    if decision.allowed and decision.grant_id in (None, said.decision.grant_id):
        return wanted
    told = f"The goal fits the group '{group.name}' ({group.id}) best, but: {decision.message}."
    return Failed(
        "GROUP_NOT_ALLOWED", f"{told} Give a group_id: this one, if it may be asked for, or another."
    )


def perhaps_done(state: State, call: Call, tool: Tool) -> bool:
    """Whether a call that has not begun may have been made all the same: by the installation whose backup
    this run comes from, after the backup's time. Asked again, its model may have chosen other arguments, and
    people may decide otherwise; so a key that is honoured outside does not help.
    """
    return state.restored > call.reviewed and tool.mutating and not tool.transactional


def called(call: Call, said: Admitted, gate: Gate, user_id: int) -> dict[str, Any]:
    told = {
        "call_id": call.call_id,
        "tool": call.tool,
        "arguments": said.arguments,
        "idempotency_key": said.idempotency_key,
        "decision": gate.record(said.decision),
    }
    if said.tool.as_person:
        exchanged = {"exchanged_at": said.tool.exchanged_at} if said.tool.exchanged_at else {}
        told["as_person"] = {"user": person(user_id), "server": said.tool.as_person, **exchanged}
    return told


def person(user_id: int) -> str:
    """The name of the account."""
    found: str = get_user_model().objects.values_list("username", flat=True).get(pk=user_id)
    return found


def refuse(claimed: ClaimedRun, gate: GateOnDemand, call: Call, refused: Refused) -> None:
    """The call fails; the agent gets the same words as the log."""
    log = _log(claimed)
    message = refused.message
    if refused.decision is not None and refused.decision.reason_code in DELEGATED:
        above = lineage.denier(claimed.run_id, call.tool)
        message = f"{message}; passed on by {above}" if above else message
    error = {"code": refused.code, "message": message, **refused.details}
    denied = refused.decision is not None
    status = CallStatus.DENIED if denied else CallStatus.FAILED
    # its row keeps what was approved or sent, with which later calls are compared
    key = call.idempotency_key or digest(claimed.run_id, call.call_id)
    arguments = call.arguments if call.effective_arguments is None else call.effective_arguments
    tool_calls.open_call(log, call, arguments, key, CallStatus.REQUESTED)
    tool_calls.close_call(log, call.call_id, status, error=error)
    payload: dict[str, Any] = {"call_id": call.call_id, "tool": call.tool, "error": error}
    if refused.decision:
        error["unlockable"] = refused.decision.unlockable
        payload["decision"] = gate().record(refused.decision)
    kind = EventType.TOOL_BLOCKED if denied else EventType.TOOL_FAILED
    claimed.append(kind, payload, agent=call.agent)
    effect = refused.decision.effect if refused.decision else ""
    tracing.refused(call.tool, call.call_id, call.agent, refused.code, effect)


def record_answer(
    claimed: ClaimedRun,
    call_id: str,
    answer: Answer,
    gate: GateOnDemand | None = None,
    agent: AgentContext | None = None,
    row_id: str = "",
) -> Child | None:
    """Put a tool's answer into the log and its tool call."""
    call = claimed.state.calls[call_id]
    if isinstance(answer, Done):
        succeed(claimed, call, answer)
        return None
    if isinstance(answer, Failed):
        fail(claimed, call, answer)
        return None
    if isinstance(answer, Unknown):
        outcome_unknown(claimed, call)
        return None
    if isinstance(answer, WaitFor):
        wait_for(claimed, call, answer)
        return None
    assert isinstance(answer, Spawn) and gate and agent  # noqa: S101
    gate_ = gate()
    authority = (gate_.authority(agent), gate_.live.boundary, answer.delegated)
    roles = [*gate_.roles_above, *([agent.role_id] if agent.role_id else [])]
    groups = [*gate_.groups_above, *([gate_.group_id] if gate_.group_id else [])]
    seen = working_memory.passed_on(claimed, member_of(claimed, call))
    above = (roles, groups)
    spawned = escalate.spawn(_log(claimed), claimed.state, call, answer, authority, above, row_id, seen)
    claimed.absorb()
    if isinstance(spawned, Failed):
        fail(claimed, call, spawned)
        return None
    claimed.born.append(spawned)
    tool_calls.set_status(_log(claimed), call.call_id, CallStatus.WAITING)
    return Child(spawned)


def succeed(claimed: ClaimedRun, call: Call, answer: Done) -> None:
    log = _log(claimed)
    tool_calls.close_call(log, call.call_id, CallStatus.SUCCEEDED, result=answer.result)
    for type, payload in answer.events:
        claimed.append(EventType(type), payload, agent=call.agent)
    claimed.append(
        EventType.TOOL_COMPLETED,
        {"call_id": call.call_id, "tool": call.tool, **tool_calls.in_event(answer.result)},
        agent=call.agent,
    )
    working_memory.keep_result(claimed, member_of(claimed, call), call, answer.result)


def fail(
    claimed: ClaimedRun,
    call: Call,
    failed: Failed,
    type: EventType = EventType.TOOL_FAILED,
    status: CallStatus = CallStatus.FAILED,
) -> None:
    error = {"code": failed.code, "message": failed.message, **failed.details}
    tool_calls.close_call(_log(claimed), call.call_id, status, error=error)
    claimed.append(type, {"call_id": call.call_id, "tool": call.tool, "error": error}, agent=call.agent)


def wait_for(claimed: ClaimedRun, call: Call, answer: WaitFor) -> None:
    """Park the call until a message or a signal brings its answer, or what it needs is there."""
    log = _log(claimed)
    key = answer.key or f"{answer.kind}-{call.call_id}"
    if answer.repeats:
        key = repeats.key(answer.key, call.call_id, log.last_seq)
    if answer.task:
        key = f"{TASKS}{call.call_id}-{log.last_seq}"
    if answer.form:
        key = f"{forms.PREFIX}{call.call_id}-{log.last_seq}"
        if call.forms >= forms.MAX_ROUNDS:
            asked = f"'{call.tool}' asked {call.forms} times for more, and once again: that is too often."
            fail(claimed, call, Failed("TOO_MANY_QUESTIONS", asked))
            return
    if any(other.correlation_key == key for other in claimed.state.unfinished("waiting")):
        fail(claimed, call, Failed("KEY_TAKEN", f"Another call of this run waits for '{key}' already."))
        return
    expires_at = log.now + answer.expires_in if answer.expires_in else None
    row_id = tool_calls.set_status(log, call.call_id, CallStatus.WAITING)
    claimed.append(
        EventType.TOOL_WAITS,
        {
            "call_id": call.call_id,
            "tool": call.tool,
            "kind": answer.kind,
            "correlation_key": key,
            "question": answer.question,
            **({"choices": list(answer.choices)} if answer.choices else {}),
            **({"repeats": True, "link": answer.link} if answer.repeats else {}),
            **({"form": answer.form} if answer.form else {}),
            **({"server": answer.task["name"]} if answer.task else {}),
        },
        agent=call.agent,
    )
    waits.open_wait(log, waits.NewWait(WaitKind(answer.kind), key, row_id, expires_at=expires_at))
    if answer.kind == WaitKind.TIMER and answer.expires_in and log.driver == Driver.INTERNAL:
        put.enqueue(claimed.run_id, delay=answer.expires_in.total_seconds(), turn=log.turn)
    if answer.task:
        mcp_tasks.keep(log, call, answer.task, key)
    theirs = (claimed.organization_id, claimed.user_id)
    if answer.repeats and repeats.met(*theirs, answer.key):  # it has come meanwhile
        waits.resolve(log, key, WaitOutcome.COMPLETED.value)
    claimed.absorb()


def wait_for_timer(claimed: ClaimedRun, payload: dict[str, Any], agent: str, seconds: float) -> None:
    """Sleep without a worker before the model is asked again."""
    log = _log(claimed)
    key = f"retry-{log.last_seq + 1}"
    claimed.append(EventType.MODEL_RETRIED, {**payload, "correlation_key": key}, agent=agent)
    waits.open_wait(log, waits.NewWait(WaitKind.TIMER, key, expires_at=log.now + timedelta(seconds=seconds)))
    put.enqueue(claimed.run_id, delay=seconds)
    claimed.absorb()


def take_answer(claimed: ClaimedRun, gate: GateOnDemand, call: Call) -> Outcome:
    """What the call waited for has come."""
    if call.wait_kind == WaitKind.CHILD:
        words = {name: call.payload[name] for name in ("success", "result", "error") if name in call.payload}
        succeed(claimed, call, Done(words))
        return None
    if call.wait_kind == WaitKind.APPROVAL:
        approvals.record_decision(claimed, call)
        return None
    if call.repeats and call.outcome == WaitOutcome.REJECTED:
        fail(claimed, call, Failed("DECLINED", f"{call.payload['by']} declined what '{call.tool}' needs."))
        return None
    if call.outcome == WaitOutcome.CANCELLED:
        withdrawn = Failed("WITHDRAWN", f"'{call.tool}' was withdrawn before it had an answer.")
        fail(claimed, call, withdrawn, EventType.TOOL_FAILED, CallStatus.CANCELLED)
        return None
    if call.correlation_key.startswith(TASKS):
        take_task(claimed, gate, call)
        return None
    if call.outcome != WaitOutcome.COMPLETED:
        fail(
            claimed,
            call,
            Failed("WAIT_EXPIRED", f"Nobody answered '{call.tool}' in time."),
            EventType.TOOL_EXPIRED,
            CallStatus.EXPIRED,
        )
        return None
    if call.repeats or call.correlation_key.startswith(forms.PREFIX):
        return repeat(claimed, gate, call)
    if call.wait_kind == WaitKind.SIGNAL:
        succeed(claimed, call, Done({"key": call.correlation_key, "payload": call.payload}))
        return None
    if call.wait_kind == WaitKind.REVIEW:
        return reviewed(claimed, gate, call)
    succeed(claimed, call, Done(call.payload))
    return None


def take_task(claimed: ClaimedRun, gate: GateOnDemand, call: Call) -> None:
    """What became of the task that a server has made of the call."""
    if call.outcome != WaitOutcome.COMPLETED:
        late = f"'{call.tool}' has not ended in time; its server is asked to stop. What it did is not known."
        fail(claimed, call, Failed("MCP_TASK_LATE", late), EventType.TOOL_EXPIRED, CallStatus.EXPIRED)
        mcp_tasks.hurry(claimed.run_id)
        return
    answer = mcp_tasks.take(claimed.run_id, call.call_id)
    tool = gate().tools.get(call.tool)
    if answer is not None:
        record_answer(claimed, call.call_id, answer)
    elif tool is None or tool.mutating:
        outcome_unknown(claimed, call)
    else:
        fail(claimed, call, Failed("MCP_TASK_UNKNOWN", f"Its server knows no more of '{call.tool}'."))


def repeat(claimed: ClaimedRun, gate: GateOnDemand, call: Call) -> Outcome:
    """What the call needs is there, or a form is filled in: it stands before the gate once more, by the
    decisions that let it begin, and is made again. It has had no effect so far,
    in this installation: who asks for more has not acted.
    """
    tool = gate().tools.get(call.tool)
    if tool is not None and perhaps_done(claimed.state, call, tool):
        outcome_unknown(claimed, call, restored=True)
        return None
    ready = asked_anew(claimed, gate, call)
    if ready is None:
        return None
    told = called(call, ready.admitted, gate(), claimed.user_id)
    claimed.append(EventType.TOOL_CALLED, told, agent=call.agent)
    return (ready,)


def reviewed(claimed: ClaimedRun, gate: GateOnDemand, call: Call) -> Outcome:
    """Somebody said what became of an interrupted call."""
    outcome = call.payload.get("outcome")
    if outcome == "retry":
        standing.part_from(claimed.organization_id, call.idempotency_key, call.reviewed)
        again = start_one(claimed, gate, call)
        return (again,) if isinstance(again, Ready) else again
    if outcome == "succeeded":
        succeed(claimed, call, Done(call.payload.get("result")))
        return None
    message = call.payload.get("message") or "The call did not succeed."
    fail(claimed, call, Failed("TOOL_FAILED", message))
    return None


def recover(claimed: ClaimedRun, gate: GateOnDemand, calls: tuple[Call, ...]) -> Outcome:
    """Calls that were begun and have no result: harmless ones run again with the same key, others wait for a
    person; those that were held back before they left stand before the gate again.
    """
    again = []
    held_back = claimed.cache.pop("held_back", frozenset())
    for call in calls:
        if call.call_id in held_back:
            ready = asked_anew(claimed, gate, call)
            again += [ready] if ready else []
        elif ready := readmitted(claimed, gate, call):
            again.append(ready)
        else:
            outcome_unknown(claimed, call)
    return tuple(again) or None


def readmitted(claimed: ClaimedRun, gate: GateOnDemand, call: Call) -> Ready | None:
    """Run the call once more, if that is harmless and policy still lets it pass, by what it demands now and
    the decisions that count now. Where it is a task at its server, that one goes on and no other begins.
    """
    tool = gate().tools.get(call.tool)
    harmless = tool is not None and (tool.idempotent or not tool.mutating)
    looked = call.wait_kind == WaitKind.TIMER  # it began before, and only asks how far it has come
    if tool is None or not (harmless or looked or mcp_tasks.known(claimed.run_id, call.call_id)):
        return None
    said, _ = admitted_again(claimed, gate, call)
    if not isinstance(said, Admitted):
        return None
    if ready := once_more(claimed, call, said):
        return ready
    gate().weighed = True  # others have used its standing approval, or held it, meanwhile
    return readmitted(claimed, gate, call)


def asked_anew(claimed: ClaimedRun, gate: GateOnDemand, call: Call) -> Ready | None:
    """Ask the gate again about a call that has not left: it is refused, stopped, or sent on its way."""
    said, held = admitted_again(claimed, gate, call)
    if isinstance(said, Admitted) and (ready := once_more(claimed, call, said)):
        return ready
    if isinstance(said, Admitted):  # others have used its standing approval, or held it, meanwhile
        gate().weighed = True
        return asked_anew(claimed, gate, call)
    if isinstance(said, Refused):
        refuse(claimed, gate, call, said)
    else:
        stop(claimed, gate, call, said, held)
    return None


def admitted_again(
    claimed: ClaimedRun, gate: GateOnDemand, call: Call
) -> tuple[Admitted | Stopped | Refused, approvals.Held]:
    """What the gate says now of a call that has begun, and the approval that was spent on it."""
    claimed.cache.pop("gathered", None)  # what the run has read by now, as whoever else asks gathers it
    arguments = call.effective_arguments or {}
    begun = approvals.Begun(claimed.organization_id, claimed.run_id, call.call_id, call.tool, arguments)
    key_parts = (claimed.run_id, call.call_id)
    said = gate().admit(agent_of(claimed, gate, call), call.tool, arguments, key_parts, begun.satisfies)
    return said, begun.held


def once_more(claimed: ClaimedRun, call: Call, said: Admitted) -> Ready | None:
    """The call on its way again; None where the standing approval that covers it has no use left, or its row
    was waited for.
    """
    log = _log(claimed)
    if not approvals.use_grant(log, said):
        return None
    tool_calls.open_call(log, call, said.arguments, said.idempotency_key, CallStatus.RUNNING)
    return Ready(call.call_id, said, context_of(claimed, call, said))


def outcome_unknown(claimed: ClaimedRun, call: Call, restored: bool = False) -> None:
    """Nobody knows whether the effect happened: a person has to say (design 4, Side effects).

    `restored`: it has not begun here, but perhaps where the run's backup comes from.
    """
    log = _log(claimed)
    key = f"review-{call.call_id}-{log.last_seq}"  # another than of an attempt before
    row_id = tool_calls.set_status(log, call.call_id, CallStatus.UNKNOWN)
    claimed.append(
        EventType.TOOL_OUTCOME_UNKNOWN,
        {
            "call_id": call.call_id,
            "tool": call.tool,
            "correlation_key": key,
            **({"restored": True} if restored else {}),
        },
        agent=call.agent,
    )
    waits.open_wait(log, waits.NewWait(WaitKind.REVIEW, key, row_id))
    claimed.absorb()


def leave_evidence(done: Any) -> None:
    """Keep what was learnt of effects by a worker that may no longer write the log."""
    if not isinstance(done, list):
        return
    with transaction.atomic():
        for ready, answer in done:
            try:
                found = normalise(vars(answer) if isinstance(answer, Failed) else {"result": answer.result})
            except (NotJson, AttributeError):
                found = {"answer": type(answer).__name__}
            tool_calls.leave_evidence(ready.context.run_id, ready.call_id, found)


def context_of(claimed: ClaimedRun, call: Call, said: Admitted) -> ToolContext:
    member = member_of(claimed, call)
    return ToolContext(
        organization_id=claimed.organization_id,
        project_id=claimed.project_id,
        user_id=claimed.user_id,
        run_id=claimed.run_id,
        root_id=claimed.root_id,
        kind=claimed.kind,
        depth=claimed.depth,
        group_id=claimed.group_id,
        agent_id=call.agent,
        role_id=member.role_id,
        is_lead=member.is_lead,
        goal=claimed.state.goal,
        call_id=call.call_id,
        idempotency_key=said.idempotency_key,
        budgets=claimed.state.budgets,
        children=claimed.state.children,
        catalog_version=open_gate(claimed).live.catalog_version,
        view=working_memory.View(claimed, member, call),
        filled=call.filled,
    )


def agent_of(claimed: ClaimedRun, gate: GateOnDemand, call: Call) -> AgentContext:
    member = member_of(claimed, call)
    return gate().agent(member.agent, member.role_id)


def member_of(claimed: ClaimedRun, call: Call) -> Member:
    return claimed.state.asker(call)


def _log(claimed: ClaimedRun) -> RunLog:
    assert claimed.log is not None  # noqa: S101
    return claimed.log
