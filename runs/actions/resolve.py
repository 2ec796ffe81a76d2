"""Say what became of a call that was interrupted before its result was stored (design 4, Side effects)."""

from typing import Any

from django.db import transaction

from groups.actors import Actor
from policy.authority import Verb, may
from runs.actions.signal import SignalRefused
from runs.log import waits
from runs.log.log import RunLog
from runs.models import Wait
from runs.models.choices import WaitKind, WaitOutcome

OUTCOMES = ("succeeded", "failed", "retry")


def resolve(
    run_id: str, call_id: str, outcome: str, actor: Actor, result: Any = None, message: str = ""
) -> None:
    """Record a person's word; a retry passes policy again. The same word again changes nothing.

    Raises NotAllowed, RunGone, SignalRefused: BAD_OUTCOME, NO_SUCH_WAIT, ALREADY_RESOLVED.
    """
    key = f"review-{call_id}"
    payload = {"outcome": outcome, "result": result, "message": message, "by": str(actor)}
    with transaction.atomic():
        log = RunLog.lock(run_id)
        may(actor, Verb.RESOLVE_REVIEW, log)
        if outcome not in OUTCOMES:
            raise SignalRefused("BAD_OUTCOME", f"The outcome is one of {', '.join(OUTCOMES)}.")
        wait = Wait.objects.filter(run_id=run_id, correlation_key=key, kind=WaitKind.REVIEW).first()
        if wait is None:
            raise SignalRefused("NO_SUCH_WAIT", f"Call {call_id} does not wait for a word on what happened.")
        if not waits.resolve(log, key, WaitOutcome.COMPLETED.value, payload):
            return _again(wait, outcome)
        waits.flush_and_enqueue(log)
    return None


def _again(wait: Wait, outcome: str) -> None:
    if (wait.payload or {}).get("outcome") != outcome:
        raise SignalRefused("ALREADY_RESOLVED", "Somebody has already said otherwise.")
