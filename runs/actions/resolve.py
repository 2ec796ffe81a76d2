"""Say what became of a call that was interrupted before its result was stored (design 4, Side effects)."""

from typing import Any

from django.db import transaction

from groups import today
from groups.actors import Actor
from policy.authority import Verb, may
from runs.actions.signal import SignalRefused
from runs.log import waits
from runs.log.log import RunLog
from runs.models import Wait
from runs.models.choices import WaitKind, WaitOutcome

OUTCOMES = ("succeeded", "failed", "retry")


def resolve(
    run_id: str,
    call_id: str,
    outcome: str,
    actor: Actor,
    result: Any = None,
    message: str = "",
    correlation_key: str = "",
) -> None:
    """Record a person's word; a retry passes policy again. The same word again changes nothing.

    A call may be interrupted again once it is tried again: `correlation_key` is then the wait that is meant.
    Raises NotAllowed, RunGone, SignalRefused: BAD_OUTCOME, NO_SUCH_WAIT, ALREADY_RESOLVED, INTERRUPTED_AGAIN.
    """
    payload = {"outcome": outcome, "result": result, "message": message, "by": str(actor)}
    with transaction.atomic():
        log = RunLog.lock(run_id)
        actor = today.since(actor)
        may(actor, Verb.RESOLVE_REVIEW, log)
        if outcome not in OUTCOMES:
            raise SignalRefused("BAD_OUTCOME", f"The outcome is one of {', '.join(OUTCOMES)}.")
        wait = _meant(run_id, call_id, correlation_key)
        if not waits.resolve(log, wait.correlation_key, WaitOutcome.COMPLETED.value, payload):
            return _again(wait, outcome)
        waits.flush_and_enqueue(log)
    return None


def _meant(run_id: str, call_id: str, correlation_key: str) -> Wait:
    """The wait that a word is about: a page or a request of before says nothing of a later attempt."""
    asked = Wait.objects.filter(run_id=run_id, tool_call__call_id=call_id, kind=WaitKind.REVIEW)
    named = asked.filter(correlation_key=correlation_key) if correlation_key else asked
    found = list(named.order_by("-id")[:2])
    if not found:
        raise SignalRefused("NO_SUCH_WAIT", f"Call {call_id} does not wait for a word on what happened.")
    if len(found) > 1:
        raise SignalRefused(
            "INTERRUPTED_AGAIN",
            f"Call {call_id} was tried and interrupted again: look at what it waits for, and name that with "
            "`correlation_key`.",
        )
    return found[0]


def _again(wait: Wait, outcome: str) -> None:
    if (wait.payload or {}).get("outcome") != outcome:
        raise SignalRefused("ALREADY_RESOLVED", "Somebody has already said otherwise.")
