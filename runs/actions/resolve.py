"""Say what became of a call that was interrupted before its result was stored (design 4, Side effects)."""

from typing import Any

from django.db import transaction

from groups.current import holds
from groups.models import Membership
from runs.actions.signal import SignalRefused
from runs.log import waits
from runs.log.log import RunLog
from runs.models import Run, Wait
from runs.models.choices import WaitKind, WaitOutcome

OUTCOMES = ("succeeded", "failed", "retry")


def resolve(run_id: str, call_id: str, outcome: str, by: Any, result: Any = None, message: str = "") -> None:
    """Record a person's word; a retry passes policy again. The same word again changes nothing.

    Raises SignalRefused: BAD_OUTCOME, NOT_ENTITLED, NO_SUCH_WAIT, ALREADY_RESOLVED; Run.DoesNotExist.
    """
    if outcome not in OUTCOMES:
        raise SignalRefused("BAD_OUTCOME", f"The outcome is one of {', '.join(OUTCOMES)}.")
    check_entitled(Run.objects.select_related("project").get(pk=run_id), by)
    key = f"review-{call_id}"
    payload = {"outcome": outcome, "result": result, "message": message, "by": by.get_username()}
    with transaction.atomic():
        log = RunLog.lock(run_id)
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


def check_entitled(run: Run, by: Any) -> None:
    """Raises SignalRefused unless `by` sees the project and holds runs.resolve_review."""
    membership = Membership.objects.seeing(by, run.project)
    if membership is None or not holds(by, run.organization_id, "runs.resolve_review"):
        raise SignalRefused("NOT_ENTITLED", "You may not say what became of this call.")
