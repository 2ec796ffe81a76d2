"""The one way to write a run's log: lock its row, append events, change the row, in one statement.

Raw SQL lives here because a step's cost is this file: the lock and the fence are one statement; the
events, the calls and waits they speak of and the row's new state another.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Self

from common import notifications
from common.canonical import canonical, digest, digest_of, normalise
from common.db import Statement, execute, from_json, jsonb, row, rows
from policy import cache as policy_cache
from policy.cache import LiveBoundary
from runs.log.listeners import listeners, wanted
from runs.models.choices import TERMINAL, TRANSITIONS, EventType, RunKind, RunStatus
from runs.queue import put
from runs.queue.turns import Turn

PAYLOAD_VERSION = 1
PRUNED = "pruned"  # the key of a payload's digest where the payload is gone; no payload has it otherwise
MOMENT = timedelta(microseconds=1)  # the least that the database tells apart
CHANNEL = "deputy_events"  # says the root of each tree in which something happened

# Whether the lock was waited for: what is read along with it is as old as the statement.
LATE = "clock_timestamp() > statement_timestamp() + interval '100 ms'"

WHOSE = ("held.organization_id", "held.user_id", "held.project_id")
ONE = "id = %s"
LINE = "id = ANY(%s) ORDER BY depth, id"  # rows are locked in the order of the sort
OF_ROW = "id = (SELECT run_id FROM {table} WHERE id = %s)"


@cache
def lock_sql(which: str, step: bool) -> str:
    """The statement that locks these runs. A step reads along what its decisions rest on, None where that
    would be late, and says how long its further statements may take.

    The time is read once the lock is held: read beside it, it would be that of before the wait.
    """
    further = f""", CASE WHEN NOT {LATE}
    THEN {policy_cache.LIVE_BOUNDARY_OF.format(*WHOSE)} END,
    set_config('statement_timeout', %s, true)"""
    return f"""
WITH held AS MATERIALIZED (
    SELECT id, organization_id, project_id, user_id, parent_run_id, root_id, depth, kind, driver, status,
           attempt, last_seq, last_digest, deadline, waiting_reason
    FROM runs_run WHERE {which} FOR NO KEY UPDATE
)
SELECT held.*, clock_timestamp(), {LATE} OR {wanted("held.organization_id")}{further if step else ""}
FROM held
"""  # noqa: S608 - our own text


READ = """
SELECT seq, type, agent, payload, created_at FROM runs_runevent
WHERE run_id = %s AND seq > %s ORDER BY seq
"""

COLUMNS = tuple(
    "id organization_id project_id user_id parent_run_id root_id depth kind driver status attempt "  # noqa: SIM905
    "last_seq last_digest deadline waiting_reason now listened".split()
)

# One parameter for all of them: arrays would each be escaped once more.
EVENTS = """
INSERT INTO runs_runevent (organization_id, run_id, created_at, seq, type, agent, payload, digest)
SELECT %s, %s, %s, * FROM json_to_recordset(%s::json)
    AS e (seq int, type text, agent text, payload jsonb, digest text)
"""

SETTABLE = frozenset(
    "status waiting_reason output error usage attempt crashes lease_expires_at queued_at "  # noqa: SIM905
    "started_at ended_at deadline".split()
)


class RunGone(Exception):
    """No run has this id (any more)."""


class AlreadyEnded(Exception):
    """The run has ended: nothing more can be done to it."""

    def __init__(self, status: str) -> None:
        super().__init__(f"The run has already {status}.")
        self.status = status


class Fenced(Exception):
    """This worker no longer holds the run: another claimed it, or it ended. It may write nothing."""


class WrongTransition(Exception):
    """The table in runs/models/choices.py does not allow this change of status."""


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
    listened: bool = True  # whether a webhook may want to hear of it
    live: LiveBoundary | None = None  # of its user, where it was read along with the lock
    appended: list[Event] = field(default_factory=list)
    changes: dict[str, Any] = field(default_factory=dict)
    unborn: dict[str, Any] | None = None  # the other columns of a run whose row is not stored yet
    new_calls: dict[str, dict[str, Any]] = field(default_factory=dict)  # by call_id: rows to be stored
    changed_calls: dict[str, dict[str, Any]] = field(default_factory=dict)  # and columns of stored ones
    new_waits: list[dict[str, Any]] = field(default_factory=list)
    also: list[Statement] = field(default_factory=list)  # statements that nobody needs the answer of

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
        """Lock the run's row for this transaction. Raises RunGone.

        A step also says how long its further statements may take, and gets its user's live boundary along.
        """
        return cls._locked(ONE, run_id, [run_id], statement_timeout_ms)[0]

    @classmethod
    def lock_of(cls, table: str, row_id: str) -> Self:
        """Lock the run that a row of this table belongs to. Raises RunGone."""
        return cls._locked(OF_ROW.format(table=table), row_id, [row_id], 0)[0]

    @classmethod
    def lock_all(cls, run_ids: Sequence[str], statement_timeout_ms: int = 0) -> list[Self]:
        """Lock a line of runs, each the parent of the next, from the top. Raises RunGone."""
        if len(run_ids) == 1:
            return [cls.lock(run_ids[0], statement_timeout_ms)]
        return cls._locked(LINE, list(run_ids), run_ids, statement_timeout_ms)

    @classmethod
    def _locked(cls, which: str, value: Any, run_ids: Sequence[str], statement_timeout_ms: int) -> list[Self]:
        step = [str(statement_timeout_ms)] if statement_timeout_ms else []
        found = rows(lock_sql(which, bool(step)), [value, *step])
        if len(found) != len(run_ids):
            raise RunGone(", ".join(run_ids))
        return [cls._made_of(one) for one in found]

    @classmethod
    def _made_of(cls, found: Sequence[Any]) -> Self:
        log = cls(**dict(zip(COLUMNS, found, strict=False)))
        if len(found) > len(COLUMNS):
            log.live = policy_cache.live_boundary_of(found[len(COLUMNS)], log.project_id)
        return log

    def check_fence(self, attempt: int) -> None:
        """Raises Fenced unless the worker that claimed it as `attempt` still holds the run."""
        if self.attempt != attempt or self.status != RunStatus.RUNNING:
            raise Fenced(f"{self.id}: claimed as {attempt}, now {self.status} at {self.attempt}")

    @property
    def ended(self) -> bool:
        return self.status in TERMINAL

    @property
    def turn(self) -> Turn:
        """Whose turn it is when this run waits for a worker: a person's own run goes before the rest."""
        people = self.kind == RunKind.PERSONAL and self.depth == 0
        return put.for_people(self.organization_id) if people else put.in_background(self.organization_id)

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

    def follow(self, other: "RunLog") -> None:
        """What is appended from here on is later than what `other` has: it comes of it. (Of two runs the one
        that was locked first would else be earlier, also where it hears of the other's end.)
        """
        self.now = max(self.now, other.now + MOMENT)

    @property
    def stored_seq(self) -> int:
        """The seq of the last event that is in the table."""
        return self.last_seq - len(self.appended)

    def flush(self) -> None:
        """Write what was appended and changed. Does nothing when there is nothing."""
        flush(self)

    @property
    def dirty(self) -> bool:
        """Whether `flush` has something to write."""
        new = (
            self.appended
            or self.changes
            or self.new_calls
            or self.changed_calls
            or self.new_waits
            or self.also
        )
        return bool(new) or self.unborn is not None

    def parts(self) -> Iterator[Statement]:
        """The statements that write what is new; they may go in any order, as parts of one."""
        if self.appended:
            yield self._events()
        if calls := _insert("runs_toolcall", self.new_calls.values()):
            yield calls
        for call_id, columns in self.changed_calls.items():
            yield _update("runs_toolcall", columns, "run_id = %s AND call_id = %s", [self.id, call_id])
        if waits := _insert("runs_wait", self.new_waits):
            yield waits
        yield from self.also
        yield self._row()

    def written(self) -> None:
        """All of it is in the database."""
        if self.appended:
            notifications.after_commit(CHANNEL, self.root_id)
        self.appended, self.changes, self.unborn, self.also = [], {}, None, []
        self.new_calls, self.changed_calls, self.new_waits = {}, {}, []

    def _events(self) -> Statement:
        stored = []
        for event in self.appended:
            payload = canonical(event.payload)
            self.last_digest = chain(self.last_digest, event, payload)
            told = {"seq": event.seq, "type": event.type, "agent": event.agent, "digest": self.last_digest}
            stored.append(f'{canonical(told)[:-1]},"payload":{payload}}}')
        return EVENTS, [self.organization_id, self.id, self.now, f"[{','.join(stored)}]"]

    def _row(self) -> Statement:
        """The statement that stores the row, or what has changed of it."""
        columns = {"last_seq": self.last_seq, "last_digest": self.last_digest, **self.changes}
        if self.unborn is not None:
            insert = _insert("runs_run", [{**self.unborn, **columns}])
            assert insert is not None  # noqa: S101
            return insert
        return _update("runs_run", columns, "id = %s", [self.id])


def flush(*logs: RunLog) -> None:
    """Write what is new in all of these, in one statement."""
    logs = tuple(log for log in logs if log.dirty)
    if not logs:
        return
    *parts, (statement, values) = [part for log in logs for part in log.parts()]
    told = [
        (listener, log.organization_id, what)
        for listener in listeners()
        for log in logs
        if (what := listener.statement(log, log.appended))
    ]
    parts = [what for *_, what in told] + parts
    if parts:
        added = ", ".join(f"added_{number} AS ({sql})" for number, (sql, _) in enumerate(parts))
        statement = f"WITH {added} {statement}"
        values = [value for _, part in parts for value in part] + values
    if told:
        ids = ", ".join(f"ARRAY(SELECT id FROM added_{number})" for number in range(len(told)))  # noqa: S608
        stored = row(f"{statement} RETURNING {ids}", values)
        for (listener, organization_id, _), new in zip(told, stored, strict=True):
            listener.stored(new, organization_id)
    else:
        execute(statement, values)
    for log in logs:
        log.written()


def _update(table: str, columns: dict[str, Any], where: str, which: list[Any]) -> Statement:
    assignments = ", ".join(f"{name} = %s" for name in columns)
    update = f"UPDATE {table} SET {assignments} WHERE {where}"  # noqa: S608 - our own names
    return update, [*map(_stored, columns.values()), *which]


def _insert(table: str, new: Collection[dict[str, Any]]) -> Statement | None:
    """The INSERT of these rows, which have the same columns; None where there are none."""
    if not new:
        return None
    columns = [name for name in next(iter(new)) if any(one[name] is not None for one in new)]
    row_of = f"({', '.join(['%s'] * len(columns))})"
    rows_of = ", ".join([row_of] * len(new))
    insert = f"INSERT INTO {table} ({', '.join(columns)}) VALUES {rows_of}"  # noqa: S608 - our own names
    return insert, [_stored(one[name]) for one in new for name in columns]


def _stored(value: Any) -> Any:
    return jsonb(value) if isinstance(value, dict | list) else value


def chain(previous: str, event: Event, payload: str | None = None) -> str:
    """The event's digest: previous digest, and all that the event says (design 4, Chain).

    `payload` as canonical JSON, where the caller has it.
    """
    told = event.payload[PRUNED] if event.pruned else digest_of([payload or canonical(event.payload)])
    return digest(previous, event.seq, event.type, event.agent, event.created_at.isoformat(), told)


def read(run_id: str, after: int = 0) -> list[Event]:
    """The run's events with seq > `after`, in order."""
    return [
        Event(seq, type, agent, from_json(payload), at)
        for seq, type, agent, payload, at in rows(READ, [run_id, after])
    ]
