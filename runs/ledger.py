"""The ToolCall rows: written beside the events, in the same transaction."""

from typing import Any

from common import ids
from common.canonical import canonical, digest
from common.db import execute, jsonb, row
from runs import queue
from runs.choices import CallStatus
from runs.log import RunLog
from runs.state import Call

STORED_ONCE = 8_192  # bytes of a result; beyond, events carry a hash and a preview
PREVIEW = 2_000  # characters

OPEN = """
INSERT INTO runs_toolcall (id, organization_id, run_id, call_id, agent, tool, arguments,
    effective_arguments, request_digest, idempotency_key, status, attempt, created_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (run_id, call_id) DO UPDATE SET effective_arguments = EXCLUDED.effective_arguments,
    idempotency_key = EXCLUDED.idempotency_key, status = EXCLUDED.status,
    attempt = GREATEST(runs_toolcall.attempt, EXCLUDED.attempt)
RETURNING id
"""
CLOSE = """
UPDATE runs_toolcall SET status = %s, result = %s, error = %s, ended_at = %s,
    lease_expires_at = NULL, queued_at = NULL
WHERE run_id = %s AND call_id = %s
"""
STATUS = "UPDATE runs_toolcall SET status = %s WHERE run_id = %s AND call_id = %s RETURNING id"
EVIDENCE = "UPDATE runs_toolcall SET evidence = %s WHERE run_id = %s AND call_id = %s AND ended_at IS NULL"


def open_call(log: RunLog, call: Call, arguments: dict[str, Any], key: str, status: CallStatus) -> str:
    """The call's row, made or brought up to date; returns its id."""
    values = [
        ids.call_id(),
        log.organization_id,
        log.id,
        call.call_id,
        call.agent,
        call.tool[:64],
        jsonb(call.arguments),
        jsonb(arguments),
        digest(call.tool, canonical(call.arguments)),
        key,
        status.value,
        log.attempt,
        log.now,
    ]
    row_id: str = row(OPEN, values)[0]
    return row_id


def close_call(log: RunLog, call_id: str, status: CallStatus, result: Any = None, error: Any = None) -> None:
    """What became of the call."""
    execute(CLOSE, [status.value, jsonb(result), jsonb(error), log.now, log.id, call_id])


def set_status(log: RunLog, call_id: str, status: CallStatus) -> str:
    """Change the call's status; returns the id of its row."""
    row_id: str = row(STATUS, [status.value, log.id, call_id])[0]
    return row_id


def queue_call(run_id: str, row_id: str) -> None:
    """Ask for a worker to carry this call of an outside agent on. Joins the caller's transaction."""
    execute("UPDATE runs_toolcall SET queued_at = clock_timestamp() WHERE id = %s", [row_id])
    queue.enqueue_call(run_id, row_id)


def leave_evidence(run_id: str, call_id: str, found: dict[str, Any]) -> None:
    """What a worker that lost its run learnt of an effect: kept beside the log, never in it."""
    execute(EVIDENCE, [jsonb(found), run_id, call_id])


def in_event(result: Any) -> dict[str, Any]:
    """The result as tool.completed carries it: whole, or hash, size and preview of a large one."""
    text = canonical(result)
    if len(text.encode()) <= STORED_ONCE:
        return {"result": result}
    return {"sha256": digest(result), "bytes": len(text.encode()), "preview": text[:PREVIEW]}


def stored_result(run_id: str, call_id: str) -> Any:
    """A large result, whole, from its row."""
    from runs.models import ToolCall

    return ToolCall.objects.values_list("result", flat=True).filter(run_id=run_id, call_id=call_id).first()
