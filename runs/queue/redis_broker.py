"""django-q2's broker on Redis: quicker than PostgreSQL's, and it may lose everything at any time.

Nothing depends on what it holds. A message for a run only says that there may be work; the sweep finds
runs that nobody took. Other messages (notices, duplicates, whatever is to happen later) stay in
PostgreSQL's table until they have been dealt with, and are forwarded from there.

A list of Redis is first come, first served: messages for runs know no turns of organizations and no
priorities here. What is forwarded comes in the order of its turns (runs/queue/turns.py), behind what waits.
"""

import logging
import os
import time
from typing import Any

import redis
from django.conf import settings
from django_q.brokers import redis_broker

from common.db import rows
from runs.queue import broker, turns

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 2
ANSWER_SECONDS = 5  # more than the second that `dequeue` waits
FORWARD_LEASE_SECONDS = 60  # a forwarded message nobody acknowledged is forwarded again
EMPTY_AFTER, BUSY_AFTER = 5, 300  # seconds until a pending run is queued again: queue empty, or not

_client: tuple[int, Any] | None = None
_turns = turns.Turns()


class RedisBroker(redis_broker.Redis):
    """One list. A forwarded message carries the number of its row, which goes when it is acknowledged."""

    away = False

    @staticmethod
    def get_connection(list_key: str | None = None) -> Any:
        """The client of this process; it opens connections as it needs them."""
        global _client
        if _client is None or _client[0] != os.getpid():
            made = redis.from_url(
                settings.REDIS_URL,
                socket_connect_timeout=CONNECT_SECONDS,
                socket_timeout=ANSWER_SECONDS,
                health_check_interval=30,
            )
            _client = os.getpid(), made
        return _client[1]

    def enqueue(self, task: str) -> None:
        """Put a message, after the commit. A Redis that is away costs time, not the run."""
        try:
            super().enqueue(task)
        except redis.RedisError as error:
            logger.info("could not send a message: %s", type(error).__name__)

    def dequeue(self) -> list[tuple[int | None, str]] | None:
        """The next message; None when there is none now, or no Redis. Never raises."""
        try:
            found = self.connection.blpop(self.list_key, 1)
        except redis.RedisError as error:
            self._lost(error)
            return None
        if self.away:
            logger.warning("the queue has its Redis again")
        self.away = False
        return [unpack(found[1].decode())] if found else None

    def acknowledge(self, task_id: int | None) -> None:
        if task_id is not None:
            broker.acknowledgements.add(task_id)

    def fail(self, task_id: int | None) -> None:
        self.acknowledge(task_id)

    def set_stat(self, key: str, value: str, timeout: int) -> None:
        """What django-q2 records about its processes; Deputy does not read it."""

    def _lost(self, error: redis.RedisError) -> None:
        if not self.away:
            logger.warning("the queue has lost its Redis: %s", type(error).__name__)
        self.away = True
        time.sleep(broker.AWAY_SECONDS)


def unpack(message: str) -> tuple[int | None, str]:
    """The number of the message's row, if it has one, and what was enqueued."""
    number, blank, payload = message.partition(" ")
    return (int(number), payload) if blank else (None, message)


def forward(queue: str, holder: str) -> int:
    """Put the messages of PostgreSQL's table that are due; returns how many."""
    if waiting() is None:
        return 0
    values = {"lease": FORWARD_LEASE_SECONDS, "holder": holder, "queue": queue}
    taken, _ = _turns.told(rows(turns.TAKE, _turns.ask(broker.MOST) | values))
    for number, payload in taken:
        RedisBroker().enqueue(f"{number} {payload}")
    return len(taken)


def waiting() -> int | None:
    """How many messages wait; None where Redis is away."""
    try:
        return int(RedisBroker().queue_size())
    except redis.RedisError:
        return None


def requeue_after() -> int:
    """Seconds a pending run may wait before it is queued again. A long queue must not grow by itself."""
    return EMPTY_AFTER if waiting() == 0 else BUSY_AFTER
