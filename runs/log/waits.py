"""Open a wait and resolve it: what parking, signals, decisions and a child's end have in common."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from common import ids
from common.canonical import normalise
from common.db import from_json, jsonb, row
from runs.log import tool_calls
from runs.log.log import RunLog
from runs.models.choices import Driver, EventType, RunStatus, WaitKind
from runs.queue import put

# An early signal has left its row behind, already resolved: parking takes it over as it is.
OPEN = """
INSERT INTO runs_wait (id, organization_id, run_id, kind, correlation_key, child_run_id, tool_call_id,
                       expires_at, created_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (run_id, correlation_key) DO UPDATE SET kind = EXCLUDED.kind, tool_call_id = EXCLUDED.tool_call_id
RETURNING resolved_at, outcome, payload
"""

RESOLVE = """
UPDATE runs_wait SET resolved_at = %s, outcome = %s, payload = %s
WHERE run_id = %s AND correlation_key = %s AND resolved_at IS NULL
RETURNING tool_call_id
"""


@dataclass(frozen=True)
class NewWait:
    """What to wait for. `expires_at` by the database's clock."""

    kind: WaitKind
    correlation_key: str
    tool_call_id: str | None = None
    child_run_id: str | None = None
    expires_at: datetime | None = None


def open_wait(log: RunLog, wait: NewWait) -> None:
    """Store the wait; when a signal for it came early, resolve it at once.

    The event that says what the run waits for must stand in the log before this is called.
    """
    values = {
        "id": ids.wait_id(),
        "organization_id": log.organization_id,
        "run_id": log.id,
        "kind": wait.kind.value,
        "correlation_key": wait.correlation_key,
        "child_run_id": wait.child_run_id,
        "tool_call_id": wait.tool_call_id,
        "expires_at": wait.expires_at,
        "created_at": log.now,
    }
    if wait.kind == WaitKind.CHILD:  # nobody can have known of this child before
        log.new_waits.append(values)
        return
    resolved_at, outcome, payload = row(OPEN, list(values.values()))
    if resolved_at is not None:
        append_completed(log, wait.correlation_key, outcome, from_json(payload))


def resolve(log: RunLog, correlation_key: str, outcome: str, payload: Any = None) -> bool:
    """Resolve an open wait of a locked run and wake the run. False when it was resolved before."""
    payload = normalise(payload)
    resolved = row(RESOLVE, [log.now, outcome, jsonb(payload), log.id, correlation_key])
    if resolved is None:
        return False
    _go_on(log, correlation_key, outcome, payload, resolved[0])
    return True


def resolve_open(
    log: RunLog, correlation_key: str, outcome: str, payload: Any, tool_call_id: str | None
) -> None:
    """`resolve` of a wait that the caller has seen open since it locked the run: stored with the log."""
    payload = normalise(payload)
    log.also.append((RESOLVE, [log.now, outcome, jsonb(payload), log.id, correlation_key]))
    _go_on(log, correlation_key, outcome, payload, tool_call_id)


def _go_on(log: RunLog, correlation_key: str, outcome: str, payload: Any, tool_call_id: str | None) -> None:
    """Nothing drives the run of an outside agent: the call that waited goes to a worker from here."""
    append_completed(log, correlation_key, outcome, payload)
    wake(log)
    if log.driver == Driver.EXTERNAL and tool_call_id:
        tool_calls.queue_call(log.id, tool_call_id)


def append_completed(log: RunLog, correlation_key: str, outcome: str, payload: Any) -> None:
    log.append(
        EventType.WAIT_COMPLETED,
        {"correlation_key": correlation_key, "outcome": outcome, "payload": payload},
    )


def wake(log: RunLog) -> None:
    """A waiting run goes back to pending; an outside agent's run, which nobody claims, to running."""
    if log.status != RunStatus.WAITING:
        return
    log.set(status=RunStatus.PENDING.value, queued_at=log.now)
    if log.driver == Driver.EXTERNAL:
        log.append(EventType.RUN_RESUMED, {})
        log.set(status=RunStatus.RUNNING.value)


def flush_and_enqueue(log: RunLog) -> None:
    """Write the log, and put the run on the queue, in this transaction, when it waits for a worker."""
    if log.status == RunStatus.PENDING:
        put.enqueue(log.id, beside=log.also, turn=log.turn)
    log.flush()
