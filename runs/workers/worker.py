"""One group of workers: django-q2's cluster, and beside it the sweep every few seconds.

The watchdog (runs/workers/watchdog.py) starts it as a session of its own and watches its status.
"""

import logging
import math
import signal
import threading
import time
from typing import Any

from django.conf import settings
from django.db import Error, OperationalError, connection
from django_q.cluster import Cluster
from django_q.signals import post_execute_in_worker, post_spawn, pre_execute
from oauth2_provider.models import clear_expired

from common.api import idempotency, throttles
from common.db import is_locked
from groups.sign_in import sessions
from memory.upkeep import upkeep
from runs.actions import mcp_tasks, refreshing, remote_agents
from runs.log import months
from runs.models.queue import ErrandKind
from runs.notices import delivery, watch
from runs.observe import storage
from runs.outbound import lost
from runs.queue import broker, heartbeat, lease, put, worker_status
from runs.queue.worker_status import Death, WorkerStatus
from runs.webhooks import sending
from runs.workers import deaths, schedules, sweep

logger = logging.getLogger(__name__)

BEAT_SECONDS = 4.0  # between two signs of life
STARTING_SECONDS = 1.0  # the same until the first worker is there
FORWARD_SECONDS = 1.0  # between two looks at what PostgreSQL keeps for Redis
LOOK_SECONDS = 0.2
MONTHS_SECONDS = 3_600  # between two looks whether the log has its partitions
UPKEEP_SECONDS = 60  # between two rounds of clearing away what is over
OAUTH_SECONDS = 3600  # the same for programs' tokens, which takes a dozen statements
SILENT_SECONDS = 30.0  # the most that one duty may take; after that the watchdog replaces the group
UPKEEP_TAKES_SECONDS = 900.0  # the same for upkeep, which reads large tables


def run(page: WorkerStatus, holder: str, gone: list[str]) -> None:
    """Work until SIGTERM, or until the cluster has ended. `gone` are groups whose messages are free."""
    worker_status.current, broker.holder = page, holder
    page.begin_session()
    page.promise(SILENT_SECONDS)
    page.follow_forks()
    post_spawn.connect(_spawned)
    pre_execute.connect(_begins)
    post_execute_in_worker.connect(_ends)
    cluster = Cluster()
    stops: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, frame: stops.append(received))
    life = SignsOfLife(page, holder)
    life.show()  # before anything is taken: what nobody is known to have is nobody's
    connection.close()
    cluster.start()
    life.start()
    duties = Duties(page, holder, gone)
    while cluster.sentinel.is_alive() and not stops:
        duties.attend()
        cluster.sentinel.join(LOOK_SECONDS)
    page.promise(math.inf)
    cluster.stop()
    life.end()
    duties.leave()


class SignsOfLife(threading.Thread):
    """Says that the group lives, whatever its duties are at, and finds groups that do not."""

    def __init__(self, page: WorkerStatus, name: str) -> None:
        super().__init__(name="signs of life", daemon=True)
        self.page, self.group = page, name
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(BEAT_SECONDS if self.page.workers() else STARTING_SECONDS):
            self.show()
        connection.close()

    def end(self) -> None:
        self.over.set()
        self.join(SILENT_SECONDS)

    def show(self) -> None:
        """Once. Nothing that it meets ends it."""
        try:
            oldest, somebody_died = heartbeat.beat(self.group, self.page)
            self.page.oldest = put.oldest(oldest)
            if somebody_died and (dead := heartbeat.bury()):
                for name in dead:
                    delivery.give_back(name)
                logger.warning("%d groups of workers have died; what they had is free again", len(dead))
        except Exception as error:
            logger.warning("could not show a sign of life: %s", type(error).__name__)
            self.page.oldest = 0.0
            connection.close()


class Duties:
    """What the group's first process does while the others work. Nothing it meets ends it."""

    def __init__(self, page: WorkerStatus, name: str, gone: list[str]) -> None:
        self.page, self.name, self.gone = page, name, gone
        self.sweep_at = self.upkeep_at = self.oauth_at = self.months_at = 0.0
        self.forward_at = 0.0 if put.on_redis() else math.inf

    def attend(self) -> None:
        """Whatever is due by now."""
        self.page.promise(SILENT_SECONDS)
        now = time.monotonic()
        dead = self.page.unsettled()
        if not dead and now < min(self.sweep_at, self.forward_at):
            return
        try:
            self._attend(now, dead)
        except Error as error:  # the database may be away: the next round tries again
            logger.warning("could not attend to duties: %s", type(error).__name__)
            self.page.oldest = 0.0
            connection.close()

    def _attend(self, now: float, dead: list[Death]) -> None:
        if self.gone:
            broker.give_back(self.gone)
            heartbeat.forget(self.gone)
            for name in self.gone:
                delivery.give_back(name)
            self.gone = []
        for death in dead:
            self._settle(death)
        if now >= self.forward_at:
            self.forward_at = now + FORWARD_SECONDS
            put.forward(self.name)
        if now >= self.sweep_at:
            self.sweep_at = now + settings.SWEEP_SECONDS
            swept()
            remote_agents.cancel_due()
            delivery.send_due()
            watch.attend_due()
        if now >= self.upkeep_at:
            self.upkeep_at = now + UPKEEP_SECONDS
            self._keep_up()

    def _settle(self, death: Death) -> None:
        """What is locked by somebody else comes back with its lease."""
        self.page.promise(SILENT_SECONDS)
        try:
            deaths.settle(death, self.name)
        except OperationalError as error:
            if not is_locked(error):
                raise
            logger.warning("%s is locked by somebody else", death.holds)
        self.page.settled(1)

    def _keep_up(self) -> None:
        self.page.promise(UPKEEP_TAKES_SECONDS)
        broker.give_back_orphans()
        upkeep()
        idempotency.forget()
        throttles.forget()
        refreshing.refresh_due()
        mcp_tasks.attend_due()
        sending.send_due()
        sending.forget()
        lost.forget()
        schedules.forget()
        if (now := time.monotonic()) >= self.oauth_at:
            self.oauth_at = now + OAUTH_SECONDS
            clear_expired()
            sessions.forget()
        if settings.EMBEDDING_MODEL and not put.has_backlog(ErrandKind.OTHER):
            put.enqueue_task("embed_memories")
        storage.keep_up()
        if now >= self.months_at:
            self.months_at = now + MONTHS_SECONDS
            months.keep_up()

    def leave(self) -> None:
        """The group has stopped in order: what it did not come to is anybody's, and nobody waits for it."""
        try:
            broker.give_back([self.name])
            heartbeat.forget([self.name])
        except Error as error:
            logger.warning("could not say goodbye: %s", type(error).__name__)
            connection.close()


def swept() -> None:
    """One sweep, where there is something to sweep."""
    if sweep.anything_due():
        done = sweep.sweep()
        if done.any:
            logger.info("swept: %s", done)


def _spawned(**_: Any) -> None:
    if worker_status.current is not None:
        worker_status.current.ready()
    lease.end_stuck_process = True


def _begins(task: dict[str, Any], **_: Any) -> None:
    if worker_status.current is not None:
        worker_status.current.begin(task.get("ack_id") or 0)


def _ends(**_: Any) -> None:
    if worker_status.current is not None:
        worker_status.current.end()
