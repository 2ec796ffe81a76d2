"""Cancel a run and everything below it."""

from django.db import transaction

from common.db import execute, row, rows
from groups import today
from groups.actors import Actor
from policy.authority import Verb, may
from runs.actions import finish, mcp_tasks
from runs.log import waits
from runs.log.log import AlreadyEnded, RunGone, RunLog
from runs.models.choices import ACTIVE, ApprovalStatus, CallStatus, RunStatus, WaitOutcome
from runs.outbound import calls as outbound

CANCEL_WAITS = """
UPDATE runs_wait SET resolved_at = clock_timestamp(), outcome = %s
WHERE run_id = %s AND resolved_at IS NULL
"""
CANCEL_APPROVALS = """
UPDATE runs_approval SET status = %s, decided_at = clock_timestamp(), reason = %s
WHERE run_id = %s AND status = 'pending'
"""
# What is under way, here or as a task of an MCP server, may have its effect all the same; what is learnt of
# it goes on the row.
CANCEL_CALLS = """
UPDATE runs_toolcall c SET status = CASE WHEN open.begun THEN %s ELSE %s END,
    ended_at = CASE WHEN open.begun THEN NULL ELSE clock_timestamp() END
FROM (
    SELECT o.id, o.status = 'running' OR EXISTS (
        SELECT FROM runs_mcptask t
        WHERE t.run_id = o.run_id AND t.call_id = o.call_id AND t.state <> 'ended') AS begun
    FROM runs_toolcall o WHERE o.run_id = %s AND o.status IN ('requested', 'waiting', 'running')
) open
WHERE c.id = open.id
"""
CHILDREN = """
SELECT id FROM runs_run WHERE parent_run_id = ANY(%s) AND status = ANY(%s) ORDER BY depth, id
"""


def cancel(run_id: str, actor: Actor, reason: str = "") -> None:
    """Cancel the run's whole subtree, level by level; its parent learns of it.

    Cancelling a cancelled run changes nothing. Raises NotAllowed, RunGone, AlreadyEnded.
    """
    with transaction.atomic():
        parent = lock_parent(run_id)
        log = RunLog.lock(run_id)
        actor = today.since(actor)
        may(actor, Verb.CANCEL, log)
        if log.status == RunStatus.CANCELLED:
            return
        if log.ended:
            raise AlreadyEnded(log.status)
        message = f"Cancelled by {actor}." if str(actor) else "Group run cancelled"
        cancel_locked(log, parent, " ".join(filter(None, [message, reason])))
        if parent:
            waits.flush_and_enqueue(parent)


def lock_parent(run_id: str) -> RunLog | None:
    """Lock the run's parent, which must come first; None for a root. Raises RunGone."""
    found = row("SELECT parent_run_id FROM runs_run WHERE id = %s", [run_id])
    if found is None:
        raise RunGone(run_id)
    return RunLog.lock(found[0]) if found[0] else None


def cancel_locked(log: RunLog, parent: RunLog | None, message: str) -> None:
    """Cancel a locked, active run and what is below it. The caller flushes the parent."""
    cancel_below(log.id, message)
    _end_one(log, parent, message)


def cancel_below(run_id: str, message: str) -> None:
    """Cancel the active descendants. Nothing new can appear: spawning needs its parent's lock."""
    level = [run_id]
    while level:
        level = [child_id for (child_id,) in rows(CHILDREN, [level, sorted(ACTIVE)])]
        for child_id in level:
            child = RunLog.lock(child_id)
            if not child.ended:
                _end_one(child, None, message)


def _end_one(log: RunLog, parent: RunLog | None, message: str) -> None:
    ending = finish.Ending(RunStatus.CANCELLED, error={"code": "CANCELLED", "message": message})
    finish.end(log, parent, ending)
    log.flush()
    close_open(log.id, message)


def close_open(run_id: str, reason: str) -> None:
    """No wait, approval or call of an ended run stays open; of a tool's that is under way nobody knows."""
    execute(CANCEL_CALLS, [CallStatus.UNKNOWN.value, CallStatus.CANCELLED.value, run_id])
    execute(CANCEL_WAITS, [WaitOutcome.CANCELLED.value, run_id])
    execute(CANCEL_APPROVALS, [ApprovalStatus.CANCELLED.value, reason, run_id])
    outbound.drop(run_id)
    mcp_tasks.hurry(run_id)
