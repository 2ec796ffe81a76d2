"""Take back a call of an outside agent that has not begun: nobody need decide or answer it any more."""

from django.db import transaction

from common.db import execute, row
from groups import today
from groups.actors import Actor
from policy.authority import Verb, may
from runs.log import waits
from runs.log.log import RunLog
from runs.models.choices import ApprovalStatus, WaitKind, WaitOutcome

KINDS = [WaitKind.APPROVAL.value, WaitKind.INPUT.value, WaitKind.SIGNAL.value]
OPEN = """
SELECT w.correlation_key FROM runs_wait w JOIN runs_toolcall c ON c.id = w.tool_call_id
WHERE w.run_id = %s AND c.call_id = %s AND w.resolved_at IS NULL AND w.kind = ANY(%s) ORDER BY w.id
"""
NOT_ASKED_ANY_MORE = """
UPDATE runs_approval a SET status = %s, decided_at = %s, reason = %s FROM runs_toolcall c
WHERE c.id = a.tool_call_id AND a.run_id = %s AND c.call_id = %s AND a.status = 'pending'
"""
REASON = "Withdrawn by the agent that asked."


def withdraw(run_id: str, call_id: str, actor: Actor) -> bool:
    """End the call as cancelled where it waits for a decision, an answer or a signal.

    False, and nothing has changed, for one that is being executed, works in a group or has ended: what has
    begun is not undone. Raises NotAllowed, RunGone.
    """
    with transaction.atomic():
        log = RunLog.lock(run_id)
        actor = today.since(actor)
        may(actor, Verb.DRIVE, log)
        found = None if log.ended else row(OPEN, [run_id, call_id, KINDS])
        if not found:
            return False
        execute(NOT_ASKED_ANY_MORE, [ApprovalStatus.CANCELLED.value, log.now, REASON, run_id, call_id])
        waits.resolve(log, found[0], WaitOutcome.CANCELLED.value)
        waits.flush_and_enqueue(log)
    return True
