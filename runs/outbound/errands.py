"""Errands: tasks of the queue that wait for the network, done by a carrier in its threads.

Each kind (webhooks, mail, calls of outside agents, the rest) has a lane of the queue of its own, from which
organizations take turns. A lane gets half of the threads at most, and each has one that no other gets. A
message goes when its errand is done. Those of a carrier that died are given back, and done by another.
"""

import asyncio
import contextlib
import logging
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
from django import db
from django.conf import settings
from django.utils.module_loading import import_string

from common.db import own_async_connection, row
from common.failures import FAILURES
from runs.models.queue import lanes
from runs.outbound.asking import in_thread
from runs.outbound.lease import Lease
from runs.outbound.table import BEAT, told
from runs.queue import put
from runs.queue.turns import PLAIN, TAKE, Turns

logger = logging.getLogger(__name__)

POLL_SECONDS = 5.0  # what a lost notification of a new errand may cost
LEAST_SECONDS = 0.01  # between two looks
AWAY_SECONDS = 3.0  # until an errand is done again for which the database was away
NEWER_SECONDS = 10.0  # until one that this release does not know may be taken by a carrier of the next
ROLL_OUT_SECONDS = 24 * 3600  # for which two releases are at work; after that nobody knows such an errand
YOUNG = "SELECT %s > now() - %s * interval '1 second'"
CROWDED_SECONDS = 2.0  # until one is tried again whose host has enough to do

# The lanes with something to do, and the seconds until something later is due.
LOOK = """
SELECT ARRAY(SELECT lane FROM unnest(%(lanes)s::text[]) lane
             WHERE EXISTS (SELECT FROM runs_queuemessage m WHERE m.queue = lane AND m.due_at <= now())),
       (SELECT EXTRACT(epoch FROM min(due_at) - now())::float8 FROM runs_queuemessage
        WHERE queue = ANY(%(lanes)s) AND later AND due_at > now())
"""
DONE = "DELETE FROM runs_queuemessage WHERE id = ANY(%s)"
PUT_OFF = """
UPDATE runs_queuemessage m SET holder = '', later = true,
       due_at = clock_timestamp() + ended.seconds * interval '1 second'
FROM unnest(%s::bigint[], %s::float8[]) AS ended (id, seconds) WHERE m.id = ended.id AND m.holder = %s
"""


class Later(Exception):
    """Raised by an errand that cannot be done now: it is to be done after so many `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"again in {seconds:g} s")
        self.seconds = float(seconds)


class Errands:
    """Those of one carrier, whose lease is theirs too."""

    def __init__(self, name: str, lease: Lease) -> None:
        self.name, self.lease = name, lease
        self.pool = ThreadPoolExecutor(settings.CARRIER_ERRANDS, thread_name_prefix="errand")
        self.turns = {lane: Turns() for lane in lanes()}
        # by message: its lane, and who does it; and what `do` returned, until that is written
        self.under_way: dict[int, tuple[str, asyncio.Task[None]]] = {}
        self.ended: dict[int, float | None] = {}
        self.hinted = asyncio.Event()
        self.stopping = False

    def stop(self) -> None:
        """Take no more. What is under way may end; the rest is given back once the carrier is gone."""
        self.stopping = True
        self.hinted.set()

    async def attend(self) -> None:
        """Take errands and write down what was done, for ever. Raises psycopg.Error: the database is away."""
        own = await own_async_connection()
        try:
            await own.execute(PLAIN)
            while True:
                self.hinted.clear()
                await self._write(own)
                wait = POLL_SECONDS if self.stopping else await self._take(own)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.hinted.wait(), wait)
        finally:
            await own.close()

    async def _take(self, own: Any) -> float:
        """Begin what there is room for; returns the seconds until the next look."""
        open_lanes = [lane for lane in self.turns if self._room(lane) > 0]
        due, until_next = await (await own.execute(LOOK, {"lanes": open_lanes})).fetchone()
        if due:
            await own.execute(BEAT, told(self.name, self.lease.in_flight))
        if any([await self._take_from(own, lane) for lane in due]):
            return LEAST_SECONDS
        return POLL_SECONDS if until_next is None else min(POLL_SECONDS, max(LEAST_SECONDS, until_next))

    async def _take_from(self, own: Any, lane: str) -> bool:
        """Begin errands of this lane; whether there may be more for which there is room."""
        room, turns = self._room(lane), self.turns[lane]
        if room <= 0:
            return False
        values = turns.ask(room) | {"lease": settings.Q_CLUSTER["retry"], "holder": self.name, "queue": lane}
        taken, _ = turns.told(await (await own.execute(TAKE, values)).fetchall())
        for number, payload in taken:
            if number not in self.under_way:
                self.under_way[number] = lane, asyncio.create_task(self._carry(number, payload))
        return turns.more and self._room(lane) > 0

    def _room(self, lane: str) -> int:
        """How many more of this lane may be begun."""
        busy = Counter(lane for lane, _ in self.under_way.values())
        kept_free = sum(not busy[other] for other in self.turns if other != lane)
        left = settings.CARRIER_ERRANDS - len(self.under_way) - kept_free
        return min(settings.CARRIER_ERRANDS // 2 - busy[lane], left)

    async def _carry(self, number: int, payload: str) -> None:
        self.ended[number] = await in_thread(self.pool, lambda: do(payload))
        self.hinted.set()

    async def _write(self, own: Any) -> None:
        """The messages of what was done go, and those of what could not be done are there again."""
        ended = dict(self.ended)
        if done := [number for number, seconds in ended.items() if seconds is None]:
            await own.execute(DONE, [done])
        if put_off := {number: seconds for number, seconds in ended.items() if seconds is not None}:
            await own.execute(PUT_OFF, [list(put_off), list(put_off.values()), self.name])
        for number in ended:
            del self.ended[number], self.under_way[number]


def do(payload: str) -> float | None:
    """Do what the message asks for. Returns None when that is over, or the seconds until it is to be done
    again. What fails for another reason than the database is over: whoever sent it has its own way to retry.
    """
    name = "an errand"
    try:
        name, arguments, sent_at = put.opened(payload)
        if not known(name) and row(YOUNG, [sent_at, ROLL_OUT_SECONDS])[0]:
            logger.warning("%s is no task of this release; it is left to a newer one", name)
            return NEWER_SECONDS
        import_string(name)(*arguments)
    except Later as later:
        return later.seconds
    except (db.OperationalError, db.InterfaceError, psycopg.OperationalError) as error:
        logger.warning("%s has to wait: %s", name, type(error).__name__)
        return AWAY_SECONDS
    except FAILURES:
        logger.exception("%s failed", name)
    return None


def known(name: str) -> bool:
    """Whether this release has a task of that dotted name. A newer one beside it may send others."""
    try:
        import_string(name)
    except ImportError:
        return False
    return True


_at_hosts: Counter[str] = Counter()  # errands of this process, by the host they wait for
_lock = threading.Lock()


@contextmanager
def at_host(host: str) -> Iterator[None]:
    """One of the few errands that may wait for the same host at once; raises Later where there are enough."""
    with _lock:
        if _at_hosts[host] >= max(1, settings.CARRIER_ERRANDS // 4):
            raise Later(CROWDED_SECONDS)
        _at_hosts[host] += 1
    try:
        yield
    finally:
        with _lock:
            _at_hosts[host] -= 1
            if not _at_hosts[host]:
                del _at_hosts[host]
