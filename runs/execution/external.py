"""Carry the calls of an outside agent: what the executor is to a run that Deputy drives.

The run itself has no lease and nobody claims it. A call goes through the same gate and log;
one that leaves this database is claimed by a queue worker, with an attempt and a lease of its own.
"""

import logging
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Self

from django.conf import settings
from django.db import connection

from common import crash, trace_context, tracing
from common.db import execute as run_sql
from common.db import from_json, let_go, row
from runs.actions import park
from runs.execution import dispatch
from runs.execution.dispatch import GateOnDemand, Outcome, Ready
from runs.gate import admission
from runs.log import state as phases
from runs.log import tool_calls
from runs.log.claimed import ClaimedRun
from runs.log.log import Fenced, RunGone, RunLog
from runs.log.state import Call
from runs.models.choices import CallStatus, Driver, RunStatus
from runs.outbound.calls import tool_host
from runs.queue import lease, put
from runs.tools import leaving
from runs.tools.base import Answer, Failed, Tool
from runs.tools.call import perform

logger = logging.getLogger(__name__)

MAX_CLAIMS = 3  # a call whose workers die this often is given up

CALLED = "SELECT tool, arguments FROM runs_toolcall WHERE id = %s"
FIND = "SELECT run_id, call_id, traceparent FROM runs_toolcall WHERE id = %s"
TAKE = """
UPDATE runs_toolcall SET attempt = attempt + 1, lease_expires_at = %s, queued_at = NULL
WHERE run_id = %s AND call_id = %s RETURNING id, attempt
"""
HELD = """
SELECT attempt, COALESCE(lease_expires_at > clock_timestamp(), false) FROM runs_toolcall
WHERE run_id = %s AND call_id = %s
"""
LET_GO = """
UPDATE runs_toolcall SET lease_expires_at = NULL, queued_at = NULL
WHERE id = %s AND (lease_expires_at IS NULL OR lease_expires_at < clock_timestamp() OR attempt = %s)
"""


class NotExternal(Exception):
    """Deputy drives this run itself."""


class Ended(Fenced):
    """The run has ended: no call of it can be made or recorded any more."""

    def __init__(self, status: str) -> None:
        super().__init__(f"The run has already {status}.")
        self.status = status


class OutsideSession(ClaimedRun):
    """A run that an outside agent drives: whoever locks it may write, until it ends."""

    @classmethod
    def enter(cls, run_id: str) -> Self:
        """Read the run's facts and fold its log. Raises RunGone, NotExternal."""
        found = row("SELECT driver FROM runs_run WHERE id = %s", [run_id])
        if found is None:
            raise RunGone(run_id)
        if found[0] != Driver.EXTERNAL:
            raise NotExternal(run_id)
        claimed = cls.load(run_id, 0)
        assert isinstance(claimed, cls)  # noqa: S101
        return claimed

    def check_fence(self, log: RunLog) -> None:
        if log.ended:
            raise Ended(log.status)


def execute(tool_call_id: str) -> None:
    """Carry the call on as far as it goes. Does nothing where nothing is to do or another worker has it."""
    found = row(FIND, [tool_call_id])
    if found is None:
        return
    run_id, call_id, traceparent = found
    with tracing.working_for_request(trace_context.read(traceparent)):
        _execute(tool_call_id, run_id, call_id)


def _execute(tool_call_id: str, run_id: str, call_id: str) -> None:
    attempt, done = 0, None
    try:
        claimed = OutsideSession.enter(run_id)
        while True:
            with claimed.step() as log:
                if done and not record(claimed, call_id, attempt, *done):
                    break
                ready = carry(claimed, GateOnDemand(claimed), call_id)
                if ready:
                    attempt = take(log, call_id)
                else:
                    run_sql(LET_GO, [tool_call_id, attempt])
                rest(claimed, log)
            if ready is None:
                return
            crash.point("before_slow")
            let_go()
            with lease.held(tool_call_id, attempt), looking(ready, tool_call_id, attempt) as look:
                done = ready, perform(ready.admitted, ready.context)
            crash.point("after_slow")
            if look.held:
                done = None
                run_sql(LET_GO, [tool_call_id, attempt])
                claimed.cache["held_back"] = frozenset({call_id})
    except Ended:
        run_sql(LET_GO, [tool_call_id, attempt])
    if done:
        logger.info("the answer of %s came too late", tool_call_id)
        dispatch.leave_evidence([done])


def looking(ready: Ready, tool_call_id: str, attempt: int) -> AbstractContextManager[leaving.Look]:
    """Performing the call; where it leaves late, policy is asked again."""

    tool, arguments = ready.admitted.tool, ready.admitted.arguments

    def admitted() -> Tool | None:
        try:
            return admission.leaves(tool_call_id, attempt, arguments)
        finally:
            let_go()

    return leaving.looking(tool, (lambda: tool) if connection.in_atomic_block else admitted)


def host_of(tool_call_id: str) -> str:
    """Whom the call's tool asks; empty where there is no such call."""
    found = row(CALLED, [tool_call_id])
    return tool_host(found[0], from_json(found[1])) if found else ""


def pass_on(tool_call_id: str, delay: float = 0) -> None:
    """Leave the call for later, if need be after `delay` seconds."""
    found = row(FIND, [tool_call_id])
    if found:
        put.enqueue_call(found[0], tool_call_id, delay)


def carry(claimed: ClaimedRun, gate: GateOnDemand, call_id: str) -> Ready | None:
    """Take every step of one call that is only database work; returns it when it is to be run outside."""
    while True:
        call = claimed.state.calls[call_id]
        outcome: Outcome | Ready
        if call.phase == phases.READY:
            outcome = dispatch.take_answer(claimed, gate, call)
        elif call.phase == phases.ASKED:
            outcome = dispatch.start_one(claimed, gate, call)
        elif call.phase == phases.CALLED:
            return recover(claimed, gate, call)
        else:
            return None
        if isinstance(outcome, dispatch.Child):
            put.enqueue(outcome.log.id, turn=outcome.log.turn)
        elif isinstance(outcome, tuple):
            (outcome,) = outcome
        if isinstance(outcome, Ready):
            return outcome


def recover(claimed: ClaimedRun, gate: GateOnDemand, call: Call) -> Ready | None:
    """A call begun by a worker: left alone while its lease lasts, otherwise as for any interrupted call.

    One that was begun too often is given up, or, if it may have acted, a person says what became of it.
    """
    attempt, held = row(HELD, [claimed.run_id, call.call_id])
    if held:
        return None
    if attempt >= MAX_CLAIMS:
        tool = gate().tools.get(call.tool)
        if tool is None or (tool.mutating and not tool.idempotent):
            dispatch.outcome_unknown(claimed, call)
            return None
        message = f"'{call.tool}' took its worker down {attempt} times; what it did before is not known."
        dispatch.fail(claimed, call, Failed("CRASHED", message))
        return None
    outcome = dispatch.recover(claimed, gate, (call,))
    return outcome[0] if isinstance(outcome, tuple) else None


def take(log: RunLog, call_id: str) -> int:
    """Claim the call in this transaction; returns the attempt."""
    expires_at = log.now + timedelta(seconds=settings.LEASE_SECONDS)
    attempt: int = row(TAKE, [expires_at, log.id, call_id])[1]
    return attempt


def record(claimed: ClaimedRun, call_id: str, attempt: int, ready: Ready, answer: Answer) -> bool:
    """Put the answer into the log. False when the call has gone to another worker meanwhile."""
    current, _ = row(HELD, [claimed.run_id, call_id])
    if current != attempt or claimed.state.calls[call_id].phase != phases.CALLED:
        return False
    dispatch.record_answer(claimed, ready.call_id, answer)
    return True


def rest(claimed: ClaimedRun, log: RunLog) -> None:
    """The run waits when every open call of it does; otherwise it is at work."""
    state = claimed.state
    waiting = state.unfinished(phases.WAITING)
    if log.status == RunStatus.RUNNING and waiting and len(waiting) == len(state.open_calls):
        park.park(log, state, waiting[0].wait_kind)
        claimed.absorb()


def hand_over(claimed: ClaimedRun, gate: GateOnDemand, call: Call) -> None:
    """A call that has just been asked for: refused, stopped, done at once, or put before a worker."""
    passed = dispatch.ask(claimed, gate, call)
    if passed is None:
        return
    said = passed.admitted
    if not said.tool.transactional:
        assert claimed.log is not None  # noqa: S101
        status = CallStatus.REQUESTED
        row_id = tool_calls.open_call(claimed.log, call, said.arguments, said.idempotency_key, status)
        tool_calls.queue_call(claimed.run_id, row_id)
        return
    outcome = dispatch.begin(claimed, gate, call, passed)
    if isinstance(outcome, dispatch.Child):
        put.enqueue(outcome.log.id, turn=outcome.log.turn)
    if claimed.state.calls[call.call_id].phase == phases.READY:  # its answer had come before it was asked for
        carry(claimed, gate, call.call_id)
