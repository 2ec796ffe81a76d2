"""What the processes of one cluster tell each other without the database: who is at work, who has died.

A page of memory made by the watchdog and shared by fork. Each process has a slot of its own and is the
only one to write it, except for the watchdog, which clears the slots of the dead.
"""

import mmap
import os
import signal
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import util

from common.processes import follow_parent

EMPTY, HELPER, IDLE, BUSY = range(4)  # a helper is every process that is no worker
SLOTS = 256
STOPPING, OLDEST = struct.Struct("=Q"), struct.Struct("=d")  # whether; how old the oldest message is
HEADER_SIZE = STOPPING.size + OLDEST.size
SLOT = struct.Struct("=ibdQd")  # pid; what it does; since when; messages begun; seconds one takes
SLOWEST = 1.0  # what a worker is believed to need for a message until it has shown better
WEIGHT = 0.2  # of the last message in the mean of what one takes


@dataclass(frozen=True)
class Member:
    """One process as its slot shows it. `since` is by time.monotonic(), which all processes share."""

    slot: int
    pid: int
    doing: int
    since: float
    begun: int
    takes: float

    @property
    def alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True


class WorkerStatus:
    """The page. One process forks at a time, so the next slot is chosen before the fork."""

    def __init__(self) -> None:
        self.page = mmap.mmap(-1, HEADER_SIZE + SLOTS * SLOT.size)
        self.slot: int | None = None  # of this very process
        self.next_slot = -1
        self._parent = 0

    # Every process

    def members(self) -> Iterator[Member]:
        for slot in range(SLOTS):
            values = self._read(slot)
            if values[1] != EMPTY:
                yield Member(slot, *values)

    def workers(self) -> list[Member]:
        return [member for member in self.members() if member.doing in (IDLE, BUSY)]

    @property
    def stopping(self) -> bool:
        return bool(STOPPING.unpack_from(self.page)[0])

    def stop(self) -> None:
        """Ask the workers to let go of their runs after the step they are at."""
        STOPPING.pack_into(self.page, 0, 1)

    @property
    def oldest(self) -> float:
        """Seconds the oldest message had been waiting when somebody last looked."""
        return float(OLDEST.unpack_from(self.page, STOPPING.size)[0])

    @oldest.setter
    def oldest(self, seconds: float) -> None:
        OLDEST.pack_into(self.page, STOPPING.size, seconds)

    def clear(self, slot: int) -> None:
        SLOT.pack_into(self.page, self._at(slot), 0, EMPTY, 0.0, 0, 0.0)

    # A worker

    def ready(self) -> None:
        """This process is a worker, and idle."""
        self._write(IDLE, 0, SLOWEST)

    def begin(self) -> None:
        if self.slot is not None:
            _, _, _, begun, takes = self._read(self.slot)
            self._write(BUSY, begun + 1, takes)

    def end(self) -> None:
        if self.slot is not None:
            _, _, since, begun, takes = self._read(self.slot)
            took = time.monotonic() - since
            self._write(IDLE, begun, takes + WEIGHT * (took - takes))

    # Forking

    def follow_forks(self) -> None:
        """From now on every process that multiprocessing forks here, or below, gets a slot and
        dies with its parent."""
        os.register_at_fork(before=self._choose_slot)
        util.register_after_fork(self, WorkerStatus._forked)

    def _choose_slot(self) -> None:
        self._parent = os.getpid()
        for offset in range(1, SLOTS):  # not the last one: that child may not have written to it yet
            slot = (self.next_slot + offset) % SLOTS
            if self._read(slot)[1] == EMPTY:
                self.next_slot = slot
                return

    def _forked(self) -> None:
        follow_parent(signal.SIGKILL)
        if os.getppid() != self._parent:  # it died before the kernel was asked
            os._exit(1)
        self.slot = self.next_slot
        self._write(HELPER, 0, 0.0)
        util.Finalize(None, self._goodbye, exitpriority=0)

    def _goodbye(self) -> None:
        """This process ends of its own accord: it holds nothing that others wait for."""
        if self.slot is not None:
            self.clear(self.slot)

    def _read(self, slot: int) -> tuple[int, int, float, int, float]:
        pid, doing, since, begun, takes = SLOT.unpack_from(self.page, self._at(slot))
        return pid, doing, since, begun, takes

    def _write(self, doing: int, begun: int, takes: float) -> None:
        assert self.slot is not None  # noqa: S101
        values = (os.getpid(), doing, time.monotonic(), begun, takes)
        SLOT.pack_into(self.page, self._at(self.slot), *values)

    @staticmethod
    def _at(slot: int) -> int:
        return HEADER_SIZE + slot * SLOT.size


current: WorkerStatus | None = None  # of the cluster this process belongs to, if it does


def stopping() -> bool:
    """Whether this process should let go of what it can."""
    return current is not None and current.stopping
