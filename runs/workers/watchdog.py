"""Keeps a group of workers and its carriers running: replaces what has died, or hangs.

django-q2's processes share locks, and a process killed while it holds one leaves the others waiting
for ever: an idle worker holds the lock of the queue, the monitor that of the results. So a group that
has lost such a process is replaced, while workers that are in the middle of a run may finish it. A
worker killed in the middle of a run holds no lock: django-q2 starts another, and the group's first process
is told which message and which run the dead one had, so that others take them at once.

The watchdog uses no database and starts no thread, so that it can fork at any time. It ends only processes of
the sessions that it has begun: a process's number may be another's by the time it is used.
"""

import contextlib
import logging
import os
import signal
import time
import traceback
import uuid
from dataclasses import dataclass, field

from django.conf import settings
from django.db import connections

from common.processes import follow_parent
from runs.queue import worker_status
from runs.queue.worker_status import BUSY, IDLE, Death, Member, WorkerStatus
from runs.tools import registry
from runs.workers import carriers, worker
from runs.workers import tasks as _tasks  # noqa: F401 - what the workers are told to call

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
HUNG_SECONDS = 10.0  # a message waits this long although a worker is idle: the group hangs
STOP_SECONDS = 15.0  # to finish the step at hand; less than launch/run.py waits
RETIRE_SECONDS = 900.0  # for a replaced group's workers to finish their runs
SETTLED_SECONDS = 30.0  # a group that lived this long, or has begun a message, is replaced at once
LONGEST_PAUSE = 30.0


@dataclass
class Group:
    """A session of processes: django-q2's cluster and all it forks."""

    page: WorkerStatus
    holder: str
    pid: int
    started: float = field(default_factory=time.monotonic)
    ended: bool = False
    retired_at: float = 0.0
    deaths: list[Death] = field(default_factory=list)  # of which nobody has been told

    @classmethod
    def start(cls, gone: list[str]) -> "Group":
        """Fork it. `gone` are the names of groups whose messages are free again."""
        page, holder = WorkerStatus(), uuid.uuid4().hex
        connections.close_all()
        watchdog = os.getpid()
        pid = os.fork()
        if pid:
            return cls(page, holder, pid)
        status = 1
        try:
            os.setsid()
            follow_parent(signal.SIGKILL)
            if os.getppid() == watchdog:
                worker.run(page, holder, gone)
                status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def lives(self) -> bool:
        """Looked at without collecting it: until then nobody else can get its number."""
        if self.ended:
            return False
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def settled(self) -> bool:
        """Whether it came as far as to work."""
        lived = time.monotonic() - self.started
        return lived > SETTLED_SECONDS or any(member.begun for member in self.page.members())

    def complaint(self) -> str | None:
        """Why the group must be replaced, or None."""
        for member in self._dead():
            if member.doing != BUSY:
                return f"process {member.pid} was killed while others depended on it"
            self._bury(member, by_itself=True)
        if self.page.silent:
            return "the group's first process has fallen silent"
        workers = self.page.workers()
        now = time.monotonic()
        rested = any(member.doing == IDLE and now - member.since > HUNG_SECONDS for member in workers)
        if self.page.oldest > HUNG_SECONDS and rested:
            return f"a message has waited {self.page.oldest:.0f} s for an idle worker"
        return None

    def _dead(self) -> list[Member]:
        """Those that ended without a goodbye, workers in the middle of something first."""
        dead = [member for member in self.page.members() if not member.alive]
        return sorted(dead, key=lambda member: member.doing != BUSY)

    def _bury(self, member: Member, by_itself: bool) -> None:
        self.deaths.append(Death.of(member, by_itself))
        self.page.clear(member.slot)

    def retire(self) -> None:
        """No new work: without its sentinel, nothing restarts what takes messages."""
        self.retired_at = time.monotonic()
        self.page.stop()
        for member in self.page.members():
            if member.doing not in (IDLE, BUSY):
                self._send(signal.SIGSTOP, member.pid)

    def finished(self) -> bool:
        """End a retired group when none of its workers is busy any more, or its time is over."""
        for member in self._dead():
            if member.doing == BUSY:
                self._bury(member, by_itself=True)
        busy = any(member.doing == BUSY for member in self.page.members())
        if self.lives() and busy and time.monotonic() - self.retired_at < RETIRE_SECONDS:
            return False
        self.kill()
        return True

    def kill(self) -> None:
        """End every process of the session at once. What its workers were at is no fault of theirs."""
        if self.ended:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):  # its number is still the group's
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.ended = True
        self.deaths += self.page.unsettled()
        for member in self.page.members():
            if member.doing == BUSY:
                self._bury(member, by_itself=False)

    def stop(self, patience: float) -> None:
        """Let every worker finish its step and give its run back; what takes longer is ended."""
        self.page.stop()
        self._send(signal.SIGTERM, self.pid)
        deadline = time.monotonic() + patience
        while self.lives() and time.monotonic() < deadline:
            time.sleep(0.05)
        if self.lives():
            logger.warning("the workers have not stopped in %.0f s; ending them", patience)
        self.kill()

    def _send(self, number: int, pid: int) -> None:
        """Send a signal to a process of this group, and to no other that may have its number by now."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if pid == self.pid or worker_status.is_ours(pid, self.pid):
                os.kill(pid, number)


class Watchdog:
    """Runs one group at a time until it is told to stop."""

    def __init__(self) -> None:
        self.stopping = False
        self.group: Group | None = None
        self.carriers = [carriers.Process() for _ in range(settings.CARRIERS)]
        self.retired: list[Group] = []
        self.gone: list[str] = []
        self.deaths: list[Death] = []  # that the group has yet to be told of
        self.failures = 0
        self.start_at = 0.0

    def run(self) -> None:
        """Until SIGTERM or SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._told)
        while not self.stopping:
            self.look()
            time.sleep(LOOK_SECONDS)
        for group in self.retired:
            group.kill()
        for carrier in self.carriers:
            carrier.terminate()
        if self.group is not None:
            self.group.stop(STOP_SECONDS)
        carriers.stop(self.carriers)

    def _told(self, *_: object) -> None:
        self.stopping = True

    def look(self) -> None:
        """One round."""
        for carrier in self.carriers:
            carrier.look()
            self.deaths += carrier.deaths
            carrier.deaths = []
        finished = [group for group in self.retired if group.finished()]
        self.retired = [group for group in self.retired if not group.ended]
        if self.group is None:
            if time.monotonic() >= self.start_at:
                self.group, self.gone = Group.start(self.gone), []
        elif not self.group.lives():
            finished.append(self.group)
            self.group.kill()  # what it may have left of its session
            self._replace("the workers have ended")
        elif complaint := self.group.complaint():
            self.group.retire()
            self.retired.append(self.group)
            self._replace(complaint)
        for group in filter(None, [*finished, *self.retired, self.group]):
            self.deaths += group.deaths
            group.deaths = []
        self._tell()

    def _tell(self) -> None:
        """Let the group that works now give back what the dead had."""
        while self.group is not None and self.deaths and self.group.page.tell(self.deaths[0]):
            del self.deaths[0]

    def _replace(self, why: str) -> None:
        assert self.group is not None  # noqa: S101
        self.failures = 1 if self.group.settled() else self.failures + 1
        pause = 0.0 if self.failures == 1 else min(2.0 ** (self.failures - 2), LONGEST_PAUSE)
        logger.warning("%s; replacing the group of workers in %g s", why, pause)
        self.gone.append(self.group.holder)
        self.group, self.start_at = None, time.monotonic() + pause


def run() -> None:
    """All of `manage.py cluster`. What every worker needs is loaded once, before they are forked."""
    registry.all_tools()
    Watchdog().run()
