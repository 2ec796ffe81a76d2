"""The floor of an escalation: bare SQL that survives what Deputy survives, each word kept once.

A parent makes a child and waits for it, the child makes three steps (two with a look into the database), the
parent ends. One transaction a step, eight in all:
create, claim, escalate and park, claim the child, step, step, end the child and wake the parent, end.
"""

import itertools
import os
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from benchmarks.client import serve

TABLES = """
CREATE TABLE run (
    id text PRIMARY KEY, parent_id text, status text NOT NULL, waiting_reason text, goal text NOT NULL,
    attempt integer NOT NULL DEFAULT 0, last_seq integer NOT NULL DEFAULT 0,
    lease_expires_at timestamptz, created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz
);
CREATE INDEX ON run (parent_id) WHERE parent_id IS NOT NULL;
CREATE TABLE run_event (
    run_id text NOT NULL, seq integer NOT NULL, type text NOT NULL, payload jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (run_id, seq)
);
CREATE TABLE wait (
    run_id text NOT NULL, correlation_key text NOT NULL, child_id text, outcome text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(), resolved_at timestamptz,
    PRIMARY KEY (run_id, correlation_key)
);
CREATE TABLE memory (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run_id text NOT NULL, content text NOT NULL
);
CREATE TABLE fact (id integer PRIMARY KEY, content text NOT NULL);
INSERT INTO fact SELECT n, 'Deputy fact number ' || n FROM generate_series(1, 100) n;
"""
GOAL = "Find out which supplier delivers fastest and what it costs"
ANSWER = "The second supplier delivers within two days; it costs eleven per cent more."

CREATE = "INSERT INTO run (id, parent_id, goal, status, last_seq) VALUES (%s, %s, %s, 'pending', %s)"
CLAIM = """
UPDATE run SET status = 'running', attempt = attempt + 1, last_seq = last_seq + 1,
    lease_expires_at = clock_timestamp() + interval '10 seconds'
WHERE id = %s AND status = 'pending' RETURNING last_seq
"""
STEP = """
UPDATE run SET last_seq = last_seq + %s
WHERE id = %s AND attempt = 1 AND status = 'running' RETURNING last_seq
"""
PARK = """
UPDATE run SET status = 'waiting', waiting_reason = 'child', lease_expires_at = NULL, last_seq = last_seq + %s
WHERE id = %s AND attempt = 1 AND status = 'running' RETURNING last_seq
"""
RESUME = """
UPDATE run SET status = 'running', waiting_reason = NULL, attempt = attempt + 1, last_seq = last_seq + %s,
    lease_expires_at = clock_timestamp() + interval '10 seconds'
WHERE id = %s AND status = 'waiting' RETURNING last_seq
"""
END = """
UPDATE run SET status = 'completed', lease_expires_at = NULL, ended_at = clock_timestamp(),
    last_seq = last_seq + %s
WHERE id = %s AND status = 'running' RETURNING last_seq
"""
OPEN_WAIT = "INSERT INTO wait (run_id, correlation_key, child_id) VALUES (%s, %s, %s)"
RESOLVE = """
UPDATE wait SET resolved_at = clock_timestamp(), outcome = 'completed'
WHERE run_id = %s AND correlation_key = %s AND resolved_at IS NULL
"""

KEEP = "INSERT INTO memory (run_id, content) VALUES (%s, %s)"

Event = tuple[str, dict[str, Any]]


def said(content: str, *calls: str) -> Event:
    return "message.created", {"v": 1, "role": "assistant", "content": content, "tool_calls": list(calls)}


class Floor:
    """One connection doing escalations."""

    def __init__(self, url: str) -> None:
        self._db = psycopg.connect(url, autocommit=True)
        self._names = (f"{os.getpid():08d}{n:016d}" for n in itertools.count())

    def execute(self, sql: str) -> None:
        self._db.execute(sql)

    def close(self) -> None:
        self._db.close()

    def item(self) -> None:
        name = next(self._names)
        parent, child = f"run_p{name}", f"run_c{name}"
        db = self._db
        with db.transaction():
            self._create(parent, None)
        with db.transaction():
            self._changed(CLAIM, (parent,), parent, [("run.started", {"v": 1, "attempt": 1})])
        with db.transaction():
            self._create(child, parent)
            db.execute(OPEN_WAIT, (parent, f"child-{child}", child))
            escalated: list[Event] = [
                said("This is beyond me.", "escalate_to_group"),
                ("run.waiting", {"v": 1, "child_run": child}),
            ]
            self._changed(PARK, (2, parent), parent, escalated)
        with db.transaction():
            self._changed(CLAIM, (child,), child, [("run.started", {"v": 1, "attempt": 1})])
        for step in (1, 2):
            with db.transaction():
                found = db.execute("SELECT content FROM fact WHERE id = %s", (step,)).fetchone()
                stepped: list[Event] = [
                    said("Let me look that up.", "look_up"),
                    ("tool.completed", {"v": 1, "call_id": f"{step}.0", "result": found and found[0]}),
                ]
                self._changed(STEP, (2, child), child, stepped)
        with db.transaction():
            result = {"v": 1, "success": True, "result": ANSWER}
            self._changed(RESUME, (1, parent), parent, [("wait.completed", result)])
            db.execute(RESOLVE, (parent, f"child-{child}"))
            self._end(child)
            db.execute(KEEP, (child, ANSWER))
        with db.transaction():
            self._end(parent)
            db.execute(KEEP, (parent, f"Goal: {GOAL}\nOutcome: {ANSWER}"))

    def _create(self, run: str, parent: str | None) -> None:
        self._db.execute(CREATE, (run, parent, GOAL, 1))
        self._append(run, 1, [("run.created", {"v": 1, "parent": parent})])

    def _end(self, run: str) -> None:
        self._changed(END, (1, run), run, [("run.completed", {"v": 1, "output": ANSWER})])

    def _changed(self, sql: str, values: tuple[Any, ...], run: str, events: list[Event]) -> None:
        row = self._db.execute(sql, values).fetchone()  # type: ignore[call-overload]
        assert row is not None, "somebody else holds the run"
        self._append(run, row[0], events)

    def _append(self, run: str, last_seq: int, events: list[Event]) -> None:
        first = last_seq - len(events) + 1
        rows: list[Any] = []
        for seq, (kind, payload) in enumerate(events, first):
            rows += [run, seq, kind, Jsonb(payload)]
        values = ", ".join(["(%s, %s, %s, %s)"] * len(events))
        self._db.execute(f"INSERT INTO run_event (run_id, seq, type, payload) VALUES {values}", rows)  # type: ignore[arg-type]


def prepare(url: str) -> None:
    with psycopg.connect(url) as db:
        db.execute(TABLES)


if __name__ == "__main__":
    serve(prepare, work=Floor)
