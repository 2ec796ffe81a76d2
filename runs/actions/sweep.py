"""Sweep: bring back what was lost, end what is overdue. Any process may do it; one does at a time.

It re-queues and resolves by the clock; what a run does next is the run's own business.
"""

from dataclasses import dataclass

from django.conf import settings
from django.db import connection, transaction

from runs import queue
from runs.actions import cancel, finish, waits
from runs.choices import (
    WAITS_FOR_A_PERSON,
    ApprovalStatus,
    Driver,
    EventType,
    RunStatus,
    WaitKind,
    WaitOutcome,
)
from runs.log import RunGone, RunLog

ADVISORY_LOCK = 0x6465_7075_7479  # "deputy"
BATCH = 500
MAX_CRASHES = 3  # a run that takes its worker down this often ends as failed
REQUEUE_AFTER = 15  # seconds a pending run may wait on the queue before it is queued again

LEASE_EXPIRED = """
SELECT id FROM runs_run WHERE status = 'running' AND driver = 'internal'
  AND lease_expires_at < clock_timestamp() ORDER BY lease_expires_at LIMIT %s
"""
NOT_TAKEN = """
UPDATE runs_run SET queued_at = clock_timestamp() WHERE id = ANY(ARRAY(
    SELECT id FROM runs_run WHERE status = 'pending' AND driver = 'internal'
      AND (queued_at IS NULL OR queued_at < clock_timestamp() - %s * interval '1 second')
    ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED))
RETURNING id
"""
OVERDUE_WAITS = """
SELECT id, run_id FROM runs_wait WHERE resolved_at IS NULL AND expires_at < clock_timestamp()
ORDER BY expires_at LIMIT %s
"""
WAIT = """
SELECT kind, correlation_key, child_run_id, expires_at < clock_timestamp(),
       (EXTRACT(epoch FROM expires_at - created_at) * 1000)::bigint
FROM runs_wait WHERE id = %s AND resolved_at IS NULL
"""
# The time since the child began in which something in its subtree waited for a person, overlaps counted
# once; and whether something does so now (design 4, Clocks).
STOOD_STILL = """
WITH RECURSIVE tree AS (
    SELECT id FROM runs_run WHERE id = %(child)s
    UNION ALL SELECT r.id FROM runs_run r JOIN tree t ON r.parent_run_id = t.id
), spans AS (
    SELECT tstzrange(w.created_at, COALESCE(w.resolved_at, clock_timestamp())) AS span,
           w.resolved_at IS NULL AS open
    FROM runs_wait w JOIN tree t ON w.run_id = t.id WHERE w.kind = ANY(%(kinds)s)
), merged AS (
    SELECT unnest(range_agg(span)) AS span FROM spans
)
SELECT COALESCE(EXTRACT(epoch FROM sum(upper(span) - lower(span))), 0)::float8,
       COALESCE((SELECT bool_or(open) FROM spans), false)
FROM merged
"""
PUT_OFF = "UPDATE runs_wait SET expires_at = created_at + %s * interval '1 second' WHERE id = %s"


@dataclass
class Swept:
    """What one sweep did, in counts."""

    leases: int = 0
    poisoned: int = 0
    requeued: int = 0
    waits: int = 0
    busy: bool = False


def sweep() -> Swept:
    """One round. `busy` when another process is at it, which is as good."""
    swept = Swept()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [ADVISORY_LOCK])
        if not cursor.fetchone()[0]:
            return Swept(busy=True)
    try:
        for run_id in _ids(LEASE_EXPIRED, [BATCH]):
            bring_back(run_id, swept)
        for wait_id, run_id in _rows(OVERDUE_WAITS, [BATCH]):
            swept.waits += expire_wait(wait_id, run_id)
        with transaction.atomic():
            for run_id in _ids(NOT_TAKEN, [REQUEUE_AFTER, BATCH]):
                queue.enqueue(run_id)
                swept.requeued += 1
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [ADVISORY_LOCK])
    return swept


def bring_back(run_id: str, swept: Swept) -> None:
    """A run whose worker has gone: pending again, or failed when it took too many down."""
    with transaction.atomic():
        parent = cancel.lock_parent(run_id)
        log = RunLog.lock(run_id)
        crashes = lease_lost(log)
        if crashes is None:
            return
        if crashes >= MAX_CRASHES:
            swept.poisoned += 1
            fail_poisoned(log, parent, crashes)
            return
        swept.leases += 1
        log.set(status=RunStatus.PENDING.value, crashes=crashes, queued_at=log.now)
        log.flush()
        queue.enqueue(run_id)


def lease_lost(log: RunLog) -> int | None:
    """The new count of crashes when the lease is over, seen again under the lock; else None."""
    if log.status != RunStatus.RUNNING or log.driver == Driver.EXTERNAL:
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT crashes + 1 FROM runs_run WHERE id = %s AND lease_expires_at < clock_timestamp()", [log.id]
        )
        row = cursor.fetchone()
    return row[0] if row else None


def fail_poisoned(log: RunLog, parent: RunLog | None, crashes: int) -> None:
    message = f"The run took its worker down {crashes} times."
    cancel.cancel_below(log.id, "Group run cancelled")
    error = {"code": "CRASHED", "message": message}
    finish.end(log, parent, finish.Ending(RunStatus.FAILED, error=error))
    log.set(crashes=crashes)
    log.flush()
    cancel.close_open(log.id, message)
    if parent:
        parent.flush()
        waits.enqueue_if_pending(parent)


def expire_wait(wait_id: str, run_id: str) -> bool:
    """Resolve a wait whose time is over, unless its clock stood still meanwhile."""
    with transaction.atomic():
        try:
            log = RunLog.lock(run_id)
        except RunGone:
            return False
        with connection.cursor() as cursor:
            cursor.execute(WAIT, [wait_id])
            row = cursor.fetchone()
        if row is None or not row[3] or log.ended:
            return False
        kind, key, child_id, _, ms = row
        if kind == WaitKind.CHILD:
            return expire_child(log, wait_id, key, child_id)
        if kind == WaitKind.TIMER:
            waits.resolve(log, key, WaitOutcome.COMPLETED.value)
        elif kind == WaitKind.APPROVAL:
            expire_approval(log, key)
        else:
            waits.resolve(log, key, WaitOutcome.EXPIRED.value, {"ms": ms})
        log.flush()
        waits.enqueue_if_pending(log)
        return True


def expire_child(log: RunLog, wait_id: str, key: str, child_id: str) -> bool:
    """The parent goes on without the child, which is cancelled (ruling 16)."""
    budget = settings.CHILD_WAIT_SECONDS
    still, still_open = _stood_still(child_id)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXTRACT(epoch FROM clock_timestamp() - created_at)::float8 FROM runs_wait WHERE id = %s",
            [wait_id],
        )
        (age,) = cursor.fetchone()
        if still_open or age - still < budget:
            cursor.execute(PUT_OFF, [max(budget + still, age + 1 if still_open else 0), wait_id])
            return False
    ms = budget * 1000
    words = f"Group run {child_id} did not complete within {ms}ms"
    payload = {"child_run": child_id, "success": False, "error": words}
    waits.resolve(log, key, WaitOutcome.EXPIRED.value, payload)
    child = RunLog.lock(child_id)
    if not child.ended:
        cancel.cancel_locked(child, None, words)
    log.flush()
    waits.enqueue_if_pending(log)
    return True


def expire_approval(log: RunLog, key: str) -> None:
    """Nobody decided in time: the call fails as expired, or the run is cancelled, as its rule says."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE runs_approval SET status = %s, decided_at = %s WHERE run_id = %s AND correlation_key = %s "
            "AND status = 'pending'",
            [ApprovalStatus.EXPIRED.value, log.now, log.id, key],
        )
        cursor.execute(
            "SELECT payload->>'on_expiry' FROM runs_runevent WHERE run_id = %s AND type = %s "
            "AND payload->>'correlation_key' = %s",
            [log.id, EventType.TOOL_REQUIRES_APPROVAL.value, key],
        )
        row = cursor.fetchone()
    waits.resolve(log, key, WaitOutcome.EXPIRED.value, {"on_expiry": row[0] if row else None})


def _stood_still(child_id: str) -> tuple[float, bool]:
    with connection.cursor() as cursor:
        cursor.execute(STOOD_STILL, {"child": child_id, "kinds": [kind.value for kind in WAITS_FOR_A_PERSON]})
        still, still_open = cursor.fetchone()
    return still, still_open


def _ids(sql: str, parameters: list[object]) -> list[str]:
    return [row[0] for row in _rows(sql, parameters)]


def _rows(sql: str, parameters: list[object]) -> list[tuple[str, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())
