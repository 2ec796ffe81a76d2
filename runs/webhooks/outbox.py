"""What a webhook tells of an event, and the statement that writes the messages down beside it.

The messages are rows of the very statement that appends the events (runs/log/log.py): they commit with what
they tell of, and an organization without a webhook pays no statement for it.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from common import ids
from common.db import Statement, jsonb
from policy.terms import APPROVAL_PREFIX
from runs.log.listeners import Listener
from runs.log.log import Event, RunLog
from runs.models.choices import EventType, WaitOutcome
from runs.models.webhooks import TASK_UPDATED, WebhookEvent
from runs.observe import showing
from runs.queue import put
from runs.webhooks import task_words

DECIDED = {WaitOutcome.APPROVED.value, WaitOutcome.REJECTED.value, WaitOutcome.EXPIRED.value}
TASK = "send_webhook"

# Each endpoint's message has an id of its own, made of the event's and the endpoint's, that sorts by time.
INSERT = """
INSERT INTO runs_webhookdelivery (id, organization_id, endpoint_id, event, payload, status, attempts,
                                  next_attempt_at, problem, history, created_at)
SELECT left(told.id, 20) || left(md5(e.id), 10), e.organization_id, e.id, told.event, told.payload,
       'pending', 0, told.at, '', '[]', told.at
FROM (VALUES {values}) AS told (id, event, payload, at)
JOIN runs_webhookendpoint e ON e.organization_id = %s AND e.enabled AND told.event = ANY(e.events)
     AND (e.project_id IS NULL OR e.project_id = %s) AND (e.run_id IS NULL OR e.run_id = %s)
RETURNING id
"""
# Whether an organization has a webhook at all: nothing is told where it has none.
LISTENED = "EXISTS (SELECT FROM runs_webhookendpoint e WHERE e.organization_id = {} AND e.enabled)"
VALUES = "(%s, %s, %s::jsonb, %s::timestamptz)"

Told = tuple[WebhookEvent, dict[str, Any]]


def requested(payload: dict[str, Any]) -> Told:
    kept = ("approval", "call_id", "tool", "effect", "expires_at")
    return WebhookEvent.APPROVAL_REQUESTED, {name: payload.get(name) for name in kept}


def decided(payload: dict[str, Any]) -> Told | None:
    """A wait's end, where it was for an approval and somebody, or the clock, has decided."""
    if not payload["correlation_key"].startswith(APPROVAL_PREFIX) or payload["outcome"] not in DECIDED:
        return None
    said = payload.get("payload") or {}
    words = {"approval": said.get("approval"), "outcome": payload["outcome"], "decided_by": said.get("by")}
    return WebhookEvent.APPROVAL_DECIDED, words


def completed(payload: dict[str, Any]) -> Told:
    return WebhookEvent.RUN_COMPLETED, {}


def failed(payload: dict[str, Any]) -> Told:
    return WebhookEvent.RUN_FAILED, {"code": (payload.get("error") or {}).get("code")}


def deposited(payload: dict[str, Any]) -> Told | None:
    """Where something was left behind; `review` says that a curator has to look first."""
    if not payload["memories"]:
        return None
    kept = {"memories": payload["memories"], "review": payload["review"]}
    return WebhookEvent.MEMORY_DEPOSITED, kept


TELLS: dict[str, Callable[[dict[str, Any]], Told | None]] = {
    EventType.TOOL_REQUIRES_APPROVAL.value: requested,
    EventType.WAIT_COMPLETED.value: decided,
    EventType.RUN_COMPLETED.value: completed,
    EventType.RUN_FAILED.value: failed,
    EventType.MEMORY_DEPOSITED.value: deposited,
}


def statement(log: RunLog, events: Sequence[Event]) -> Statement | None:
    """The INSERT of the messages about these events, and its values; None where there is nothing to tell.

    What a new run's log begins with has happened in the run it was copied from, if it tells of anything.
    """
    if log.unborn is not None or not log.listened:
        return None
    told = [one for event in events for one in (*_messages(log, event), *_pushed(log, event))]
    if not told:
        return None
    values = [value for name, body, at in told for value in (ids.message_id(), name, jsonb(body), at)]
    sql = INSERT.format(values=", ".join([VALUES] * len(told)))
    return sql, [*values, log.organization_id, log.project_id, log.id]


def _messages(log: RunLog, event: Event) -> Iterator[tuple[str, dict[str, Any], datetime]]:
    """What webhooks are told of an event."""
    if found := _told(event):
        name, about = found
        yield name.value, message(name, event.created_at, {**_where(log), **about}), event.created_at


def _pushed(log: RunLog, event: Event) -> Iterator[tuple[str, dict[str, Any], datetime]]:
    """What A2A's push notifications say of it (runs/webhooks/push.py), in this order."""
    if log.depth or event.type not in task_words.MOVES:
        return
    said = showing.payload(event.type, event.payload, own=False)
    updates = task_words.updates(log.id, event.seq, event.type, said, event.created_at)
    for place, update in enumerate(updates):
        yield TASK_UPDATED, update, event.created_at + timedelta(microseconds=place)


def message(event: str, at: datetime, data: dict[str, Any]) -> dict[str, Any]:
    """A message's body: thin, so that nothing secret leaves; who needs more asks the API."""
    return {"type": str(event), "timestamp": at.isoformat(), "data": data}


def send_soon(delivery_ids: Sequence[str], organization_id: str) -> None:
    """Ask carriers to send these messages of an organization. Joins the caller's transaction."""
    for delivery_id in delivery_ids:
        put.enqueue_task(TASK, delivery_id, turn=put.in_background(organization_id))


listener = Listener(wanted=LISTENED, statement=statement, stored=send_soon)


def _told(event: Event) -> Told | None:
    tell = TELLS.get(event.type)
    return tell(event.payload) if tell else None


def _where(log: RunLog) -> dict[str, Any]:
    return {
        "organization": log.organization_id,
        "project": log.project_id,
        "run": log.id,
        "root_run": log.root_id,
        "kind": log.kind,
    }
