"""One group of workers: django-q2's cluster, and beside it the sweep every few seconds.

The watchdog (runs/workers/watchdog.py) starts it as a session of its own and watches its worker status.
"""

import logging
import math
import signal
import time
from typing import Any

from django.conf import settings
from django.db import Error, connection
from django_q.cluster import Cluster
from django_q.signals import post_execute_in_worker, post_spawn, pre_execute

from common.api import idempotency, throttles
from memory.upkeep import upkeep
from runs.actions import mcp
from runs.queue import broker, heartbeat, lease, put, worker_status
from runs.queue.worker_status import WorkerStatus
from runs.webhooks import sending
from runs.workers import sweep

logger = logging.getLogger(__name__)

AGE_SECONDS = 10  # between two looks at the oldest message, and two signs of life
STARTING_SECONDS = 1.0  # the same until the first worker is there
FORWARD_SECONDS = 1.0  # between two looks at what PostgreSQL keeps for Redis
LOCK_SECONDS = 5  # a sweep waits no longer than this for a row
LOOK_SECONDS = 0.2
UPKEEP_SECONDS = 60  # between two rounds of clearing away what is over


def run(page: WorkerStatus, holder: str, gone: list[str]) -> None:
    """Work until SIGTERM, or until the cluster has ended. `gone` are groups whose messages are free."""
    worker_status.current, broker.holder = page, holder
    page.follow_forks()
    post_spawn.connect(_spawned)
    pre_execute.connect(_begins)
    post_execute_in_worker.connect(_ends)
    cluster = Cluster()
    stops: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, frame: stops.append(received))
    cluster.start()
    duties = Duties(page, holder, gone)
    while cluster.sentinel.is_alive() and not stops:
        duties.attend()
        cluster.sentinel.join(LOOK_SECONDS)
    duties.leave()
    cluster.stop()


class Duties:
    """What the group's first process does while the others work. Nothing it meets ends it."""

    def __init__(self, page: WorkerStatus, name: str, gone: list[str]) -> None:
        self.page, self.name, self.gone = page, name, gone
        self.sweep_at = self.age_at = self.upkeep_at = 0.0
        self.forward_at = 0.0 if put.on_redis() else math.inf

    def attend(self) -> None:
        """Whatever is due by now."""
        now = time.monotonic()
        if now < min(self.sweep_at, self.age_at, self.forward_at):
            return
        try:
            if self.gone:
                broker.give_back(self.gone)
                heartbeat.forget(self.gone)
                self.gone = []
            if now >= self.forward_at:
                self.forward_at = now + FORWARD_SECONDS
                put.forward(self.name)
            if now >= self.sweep_at:
                self.sweep_at = now + settings.SWEEP_SECONDS
                swept(LOCK_SECONDS)
            if now >= self.age_at:
                self.age_at = now + (AGE_SECONDS if self.page.workers() else STARTING_SECONDS)
                self.page.oldest = put.oldest(heartbeat.beat(self.name, self.page))
            if now >= self.upkeep_at:
                self.upkeep_at = now + UPKEEP_SECONDS
                upkeep()
                idempotency.forget()
                throttles.forget()
                mcp.refresh_due()
                sending.send_due()
                sending.forget()
                if settings.EMBEDDING_MODEL:
                    put.enqueue_task("embed_memories")
        except Error as error:  # the database may be away: the next round tries again
            logger.warning("could not sweep: %s", type(error).__name__)
            self.page.oldest = 0.0
            connection.close()

    def leave(self) -> None:
        """The group stops in order: nobody is to wait for its next sign of life."""
        try:
            heartbeat.forget([self.name])
        except Error as error:
            logger.warning("could not say goodbye: %s", type(error).__name__)
            connection.close()


def swept(lock_seconds: int) -> None:
    """One sweep that waits no longer than `lock_seconds` for any row."""
    if sweep.anything_due():
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = '{lock_seconds}s'")
        done = sweep.sweep()
        if done.any:
            logger.info("swept: %s", done)


def _spawned(**_: Any) -> None:
    if worker_status.current is not None:
        worker_status.current.ready()
    lease.end_stuck_process = True


def _begins(**_: Any) -> None:
    if worker_status.current is not None:
        worker_status.current.begin()


def _ends(**_: Any) -> None:
    if worker_status.current is not None:
        worker_status.current.end()
