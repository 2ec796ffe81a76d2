"""Advance one run until it ends or waits.

Each turn of `advance` is: one transaction that does all the database work there is to do, then one
piece of slow work (a model, a tool that leaves the database) outside any transaction.
"""

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction

from runs import board, crash, dispatch, foresight, lease, prompts, queue, spans
from runs.actions import cancel, ending, park
from runs.actions import claim as claiming
from runs.choices import EventType, RunStatus
from runs.log import Fenced, RunLog
from runs.next_step import Fail, Finish, Over, Park, Recover, Settle, Speak, Start, next_step
from runs.providers import registry as providers
from runs.providers import retry
from runs.providers.base import ProviderError, Reply
from runs.session import Session
from runs.tools.base import Answer
from runs.tools.call import perform

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

    then: Taken | None = None


Slow = Speak | Perform | Let


def run(run_id: str) -> None:
    """Claim the run and drive it, and whatever the baton passes on. Does nothing when it is not pending."""
    drive(Taken(run_id))


def drive(taken: Taken | None, forever: bool = False) -> None:
    """Drive a claimed run and its batons; after BATON_SECONDS the next one goes through the queue."""
    started = time.monotonic()
    while taken:
        may_pass = forever or time.monotonic() - started < settings.BATON_SECONDS
        taken = advance(taken, may_pass)


def advance(taken: Taken, may_pass: bool = True) -> Taken | None:
    """Drive one claimed run until it ends or waits; returns the baton."""
    foresight.of_run(taken.run_id)
    try:
        opened = take(taken, may_pass and not board.stopping())
        if opened is None:
            return None
        session, slow = opened
        with lease.held(session.run_id, session.attempt):
            return _loop(session, slow, may_pass)
    except Fenced as fenced:
        logger.info("let go of %s: %s", taken.run_id, fenced)
        return None


def take(taken: Taken, may_pass: bool) -> tuple[Session, Slow] | None:
    """One transaction: claim the run unless that is done, read it, and take its first quick steps."""
    try:
        return _take(taken, may_pass)
    except NeedsParent:  # the claim went with its transaction: whoever claimed has locked the child
        return _take(taken, may_pass, lock_parent=True)


def _take(taken: Taken, may_pass: bool, lock_parent: bool = False) -> tuple[Session, Slow] | None:
    with transaction.atomic():
        if lock_parent:
            cancel.lock_parent(taken.run_id)
        attempt = claiming.claim(taken.run_id) if taken.attempt is None else taken.attempt
        if attempt is None:
            return None
        session = Session.load(taken.run_id, attempt)
        if speak_at_once(session) and prompts.needs_nothing(session):
            with session.at_work():
                prompts.prepare(session)
            return session, Speak(session.state.speaker)
        return session, _transact(session, None, may_pass, lock_parent)


def _loop(session: Session, slow: Slow, may_pass: bool) -> Taken | None:
    while True:
        time.sleep(session.cache.pop("sleep", 0))
        if isinstance(slow, Let):
            return slow.then
        if isinstance(slow, Speak) and board.stopping():
            let_go(session)
            return None
        crash.point("before_slow")
        done = speak(session) if isinstance(slow, Speak) else work(session, slow)
        crash.point("after_slow")
        slow = transact(session, done, may_pass and not board.stopping())
        lease.progress(session.run_id, session.attempt)


def let_go(session: Session) -> None:
    """This process is to stop: the run, between two steps, is another worker's."""
    with session.step() as log:
        log.set(status=RunStatus.PENDING.value, queued_at=log.now)
        queue.enqueue(session.run_id)


def speak_at_once(session: Session) -> bool:
    """Whether there is nothing to write before the model is asked."""
    return isinstance(next_step(session.state), Speak) and not session.past_deadline


def transact(session: Session, done: Any, may_pass: bool) -> Slow:
    """One transaction: what the slow work brought, and every quick step after it."""
    lock_parent = isinstance(done, Reply) and not done.tool_calls
    try:
        return _transact(session, done, may_pass, lock_parent)
    except NeedsParent:
        return _transact(session, done, may_pass, lock_parent=True)


def _transact(session: Session, done: Any, may_pass: bool, lock_parent: bool) -> Slow:
    try:
        with session.step(lock_parent and session.parent_run_id is not None) as log:
            record(session, done)
            slow = settle(session, log, may_pass)
            crash.point("before_commit")
        crash.point("after_commit")
        return slow
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


def settle(session: Session, log: RunLog, may_pass: bool) -> Slow:
    """Take every step that is only database work, until one is slow or the run is let go of."""
    baton: str | None = None
    gate = dispatch.GateOnDemand(session)
    while True:
        step = next_step(session.state)
        limit = ending.past_deadline(log) if not isinstance(step, Over | Finish) else None
        if limit:
            step = limit
        if isinstance(step, Speak):
            prompts.prepare(session)
            return step
        if isinstance(step, Over):
            return Let()
        if isinstance(step, Finish | Fail):
            return end(session, log, step, may_pass)
        if isinstance(step, Park):
            return leave(session, log, step, baton, may_pass)
        if isinstance(step, Start):
            outcome = dispatch.start(session, gate, step.call)
        elif isinstance(step, Settle):
            outcome = dispatch.settle(session, gate, step.call)
        else:
            assert isinstance(step, Recover)  # noqa: S101
            outcome = dispatch.recover(session, gate, step.calls)
        if isinstance(outcome, dispatch.Child):
            if baton:
                queue.enqueue(outcome.run_id)
            baton = baton or outcome.run_id
        elif outcome:
            if baton:
                queue.enqueue(baton)
            return Perform(outcome)


def leave(session: Session, log: RunLog, step: Park, baton: str | None, may_pass: bool) -> Let:
    """Park, and take over the first child made in this step, unless a wait has been resolved meanwhile."""
    park.park(log, session.state, step.reason)
    session.flush()
    return pass_on(baton, may_pass)


def pass_on(run_id: str | None, may_pass: bool) -> Let:
    """Claim the next run in this transaction, or leave it to the queue."""
    if run_id is None:
        return Let()
    if may_pass:
        attempt = claiming.claim(run_id)
        return Let(Taken(run_id, attempt)) if attempt is not None else Let()
    queue.enqueue(run_id)
    return Let()


def end(session: Session, log: RunLog, step: Finish | Fail, may_pass: bool) -> Let:
    """End the run; its parent, woken by it, is the baton."""
    if session.parent_run_id and session.parent is None:
        raise NeedsParent
    if isinstance(step, Finish):
        ending.complete(session, log, step.output)
    else:
        ending.fail(session, log, step.code, step.message)
    session.flush()
    parent = session.parent
    if parent is None or parent.status != RunStatus.PENDING:
        return Let()
    if not may_pass:
        queue.enqueue(parent.id)
        return Let()
    attempt = claiming.claim_locked(parent)
    return Let(Taken(parent.id, attempt)) if attempt is not None else Let()


def speak(session: Session) -> Reply | ProviderError:
    """Ask the speaker's model. Slow; the prompt was made in the transaction before."""
    prompt: prompts.Prompt = session.cache["prompt"]
    with session.at_work(), spans.of_model(session, prompt) as span:
        try:
            provider, name = providers.get(prompt.model)
            reply = provider.complete(prompt.messages, prompt.tools, prompt.settings(name))
        except ProviderError as error:
            span.fail(error.code)
            return error
        span.tell(spans.usage(reply))
    foresight.of_calls(reply.tool_calls)
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
