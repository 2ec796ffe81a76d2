"""A parked run's floor: its row, its events up to the question, its wait; then the answer and the end."""

import itertools
import os

import psycopg

from benchmarks.client import serve
from benchmarks.escalation_floor import ANSWER, CLAIM, CREATE, END, GOAL, TABLES, Event, Floor, said

QUESTION = "question-1.0"
ASK = """
UPDATE run SET status = 'waiting', waiting_reason = 'input', lease_expires_at = NULL, last_seq = last_seq + 2
WHERE id = %s AND attempt = 1 AND status = 'running' RETURNING last_seq
"""
WAIT = "INSERT INTO wait (run_id, correlation_key) VALUES (%s, %s)"
ANSWERED = """
UPDATE run SET status = 'pending', waiting_reason = NULL, last_seq = last_seq + 1
WHERE id = %s AND status = 'waiting' RETURNING last_seq
"""
RESOLVE = """
UPDATE wait SET resolved_at = clock_timestamp(), outcome = 'completed'
WHERE run_id = %s AND correlation_key = %s AND resolved_at IS NULL
"""
STARTED: Event = ("run.started", {"v": 1, "attempt": 1})


class Park(Floor):
    """An item is a run from its start to its question."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._ids = (f"run_{os.getpid():08d}{n:017d}" for n in itertools.count())

    def item(self) -> None:
        run, db = next(self._ids), self._db
        with db.transaction():
            db.execute(CREATE, (run, None, GOAL, 1))
            self._append(run, 1, [("run.created", {"v": 1})])
        with db.transaction():
            self._changed(CLAIM, (run,), run, [STARTED])
        with db.transaction():
            waiting: Event = ("run.waiting", {"v": 1, "reason": "input", "wait": QUESTION})
            self._changed(ASK, (run,), run, [said("For which region?", "ask_user"), waiting])
            db.execute(WAIT, (run, QUESTION))


class Wake(Floor):
    """An item is a parked run from its answer to its end."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        waiting = self._db.execute("SELECT id FROM run WHERE status = 'waiting' ORDER BY id").fetchall()
        self._parked = iter([run for (run,) in waiting])

    def item(self) -> None:
        run, db = next(self._parked), self._db
        with db.transaction():
            self._changed(ANSWERED, (run,), run, [("wait.completed", {"v": 1, "answer": "Europe"})])
            db.execute(RESOLVE, (run, QUESTION))
        with db.transaction():
            self._changed(CLAIM, (run,), run, [("run.resumed", {"v": 1, "attempt": 2})])
        with db.transaction():
            self._changed(END, (1, run), run, [("run.completed", {"v": 1, "output": ANSWER})])


def prepare(url: str) -> None:
    with psycopg.connect(url) as db:
        db.execute(TABLES)


if __name__ == "__main__":
    serve(prepare, park=Park, wake=Wake)
