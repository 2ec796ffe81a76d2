"""django-q2's broker on PostgreSQL.

An enqueue is an INSERT of the caller's transaction. Whoever takes messages holds a connection of its
own: it takes several with one statement, sleeps until a notification says that there is more, and looks by
itself every POLL_SECONDS. Taking is a lease in the row; a message whose lease ends is taken again,
which is harmless: the claim decides who drives a run.

Organizations take turns (runs/queue/turns.py), so that one with many messages keeps no other waiting.
"""

import logging
import os
import threading
import time
from multiprocessing import util
from typing import Any

import psycopg
from django.db import connection
from django_q.brokers import Broker
from django_q.conf import Conf

from common import notifications
from common.db import Statement, execute, own_connection, row
from runs.queue import worker_status
from runs.queue.turns import PLAIN, TAKE, Turn, Turns
from runs.queue.worker_status import IDLE, Member

logger = logging.getLogger(__name__)

CHANNEL = "deputy_queue"
ERRANDS = "deputy_errands"  # the same for the lanes that carriers take from (runs/queue/put.py)
POLL_SECONDS = 5.0  # what a lost notification may cost
LISTEN_SECONDS = 0.2  # between two looks at whether this process is to stop
AWAY_SECONDS = 0.5  # between two attempts to reach the database
FULL_SECONDS = 0.01  # between two looks at whether a worker is free
AHEAD_SECONDS = 0.1  # messages are taken that should begin within this time
MOST = 64  # messages at a time
LOST_SECONDS = 0.25  # after which a message handed to an idle worker counts as lost
ACKNOWLEDGE_SECONDS = 0.02  # acknowledgements of this time go out together

PUT = """
INSERT INTO runs_queuemessage (queue, payload, run_id, organization_id, priority, later, due_at)
VALUES (%s, %s, %s, COALESCE(%s, (SELECT organization_id FROM runs_run WHERE id = %s), '-'),
        COALESCE(%s, (SELECT CASE WHEN kind = 'personal' AND depth = 0 THEN 0 ELSE 1 END
                      FROM runs_run WHERE id = %s), 1), %s, clock_timestamp() + %s * interval '1 second')
"""
REMOVE = """
DELETE FROM runs_queuemessage WHERE id = ANY(ARRAY(
    SELECT id FROM runs_queuemessage WHERE id = ANY(%s) FOR UPDATE SKIP LOCKED))
"""
GIVE_BACK = """
UPDATE runs_queuemessage SET due_at = now(), holder = '' WHERE holder = ANY(%s)
"""
# A message whose takers keep dying is given to the next one later and later.
GIVE_BACK_OF_DEAD = """
UPDATE runs_queuemessage SET holder = '', deaths = deaths + 1,
       due_at = now() + CASE deaths WHEN 0 THEN 0 ELSE LEAST(%s, 2 ^ LEAST(deaths, 30)) END
                        * interval '1 second'
WHERE {which} AND holder <> ''
"""
GIVE_BACK_ONE = GIVE_BACK_OF_DEAD.format(which="id = %s")
GIVE_BACK_ERRANDS = GIVE_BACK_OF_DEAD.format(which="holder = %s")
LONGEST_PAUSE = 60  # seconds
GIVE_BACK_ORPHANS = """
UPDATE runs_queuemessage m SET due_at = now(), holder = ''
WHERE holder <> '' AND NOT EXISTS (SELECT FROM runs_workergroup g WHERE g.name = m.holder)
  AND NOT EXISTS (SELECT FROM runs_carrier c WHERE c.name = m.holder)
"""
# The head of each organization's messages is one look into the index, however many it has.
OLDEST = """
SELECT COALESCE(EXTRACT(epoch FROM now() - min(head.due_at)), 0)::float8
FROM (WITH RECURSIVE heads AS (
        (SELECT priority, organization_id, due_at FROM runs_queuemessage WHERE queue = %(queue)s
         ORDER BY priority, organization_id, due_at LIMIT 1)
        UNION ALL
        SELECT following.* FROM heads, LATERAL (
            SELECT m.priority, m.organization_id, m.due_at FROM runs_queuemessage m
            WHERE m.queue = %(queue)s
              AND (m.priority, m.organization_id) > (heads.priority, heads.organization_id)
            ORDER BY m.priority, m.organization_id, m.due_at LIMIT 1) following)
      SELECT due_at FROM heads) head
WHERE head.due_at <= now()
"""

holder = f"pid {os.getpid()}"  # of what this process takes; groups of workers and carriers have names


class PostgresBroker(Broker):
    """One queue, `list_key`. Before an enqueue, `run_id` and `delay` (seconds) may be set, and `beside`:
    statements that the caller will run in its transaction, to which the message's is added. `turn` says
    whose it is; without it, it is looked up by the run. `channel` is where who takes from it listens.
    """

    channel = CHANNEL

    def __init__(self, list_key: str | None = None) -> None:
        super().__init__(list_key or Conf.CLUSTER_NAME)
        self.run_id: str | None = None
        self.delay: float = 0
        self.beside: list[Statement] | None = None
        self.turn: Turn | None = None
        self._taker: Taker | None = None

    def enqueue(self, task: str) -> int:
        """Put a message; it may be taken when the caller's transaction has committed, or later.

        Returns its id; 0 where the caller writes it.
        """
        organization, priority = self.turn or (None, None)
        whose = [organization, self.run_id, priority, self.run_id]
        message = [self.list_key, task, self.run_id, *whose, self.delay > 0, self.delay]
        number = 0
        if self.beside is None:
            number = int(row(f"{PUT} RETURNING id", message)[0])
        else:
            self.beside.append((PUT, message))
        notifications.after_commit(self.channel, self.list_key)  # without a transaction: now, and it is there
        return number

    def dequeue(self) -> list[tuple[int, str]] | None:
        """Messages for the workers that are free; None when there are none now. Never raises: what does
        would end the process that takes messages, and with it those it has taken.
        """
        if self._taker is None:
            self._taker = Taker(self.list_key)
        try:
            return self._taker.take()
        except Exception:
            logger.exception("could not take messages")
            self._taker.leave()
            time.sleep(AWAY_SECONDS)
            return None

    def acknowledge(self, task_id: int) -> None:
        """The message has been dealt with. Takes effect soon; a lost one costs a second delivery."""
        acknowledgements.add(task_id)

    def delete(self, task_id: int) -> None:
        execute("DELETE FROM runs_queuemessage WHERE id = %s", [task_id])

    def fail(self, task_id: int) -> None:
        self.delete(task_id)

    def queue_size(self) -> int:
        """Messages that may be taken now."""
        return self._count("due_at <= now()")

    def lock_size(self) -> int:
        """Messages somebody has."""
        return self._count("due_at > now() AND holder <> ''")

    def _count(self, condition: str) -> int:
        statement = f"SELECT count(*) FROM runs_queuemessage WHERE queue = %s AND {condition}"  # noqa: S608
        return int(row(statement, [self.list_key])[0])

    def purge_queue(self) -> int:
        return execute("DELETE FROM runs_queuemessage WHERE queue = %s", [self.list_key])

    def delete_queue(self) -> int:
        return self.purge_queue()

    def ping(self) -> bool:
        """True: the taker waits for a database that is away."""
        return True

    def info(self) -> str:
        return f"PostgreSQL {connection.settings_dict['NAME']}"


class Taker:
    """Takes messages for one group of workers, on a connection of its own."""

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.connection: Any = None
        self.look_at = 0.0  # when to ask the database again, unless a notification comes first
        self.away = False
        self.pace = Pace()
        self.turns = Turns()

    def take(self) -> list[tuple[int, str]] | None:
        room = self.pace.room()
        if not room:
            time.sleep(FULL_SECONDS)
            return None
        try:
            self._connect()
            if time.monotonic() < self.look_at and not self._hinted():
                return None
            taken, more_in = self._fetch(room)
            self.look_at = time.monotonic() + more_in
        except psycopg.Error as error:
            self._lost(error)
            return None
        self.pace.handed(len(taken))
        return taken or None

    def _connect(self) -> None:
        if self.connection is not None:
            return
        self.connection = own_connection(durable=False)
        self.connection.execute(PLAIN)
        self.connection.execute(f"LISTEN {CHANNEL}")
        self.look_at = 0.0
        if self.away:
            logger.warning("the queue has its database again")
        self.away = False

    def _hinted(self) -> bool:
        """Wait a moment for a notification, no longer than until the next look."""
        wait = max(0.0, min(LISTEN_SECONDS, self.look_at - time.monotonic()))
        heard = list(self.connection.notifies(timeout=wait, stop_after=1))
        return bool(heard) or time.monotonic() >= self.look_at

    def _fetch(self, room: int) -> tuple[list[tuple[int, str]], float]:
        """Messages in the order of their turns, and the seconds until there may be others."""
        values = self.turns.ask(room) | {"lease": Conf.RETRY, "holder": holder, "queue": self.queue}
        found = self.connection.execute(TAKE, values).fetchall()
        taken, next_due = self.turns.told(found)
        if self.turns.more:
            return taken, 0.0
        return taken, POLL_SECONDS if next_due is None else min(POLL_SECONDS, max(0.0, next_due))

    def leave(self) -> None:
        """Let go of the connection; the next look makes another."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def _lost(self, error: psycopg.Error) -> None:
        if not self.away:
            logger.warning("the queue has lost its database: %s", type(error).__name__)
        self.away = True
        self.leave()
        time.sleep(AWAY_SECONDS)


class Pace:
    """How many messages to take: what should begin within AHEAD_SECONDS.

    A message that lies behind a long run here could begin at once elsewhere. So a group takes one
    message for each idle worker, and more only as far as its workers have lately been quick.
    """

    def __init__(self) -> None:
        self.count, self.begun_then, self.at = 0, 0, 0.0

    def room(self) -> int:
        if worker_status.current is None:
            return max(1, int(Conf.WORKERS))
        if worker_status.current.stopping:
            return 0
        workers = worker_status.current.workers()
        idle = sum(worker.doing == IDLE for worker in workers)
        quick = sum(AHEAD_SECONDS / worker.takes for worker in workers if worker.takes < AHEAD_SECONDS)
        if idle == 0 and self._overdue(workers):
            return 0
        return min(MOST, max(0, idle + int(quick) - self._not_begun(workers)))

    def handed(self, count: int) -> None:
        """These many have just been handed to the workers."""
        if worker_status.current is not None and count:
            workers = worker_status.current.workers()
            self.count = self._not_begun(workers) + count
            self.begun_then, self.at = begun(workers), time.monotonic()

    def _not_begun(self, workers: list[Member]) -> int:
        """Of the messages handed over, those no worker has begun."""
        left = self.count - (begun(workers) - self.begun_then)
        lost = any(worker.doing == IDLE for worker in workers) and time.monotonic() - self.at > LOST_SECONDS
        return 0 if lost else max(0, left)

    @staticmethod
    def _overdue(workers: list[Member]) -> bool:
        """Every worker has been at its message for longer than was to be expected."""
        now = time.monotonic()
        return all(now - worker.since > AHEAD_SECONDS for worker in workers)


def begun(workers: list[Member]) -> int:
    return sum(worker.begun for worker in workers)


class Acknowledgements:
    """Removes messages that have been dealt with, many at a time, in a thread of its process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._done: list[int] = []
        self._thread: tuple[int, threading.Thread] | None = None

    def add(self, number: int) -> None:
        with self._lock:
            self._done.append(number)
            if not (self._thread and self._thread[0] == os.getpid()):
                self._thread = (os.getpid(), threading.Thread(target=self._work, name="acks", daemon=True))
                self._thread[1].start()
                util.Finalize(None, self.finish, exitpriority=5)
        self._wanted.set()

    def flush(self, own: Any) -> None:
        """Remove what has come together. Raises psycopg.Error, having kept it."""
        with self._lock:
            done, self._done = self._done, []
        try:
            if done:
                own.execute(REMOVE, [done])
        except psycopg.Error:
            with self._lock:
                self._done = done + self._done
            raise

    def finish(self) -> None:
        """Remove what is left, at the end of the process."""
        if not self._done:
            return
        try:
            own = own_connection(durable=False)
            self.flush(own)
            own.close()
        except psycopg.Error:  # they will be delivered once more
            return

    def _work(self) -> None:
        own: Any = None
        while True:
            self._wanted.wait()
            self._wanted.clear()
            time.sleep(ACKNOWLEDGE_SECONDS)
            try:
                own = own or own_connection(durable=False)
                self.flush(own)
            except psycopg.Error:
                if own is not None:
                    own.close()
                own = None
                time.sleep(AWAY_SECONDS)
                self._wanted.set()


acknowledgements = Acknowledgements()


def give_back(holders: list[str]) -> int:
    """Let messages of groups that are gone be taken at once; returns how many there were."""
    return execute(GIVE_BACK, [holders])


def give_back_orphans() -> int:
    """Let messages be taken whose group has gone without being seen to; returns how many there were."""
    return execute(GIVE_BACK_ORPHANS)


def give_back_one(number: int) -> int:
    """Let the message that a dead worker was at be taken by another; 0 where it is gone, or was before."""
    return execute(GIVE_BACK_ONE, [LONGEST_PAUSE, number])


def give_back_errands(carrier: str) -> int:
    """The same for all messages that a dead carrier was at; returns how many there were."""
    notifications.after_commit(ERRANDS)
    return execute(GIVE_BACK_ERRANDS, [LONGEST_PAUSE, carrier])
