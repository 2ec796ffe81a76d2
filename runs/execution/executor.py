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
from runs.log.claimed import STATEMENT_TIMEOUT_MS, Session, kept
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
class Let:
    """The run is out of this worker's hands; `then` is the baton, a run claimed in the same transaction."""

    then: "Taken | Entered | None" = None


Slow = Speak | Perform | Let


@dataclass(frozen=True)
class Entered:
    """A run this worker holds, whose quick steps were taken in the transaction that claimed it."""

    session: Session
    slow: Slow


class NextFailed(Exception):
    """The quick steps of the run that was to be handed on to failed; they must not cost this run its step."""


@dataclass(frozen=True)
class Passing:
    """How a step may be taken: hand on to the next run at all, and with that run's first quick steps done
    in it; and with tools that have no savepoints, so that one that fails undoes the step.
    """

    on: bool
    through: bool = True
    trusting: bool = True


def run(run_id: str) -> None:
    """Claim the run and drive it, and whatever the baton passes on. Does nothing when it is not pending."""
    drive(Taken(run_id))


def drive(taken: Taken | Entered | None, forever: bool = False) -> None:
    """Drive a claimed run and its batons; after BATON_SECONDS the next one goes through the queue."""
    started = time.monotonic()
    while taken:
        may_pass = forever or time.monotonic() - started < settings.BATON_SECONDS
        taken = advance(taken, may_pass)


def advance(taken: Taken | Entered, may_pass: bool = True) -> Taken | Entered | None:
    """Drive one claimed run until it ends or waits; returns the baton."""
    run_id = taken.run_id if isinstance(taken, Taken) else taken.session.run_id
    try:
        entered = (
            taken if isinstance(taken, Entered) else take(taken, may_pass and not worker_status.stopping())
        )
        if entered is None:
            return None
        with lease.held(run_id, entered.session.attempt):
            return _loop(entered.session, entered.slow, may_pass)
    except Fenced as fenced:
        logger.info("let go of %s: %s", run_id, fenced)
        return None


def take(taken: Taken, may_pass: bool) -> Entered | None:
    """One transaction: claim the run unless that is done, read it, and take its first quick steps."""
    prefetch.of_run(taken.run_id)
    passing, parent_first = Passing(may_pass), False
    while True:
        try:
            return _take(taken, passing, parent_first)
        except NeedsParent:  # the claim went with its transaction
            parent_first = True
        except ToolBroke:
            passing = replace(passing, trusting=False)
        except NextFailed as failed:
            passing = _alone(taken.run_id, passing, failed)


def _take(taken: Taken, passing: Passing, parent_first: bool) -> Entered | None:
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
        return enter(log, passing, parent)


def enter(
    log: RunLog, passing: Passing, parent: RunLog | None = None, session: Session | None = None
) -> Entered:
    """Take the first quick steps of a run that this transaction has claimed, and flush it."""
    session = session or Session.of(log)
    session.trusting = passing.trusting
    with session.writing(log, parent):
        return Entered(session, settle(session, log, passing))


def _loop(session: Session, slow: Slow, may_pass: bool) -> Taken | Entered | None:
    while True:
        if pause := session.cache.pop("sleep", 0):
            time.sleep(pause)
        if isinstance(slow, Let):
            return slow.then
        if isinstance(slow, Speak) and worker_status.stopping():
            let_go(session)
            return None
        crash.point("before_slow")
        done = speak(session) if isinstance(slow, Speak) else work(session, slow)
        crash.point("after_slow")
        slow = transact(session, done, may_pass and not worker_status.stopping())
        lease.progress(session.run_id, session.attempt)


def let_go(session: Session) -> None:
    """This process is to stop: the run, between two steps, is another worker's."""
    with session.step() as log:
        log.set(status=RunStatus.PENDING.value, queued_at=log.now)
        put.enqueue(session.run_id)


def transact(session: Session, done: Any, may_pass: bool) -> Slow:
    """One transaction: what the slow work brought, and every quick step after it."""
    lock_parent = isinstance(done, Reply) and not done.tool_calls
    passing = Passing(may_pass)
    while True:
        session.trusting = passing.trusting
        try:
            with session.step(lock_parent) as log:
                record(session, done)
                slow = settle(session, log, passing)
                crash.point("before_commit")
            crash.point("after_commit")
            return slow
        except NeedsParent:
            lock_parent = True
        except ToolBroke:
            passing = replace(passing, trusting=False)
        except NextFailed as failed:
            passing = _alone(session.run_id, passing, failed)
        except Fenced:
            dispatch.leave_evidence(done)
            raise


def record(session: Session, done: Any) -> None:
    """Put into the log what was learnt outside the transaction."""
    if isinstance(done, Reply):
        prompts.record_reply(session, done)
    elif isinstance(done, ProviderError):
        record_retry(session, done)
    elif done:
        for ready, answer in done:
            dispatch.record_answer(session, ready, answer)
        assert session.log is not None  # noqa: S101
        session.log.set(crashes=0)  # it gets on: no poison


def settle(session: Session, log: RunLog, passing: Passing) -> Slow:
    """Take every step that is only database work, until one is slow or the run is let go of."""
    baton: RunLog | None = None
    gate = dispatch.GateOnDemand(session)
    while True:
        step = next_step(session.state)
        limit = ending.past_deadline(log) if not isinstance(step, Over | Finish) else None
        if limit:
            step = limit
        if isinstance(step, Speak):
            session.flush()  # a prompt may read what has just been written
            prompts.prepare(session)
            return step
        if isinstance(step, Over):
            return Let()
        if isinstance(step, Finish | Fail):
            return end(session, log, step, passing)
        if isinstance(step, Park):
            return leave(session, log, step, baton, passing)
        if isinstance(step, Start):
            outcome = dispatch.start(session, gate, step.call)
        elif isinstance(step, Settle):
            outcome = dispatch.settle(session, gate, step.call)
        else:
            assert isinstance(step, Recover)  # noqa: S101
            outcome = dispatch.recover(session, gate, step.calls)
        if isinstance(outcome, dispatch.Child):
            if baton:
                put.enqueue(outcome.log.id)
            baton = baton or outcome.log
        elif outcome:
            if baton:
                put.enqueue(baton.id)
            return Perform(outcome)


def leave(session: Session, log: RunLog, step: Park, baton: RunLog | None, passing: Passing) -> Let:
    """Park, and take over the first child made in this step, unless a wait has been resolved meanwhile."""
    park.park(log, session.state, step.reason)
    session.absorb()
    kept.keep(session)
    return pass_on(session, baton, passing)


def end(session: Session, log: RunLog, step: Finish | Fail, passing: Passing) -> Let:
    """End the run; its parent, woken by it, is the baton."""
    if session.parent_run_id and session.parent is None:
        raise NeedsParent
    if isinstance(step, Finish):
        ending.complete(session, log, step.output)
    else:
        ending.fail(session, log, step.code, step.message)
    if session.parent is None or session.parent.status != RunStatus.PENDING:
        return pass_on(session, None, passing)
    baton, session.parent = session.parent, None  # whoever goes on with it flushes it
    return pass_on(session, baton, passing)


def pass_on(session: Session, then: RunLog | None, passing: Passing) -> Let:
    """Let go of the run, and go on with the next one in this transaction, or leave it to the queue."""
    attempt = None
    if then is not None and passing.on:
        attempt = claiming.claim_locked(then)
    elif then is not None:
        put.enqueue(then.id)
    if then is not None and attempt is not None and passing.through:
        return Let(go_on(session, then, passing))
    session.flush()
    if then is None:
        return Let()
    then.flush()
    return Let(Taken(then.id, attempt)) if attempt is not None else Let()


def go_on(session: Session, log: RunLog, passing: Passing) -> Entered:
    """The first quick steps of the next run, written with what this one wrote. Raises NextFailed."""
    try:
        heir = Session.of(log) if log.unborn is None else session.of_child(log)
        heir.before = [written for written in session.logs if written is not log]
        return enter(log, passing, session=heir)
    except Exception as error:
        raise NextFailed(log.id) from error


def _alone(run_id: str, passing: Passing, failed: NextFailed) -> Passing:
    """How to take the step again, so that it commits whatever becomes of the next run."""
    logger.info("%s hands on without going on with it: %r", run_id, failed.__cause__)
    return replace(passing, through=False)


def speak(session: Session) -> Reply | ProviderError:
    """Ask the speaker's model. Slow; the prompt was made in the transaction before."""
    prompt: prompts.Prompt = session.cache["prompt"]
    member, conversation = prompt.member, session.session_key or session.root_id
    with (
        session.at_work(),
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


def record_retry(session: Session, error: ProviderError) -> None:
    """Record a failed call of the model: tried again now, after a timer, or not at all."""
    failures = session.state.retries + 1
    delay = retry.delay(failures, error, seed=session.run_id)
    agent = session.state.speaker.agent
    payload: dict[str, Any] = {"code": error.code, "message": error.message, "failures": failures}
    if delay is None:
        session.append(EventType.MODEL_RETRIED, {**payload, "gave_up": True}, agent)
        return
    payload["delay_ms"] = int(delay * 1000)
    if delay <= settings.BACKOFF_INLINE_SECONDS:
        session.append(EventType.MODEL_RETRIED, payload, agent)
        session.cache["sleep"] = delay
        return
    dispatch.wait_for_timer(session, payload, agent, delay)


def work(session: Session, todo: Perform) -> list[tuple[dispatch.Ready, Answer]]:
    """Run admitted calls outside any transaction. Only this thread writes what they bring."""
    if len(todo.calls) == 1:
        ready = todo.calls[0]
        return [(ready, perform(ready.admitted, ready.context))]
    with ThreadPoolExecutor(min(CONCURRENT_TOOLS, len(todo.calls))) as pool:
        answers = pool.map(lambda ready: perform(ready.admitted, ready.context), todo.calls)
        return list(zip(todo.calls, answers, strict=True))
