"""Carry calls through the gate and their answers into the log. All of it inside a step's transaction."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction

from common.canonical import NotJson, digest, normalise
from policy.terms import AgentContext, Effect
from runs.actions import escalate
from runs.context import working_memory
from runs.gate import approvals
from runs.gate.opening import open_gate
from runs.log import tool_calls, waits
from runs.log.claimed import Session
from runs.log.log import RunLog
from runs.log.state import Call, Member
from runs.models.choices import CallStatus, EventType, WaitKind, WaitOutcome
from runs.observe import tracing
from runs.queue import put
from runs.tools.base import Answer, Done, Failed, Spawn, ToolContext, WaitFor
from runs.tools.call import Admitted, Gate, Refused, Stopped, perform


@dataclass(frozen=True)
class Ready:
    """An admitted call and the context it runs in."""

    call_id: str
    admitted: Admitted
    context: ToolContext


@dataclass(frozen=True)
class Passed:
    """The gate let the call pass; `approval_id` is the approval that is spent on it, if one is, and
    `row_id` then the call's row.
    """

    admitted: Admitted
    approval_id: str | None
    row_id: str = ""


@dataclass(frozen=True)
class Child:
    """A child run was made; the session stores it with its own log."""

    log: RunLog


Outcome = tuple[Ready, ...] | Child | None


class GateOnDemand:
    """The gate of one transaction, opened with the first call that comes before it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._gate: Gate | None = None

    def __call__(self) -> Gate:
        if self._gate is None:
            self._gate = open_gate(self.session)
        return self._gate


def start(session: Session, gate: GateOnDemand, call: Call) -> Outcome:
    """Bring a call before the gate and do what follows; returns calls to be run outside, or a child."""
    outcome = start_one(session, gate, call)
    if not isinstance(outcome, Ready):
        return outcome
    together = [outcome]
    if outcome.admitted.tool.concurrent:
        together += _companions(session, gate)
    return tuple(together)


def _companions(session: Session, gate: GateOnDemand) -> list[Ready]:
    """The calls right after it that may run side by side with it."""
    found = []
    for call in session.state.unfinished("asked"):
        tool = gate().tools.get(call.tool)
        if tool is None or tool.transactional or not tool.concurrent:
            break
        outcome = start_one(session, gate, call)
        if isinstance(outcome, Ready):
            found.append(outcome)
    return found


def start_one(session: Session, gate: GateOnDemand, call: Call) -> Ready | Child | None:
    """One call: refused, stopped for a decision, done at once, or ready to be run outside."""
    passed = ask(session, gate, call)
    return begin(session, gate, call, passed) if passed else None


def ask(session: Session, gate: GateOnDemand, call: Call) -> Passed | None:
    """Ask the gate about a call. One that may not pass is refused, or stopped for a decision, here."""
    if call.problem:
        refuse(session, gate, call, Refused("INVALID_ARGUMENTS", call.problem))
        return None
    agent = agent_of(session, gate, call)
    arguments = call.arguments if call.effective_arguments is None else call.effective_arguments
    approved = approvals.satisfied(session.run_id, call, arguments)
    said = gate().admit(agent, call.tool, arguments, (session.run_id, call.call_id), approved.effects)
    if isinstance(said, Refused):
        refuse(session, gate, call, said)
        return None
    if isinstance(said, Stopped):
        approvals.request(session, call, said, gate().record(said.decision), approved.approval_id)
        return None
    return Passed(said, approved.approval_id, approved.row_id)


def begin(session: Session, gate: GateOnDemand, call: Call, passed: Passed) -> Ready | Child | None:
    """Write down that the call runs now; run it at once when it only touches this database."""
    log, said = _log(session), passed.admitted
    if not approvals.use_grant(log, said):  # its last use went to another call meanwhile
        return start_one(session, gate, call)
    running = CallStatus.RUNNING
    row_id = tool_calls.open_call(log, call, said.arguments, said.idempotency_key, running, passed.row_id)
    approvals.consume(log, passed.approval_id)
    session.append(EventType.TOOL_CALLED, called(call, said, gate()), agent=call.agent)
    ready = Ready(call.call_id, said, context_of(session, call, said))
    if not said.tool.transactional:
        return ready
    session.flush_before()
    answer = perform(said, ready.context, savepoint=not session.trusting)
    agent = agent_of(session, gate, call)
    return record_answer(session, ready, answer, gate=gate, agent=agent, row_id=row_id)


def called(call: Call, said: Admitted, gate: Gate) -> dict[str, Any]:
    return {
        "call_id": call.call_id,
        "tool": call.tool,
        "arguments": said.arguments,
        "idempotency_key": said.idempotency_key,
        "decision": gate.record(said.decision),
    }


def refuse(session: Session, gate: GateOnDemand, call: Call, refused: Refused) -> None:
    """The call fails; the agent gets the same words as the log."""
    log = _log(session)
    error = {"code": refused.code, "message": refused.message, **refused.details}
    denied = refused.decision is not None
    status = CallStatus.DENIED if denied else CallStatus.FAILED
    key = digest(session.run_id, call.call_id)
    tool_calls.open_call(log, call, call.arguments, key, CallStatus.REQUESTED)
    tool_calls.close_call(log, call.call_id, status, error=error)
    payload: dict[str, Any] = {"call_id": call.call_id, "tool": call.tool, "error": error}
    if refused.decision:
        error["unlockable"] = refused.decision.unlockable
        payload["decision"] = gate().record(refused.decision)
    kind = EventType.TOOL_BLOCKED if denied else EventType.TOOL_FAILED
    session.append(kind, payload, agent=call.agent)
    effect = refused.decision.effect if refused.decision else ""
    tracing.refused(call.tool, call.call_id, call.agent, refused.code, effect)


def record_answer(
    session: Session,
    ready: Ready,
    answer: Answer,
    gate: GateOnDemand | None = None,
    agent: AgentContext | None = None,
    row_id: str = "",
) -> Child | None:
    """Put a tool's answer into the log and the ledger."""
    call = session.state.calls[ready.call_id]
    if isinstance(answer, Done):
        succeed(session, call, answer)
        return None
    if isinstance(answer, Failed):
        fail(session, call, answer)
        return None
    if isinstance(answer, WaitFor):
        wait_for(session, call, answer)
        return None
    assert isinstance(answer, Spawn) and gate and agent  # noqa: S101
    gate_ = gate()
    authority = (gate_.authority(agent), gate_.standing.boundary)
    seen = working_memory.passed_on(session, member_of(session, call))
    spawned = escalate.spawn(_log(session), session.state, call, answer, authority, row_id, seen)
    session.absorb()
    if isinstance(spawned, Failed):
        fail(session, call, spawned)
        return None
    session.born.append(spawned)
    tool_calls.set_status(_log(session), call.call_id, CallStatus.WAITING)
    return Child(spawned)


def succeed(session: Session, call: Call, answer: Done) -> None:
    log = _log(session)
    tool_calls.close_call(log, call.call_id, CallStatus.SUCCEEDED, result=answer.result)
    for type, payload in answer.events:
        session.append(EventType(type), payload, agent=call.agent)
    session.append(
        EventType.TOOL_COMPLETED,
        {"call_id": call.call_id, "tool": call.tool, **tool_calls.in_event(answer.result)},
        agent=call.agent,
    )
    working_memory.keep_result(session, member_of(session, call), call, answer.result)


def fail(
    session: Session,
    call: Call,
    failed: Failed,
    type: EventType = EventType.TOOL_FAILED,
    status: CallStatus = CallStatus.FAILED,
) -> None:
    error = {"code": failed.code, "message": failed.message, **failed.details}
    tool_calls.close_call(_log(session), call.call_id, status, error=error)
    session.append(type, {"call_id": call.call_id, "tool": call.tool, "error": error}, agent=call.agent)


def wait_for(session: Session, call: Call, answer: WaitFor) -> None:
    """Park the call until a message or a signal brings its answer."""
    log = _log(session)
    key = f"{answer.kind}-{call.call_id}"
    expires_at = log.now + answer.expires_in if answer.expires_in else None
    row_id = tool_calls.set_status(log, call.call_id, CallStatus.WAITING)
    session.append(
        EventType.TOOL_WAITS,
        {
            "call_id": call.call_id,
            "tool": call.tool,
            "kind": answer.kind,
            "correlation_key": key,
            "question": answer.question,
        },
        agent=call.agent,
    )
    waits.open_wait(log, waits.NewWait(WaitKind(answer.kind), key, row_id, expires_at=expires_at))
    session.absorb()


def wait_for_timer(session: Session, payload: dict[str, Any], agent: str, seconds: float) -> None:
    """Sleep without a worker before the model is asked again."""
    log = _log(session)
    key = f"retry-{log.last_seq + 1}"
    session.append(EventType.MODEL_RETRIED, {**payload, "correlation_key": key}, agent=agent)
    waits.open_wait(log, waits.NewWait(WaitKind.TIMER, key, expires_at=log.now + timedelta(seconds=seconds)))
    put.enqueue(session.run_id, delay=seconds)
    session.absorb()


def settle(session: Session, gate: GateOnDemand, call: Call) -> Outcome:
    """What the call waited for has come."""
    if call.wait_kind == WaitKind.CHILD:
        words = {name: call.payload[name] for name in ("success", "result", "error") if name in call.payload}
        succeed(session, call, Done(words))
        return None
    if call.wait_kind == WaitKind.APPROVAL:
        approvals.settle(session, call)
        return None
    if call.outcome != WaitOutcome.COMPLETED:
        fail(
            session,
            call,
            Failed("WAIT_EXPIRED", f"Nobody answered '{call.tool}' in time."),
            EventType.TOOL_EXPIRED,
            CallStatus.EXPIRED,
        )
        return None
    if call.wait_kind == WaitKind.REVIEW:
        return reviewed(session, gate, call)
    succeed(session, call, Done(call.payload))
    return None


def reviewed(session: Session, gate: GateOnDemand, call: Call) -> Outcome:
    """Somebody said what became of an interrupted call."""
    outcome = call.payload.get("outcome")
    if outcome == "retry":
        again = start_one(session, gate, call)
        return (again,) if isinstance(again, Ready) else again
    if outcome == "succeeded":
        succeed(session, call, Done(call.payload.get("result")))
        return None
    message = call.payload.get("message") or "The call did not succeed."
    fail(session, call, Failed("TOOL_FAILED", message))
    return None


def recover(session: Session, gate: GateOnDemand, calls: tuple[Call, ...]) -> Outcome:
    """Calls a dead worker had begun: harmless ones run again with the same key, others wait for a person."""
    again = []
    for call in calls:
        ready = readmitted(session, gate, call)
        if ready:
            again.append(ready)
        else:
            outcome_unknown(session, call)
    return tuple(again) or None


def readmitted(session: Session, gate: GateOnDemand, call: Call) -> Ready | None:
    """The call once more, when running it twice is harmless and policy still lets it pass."""
    tool = gate().tools.get(call.tool)
    if tool is None or not (tool.idempotent or not tool.mutating):
        return None
    arguments = call.effective_arguments or {}
    effects: frozenset[tuple[str, Effect]] = frozenset({(call.idempotency_key, "require_human")})
    agent = agent_of(session, gate, call)
    said = gate().admit(agent, call.tool, arguments, (session.run_id, call.call_id), effects)
    if not isinstance(said, Admitted):
        return None
    tool_calls.open_call(_log(session), call, arguments, said.idempotency_key, CallStatus.RUNNING)
    return Ready(call.call_id, said, context_of(session, call, said))


def outcome_unknown(session: Session, call: Call) -> None:
    """Nobody knows whether the effect happened: a person has to say (design 4, Side effects)."""
    log = _log(session)
    key = f"review-{call.call_id}"
    row_id = tool_calls.set_status(log, call.call_id, CallStatus.UNKNOWN)
    session.append(
        EventType.TOOL_OUTCOME_UNKNOWN,
        {"call_id": call.call_id, "tool": call.tool, "correlation_key": key},
        agent=call.agent,
    )
    waits.open_wait(log, waits.NewWait(WaitKind.REVIEW, key, row_id))
    session.absorb()


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


def context_of(session: Session, call: Call, said: Admitted) -> ToolContext:
    member = member_of(session, call)
    return ToolContext(
        organization_id=session.organization_id,
        project_id=session.project_id,
        user_id=session.user_id,
        run_id=session.run_id,
        root_id=session.root_id,
        kind=session.kind,
        depth=session.depth,
        group_id=session.group_id,
        agent_id=call.agent,
        role_id=member.role_id,
        is_lead=member.is_lead,
        goal=session.state.goal,
        call_id=call.call_id,
        idempotency_key=said.idempotency_key,
        budgets=session.state.budgets,
        children=session.state.children,
        catalog_version=open_gate(session).standing.catalog_version,
        view=working_memory.View(session, member, call),
    )


def agent_of(session: Session, gate: GateOnDemand, call: Call) -> AgentContext:
    member = member_of(session, call)
    return gate().agent(member.agent, member.role_id)


def member_of(session: Session, call: Call) -> Member:
    return next(member for member in session.state.members if member.agent == call.agent)


def _log(session: Session) -> RunLog:
    assert session.log is not None  # noqa: S101
    return session.log
