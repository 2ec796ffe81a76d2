"""The one way to write a run's log: lock its row, append events, change the row, in one statement.

Raw SQL lives here because a step's cost is this file: the lock and the fence are one statement,
the events and the row's new state another.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from common.canonical import digest, normalise
from common.db import execute, from_json, jsonb, row, rows
from runs import hints
from runs.choices import TERMINAL, TRANSITIONS, EventType, RunStatus

PAYLOAD_VERSION = 1
CHANNEL = "deputy_events"  # says the root of each tree in which something happened

# The time is read once the lock is held: read beside it, it would be that of before the wait.
LOCK = """
WITH held AS MATERIALIZED (
    SELECT id, organization_id, project_id, user_id, parent_run_id, root_id, depth, kind, driver, status,
           attempt, last_seq, last_digest, deadline, waiting_reason
    FROM runs_run WHERE id = %s FOR NO KEY UPDATE
)
SELECT held.*, clock_timestamp() FROM held
"""
LOCK_TIMED = LOCK.replace("clock_timestamp()", "clock_timestamp(), set_config('statement_timeout', %s, true)")

READ = """
SELECT seq, type, agent, payload, created_at FROM runs_runevent
WHERE run_id = %s AND seq > %s ORDER BY seq
"""

COLUMNS = tuple(
    "id organization_id project_id user_id parent_run_id root_id depth kind driver status attempt "  # noqa: SIM905
    "last_seq last_digest deadline waiting_reason now".split()
)

SETTABLE = frozenset(
    "status waiting_reason output error usage attempt crashes lease_expires_at queued_at "  # noqa: SIM905
    "started_at ended_at deadline".split()
)


class RunGone(Exception):
    """No run has this id (any more)."""


class Fenced(Exception):
    """This worker no longer holds the run: another claimed it, or it ended. It may write nothing."""


class WrongTransition(Exception):
    """The table in runs/choices.py does not allow this change of status."""


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of the log as the fold reads it."""

    seq: int
    type: str
    agent: str
    payload: dict[str, Any]
    created_at: datetime


@dataclass
class RunLog:
    """A run whose row is locked until the transaction ends. Nothing is written before `flush`."""

    id: str
    organization_id: str
    project_id: str
    user_id: int
    parent_run_id: str | None
    root_id: str
    depth: int
    kind: str
    driver: str
    status: str
    attempt: int
    last_seq: int
    last_digest: str
    deadline: datetime | None
    waiting_reason: str | None
    now: datetime
    appended: list[Event] = field(default_factory=list)
    changes: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def lock(cls, run_id: str, statement_timeout_ms: int = 0) -> Self:
        """Lock the run's row for this transaction, whose further statements may take so long (0: any time).

        Raises RunGone.
        """
        if statement_timeout_ms:
            found = row(LOCK_TIMED, [run_id, str(statement_timeout_ms)])
        else:
            found = row(LOCK, [run_id])
        if found is None:
            raise RunGone(run_id)
        return cls(**dict(zip(COLUMNS, found[: len(COLUMNS)], strict=True)))

    def check_fence(self, attempt: int) -> None:
        """Raises Fenced unless the worker that claimed it as `attempt` still holds the run."""
        if self.attempt != attempt or self.status != RunStatus.RUNNING:
            raise Fenced(f"{self.id}: claimed as {attempt}, now {self.status} at {self.attempt}")

    @property
    def ended(self) -> bool:
        return self.status in TERMINAL

    def append(self, type: EventType, payload: dict[str, Any] | None = None, agent: str = "") -> Event:
        """Add an event; it gets the next seq now and is stored by `flush`.

        Raises NotJson when the payload cannot be kept as JSON.
        """
        kept = normalise({"v": PAYLOAD_VERSION, **(payload or {})})
        event = Event(self.last_seq + 1, type.value, agent, kept, self.now)
        self.last_seq = event.seq
        self.appended.append(event)
        return event

    def set(self, **columns: Any) -> None:
        """Change columns of the run's row. Raises WrongTransition for a status that cannot follow."""
        assert columns.keys() <= SETTABLE, columns.keys() - SETTABLE  # noqa: S101 - a programmer's slip
        if "status" in columns:
            columns = self._transition(columns)
        self.changes.update(columns)

    def _transition(self, columns: dict[str, Any]) -> dict[str, Any]:
        old, new = RunStatus(self.status), RunStatus(columns["status"])
        if new not in TRANSITIONS[old]:
            raise WrongTransition(f"{self.id}: {old} → {new}")
        self.status = new.value
        implied: dict[str, Any] = {"waiting_reason": None}
        if new in TERMINAL:
            implied["ended_at"] = self.now
        if new != RunStatus.RUNNING:
            implied["lease_expires_at"] = None
        merged = {**implied, **columns, "status": new.value}
        self.waiting_reason = merged["waiting_reason"]
        return merged

    def flush(self) -> None:
        """Write what was appended and changed. Does nothing when there is nothing."""
        if not self.appended and not self.changes:
            return
        values: list[Any] = []
        for event in self.appended:
            self.last_digest = chain(self.last_digest, event)
            values += [
                self.organization_id,
                self.id,
                event.seq,
                event.type,
                event.agent,
                jsonb(event.payload),
                event.created_at,
                self.last_digest,
            ]
        columns = {"last_seq": self.last_seq, "last_digest": self.last_digest, **self.changes}
        assignments = ", ".join(f"{name} = %s" for name in columns)
        set_to = [jsonb(v) if isinstance(v, dict | list) else v for v in columns.values()]
        update = f"UPDATE runs_run SET {assignments} WHERE id = %s"  # noqa: S608 - names from SETTABLE
        if values:
            update = f"WITH added AS ({insert_events(len(self.appended))}) {update}"
        execute(update, [*values, *set_to, self.id])
        if values:
            hints.after_commit(CHANNEL, self.root_id)
        self.appended, self.changes = [], {}


def insert_events(count: int) -> str:
    """The INSERT of `count` events, eight values each."""
    values = ", ".join(["(%s, %s, %s, %s, %s, %s, %s, %s)"] * count)
    return (
        "INSERT INTO runs_runevent "  # noqa: S608 - placeholders only
        f"(organization_id, run_id, seq, type, agent, payload, created_at, digest) VALUES {values}"
    )


def chain(previous: str, event: Event) -> str:
    """The event's digest: previous digest, and all that the event says (design 4, Chain)."""
    return digest(
        previous,
        event.seq,
        event.type,
        event.agent,
        event.created_at.isoformat(),
        digest(event.payload),
    )


def read(run_id: str, after: int = 0) -> list[Event]:
    """The run's events with seq > `after`, in order."""
    return [
        Event(seq, type, agent, from_json(payload), at)
        for seq, type, agent, payload, at in rows(READ, [run_id, after])
    ]
