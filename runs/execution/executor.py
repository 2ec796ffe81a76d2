"""Advance one run until it ends or waits.

Each turn of `advance` is: one transaction that does all the database work there is to do, then one
piece of slow work (a model, a tool that leaves the database) outside any transaction.
"""

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from django.db import transaction

from runs.actions import cancel, ending, park
from runs.actions import claim as claiming
from runs.context import prefetch, prompts
from runs.execution import crash, dispatch
from runs.log.claimed import STATEMENT_TIMEOUT_MS, ClaimedRun, kept
from runs.log.log import Fenced, RunGone, RunLog
from runs.log.next_step import Fail, Finish, Over, Park, Recover, Settle, Speak, Start, next_step
from runs.models.choices import EventType, RunStatus
from runs.observe import tracing
from runs.providers import asking, retry
from runs.providers.base import ProviderError, Reply
from runs.queue import lease, put, worker_status
from runs.tools.base import Answer
from runs.tools.call import ToolBroke, perform

logger = logging.getLogger(__name__)

CONCURRENT_TOOLS = 8


class NeedsParent(Exception):
    """The run is about to end and its parent, which must be locked first, is not."""


@dataclass(frozen=True)
class Taken:
    """A run this worker holds, or, without an attempt, is about to claim."""

    run_id: str
    attempt: int | None = None


@dataclass(frozen=True)
class Perform:
    """Admitted calls whose tool.called is committed; to be run now, side by side where there are several."""

    calls: tuple[dispatch.Ready, ...]


@dataclass(frozen=True)
class Released:
    """The run is out of this worker's hands; `then` is the handoff, a run claimed in the same transaction."""

    then: "Taken | Entered | None" = None


Slow = Speak | Perform | Released


@dataclass(frozen=True)
class Entered:
    """A run this worker holds, whose quick steps were taken in the transaction that claimed it."""

    claimed: ClaimedRun
    slow: Slow


class NextFailed(Exception):
    """The quick steps of the run that was to be handed on to failed; they must not cost this run its step."""


@dataclass(frozen=True)
class HandoffMode:
    """How a step may be taken: hand on to the next run at all, and with that run's first quick steps done
    in it; and with tools that have no savepoints, so that one that fails undoes the step.
    """

    on: bool
    through: bool = True
    trusting: bool = True


def run(run_id: str) -> None:
    """Claim the run and drive it, and whatever the handoff passes on. Does nothing when it is not pending."""
    drive(Taken(run_id))


def drive(taken: Taken | Entered | None, forever: bool = False) -> None:
    """Drive a claimed run and its handoffs; after HANDOFF_SECONDS the next one goes through the queue."""
    started = time.monotonic()
    while taken:
        may_pass = forever or time.monotonic() - started < settings.HANDOFF_SECONDS
        taken = advance(taken, may_pass)


def advance(taken: Taken | Entered, may_pass: bool = True) -> Taken | Entered | None:
    """Drive one claimed run until it ends or waits; returns the handoff."""
    run_id = taken.run_id if isinstance(taken, Taken) else taken.claimed.run_id
    try:
        entered = (
            taken if isinstance(taken, Entered) else take(taken, may_pass and not worker_status.stopping())
        )
        if entered is None:
            return None
        with lease.held(run_id, entered.claimed.attempt):
            return _loop(entered.claimed, entered.slow, may_pass)
    except Fenced as fenced:
        logger.info("let go of %s: %s", run_id, fenced)
        return None


def take(taken: Taken, may_pass: bool) -> Entered | None:
    """One transaction: claim the run unless that is done, read it, and take its first quick steps."""
    prefetch.of_run(taken.run_id)
    mode, parent_first = HandoffMode(may_pass), False
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
        if taken.attempt is not None:
            log.check_fence(taken.attempt)
        elif claiming.claim_locked(log) is None:
            return None
        return enter(log, mode, parent)


def enter(
    log: RunLog, mode: HandoffMode, parent: RunLog | None = None, claimed: ClaimedRun | None = None
) -> Entered:
    """Take the first quick steps of a run that this transaction has claimed, and flush it."""
    claimed = claimed or ClaimedRun.of(log)
    claimed.trusting = mode.trusting
    with claimed.writing(log, parent):
        return Entered(claimed, take_quick_steps(claimed, log, mode))


def _loop(claimed: ClaimedRun, slow: Slow, may_pass: bool) -> Taken | Entered | None:
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
        slow = transact(claimed, done, may_pass and not worker_status.stopping())
        lease.progress(claimed.run_id, claimed.attempt)


def let_go(claimed: ClaimedRun) -> None:
    """This process is to stop: the run, between two steps, is another worker's."""
    with claimed.step() as log:
        log.set(status=RunStatus.PENDING.value, queued_at=log.now)
        put.enqueue(claimed.run_id)


def transact(claimed: ClaimedRun, done: Any, may_pass: bool) -> Slow:
    """One transaction: what the slow work brought, and every quick step after it."""
    lock_parent = isinstance(done, Reply) and not done.tool_calls
    mode = HandoffMode(may_pass)
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


def record(claimed: ClaimedRun, done: Any) -> None:
    """Put into the log what was learnt outside the transaction."""
    if isinstance(done, Reply):
        prompts.record_reply(claimed, done)
    elif isinstance(done, ProviderError):
        record_retry(claimed, done)
    elif done:
        for ready, answer in done:
            dispatch.record_answer(claimed, ready, answer)
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
            return step
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
            return Perform(outcome)


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
    with (
        claimed.at_work(),
        tracing.of_model(prompt.model, member.agent, member.role, conversation) as span,
    ):
        try:
            reply = asking.ask(prompt.model, prompt.messages, prompt.tools, prompt.settings)
        except ProviderError as error:
            span.fail(error.code)
            return error
        span.tell(tracing.usage(reply.model, reply.usage.input_tokens, reply.usage.output_tokens))
    prefetch.of_calls(reply.tool_calls)
    return reply


def record_retry(claimed: ClaimedRun, error: ProviderError) -> None:
    """Record a failed call of the model: tried again now, after a timer, or not at all."""
    failures = claimed.state.retries + 1
    delay = retry.delay(failures, error, seed=claimed.run_id)
    agent = claimed.state.speaker.agent
    payload: dict[str, Any] = {"code": error.code, "message": error.message, "failures": failures}
    if delay is None:
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
