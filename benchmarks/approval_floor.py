"""An approval's floor: the decision, the claim with the call, the end; in one process, or woken by NOTIFY."""

import os
import sys
import time

import psycopg

from benchmarks.client import serve
from benchmarks.escalation_floor import ANSWER, END, TABLES
from benchmarks.parked_floor import ANSWERED, QUESTION, RESOLVE, Park, Wake

CLAIM = """
UPDATE run SET status = 'running', attempt = attempt + 1, last_seq = last_seq + 2,
    lease_expires_at = clock_timestamp() + interval '10 seconds'
WHERE id = %s AND status = 'pending' RETURNING last_seq
"""


class Drive(Wake):
    """An item is a parked run from its approval to its end."""

    def item(self) -> None:
        self._go_on(self._approve())

    def _approve(self, wake: bool = False) -> str:
        run = next(self._parked)
        with self._db.transaction():
            approved = ("wait.completed", {"v": 1, "approved": True, "by": "ann"})
            self._changed(ANSWERED, (run,), run, [approved])
            self._db.execute(RESOLVE, (run, QUESTION))
            if wake:
                self._db.execute("SELECT pg_notify('floor', %s)", (run,))
        return run

    def _go_on(self, run: str) -> None:
        called = ("tool.completed", {"v": 1, "call_id": "1.0", "result": {"groups": []}})
        with self._db.transaction():
            self._changed(CLAIM, (run,), run, [("run.resumed", {"v": 1, "attempt": 2}), called])
        with self._db.transaction():
            self._changed(END, (1, run), run, [("run.completed", {"v": 1, "output": ANSWER})])


class Decide(Drive):
    """The same, gone on with by a second process."""

    def item(self) -> None:
        run = self._approve(wake=True)
        while True:
            row = self._db.execute("SELECT status FROM run WHERE id = %s", (run,)).fetchone()
            if row == ("completed",):
                return
            time.sleep(0.0005)


def work(url: str) -> None:
    """The second process."""
    floor = Drive(url)
    with psycopg.connect(url, autocommit=True) as listening:
        listening.execute("LISTEN floor")
        for hint in listening.notifies():
            floor._go_on(hint.payload)


def prepare(url: str) -> None:
    with psycopg.connect(url) as db:
        db.execute(TABLES)


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        work(os.environ["DATABASE_URL"])
    serve(prepare, park=Park, decide=Decide, drive=Drive)
