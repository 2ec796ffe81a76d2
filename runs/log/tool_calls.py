"""The ToolCall rows: written beside the events, in the same transaction."""

from typing import Any

from common import ids, tracing
from common.canonical import canonical, digest
from common.db import execute, jsonb, row
from runs.log.log import RunLog
from runs.log.state import ASKED, Call
from runs.models.choices import CallStatus, Driver
from runs.queue import put

STORED_ONCE = 8_192  # bytes of a result; beyond, events carry a hash and a preview
PREVIEW = 2_000  # characters

OPEN = """
INSERT INTO runs_toolcall (id, organization_id, run_id, call_id, agent, seat, role_id, tool, arguments,
    effective_arguments, request_digest, idempotency_key, status, attempt, created_at, traceparent)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (run_id, call_id) DO UPDATE SET effective_arguments = EXCLUDED.effective_arguments,
    idempotency_key = EXCLUDED.idempotency_key, status = EXCLUDED.status,
    attempt = GREATEST(runs_toolcall.attempt, EXCLUDED.attempt)
RETURNING id
"""
ENDING = ("result", "error", "ended_at")  # the columns that are empty until a call has ended
STATUS = "UPDATE runs_toolcall SET status = %s WHERE run_id = %s AND call_id = %s RETURNING id"
EVIDENCE = "UPDATE runs_toolcall SET evidence = %s WHERE run_id = %s AND call_id = %s AND ended_at IS NULL"


def open_call(
    log: RunLog, call: Call, arguments: dict[str, Any], key: str, status: CallStatus, row_id: str = ""
) -> str:
    """The call's row, made or brought up to date; returns its id. One that is new, and one whose id the
    caller knows, is stored with the log.
    """
    if row_id and log.driver == Driver.INTERNAL:
        changed = {"effective_arguments": arguments, "idempotency_key": key, "status": status.value}
        log.changed_calls.setdefault(call.call_id, {}).update(changed, attempt=log.attempt)
        return row_id
    values = {
        "id": ids.call_id(),
        "organization_id": log.organization_id,
        "run_id": log.id,
        "call_id": call.call_id,
        "agent": call.agent,
        "seat": call.seat,
        "role_id": call.role_id or "",
        "tool": call.tool[:64],
        "arguments": call.arguments,
        "effective_arguments": arguments,
        "request_digest": digest(call.tool, canonical(call.arguments)),
        "idempotency_key": key,
        "status": status.value,
        "attempt": log.attempt,
        "created_at": log.now,
        "traceparent": str(tracing.asked_by() or ""),
    }
    if _is_new(log, call):
        log.new_calls[call.call_id] = {**values, **dict.fromkeys(ENDING)}
        return str(values["id"])
    return str(row(OPEN, [jsonb(v) if isinstance(v, dict) else v for v in values.values()])[0])


def _is_new(log: RunLog, call: Call) -> bool:
    """Whether this call has no row yet. Outside agents' calls may have one before they have begun."""
    return log.driver == Driver.INTERNAL and call.phase == ASKED and not call.wait_kind


def close_call(log: RunLog, call_id: str, status: CallStatus, result: Any = None, error: Any = None) -> None:
    """What became of the call, stored with the log."""
    ended = {"status": status.value, "result": jsonb(result), "error": jsonb(error), "ended_at": log.now}
    if new := log.new_calls.get(call_id):
        new |= ended
    else:
        log.changed_calls.setdefault(call_id, {}).update(ended, lease_expires_at=None, queued_at=None)


def set_status(log: RunLog, call_id: str, status: CallStatus) -> str:
    """Change the call's status; returns the id of its row."""
    if new := log.new_calls.get(call_id):
        new["status"] = status.value
        return str(new["id"])
    log.changed_calls.get(call_id, {}).update(status=status.value)
    row_id: str = row(STATUS, [status.value, log.id, call_id])[0]
    return row_id


def queue_call(run_id: str, row_id: str) -> None:
    """Ask for a worker to carry this call of an outside agent on. Joins the caller's transaction."""
    execute("UPDATE runs_toolcall SET queued_at = clock_timestamp() WHERE id = %s", [row_id])
    put.enqueue_call(run_id, row_id)


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
