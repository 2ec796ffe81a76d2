"""What calls have needed is there: they are made again. Or their person declines to give it."""

from django.db import transaction

from common.db import rows
from groups import today
from groups.actors import Actor
from policy.authority import Verb, may
from runs.actions.signal import SignalRefused
from runs.gate import repeats
from runs.log import waits
from runs.log.log import RunGone, RunLog
from runs.models.choices import WaitOutcome

OPEN = """
SELECT w.run_id, w.correlation_key FROM runs_wait w JOIN runs_run r ON r.id = w.run_id
WHERE w.organization_id = %s AND w.resolved_at IS NULL AND starts_with(w.correlation_key, %s)
  AND (%s::int IS NULL OR r.user_id = %s) ORDER BY w.id
"""


def met(organization_id: str, user_id: int | None, need: str) -> int:
    """Resolve every open wait for this need in the runs that work for the user, or for anybody where it has
    become nobody's; returns how many.

    To be called after the transaction in which the need was met, for runs are locked first.
    """
    found = rows(OPEN, [organization_id, repeats.of_need(need), user_id, user_id])
    return sum(_resolve(run_id, key) for run_id, key in found)


def _resolve(run_id: str, key: str) -> bool:
    with transaction.atomic():
        try:
            log = RunLog.lock(run_id)
        except RunGone:
            return False
        if log.ended or not waits.resolve(log, key, WaitOutcome.COMPLETED.value):
            return False
        waits.flush_and_enqueue(log)
    return True


def decline(run_id: str, key: str, actor: Actor) -> None:
    """The run's own person will not give what the call needs: it fails, and the agent is told.

    Raises NotAllowed, RunGone, SignalRefused (NO_SUCH_WAIT, RUN_ENDED).
    """
    with transaction.atomic():
        log = RunLog.lock(run_id)
        actor = today.since(actor)
        may(actor, Verb.ANSWER, log)
        if log.ended:
            raise SignalRefused("RUN_ENDED", f"The run has already {log.status}.")
        declined = {"by": str(actor)}
        if not key.startswith(repeats.PREFIX) or not waits.resolve(
            log, key, WaitOutcome.REJECTED.value, declined
        ):
            raise SignalRefused("NO_SUCH_WAIT", f"No call of this run waits by the key '{key}'.")
        waits.flush_and_enqueue(log)
