"""Advance one run until it ends or waits.

Each turn of `advance` is one transaction that does all the database work there is to do. What is slow then
(a model, a tool that leaves the database) is an outbound call, written in that transaction: the worker lets
go, and another turn begins with the answers (`resume`). The embedded model answers in this process, outside
any transaction; so does everything where no carrier is to take part (`ask --inline`, tests).
"""

import logging
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from common import crash
from runs.actions import cancel, ending, park
from runs.actions import claim as claiming
from runs.context import prefetch, prompts
from runs.execution import dispatch
from runs.log import state as phases
from runs.log.claimed import STATEMENT_TIMEOUT_MS, ClaimedRun, kept
from runs.log.log import Fenced, RunGone, RunLog
from runs.log.next_step import Fail, Finish, Over, Park, Recover, Settle, Speak, Start, next_step
from runs.models.choices import Driver, EventType, RunStatus
from runs.observe import tracing
from runs.outbound import calls, packing
from runs.outbound.calls import Answers
from runs.providers import asking, keys, registry, retry
from runs.providers.base import ProviderError, Reply
from runs.queue import lease, put, worker_status
from runs.tools.base import Answer
from runs.tools.call import ToolBroke, perform

logger = logging.getLogger(__name__)

CONCURRENT_TOOLS = 8
MAX_CRASHES = 3  # a run that takes down who is at it this often ends as failed


class NeedsParent(Exception):
    """The run is about to end and its parent, which must be locked first, is not."""


@dataclass(frozen=True)
class Taken:
    """A run this worker holds, or, without an attempt, is about to claim."""

    run_id: str
    attempt: int | None = None
    answered: bool = False  # running, held by no worker: the answers to its outbound calls are there


@dataclass(frozen=True)
class Perform:
    """Admitted calls whose tool.called is committed; to be run now, side by side where there are several."""

    calls: tuple[dispatch.Ready, ...]


@dataclass(frozen=True)
class Released:
    """This worker no longer holds the run; `then` is the handoff, a run claimed in the same transaction."""

    then: "Taken | Entered | None" = None


Slow = Speak | Perform | Released


@dataclass(frozen=True)
class Entered:
    """A run this worker holds, whose quick steps were taken in the transaction that claimed it."""

    claimed: ClaimedRun
    slow: Slow


class NextFailed(Exception):
    """The quick steps of the next run failed; this run's own step must not be lost by that."""


@dataclass(frozen=True)
class HandoffMode:
    """How a step may be taken: hand on to the next run at all, and with that run's first quick steps done
    in it; and with tools that have no savepoints, so that one that fails undoes the step. `carried`: slow
    work goes to a carrier.
    """

    on: bool
    through: bool = True
    trusting: bool = True
    carried: bool = False


def run(run_id: str, carried: bool = False) -> None:
    """Claim the run and drive it, and whatever the handoff passes on. Does nothing when it is not pending."""
    drive(Taken(run_id), carried)


def resume(run_id: str) -> None:
    """Take the step after a run's outbound calls. Does nothing while one is open, or another has the run."""
    drive(Taken(run_id, answered=True), carried=True)


def drive(taken: Taken | Entered | None, carried: bool = False) -> None:
    """Drive a claimed run and its handoffs; after HANDOFF_SECONDS the next one goes through the queue."""
    started = time.monotonic()
    while taken:
        may_pass = time.monotonic() - started < settings.HANDOFF_SECONDS
        taken = advance(taken, may_pass, carried)


def advance(taken: Taken | Entered, may_pass: bool = True, carried: bool = False) -> Taken | Entered | None:
    """Drive one claimed run until it ends, waits, or has its slow work carried; returns the handoff."""
    run_id = taken.run_id if isinstance(taken, Taken) else taken.claimed.run_id
    try:
        passing = may_pass and not worker_status.stopping()
        entered = taken if isinstance(taken, Entered) else take(taken, passing, carried)
        if entered is None:
            return None
        if isinstance(entered.slow, Released):
            return entered.slow.then
        with lease.held(run_id, entered.claimed.attempt):
            return _loop(entered.claimed, entered.slow, HandoffMode(may_pass, carried=carried))
    except Fenced as fenced:
        logger.info("let go of %s: %s", run_id, fenced)
        return None


def take(taken: Taken, may_pass: bool, carried: bool = False) -> Entered | None:
    """One transaction: take the run as it is, read it, and take its first quick steps."""
    mode, parent_first = HandoffMode(may_pass, carried=carried), False
    if taken.answered:
        said = calls.answered(taken.run_id)
        if said is None:
            return None
        replies = [reply for told in said if isinstance(reply := packing.read_model(told), Reply)]
        prefetch.of_calls(call for reply in replies for call in reply.tool_calls)
        parent_first = any(not reply.tool_calls for reply in replies)
    else:
        prefetch.of_run(taken.run_id)
    while True:
        try:
            return _take(taken, mode, parent_first)
        except NeedsParent:  # the claim went with its transaction
            parent_first = True
        except ToolBroke:
            mode = replace(mode, trusting=False)
        except NextFailed as failed:
            mode = _alone(taken.run_id, mode, failed)


def _take(taken: Taken, mode: HandoffMode, parent_first: bool) -> Entered | None:
    with transaction.atomic():
        parent = cancel.lock_parent(taken.run_id) if parent_first else None
        try:
            log = RunLog.lock(taken.run_id, STATEMENT_TIMEOUT_MS)
        except RunGone:
            return None
        done = None
        if taken.answered:
            done = take_answers(log)
            if done is None:
                return None
        elif taken.attempt is not None:
            log.check_fence(taken.attempt)
        elif claiming.claim_locked(log) is None:
            return None
        entered = enter(log, mode, parent, done=done)
        if done:
            crash.point("before_commit")
    if done:
        crash.point("after_commit")
    return entered


def take_answers(log: RunLog) -> Answers | None:
    """The answers to a locked run's calls; this worker then holds it. None where it does not."""
    if log.status != RunStatus.RUNNING or log.driver != Driver.INTERNAL:
        return None
    found = calls.take_answers(log)
    if found is not None:
        log.set(lease_expires_at=log.now + timedelta(seconds=settings.LEASE_SECONDS))
    return found


def enter(
    log: RunLog,
    mode: HandoffMode,
    parent: RunLog | None = None,
    claimed: ClaimedRun | None = None,
    done: Any = None,
) -> Entered:
    """Take the first quick steps of a run that this transaction has taken, and flush it."""
    claimed = claimed or ClaimedRun.of(log)
    claimed.trusting = mode.trusting
    with claimed.writing(log, parent):
        if failed := record(claimed, done):
            return Entered(claimed, end(claimed, log, failed, mode))
        return Entered(claimed, take_quick_steps(claimed, log, mode))


def _loop(claimed: ClaimedRun, slow: Slow, mode: HandoffMode) -> Taken | Entered | None:
    while True:
        if pause := claimed.cache.pop("sleep", 0):
            time.sleep(pause)
        if isinstance(slow, Released):
            return slow.then
        if isinstance(slow, Speak) and worker_status.stopping():
            let_go(claimed)
            return None
        crash.point("before_slow")
        done = speak(claimed) if isinstance(slow, Speak) else work(claimed, slow)
        crash.point("after_slow")
        slow = transact(claimed, done, mode.on and not worker_status.stopping(), mode.carried)
        lease.progress(claimed.run_id, claimed.attempt)


def let_go(claimed: ClaimedRun) -> None:
    """This process is to stop: leave the run, between two steps, to another worker."""
    with claimed.step() as log:
        log.set(status=RunStatus.PENDING.value, queued_at=log.now)
        put.enqueue(claimed.run_id)


def transact(claimed: ClaimedRun, done: Any, may_pass: bool, carried: bool = False) -> Slow:
    """One transaction: what the slow work brought, and every quick step after it."""
    lock_parent = isinstance(done, Reply) and not done.tool_calls
    mode = HandoffMode(may_pass, carried=carried)
    while True:
        claimed.trusting = mode.trusting
        try:
            with claimed.step(lock_parent) as log:
                record(claimed, done)
                slow = take_quick_steps(claimed, log, mode)
                crash.point("before_commit")
            crash.point("after_commit")
            return slow
        except NeedsParent:
            lock_parent = True
        except ToolBroke:
            mode = replace(mode, trusting=False)
        except NextFailed as failed:
            mode = _alone(claimed.run_id, mode, failed)
        except Fenced:
            dispatch.leave_evidence(done)
            raise


def record(claimed: ClaimedRun, done: Any) -> Fail | None:
    """Put into the log what was learnt outside the transaction; returns why the run cannot go on after it."""
    if isinstance(done, Answers):
        return record_answers(claimed, done)
    if isinstance(done, Reply):
        prompts.record_reply(claimed, done, claimed.cache["prompt"].receipt)
    elif isinstance(done, ProviderError):
        record_retry(claimed, done)
    elif done:
        record_results(claimed, [(ready.call_id, answer) for ready, answer in done])
    return None


def record_answers(claimed: ClaimedRun, done: Answers) -> Fail | None:
    """What carriers brought. A call that is lost stays begun in the log: `Recover` is its next step."""
    if isinstance(done.reply, Reply):
        prompts.record_reply(claimed, done.reply, done.receipt)
    elif done.reply:
        record_retry(claimed, done.reply)
    if done.results:
        record_results(claimed, done.results)
    claimed.cache["held_back"] = done.held_back
    if not done.lost:
        return None
    assert claimed.log is not None  # noqa: S101
    crashes = calls.crashes(claimed.run_id) + 1
    claimed.log.set(crashes=crashes)
    return crashed(crashes) if crashes >= MAX_CRASHES else None


def crashed(times: int) -> Fail:
    return Fail("CRASHED", f"The run took its worker down {times} times.")


def record_results(claimed: ClaimedRun, results: Iterable[tuple[str, Answer]]) -> None:
    for call_id, answer in results:
        if claimed.state.calls[call_id].phase == phases.CALLED:
            dispatch.record_answer(claimed, call_id, answer)
    assert claimed.log is not None  # noqa: S101
    claimed.log.set(crashes=0)  # it gets on: no poison


def take_quick_steps(claimed: ClaimedRun, log: RunLog, mode: HandoffMode) -> Slow:
    """Take every step that is only database work, until one is slow or the run is let go of."""
    handoff: RunLog | None = None
    gate = dispatch.GateOnDemand(claimed)
    while True:
        step = next_step(claimed.state)
        limit = ending.past_deadline(log) if not isinstance(step, Over | Finish) else None
        if limit:
            step = limit
        if isinstance(step, Speak):
            claimed.flush()  # a prompt may read what has just been written
            prompts.prepare(claimed)
            return ask_carrier(claimed, log) if mode.carried and not in_process(claimed) else step
        if isinstance(step, Over):
            return Released()
        if isinstance(step, Finish | Fail):
            return end(claimed, log, step, mode)
        if isinstance(step, Park):
            return leave(claimed, log, step, handoff, mode)
        if isinstance(step, Start):
            outcome = dispatch.start(claimed, gate, step.call)
        elif isinstance(step, Settle):
            outcome = dispatch.take_answer(claimed, gate, step.call)
        else:
            assert isinstance(step, Recover)  # noqa: S101
            outcome = dispatch.recover(claimed, gate, step.calls)
        if isinstance(outcome, dispatch.Child):
            if handoff:
                put.enqueue(outcome.log.id, turn=outcome.log.turn)
            handoff = handoff or outcome.log
        elif outcome:
            if handoff:
                put.enqueue(handoff.id, turn=handoff.turn)
            return carry(claimed, log, outcome) if mode.carried else Perform(outcome)


def in_process(claimed: ClaimedRun) -> bool:
    """Whether the model that is to speak answers at once, in this process."""
    prompt: prompts.Prompt = claimed.cache["prompt"]
    return registry.embedded(prompt.model)


def ask_carrier(claimed: ClaimedRun, log: RunLog) -> Released:
    """Let go of the run while its model thinks."""
    calls.ask_model(claimed, log, claimed.cache["prompt"], claimed.cache.pop("sleep", 0))
    kept.keep(claimed)
    return Released()


def carry(claimed: ClaimedRun, log: RunLog, outcome: tuple[dispatch.Ready, ...]) -> Released:
    """Let go of the run while its tools are at work."""
    asked = [
        (ready.call_id, ready.admitted.tool.name, ready.admitted.arguments, ready.context)
        for ready in outcome
    ]
    calls.call_tools(claimed, log, asked)
    kept.keep(claimed)
    return Released()


def leave(
    claimed: ClaimedRun, log: RunLog, step: Park, handoff: RunLog | None, mode: HandoffMode
) -> Released:
    """Park, and take over the first child made in this step, unless a wait has been resolved meanwhile."""
    park.park(log, claimed.state, step.reason)
    claimed.absorb()
    kept.keep(claimed)
    return pass_on(claimed, handoff, mode)


def end(claimed: ClaimedRun, log: RunLog, step: Finish | Fail, mode: HandoffMode) -> Released:
    """End the run; its parent, woken by it, is the handoff."""
    if claimed.parent_run_id and claimed.parent is None:
        raise NeedsParent
    if isinstance(step, Finish):
        ending.complete(claimed, log, step.output)
    else:
        ending.fail(claimed, log, step.code, step.message)
    if claimed.parent is None or claimed.parent.status != RunStatus.PENDING:
        return pass_on(claimed, None, mode)
    handoff, claimed.parent = claimed.parent, None  # whoever goes on with it flushes it
    return pass_on(claimed, handoff, mode)


def pass_on(claimed: ClaimedRun, then: RunLog | None, mode: HandoffMode) -> Released:
    """Let go of the run, and go on with the next one in this transaction, or leave it to the queue."""
    attempt = None
    if then is not None and mode.on:
        attempt = claiming.claim_locked(then)
    elif then is not None:
        put.enqueue(then.id, turn=then.turn)
    if then is not None and attempt is not None and mode.through:
        return Released(go_on(claimed, then, mode))
    claimed.flush()
    if then is None:
        return Released()
    then.flush()
    return Released(Taken(then.id, attempt)) if attempt is not None else Released()


def go_on(claimed: ClaimedRun, log: RunLog, mode: HandoffMode) -> Entered:
    """The first quick steps of the next run, written with what this one wrote. Raises NextFailed."""
    try:
        heir = ClaimedRun.of(log) if log.unborn is None else claimed.of_child(log)
        heir.before = [written for written in claimed.logs if written is not log]
        return enter(log, mode, claimed=heir)
    except Exception as error:
        raise NextFailed(log.id) from error


def _alone(run_id: str, mode: HandoffMode, failed: NextFailed) -> HandoffMode:
    """How to take the step again, so that it commits whatever becomes of the next run."""
    logger.info("%s hands on without going on with it: %r", run_id, failed.__cause__)
    return replace(mode, through=False)


def speak(claimed: ClaimedRun) -> Reply | ProviderError:
    """Ask the speaker's model. Slow; the prompt was made in the transaction before."""
    prompt: prompts.Prompt = claimed.cache["prompt"]
    member, conversation = prompt.member, claimed.session_key or claimed.root_id
    own = keys.of(claimed.organization_id, prompt.model)
    with (
        claimed.at_work(),
        tracing.of_model(prompt.model, member.agent, member.role, conversation, own) as span,
    ):
        try:
            reply = asking.ask(prompt.model, prompt.messages, prompt.tools, prompt.settings, own)
        except ProviderError as error:
            span.fail(error.code)
            return error
        span.tell(tracing.said(reply))
    prefetch.of_calls(reply.tool_calls)
    return reply


def record_retry(claimed: ClaimedRun, error: ProviderError) -> None:
    """Record a failed call of the model: tried again now, after a timer, or not at all."""
    log = claimed.log
    assert log is not None  # noqa: S101
    failures = claimed.state.retries + 1
    delay = retry.delay(failures, error, seed=claimed.run_id)
    agent = claimed.state.speaker.agent
    payload: dict[str, Any] = {"code": error.code, "message": error.message, "failures": failures}
    if delay is None or ending.too_late(log, delay):
        claimed.append(EventType.MODEL_RETRIED, {**payload, "gave_up": True}, agent)
        return
    payload["delay_ms"] = int(delay * 1000)
    if delay <= settings.BACKOFF_INLINE_SECONDS:
        claimed.append(EventType.MODEL_RETRIED, payload, agent)
        claimed.cache["sleep"] = delay
        return
    dispatch.wait_for_timer(claimed, payload, agent, delay)


def work(claimed: ClaimedRun, todo: Perform) -> list[tuple[dispatch.Ready, Answer]]:
    """Run admitted calls outside any transaction. Only this thread writes what they bring."""
    if len(todo.calls) == 1:
        ready = todo.calls[0]
        return [(ready, perform(ready.admitted, ready.context))]
    with ThreadPoolExecutor(min(CONCURRENT_TOOLS, len(todo.calls))) as pool:
        answers = pool.map(lambda ready: perform(ready.admitted, ready.context), todo.calls)
        return list(zip(todo.calls, answers, strict=True))
