"""A person says something to a run: an answer it waits for, or a word in between."""

from typing import Any

from django.db import transaction

from common.db import rows
from groups import today
from groups.actors import Actor
from policy.authority import Verb, can, may
from runs.actions.fill import fill
from runs.actions.signal import Delivered, SignalRefused, marks
from runs.gate import repeats
from runs.log import waits
from runs.log.log import RunLog
from runs.models.choices import FORMS, EventType, MessageType, RunStatus, WaitKind, WaitOutcome
from runs.outbound import calls as outbound
from runs.queue import put

MAX_CONTENT = 100_000  # characters

OPEN_INPUTS = """
SELECT correlation_key, tool_call_id FROM runs_wait
WHERE run_id = %s AND kind = %s AND resolved_at IS NULL AND NOT starts_with(correlation_key, %s) ORDER BY id
"""


def message(run_id: str, content: str, actor: Actor, correlation_key: str = "") -> Delivered:
    """Add the message to the log and answer the oldest open question, or the one named.

    What somebody else than the run's own person says is kept as text from outside, and answers nothing.
    A server's form is answered only where it is named, and only that server hears the answer.
    Never decides an approval. Raises NotAllowed, RunGone, SignalRefused (RUN_ENDED, EMPTY, TOO_LONG,
    NO_SUCH_WAIT, INVALID_ANSWER).
    """
    content = content.strip()
    with transaction.atomic():
        log = RunLog.lock(run_id)
        actor = today.since(actor)
        may(actor, Verb.STEER, log)
        if not content:
            raise SignalRefused("EMPTY", "The message is empty.")
        if len(content) > MAX_CONTENT:
            raise SignalRefused("TOO_LONG", f"The message is longer than {MAX_CONTENT} characters.")
        if log.ended:
            raise SignalRefused("RUN_ENDED", f"The run has already {log.status}.")
        not_theirs = marks(log.root_id, content)
        actor = today.since(actor)  # to look for words that others wrote may have taken a while
        may(actor, Verb.STEER, log)
        answers = question(run_id, correlation_key)
        if answers and answers[0].startswith(FORMS):
            may(actor, Verb.ANSWER, log)
            fill(log, *answers, content, actor)
            waits.flush_and_enqueue(log)
            return Delivered("delivered")
        if correlation_key:
            may(actor, Verb.ANSWER, log)
        elif not can(actor, Verb.ANSWER, log):
            answers = None
        words = said(actor, content, MessageType.STATUS, can(actor, Verb.SPEAK_AS_PERSON, log))
        log.append(EventType.MESSAGE_CREATED, {**words, **not_theirs})
        if answers:
            key, tool_call_id = answers
            answer = {"answer": content, "author": str(actor), **not_theirs}
            waits.resolve_open(log, key, WaitOutcome.COMPLETED.value, answer, tool_call_id)
        waits.flush_and_enqueue(log)
        if log.status == RunStatus.RUNNING and outbound.drop_question(log.id):
            put.resume(log.id)  # the model is asked again, with this
    return Delivered("delivered" if answers else "kept")


def said(actor: Actor, content: str, kind: MessageType, as_person: bool) -> dict[str, Any]:
    """The payload of words that reach a run: the person's own, or text from outside (`outside`)."""
    payload = {"role": "user", "author": str(actor), "message_type": kind.value, "content": content}
    return payload if as_person else {**payload, "outside": True}


def question(run_id: str, correlation_key: str) -> tuple[str, str | None] | None:
    """The open question this answers, and its call; None when the run asks nothing. Raises SignalRefused."""
    open_inputs: dict[str, str | None] = dict(
        rows(OPEN_INPUTS, [run_id, WaitKind.INPUT.value, repeats.PREFIX])
    )
    if correlation_key and correlation_key not in open_inputs:
        listed = ", ".join(open_inputs) or "none"
        raise SignalRefused(
            "NO_SUCH_WAIT", f"No open question has the key '{correlation_key}'; open: {listed}."
        )
    key = correlation_key or next((key for key in open_inputs if not key.startswith(FORMS)), None)
    return (key, open_inputs[key]) if key else None
