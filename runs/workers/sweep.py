"""Sweep: bring back what was lost, end what is overdue, start what is due. Any process may; one does.

It re-queues and resolves by the clock; what a run does next is the run's own business.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from common.db import execute, is_locked, row, rows, session_lock
from groups.cells import AWAY
from policy.models.rules import OnExpiry
from runs.actions import cancel, finish
from runs.execution import outside_agents
from runs.execution.executor import MAX_CRASHES, crashed
from runs.log import waits
from runs.log.clocks import stood_still
from runs.log.log import RunGone, RunLog
from runs.models.choices import WAITS_FOR_A_PERSON, ApprovalStatus, Driver, RunStatus, WaitKind, WaitOutcome
from runs.outbound import calls as outbound
from runs.outbound import lost
from runs.queue import put, worker_status
from runs.workers import dead_carriers, schedules

logger = logging.getLogger(__name__)

ADVISORY_LOCK = 0x6465_7075_7479  # "deputy"
BATCH = 500
SILENT_SECONDS = 30.0  # the most that one run may take the sweep
FOR_A_PERSON = [kind.value for kind in WAITS_FOR_A_PERSON]

LEASE_EXPIRED = f"""
SELECT id FROM runs_run r WHERE status = 'running' AND driver = 'internal'
  AND lease_expires_at < clock_timestamp() AND NOT {AWAY.format("r")} ORDER BY lease_expires_at LIMIT %s
"""  # noqa: S608 - our own text
# A message that still waits in the queue is not lost: a long queue must not grow by itself.
LOST = f"""
    status = 'pending' AND driver = 'internal'
    AND (queued_at IS NULL OR queued_at < clock_timestamp() - %s * interval '1 second')
    AND NOT EXISTS (SELECT FROM runs_queuemessage m WHERE m.run_id = r.id AND m.due_at <= clock_timestamp())
    AND NOT {AWAY.format("r")}
"""
NOT_TAKEN = f"""
UPDATE runs_run SET queued_at = clock_timestamp() WHERE id = ANY(ARRAY(
    SELECT id FROM runs_run r WHERE {LOST} ORDER BY id LIMIT %s FOR NO KEY UPDATE SKIP LOCKED))
RETURNING id, organization_id, kind = 'personal' AND depth = 0
"""  # noqa: S608 - the text above
# now(), here the time of the statement: clock_timestamp() would keep the indexes from being used.
LOST_CALL = f"""
    (lease_expires_at < now() OR (
        queued_at < now() - %s * interval '1 second' AND NOT EXISTS (
            SELECT FROM runs_queuemessage m WHERE m.run_id = c.run_id AND m.due_at <= now())))
    AND NOT {AWAY.format("c")}
"""
CALLS_NOT_TAKEN = f"""
UPDATE runs_toolcall SET lease_expires_at = NULL, queued_at = clock_timestamp() WHERE id = ANY(ARRAY(
    SELECT id FROM runs_toolcall c WHERE {LOST_CALL} ORDER BY id LIMIT %s FOR NO KEY UPDATE SKIP LOCKED))
RETURNING id, run_id
"""  # noqa: S608
OVERDUE_RUN = f"""
    driver = 'external' AND status IN ('running', 'waiting') AND deadline < now()
    AND NOT EXISTS (SELECT FROM runs_wait w
                    WHERE w.run_id = r.id AND w.resolved_at IS NULL AND w.kind = ANY(%s))
    AND NOT {AWAY.format("r")}
"""
OVERDUE_RUNS = f"SELECT id FROM runs_run r WHERE {OVERDUE_RUN} ORDER BY deadline LIMIT %s"  # noqa: S608
ANYTHING_DUE = f"""
SELECT EXISTS (SELECT FROM runs_run r WHERE status = 'running' AND driver = 'internal'
               AND lease_expires_at < clock_timestamp() AND NOT {AWAY.format("r")})
    OR EXISTS (SELECT FROM runs_wait w WHERE resolved_at IS NULL AND expires_at < clock_timestamp()
               AND NOT {AWAY.format("w")})
    OR EXISTS (SELECT FROM runs_run r WHERE {LOST})
    OR EXISTS (SELECT FROM runs_toolcall c WHERE {LOST_CALL})
    OR EXISTS (SELECT FROM runs_run r WHERE {OVERDUE_RUN})
    OR {schedules.ANYTHING_DUE}
"""  # noqa: S608
OVERDUE_WAITS = f"""
SELECT id, run_id FROM runs_wait w
WHERE resolved_at IS NULL AND expires_at < clock_timestamp() AND NOT {AWAY.format("w")}
ORDER BY expires_at LIMIT %s
"""  # noqa: S608
OVERDUE_OF = """
SELECT id FROM runs_wait WHERE run_id = %s AND resolved_at IS NULL AND expires_at < clock_timestamp()
"""
LEASE_LOST = "SELECT lease_expires_at < clock_timestamp() FROM runs_run WHERE id = %s"
# None where no worker has it: its outbound calls are a carrier's.
CRASHES = "SELECT crashes FROM runs_run WHERE id = %s AND lease_expires_at IS NOT NULL"
WAIT = """
SELECT kind, correlation_key, child_run_id, expires_at < clock_timestamp(),
       (EXTRACT(epoch FROM expires_at - created_at) * 1000)::bigint
FROM runs_wait WHERE id = %s AND resolved_at IS NULL
"""
AGE = "SELECT EXTRACT(epoch FROM clock_timestamp() - created_at)::float8 FROM runs_wait WHERE id = %s"
EXPIRE_APPROVAL = """
UPDATE runs_approval SET status = %s, decided_at = %s
WHERE run_id = %s AND correlation_key = %s AND status = 'pending'
RETURNING on_expiry, id
"""
PUT_OFF = "UPDATE runs_wait SET expires_at = created_at + %s * interval '1 second' WHERE id = %s"


@dataclass
class Swept:
    """What one sweep did, in counts."""

    leases: int = 0
    requeued: int = 0
    waits: int = 0
    calls: int = 0
    overdue: int = 0
    outbound: int = 0
    schedules: int = 0
    busy: bool = False

    @property
    def any(self) -> bool:
        found = (self.leases, self.requeued, self.waits, self.calls, self.overdue, self.schedules)
        return any(found) or bool(self.outbound)


def anything_due() -> bool:
    """Whether a sweep would find something: one cheap look, so that an idle cluster costs little."""
    after = put.requeue_after()
    return bool(row(ANYTHING_DUE, [after, after, FOR_A_PERSON])[0]) or lost.anything()


def sweep() -> Swept:
    """One round. `busy` when another process is at it, which is as good."""
    with session_lock(str(ADVISORY_LOCK)) as alone:
        return _sweep() if alone else Swept(busy=True)


def _sweep() -> Swept:
    swept = Swept()
    for run_id in _ids(LEASE_EXPIRED, [BATCH]):
        with by_itself(run_id):
            bring_back(run_id, swept)
    for wait_id, run_id in rows(OVERDUE_WAITS, [BATCH]):
        with by_itself(run_id):
            swept.waits += expire_wait(wait_id, run_id)
    with transaction.atomic():
        after = put.requeue_after()
        for run_id, organization_id, of_person in rows(NOT_TAKEN, [after, BATCH]):
            turn = put.for_people if of_person else put.in_background
            put.enqueue(run_id, turn=turn(organization_id))
            swept.requeued += 1
        for call_id, run_id in rows(CALLS_NOT_TAKEN, [after, BATCH]):
            put.enqueue_call(run_id, call_id)
            swept.calls += 1
        swept.outbound = lost.sweep(BATCH) + dead_carriers.sweep()
    for run_id in _ids(OVERDUE_RUNS, [FOR_A_PERSON, BATCH]):
        with by_itself(run_id):
            swept.overdue += outside_agents.fail_overdue(run_id)
    for schedule_id in _ids(schedules.DUE, [BATCH]):
        with by_itself(schedule_id):
            swept.schedules += schedules.take(schedule_id)
    return swept


@contextmanager
def by_itself(run_id: str) -> Iterator[None]:
    """What goes wrong with one run keeps the sweep from no other. A lost connection ends it."""
    worker_status.alive_for(SILENT_SECONDS)
    try:
        yield
    except RunGone:
        return
    except Exception as error:
        if is_locked(error):
            logger.info("%s is locked by somebody else; the next sweep comes back to it", run_id)
            return
        if not connection.is_usable():
            raise
        logger.exception("could not sweep %s", run_id)


def expire_waits_of(run_id: str) -> int:
    """Resolve the run's waits that are due by now, without waiting for the next sweep."""
    return sum(expire_wait(wait_id, run_id) for wait_id in _ids(OVERDUE_OF, [run_id]))


def bring_back(run_id: str, swept: Swept) -> None:
    """A run whose lease has run out is pending again. Nobody knows why it has: a database that was away, or
    had no connection left, is no fault of the run. That a worker died is known to its watchdog alone.
    """
    with transaction.atomic():
        log = RunLog.lock(run_id)
        if not at_work(log) or not row(LEASE_LOST, [log.id])[0]:
            return
        swept.leases += 1
        again(log)


def worker_died(run_id: str, attempt: int, by_itself: bool) -> None:
    """The worker that drove the run has died: pending again at once, or failed when it took too many down.

    `by_itself`: it was not ended together with others. Does nothing when the run has gone on meanwhile.
    """
    with transaction.atomic():
        parent = cancel.lock_parent(run_id)
        log = RunLog.lock(run_id)
        if not at_work(log) or log.attempt != attempt:
            return
        held = row(CRASHES, [log.id])
        if held is None:
            return
        crashes = held[0] + by_itself
        if crashes >= MAX_CRASHES:
            fail_poisoned(log, parent, crashes)
            return
        again(log, crashes=crashes)


def stumbled(run_id: str) -> None:
    """A step failed that a run's answers led to: counted like a crash, for it will be taken again."""
    with transaction.atomic():
        parent = cancel.lock_parent(run_id)
        log = RunLog.lock(run_id)
        if not at_work(log):
            return
        crashes = outbound.crashes(run_id) + 1
        if crashes >= MAX_CRASHES:
            fail_poisoned(log, parent, crashes)
            return
        log.set(crashes=crashes)
        log.flush()


def at_work(log: RunLog) -> bool:
    """Whether a worker has the run, as far as its row knows."""
    return log.status == RunStatus.RUNNING and log.driver == Driver.INTERNAL


def again(log: RunLog, **more: Any) -> None:
    """The run waits for another worker."""
    log.set(status=RunStatus.PENDING.value, queued_at=log.now, **more)
    waits.flush_and_enqueue(log)


def fail_poisoned(log: RunLog, parent: RunLog | None, crashes: int) -> None:
    limit = crashed(crashes)
    message = limit.message
    cancel.cancel_below(log.id, "Group run cancelled")
    error = {"code": limit.code, "message": message}
    finish.end(log, parent, finish.Ending(RunStatus.FAILED, error=error))
    log.set(crashes=crashes)
    log.flush()
    cancel.close_open(log.id, message)
    if parent:
        waits.flush_and_enqueue(parent)


def expire_wait(wait_id: str, run_id: str) -> bool:
    """Resolve an expired wait, unless its clock was stopped in the meantime."""
    with transaction.atomic():
        try:
            parent = cancel.lock_parent(run_id)
            log = RunLog.lock(run_id)
        except RunGone:
            return False
        found = row(WAIT, [wait_id])
        if found is None or not found[3] or log.ended:
            return False
        kind, key, child_id, _, ms = found
        if kind == WaitKind.CHILD:
            return expire_child(log, wait_id, key, child_id)
        if kind == WaitKind.TIMER:
            waits.resolve(log, key, WaitOutcome.COMPLETED.value)
        elif kind == WaitKind.APPROVAL:
            expire_approval(log, parent, key)
        else:
            waits.resolve(log, key, WaitOutcome.EXPIRED.value, {"ms": ms})
        for touched in filter(None, (log, parent)):
            waits.flush_and_enqueue(touched)
        return True


def expire_child(log: RunLog, wait_id: str, key: str, child_id: str) -> bool:
    """The parent goes on without the child, which is cancelled (ruling 16)."""
    budget = settings.CHILD_WAIT_SECONDS
    still, still_open = stood_still(child_id)
    (age,) = row(AGE, [wait_id])
    if still_open or age - still < budget:
        execute(PUT_OFF, [max(budget + still, age + 1 if still_open else 0), wait_id])
        return False
    ms = budget * 1000
    words = f"Group run {child_id} did not complete within {ms}ms"
    payload = {"child_run": child_id, "success": False, "error": words}
    waits.resolve(log, key, WaitOutcome.EXPIRED.value, payload)
    child = RunLog.lock(child_id)
    if not child.ended:
        cancel.cancel_locked(child, None, words)
    waits.flush_and_enqueue(log)
    return True


def expire_approval(log: RunLog, parent: RunLog | None, key: str) -> None:
    """Nobody decided in time: the call fails as expired, or the run is cancelled, as its rule says."""
    found = row(EXPIRE_APPROVAL, [ApprovalStatus.EXPIRED.value, log.now, log.id, key])
    waits.resolve(log, key, WaitOutcome.EXPIRED.value, {"approval": found[1]} if found else None)
    if found and found[0] == OnExpiry.CANCEL_RUN:
        cancel.cancel_locked(log, parent, "Nobody decided about an approval in time.")


def _ids(sql: str, parameters: list[Any]) -> list[str]:
    return [found for (found,) in rows(sql, parameters)]
