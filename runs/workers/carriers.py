"""Carriers as processes: one by itself, or forked and watched by the watchdog beside its workers."""

import contextlib
import ctypes
import logging
import os
import signal
import sys
import time
import traceback
import uuid
from dataclasses import dataclass, field

from django.conf import settings
from django.db import connections

from common.processes import follow_parent, many_files
from runs.queue import broker
from runs.queue.worker_status import Death
from runs.workers.dead_carriers import PREFIX

logger = logging.getLogger(__name__)

PROCESS_NAME = b"deputy-carrier"
PR_SET_NAME = 15
SETTLED_SECONDS = 30.0
LONGEST_PAUSE = 30.0
STOP_SECONDS = 8.0


def new_name() -> str:
    return f"{PREFIX}{uuid.uuid4().hex}"


def run(name: str) -> None:
    """Carry calls and do errands until SIGTERM."""
    from runs.outbound import carrier  # asyncio's half of psycopg is for this process alone
    from runs.tools import registry

    many_files()
    registry.all_tools()
    broker.holder = name
    carrier.run(name, str(settings.Q_CLUSTER["name"]))


@dataclass
class Process:
    """One carrier of this cluster, started again when it ends. `deaths`: those nobody has been told of."""

    pid: int = 0
    name: str = ""
    deaths: list[Death] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    start_at: float = 0.0
    failures: int = 0

    def look(self) -> None:
        """Start it where it is due."""
        if self.pid and os.waitpid(self.pid, os.WNOHANG)[0]:
            settled = time.monotonic() - self.started > SETTLED_SECONDS
            self.failures = 1 if settled else self.failures + 1
            pause = 0.0 if self.failures == 1 else min(2.0 ** (self.failures - 2), LONGEST_PAUSE)
            logger.warning("a carrier has ended; starting another in %g s", pause)
            self.deaths.append(Death(self.pid, 0, 0, True, self.name))
            self.pid, self.start_at = 0, time.monotonic() + pause
        if not self.pid and time.monotonic() >= self.start_at:
            self._start()

    def _start(self) -> None:
        connections.close_all()
        watchdog = os.getpid()
        self.started, self.name = time.monotonic(), new_name()
        self.pid = os.fork()
        if self.pid:
            return
        status = 1
        try:
            os.setsid()
            follow_parent(signal.SIGKILL)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            if sys.platform.startswith("linux"):
                ctypes.CDLL(None).prctl(PR_SET_NAME, PROCESS_NAME, 0, 0, 0)
            if os.getppid() == watchdog:
                run(self.name)
                status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def terminate(self) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def wait(self, deadline: float) -> None:
        """Until it has ended; at the deadline it is ended."""
        while self.pid and time.monotonic() < deadline:
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                self.pid = 0
                return
            time.sleep(0.02)
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0


def stop(carriers: list[Process]) -> None:
    """Let all of them end in order."""
    for each in carriers:
        each.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for each in carriers:
        each.wait(deadline)
