"""What the processes of one cluster tell each other without the database: who is at work, who has died.

A page of memory made by the watchdog and shared by fork. Each process has a slot of its own and is the
only one to write it, except for the watchdog, which clears the slots of the dead. A slot has two records,
written in turn, each with its version and a checksum: who reads takes the newest whole one, so that neither
a read during a write nor a writer killed in the middle of one shows anything but what was written before.
"""

import mmap
import os
import signal
import struct
import time
import zlib
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from multiprocessing import util
from typing import Any, Self

from common.processes import follow_parent

# A helper is every process that is no worker; a slot is kept for a process that is about to be forked.
EMPTY, HELPER, IDLE, BUSY, KEPT = range(5)
KEPT_SECONDS = 30.0  # after which nobody was forked for it
SLOTS = 256
DEATHS = 64  # of which the group's first process can be told before it has dealt with them
# whether to stop; how old the oldest message is; by when the first process will have said that it lives;
# the session of the group's processes; how many deaths were told, and how many dealt with; slots in use
STOPPING, OLDEST, PROMISE, SESSION, TOLD, SETTLED, USED = range(0, 56, 8)
NUMBER, SECONDS = struct.Struct("=Q"), struct.Struct("=d")
HEADER_SIZE = 56
SUM = struct.Struct("=I")
SLOWEST = 1.0  # what a worker is believed to need for a message until it has shown better
WEIGHT = 0.2  # of the last message in the mean of what one takes
READS = 10_000  # attempts to find a whole record; more than two writes would have to fall into each


@dataclass(frozen=True)
class Member:
    """One process as its slot shows it. `since` is by time.monotonic(), which all processes share.

    `message` is the number of the message a worker is at, 0 if none, and `holds` the run or outside call
    whose lease it keeps, as claimed by `attempt`.
    """

    slot: int
    session: int
    pid: int = 0
    doing: int = EMPTY
    since: float = 0.0
    begun: int = 0
    takes: float = 0.0
    message: int = 0
    attempt: int = 0
    holds: str = ""

    @property
    def alive(self) -> bool:
        return is_ours(self.pid, self.session)


@dataclass(frozen=True)
class Death:
    """A worker that ended in the middle of a message. `by_itself`: Deputy did not end it."""

    pid: int
    message: int
    attempt: int
    by_itself: bool
    holds: str

    @classmethod
    def of(cls, member: Member, by_itself: bool) -> Self:
        return cls(member.pid, member.message, member.attempt, by_itself, member.holds)


def is_ours(pid: int, session: int) -> bool:
    """Whether a process of this number lives and belongs to this session: numbers are used again."""
    try:
        if session:
            return os.getsid(pid) == session
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


class Records:
    """Things of one shape in a row, each with a checksum."""

    def __init__(self, page: mmap.mmap, at: int, shape: str) -> None:
        self.page, self.at, self.shape = page, at, struct.Struct(shape)
        self.size = self.shape.size + SUM.size

    def write(self, number: int, *values: Any) -> None:
        packed = self.shape.pack(*values)
        start = self.at + number * self.size
        self.page[start : start + self.size] = packed + SUM.pack(zlib.crc32(packed))

    def read(self, number: int) -> tuple[Any, ...] | None:
        """None where it is being written, or was left half-written. Nothing but zeros was never written."""
        start = self.at + number * self.size
        found = self.page[start : start + self.size]
        packed = found[: self.shape.size]
        if SUM.unpack(found[self.shape.size :])[0] != zlib.crc32(packed):
            return None if any(found) else self.shape.unpack(packed)
        return self.shape.unpack(packed)


class WorkerStatus:
    """The page. One process forks at a time, so the next slot is chosen before the fork."""

    def __init__(self) -> None:
        slot, death = "=QibdQdqI40p", "=iqI?40p"  # of a slot: the version, then a Member's fields
        sizes = [struct.calcsize(shape) + SUM.size for shape in (slot, death)]
        self.page = mmap.mmap(-1, HEADER_SIZE + 2 * SLOTS * sizes[0] + DEATHS * sizes[1])
        self.slots = Records(self.page, HEADER_SIZE, slot)
        self.deaths = Records(self.page, HEADER_SIZE + 2 * SLOTS * sizes[0], death)
        self.slot: int | None = None  # of this very process
        self.next_slot = -1
        self._parent = 0
        self._own: Member | None = None  # what this process has written last, and as which version
        self._version = 0

    # Every process

    def members(self) -> Iterator[Member]:
        for slot in range(self._number(USED)):
            member = self._read(slot)
            if member.doing not in (EMPTY, KEPT):
                yield member

    def workers(self) -> list[Member]:
        return [member for member in self.members() if member.doing in (IDLE, BUSY)]

    @property
    def stopping(self) -> bool:
        return bool(self._number(STOPPING))

    def stop(self) -> None:
        """Ask the workers to let go of their runs after the step they are at."""
        NUMBER.pack_into(self.page, STOPPING, 1)

    @property
    def session(self) -> int:
        """The session of the group's processes; 0 before it has one."""
        return self._number(SESSION)

    def begin_session(self) -> None:
        """This process is the first of the group."""
        NUMBER.pack_into(self.page, SESSION, os.getsid(0))

    @property
    def oldest(self) -> float:
        """Seconds the oldest message had been waiting when somebody last looked."""
        return float(SECONDS.unpack_from(self.page, OLDEST)[0])

    @oldest.setter
    def oldest(self, seconds: float) -> None:
        SECONDS.pack_into(self.page, OLDEST, seconds)

    def use(self, slot: int) -> None:
        """This process has that slot."""
        self.slot = slot
        NUMBER.pack_into(self.page, USED, max(self._number(USED), slot + 1))

    def clear(self, slot: int) -> None:
        self._put(Member(slot, self.session))

    # The group's first process, and the watchdog

    def promise(self, seconds: float) -> None:
        """The group's first process will be heard of again within this time."""
        SECONDS.pack_into(self.page, PROMISE, time.monotonic() + seconds)

    @property
    def silent(self) -> float:
        """Seconds since the group's first process should have been heard of; 0 where it is in time."""
        by = SECONDS.unpack_from(self.page, PROMISE)[0]
        return max(0.0, time.monotonic() - by) if by else 0.0

    def tell(self, death: Death) -> bool:
        """The watchdog tells the first process of a death; False where it has to be told later."""
        told = self._number(TOLD)
        if told - self._number(SETTLED) >= DEATHS:
            return False
        self.deaths.write(told % DEATHS, *astuple(death)[:-1], death.holds.encode())
        NUMBER.pack_into(self.page, TOLD, told + 1)
        return True

    def unsettled(self) -> list[Death]:
        """The deaths that were told and not dealt with, in order."""
        found = []
        for number in range(self._number(SETTLED), self._number(TOLD)):
            values = self.deaths.read(number % DEATHS)
            if values is None:  # its counter has come before it
                break
            pid, message, attempt, by_itself, holds = values
            found.append(Death(pid, message, attempt, by_itself, holds.decode()))
        return found

    def settled(self, count: int) -> None:
        """So many of them have been dealt with."""
        NUMBER.pack_into(self.page, SETTLED, self._number(SETTLED) + count)

    # A worker

    def ready(self) -> None:
        """This process is a worker, and idle."""
        self._become(doing=IDLE, takes=SLOWEST)

    def begin(self, message: int = 0) -> None:
        if self.slot is not None:
            self._become(doing=BUSY, begun=self._mine(self.slot).begun + 1, message=message)

    def end(self) -> None:
        if self.slot is not None:
            own = self._mine(self.slot)
            took = time.monotonic() - own.since
            takes = own.takes + WEIGHT * (took - own.takes)
            self._become(doing=IDLE, takes=takes, message=0, holds="", attempt=0)

    def hold(self, holds: str, attempt: int) -> None:
        """This worker keeps the lease of this run or call; of none where it is empty."""
        if self.slot is not None:
            self._put(replace(self._mine(self.slot), holds=holds, attempt=attempt))

    # Forking

    def follow_forks(self) -> None:
        """From now on every process that multiprocessing forks here, or below, gets a slot and
        dies with its parent."""
        os.register_at_fork(before=self._choose_slot)
        util.register_after_fork(self, WorkerStatus._forked)

    def _choose_slot(self) -> None:
        self._parent = os.getpid()
        for slot in range(SLOTS):
            if self._is_free(self._read(slot)):
                self.next_slot = slot
                self._put(Member(slot, self.session, doing=KEPT, since=time.monotonic()))
                NUMBER.pack_into(self.page, USED, max(self._number(USED), slot + 1))
                return

    @staticmethod
    def _is_free(member: Member) -> bool:
        forgotten = member.doing == KEPT and time.monotonic() - member.since > KEPT_SECONDS
        return member.doing == EMPTY or forgotten

    def _forked(self) -> None:
        follow_parent(signal.SIGKILL)
        if os.getppid() != self._parent:  # it died before the kernel was asked
            os._exit(1)
        self.slot, self._own = self.next_slot, None
        self._become(doing=HELPER)
        util.Finalize(None, self._goodbye, exitpriority=0)

    def _goodbye(self) -> None:
        """This process ends of its own accord: it holds nothing that others wait for."""
        if self.slot is not None:
            self.clear(self.slot)

    def _become(self, **changed: Any) -> None:
        assert self.slot is not None  # noqa: S101
        own = self._mine(self.slot)
        self._put(replace(own, pid=os.getpid(), since=time.monotonic(), **changed))

    def _mine(self, slot: int) -> Member:
        """This process's own slot, which nobody else writes."""
        return self._own or self._read(slot)

    def _put(self, member: Member) -> None:
        """Write the older of the slot's two records."""
        if self._own is None or member.slot != self.slot:
            version = max(record[0] for record in self._records(member.slot)) + 1
        else:
            version = self._version + 1
        if member.slot == self.slot:
            self._own, self._version = member, version
        times = (member.since, member.begun, member.takes)
        values = (member.pid, member.doing, *times, member.message, member.attempt, member.holds.encode())
        self.slots.write(2 * member.slot + version % 2, version, *values)

    def _read(self, slot: int) -> Member:
        """The newest whole record."""
        newest = max(self._records(slot), key=lambda record: int(record[0]))
        _, pid, doing, since, begun, takes, message, attempt, holds = newest
        return Member(slot, self.session, pid, doing, since, begun, takes, message, attempt, holds.decode())

    def _records(self, slot: int) -> list[tuple[Any, ...]]:
        """Those of the slot's records that are whole; one is, but for a moment at most."""
        for _ in range(READS):
            found = [self.slots.read(2 * slot + which) for which in (0, 1)]
            if whole := [record for record in found if record is not None]:
                return whole
        raise RuntimeError(f"slot {slot} of the page cannot be read")

    def _number(self, at: int) -> int:
        return int(NUMBER.unpack_from(self.page, at)[0])


current: WorkerStatus | None = None  # of the cluster this process belongs to, if it does


def stopping() -> bool:
    """Whether this process should let go of what it can."""
    return current is not None and current.stopping


def hold(holds: str, attempt: int) -> None:
    """For who takes a lease, or lets go of one: in a worker, its slot says so."""
    if current is not None:
        current.hold(holds, attempt)


def alive_for(seconds: float) -> None:
    """For whatever takes long in the group's first process: it lives, and will be heard of again."""
    if current is not None and current.slot is None:
        current.promise(seconds)
