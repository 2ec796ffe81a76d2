"""The run's person hears by their channels, where they want to: a call was decided, the result is there.

A listener of the log: the notices are rows of the statement that appends the events, so that they commit with
what they tell of; where nobody wants to hear, they cost nothing.
"""

from collections.abc import Sequence

from common.db import Statement, rows
from policy.terms import APPROVAL_PREFIX
from runs.log.listeners import Listener
from runs.log.log import Event, RunLog
from runs.models.choices import EventType, WaitOutcome
from runs.notices import delivery

WANTED = """
EXISTS (SELECT FROM runs_channel c WHERE c.organization_id = {} AND c.enabled AND 'own' = ANY(c.topics))
"""
INSERT = """
INSERT INTO runs_approvalnotice (organization_id, approval_id, run_id, user_id, channel_id, kind)
SELECT c.organization_id, told.approval, told.run, c.user_id, c.id, told.kind
FROM (VALUES {values}) AS told (kind, approval, run)
JOIN runs_channel c ON c.organization_id = %s AND c.user_id = %s AND c.enabled AND 'own' = ANY(c.topics)
ON CONFLICT DO NOTHING
RETURNING id
"""
CHANNELS = "SELECT DISTINCT channel_id FROM runs_approvalnotice WHERE id = ANY(%s)"
VALUES = "(%s, %s::text, %s)"
ENDS = {EventType.RUN_COMPLETED.value, EventType.RUN_FAILED.value}
DECIDED = {WaitOutcome.APPROVED.value, WaitOutcome.REJECTED.value, WaitOutcome.EXPIRED.value}


def statement(log: RunLog, events: Sequence[Event]) -> Statement | None:
    """The INSERT of the notices about these events; None where there is nothing to tell."""
    if log.unborn is not None or not log.listened:
        return None
    told = [one for event in events if (one := _told(log, event))]
    if not told:
        return None
    values = [value for kind, approval in told for value in (kind, approval, log.id)]
    sql = INSERT.format(values=", ".join([VALUES] * len(told)))
    return sql, [*values, log.organization_id, log.user_id]


def _told(log: RunLog, event: Event) -> tuple[str, str | None] | None:
    if event.type in ENDS and log.id == log.root_id:
        return "ended", None
    if event.type != EventType.WAIT_COMPLETED:
        return None
    payload = event.payload
    about = payload.get("payload") or {}
    decided = payload["correlation_key"].startswith(APPROVAL_PREFIX) and payload["outcome"] in DECIDED
    return ("decided", about["approval"]) if decided and about.get("approval") else None


def stored(notice_ids: Sequence[int], organization_id: str) -> None:
    """Have them sent. Joins the caller's transaction."""
    for (channel_id,) in rows(CHANNELS, [list(notice_ids)]) if notice_ids else ():
        delivery.soon(organization_id, channel_id)


listener = Listener(wanted=WANTED, statement=statement, stored=stored)
