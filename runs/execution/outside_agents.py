"""What an outside agent does with its run: ask for a call, complete, fail. No other agent may."""

import re
from typing import Any

from common.canonical import canonical, digest, normalise
from common.db import row
from groups import today
from groups.actors import Actor
from policy.authority import About, Verb, may
from runs.actions import ending
from runs.context import prefetch
from runs.execution import calls, external
from runs.execution.dispatch import GateOnDemand
from runs.execution.external import Ended, NotExternal, OutsideSession
from runs.log import waits
from runs.log.log import RunGone, RunLog
from runs.log.next_step import exceeded
from runs.log.state import ENDED
from runs.models import Approval, Run
from runs.models.choices import Driver, EventType, MessageType, RunStatus
from runs.providers.base import ToolRequest

CALL_ID = re.compile(r"[!-~]{1,64}", re.ASCII)
MAX_NAME = 64
MAX_OUTPUT = 1_000_000  # characters
MAX_MESSAGE = 10_000
CODE = re.compile(r"[A-Z][A-Z0-9_]{0,49}", re.ASCII)
AGENT_FAILED = "AGENT_FAILED"

ASKED_BEFORE = """
SELECT r.organization_id, r.project_id, r.user_id, r.driver, c.request_digest
FROM runs_run r LEFT JOIN runs_toolcall c ON c.run_id = r.id AND c.call_id = %s WHERE r.id = %s
"""


class OutsideRefused(Exception):
    """The outside agent cannot do this. Nothing has changed, except that a used-up budget ends the run.

    `code`: NOT_EXTERNAL, RUN_ENDED, BAD_CALL_ID, BAD_NAME, CALL_DIFFERS, CALLS_OPEN, TOO_LONG, BAD_CODE,
    EMPTY, BUDGET_STEPS, BUDGET_TOKENS, BUDGET_SECONDS.
    """

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code, self.message, self.details = code, message, details


def request_call(run_id: str, actor: Actor, call_id: str, name: str, arguments: dict[str, Any]) -> str:
    """Bring a call of the outside agent before the gate, and on its way when it may pass.

    What only touches this database is done when this returns; the rest a queue worker executes. The
    same `call_id` (the agent's own, 1 to 64 visible ASCII characters) with the same tool and arguments
    is the same call; so is another with the same words while, or soon after, that one is decided about.
    Returns the id of the call that stands. Raises NotAllowed, OutsideRefused, RunGone, NotJson.
    """
    if not CALL_ID.fullmatch(call_id):
        raise OutsideRefused("BAD_CALL_ID", "A call id has 1 to 64 visible ASCII characters.")
    if not 0 < len(name) <= MAX_NAME:
        raise OutsideRefused("BAD_NAME", f"A tool's name has 1 to {MAX_NAME} characters.")
    arguments = normalise(arguments)
    if came_before(run_id, actor, call_id, name, arguments):
        return call_id
    if again := decided_before(run_id, call_id, name, arguments):
        return again
    prefetch.of_calls([ToolRequest(name, arguments)])
    claimed = _session(run_id, actor)
    try:
        with claimed.step() as log:
            actor = today.since(actor)
            if came_before(run_id, actor, call_id, name, arguments):
                return call_id
            if again := decided_before(run_id, call_id, name, arguments):  # at the same moment
                return again
            limit = ending.past_deadline(log) or exceeded(claimed.state)
            if limit:
                ending.fail(claimed, log, limit.code, limit.message)
            else:
                _ask(claimed, log, call_id, name, arguments)
                may(today.since(actor), Verb.DRIVE, log)  # to weigh it may have taken a while
    except Ended as ended:
        raise _ended(ended) from None
    if limit:
        raise OutsideRefused(limit.code, limit.message)
    return call_id


def decided_before(run_id: str, call_id: str, name: str, arguments: dict[str, Any]) -> str | None:
    """The id of a call with the same words that waits for a decision, or had one lately; over MCP, where the
    client has named none, of any that its words mean again: a model that is told to wait often calls again.
    """
    found = calls.same_again(run_id, name, arguments)
    if call_id.startswith(calls.NAMED_HERE):
        return found
    asked = Approval.objects.filter(run_id=run_id, tool_call__call_id=found) if found else None
    return found if asked is not None and asked.exists() else None


def came_before(run_id: str, actor: Actor, call_id: str, name: str, arguments: dict[str, Any]) -> bool:
    """Whether this very call has been asked for.

    Raises NotAllowed unless the actor may drive the run, RunGone, and OutsideRefused when Deputy drives it
    or another call has its id.
    """
    found = row(ASKED_BEFORE, [call_id, run_id])
    if found is None:
        raise RunGone(run_id)
    *where, driver, before = found
    may(actor, Verb.DRIVE, About(*where))
    if driver != Driver.EXTERNAL:
        raise _not_external()
    if before is not None and before != digest(name, canonical(arguments)):
        raise OutsideRefused("CALL_DIFFERS", f"Call {call_id} came before with another tool or arguments.")
    return before is not None


def complete(run_id: str, actor: Actor, output: str) -> None:
    """End the run with what the agent leaves. The same again changes nothing.

    Raises NotAllowed, OutsideRefused (CALLS_OPEN names the calls), RunGone.
    """
    if len(output) > MAX_OUTPUT:
        raise OutsideRefused("TOO_LONG", f"The output is longer than {MAX_OUTPUT} characters.")
    claimed = _session(run_id, actor)
    left = output.strip() or None
    try:
        with claimed.step(lock_parent_too=True) as log:
            may(today.since(actor), Verb.DRIVE, log)
            _check_nothing_open(claimed)
            if left:
                _say(claimed, {"content": left})
            ending.complete(claimed, log, left)
            _tell_parent(claimed)
    except Ended as ended:
        may(actor, Verb.DRIVE, _about(run_id))
        if not Run.objects.filter(pk=run_id, status=RunStatus.COMPLETED, output=left).exists():
            raise _ended(ended) from None


def fail(run_id: str, actor: Actor, message: str, code: str = AGENT_FAILED) -> None:
    """End the run as failed, in the agent's words; open calls end with it. The same again changes nothing.

    Raises NotAllowed, OutsideRefused, RunGone.
    """
    if not CODE.fullmatch(code):
        raise OutsideRefused("BAD_CODE", "A code has 1 to 50 capital letters, digits and underscores.")
    message = message.strip()
    if not message:
        raise OutsideRefused("EMPTY", "Say why the run has failed.")
    if len(message) > MAX_MESSAGE:
        raise OutsideRefused("TOO_LONG", f"The message is longer than {MAX_MESSAGE} characters.")
    claimed = _session(run_id, actor)
    try:
        with claimed.step(lock_parent_too=True) as log:
            may(today.since(actor), Verb.DRIVE, log)
            ending.fail(claimed, log, code, message)
            _tell_parent(claimed)
    except Ended as ended:
        may(actor, Verb.DRIVE, _about(run_id))
        same = {"status": RunStatus.FAILED, "error": {"code": code, "message": message}}
        if not Run.objects.filter(pk=run_id, **same).exists():
            raise _ended(ended) from None


def fail_overdue(run_id: str) -> bool:
    """End a run whose agent has not ended it in time. False when it has time left after all."""
    claimed = _session(run_id)
    try:
        with claimed.step(lock_parent_too=True) as log:
            limit = ending.past_deadline(log)
            if limit:
                ending.fail(claimed, log, limit.code, limit.message)
                _tell_parent(claimed)
    except Ended:
        return False
    return limit is not None


def _ask(claimed: OutsideSession, log: RunLog, call_id: str, name: str, arguments: dict[str, Any]) -> None:
    waits.wake(log)
    claimed.absorb()
    request = {"call_id": call_id, "name": name, "arguments": arguments}
    _say(claimed, {"content": "", "tool_calls": [request]})
    external.hand_over(claimed, GateOnDemand(claimed), claimed.state.calls[call_id])
    external.rest(claimed, log)


def _say(claimed: OutsideSession, said: dict[str, Any]) -> None:
    """A message of the agent: each counts as one of the run's steps."""
    speaker = claimed.state.speaker
    kind = MessageType.STATUS.value
    payload = {"role": "assistant", "author": speaker.role, "message_type": kind, **said}
    claimed.append(EventType.MESSAGE_CREATED, payload, agent=speaker.agent)
    assert claimed.log is not None  # noqa: S101
    claimed.log.set(usage=claimed.state.usage)


def _check_nothing_open(claimed: OutsideSession) -> None:
    still_open = [call for call in claimed.state.calls.values() if call.phase != ENDED]
    if still_open:
        listed = ", ".join(call.call_id for call in still_open)
        raise OutsideRefused(
            "CALLS_OPEN",
            f"These calls have not ended: {listed}.",
            open=[call.call_id for call in still_open],
        )


def _about(run_id: str) -> About:
    return About(*Run.objects.values_list("organization_id", "project_id", "user_id").get(pk=run_id))


def _tell_parent(claimed: OutsideSession) -> None:
    if claimed.parent:
        waits.flush_and_enqueue(claimed.parent)


def _session(run_id: str, actor: Actor | None = None) -> OutsideSession:
    """Raises NotAllowed where the actor may not drive the run, whoever drives it."""
    try:
        return OutsideSession.enter(run_id)
    except NotExternal:
        if actor is not None:
            may(actor, Verb.DRIVE, _about(run_id))
        raise _not_external() from None


def _not_external() -> OutsideRefused:
    return OutsideRefused("NOT_EXTERNAL", "Deputy drives this run itself.")


def _ended(ended: Ended) -> OutsideRefused:
    return OutsideRefused("RUN_ENDED", str(ended), run_status=ended.status)
