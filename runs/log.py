"""The one way to write a run's log: lock its row, append events, change the row, in one statement.

Raw SQL lives here because a step's cost is this file: the lock and the fence are one statement; the
events, the calls and waits they speak of and the row's new state another.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from common.canonical import digest, normalise
from common.db import execute, from_json, jsonb, row, rows
from runs import hints
from runs.choices import TERMINAL, TRANSITIONS, EventType, RunStatus
from runs.webhooks import outbox

PAYLOAD_VERSION = 1
PRUNED = "pruned"  # the key of a payload's digest where the payload is gone; no payload has it otherwise
CHANNEL = "deputy_events"  # says the root of each tree in which something happened

# The time is read once the lock is held: read beside it, it would be that of before the wait. Rows are
# locked in the order of the sort.
LOCK = """
WITH held AS MATERIALIZED (
    SELECT id, organization_id, project_id, user_id, parent_run_id, root_id, depth, kind, driver, status,
           attempt, last_seq, last_digest, deadline, waiting_reason
    FROM runs_run WHERE id = %s FOR NO KEY UPDATE
)
SELECT held.*, clock_timestamp() FROM held
"""
LOCK_ALL = LOCK.replace("id = %s", "id = ANY(%s) ORDER BY depth, id")
TIMED = ("clock_timestamp()", "clock_timestamp(), set_config('statement_timeout', %s, true)")

READ = """
SELECT seq, type, agent, payload, created_at FROM runs_runevent
WHERE run_id = %s AND seq > %s ORDER BY seq
"""

COLUMNS = tuple(
    "id organization_id project_id user_id parent_run_id root_id depth kind driver status attempt "  # noqa: SIM905
    "last_seq last_digest deadline waiting_reason now".split()
)

EVENTS = """
INSERT INTO runs_runevent (organization_id, run_id, seq, type, agent, payload, created_at, digest)
SELECT %s, %s, * FROM unnest(%s::int[], %s::text[], %s::text[], %s::jsonb[], %s::timestamptz[], %s::text[])
"""

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

    @property
    def pruned(self) -> bool:
        """Whether only the digest of what it said is left (runs/actions/prune.py)."""
        return PRUNED in self.payload


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
    unborn: dict[str, Any] | None = None  # the other columns of a run whose row is not stored yet
    new_calls: dict[str, dict[str, Any]] = field(default_factory=dict)  # by call_id: rows to be stored
    new_waits: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def make(cls, now: datetime, columns: dict[str, Any]) -> Self:
        """A run that `flush` will store, pending and with an empty log. `columns` of its row, as stored."""
        known = {name: columns[name] for name in COLUMNS if name in columns}
        known |= {"attempt": 0, "last_seq": 0, "last_digest": "", "waiting_reason": None, "now": now}
        unborn = {name: value for name, value in columns.items() if name not in SETTABLE}
        log = cls(**known, unborn=unborn)
        log.changes = {name: value for name, value in columns.items() if name in SETTABLE}
        return log

    @classmethod
    def lock(cls, run_id: str, statement_timeout_ms: int = 0) -> Self:
        """Lock the run's row for this transaction, whose further statements may take so long (0: any time).

        Raises RunGone.
        """
        return cls._locked(LOCK, run_id, [run_id], statement_timeout_ms)[0]

    @classmethod
    def lock_all(cls, run_ids: Sequence[str], statement_timeout_ms: int = 0) -> list[Self]:
        """Lock a line of runs, each the parent of the next, from the top. Raises RunGone."""
        if len(run_ids) == 1:
            return [cls.lock(run_ids[0], statement_timeout_ms)]
        return cls._locked(LOCK_ALL, list(run_ids), run_ids, statement_timeout_ms)

    @classmethod
    def _locked(cls, sql: str, wanted: Any, run_ids: Sequence[str], statement_timeout_ms: int) -> list[Self]:
        timed = statement_timeout_ms > 0
        values = [wanted, str(statement_timeout_ms)] if timed else [wanted]
        found = rows(sql.replace(*TIMED) if timed else sql, values)
        if len(found) != len(run_ids):
            raise RunGone(", ".join(run_ids))
        return [cls(**dict(zip(COLUMNS, one[: len(COLUMNS)], strict=True))) for one in found]

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

    @property
    def stored_seq(self) -> int:
        """The seq of the last event that is in the table."""
        return self.last_seq - len(self.appended)

    def flush(self) -> None:
        """Write what was appended and changed. Does nothing when there is nothing."""
        calls = _insert("runs_toolcall", self.new_calls.values())
        waits = _insert("runs_wait", self.new_waits)
        messages = outbox.statement(self, self.appended)
        parts = [part for part in (self._events(), calls, waits, messages) if part]
        if not parts and not self.changes and self.unborn is None:
            return
        statement, values = self._row()
        if parts:
            added = ", ".join(f"added_{number} AS ({sql})" for number, (sql, _) in enumerate(parts))
            statement = f"WITH {added} {statement}"
            values = [value for _, part in parts for value in part] + values
        if messages:
            statement += f" RETURNING (SELECT array_agg(id) FROM added_{len(parts) - 1})"  # noqa: S608
            outbox.send_soon(row(statement, values)[0] or ())
        else:
            execute(statement, values)
        if self.appended:
            hints.after_commit(CHANNEL, self.root_id)
        self.appended, self.changes, self.unborn = [], {}, None
        self.new_calls, self.new_waits = {}, []

    def _events(self) -> tuple[str, list[Any]] | None:
        if not self.appended:
            return None
        digests = []
        for event in self.appended:
            self.last_digest = chain(self.last_digest, event)
            digests.append(self.last_digest)
        columns = [
            [event.seq for event in self.appended],
            [event.type for event in self.appended],
            [event.agent for event in self.appended],
            [jsonb(event.payload) for event in self.appended],
            [event.created_at for event in self.appended],
            digests,
        ]
        return EVENTS, [self.organization_id, self.id, *columns]

    def _row(self) -> tuple[str, list[Any]]:
        """The statement that stores the row, or what has changed of it."""
        columns = {"last_seq": self.last_seq, "last_digest": self.last_digest, **self.changes}
        if self.unborn is not None:
            insert = _insert("runs_run", [{**self.unborn, **columns}])
            assert insert is not None  # noqa: S101
            return insert
        assignments = ", ".join(f"{name} = %s" for name in columns)
        update = f"UPDATE runs_run SET {assignments} WHERE id = %s"  # noqa: S608 - names from SETTABLE
        return update, [*map(_stored, columns.values()), self.id]


def _insert(table: str, new: Collection[dict[str, Any]]) -> tuple[str, list[Any]] | None:
    """The INSERT of these rows, which have the same columns; None where there are none."""
    if not new:
        return None
    columns = list(next(iter(new)))
    row_of = f"({', '.join(['%s'] * len(columns))})"
    rows_of = ", ".join([row_of] * len(new))
    insert = f"INSERT INTO {table} ({', '.join(columns)}) VALUES {rows_of}"  # noqa: S608 - our own names
    return insert, [_stored(one[name]) for one in new for name in columns]


def _stored(value: Any) -> Any:
    return jsonb(value) if isinstance(value, dict | list) else value


def chain(previous: str, event: Event) -> str:
    """The event's digest: previous digest, and all that the event says (design 4, Chain)."""
    return digest(
        previous,
        event.seq,
        event.type,
        event.agent,
        event.created_at.isoformat(),
        event.payload[PRUNED] if event.pruned else digest(event.payload),
    )


def read(run_id: str, after: int = 0) -> list[Event]:
    """The run's events with seq > `after`, in order."""
    return [
        Event(seq, type, agent, from_json(payload), at)
        for seq, type, agent, payload, at in rows(READ, [run_id, after])
    ]
