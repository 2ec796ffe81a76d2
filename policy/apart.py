"""Conditions that may take long are evaluated in a process apart, which ends where they take too much.

The engine bounds how often a condition iterates, not how much each iteration does: `[x].map(a, [a, a])` a few
times over makes a list that takes hours to compare and `x + x` one text of gigabytes, all the while no other
thread of the process gets to run. So what could grow is asked of a child that may use SECONDS of a processor
and MEMORY bytes; whatever exceeds that is an error of the condition.

    python -m policy.apart     reads questions from its standard input, and answers them
"""

import contextlib
import json
import os
import pickle
import resource
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import IO, Any, cast

SECONDS = 0.2  # of a processor, for one condition
DECISION_SECONDS = 0.4  # for all conditions of one decision, of those that are evaluated apart
REQUEST_SECONDS = 2.0  # and of one request that asks for many decisions
LONGEST_SECONDS = 20.0  # by the clock, on a machine that is busy with other things
LEAST_SECONDS = 0.01
MEMORY = 384 * 1024 * 1024  # bytes
AT_ONCE = 2  # in one process
LOOK_SECONDS = 5.0  # between two looks of an idle child whether its parent is still there
HEAD = struct.Struct("<I")
TOO_MUCH = "it takes too much time or memory"


class Failed(Exception):
    """The condition has no answer; the message says why."""


_left: ContextVar[float | None] = ContextVar("deputy_conditions_left", default=None)


@contextlib.contextmanager
def allowance(seconds: float) -> Iterator[None]:
    """Within it all conditions together have at most so many seconds of a processor, or what is left of an
    allowance around it.
    """
    around = _left.get()
    given = seconds if around is None else min(seconds, around)
    kept = _left.set(given)
    try:
        yield
    finally:
        left = _left.get() or 0.0
        _left.reset(kept)
        if around is not None:
            _left.set(max(0.0, around - (given - left)))


def truth(text: str, values: Mapping[str, Any]) -> bool:
    """Whether the condition is true of these values. Raises Failed."""
    left = _left.get()
    if left is not None and left < LEAST_SECONDS:
        raise Failed("the conditions before it took the time that there is for one decision")
    seconds = SECONDS if left is None else min(SECONDS, left)
    used = seconds
    try:
        answer = _pool.ask(pickle.dumps((text, dict(values), seconds)))
        used = float(answer["used"])
    finally:
        if left is not None:
            _left.set(max(0.0, left - used))
    if "failed" in answer:
        raise Failed(str(answer["failed"]))
    return bool(answer["truth"])


def _comes(pipe: Any, seconds: float) -> bool:
    """Whether there is something to read, within so many seconds. No limit to the pipe's number."""
    looking = select.poll()
    looking.register(pipe, select.POLLIN | select.POLLHUP)
    return bool(looking.poll(seconds * 1000))


class Pool:
    """Children of this process that wait for the next question."""

    def __init__(self) -> None:
        self.idle: list[Child] = []
        self.lock = Lock()
        self.turns = BoundedSemaphore(AT_ONCE)

    def ask(self, question: bytes) -> dict[str, Any]:
        """The answer. Raises Failed."""
        with self.turns:
            with self.lock:
                child = self.idle.pop() if self.idle else None
            child = child if child is not None and child.is_there() else Child()
            answer = child.ask(question)
            with self.lock:
                self.idle.append(child)
            return answer


class Child:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "policy.apart"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).resolve().parent.parent,
            env={},  # it needs no secrets
            start_new_session=True,  # what is sent to a terminal's processes is for the parent
        )

    def is_there(self) -> bool:
        return self.process.poll() is None

    def ask(self, question: bytes) -> dict[str, Any]:
        """The answer; without one the child is gone. Raises Failed."""
        given, taken = self.pipes()
        try:
            given.write(HEAD.pack(len(question)) + question)
            given.flush()
            if _comes(taken, LONGEST_SECONDS) and (line := taken.readline()):
                answer: dict[str, Any] = json.loads(line)
                return answer
        except (OSError, ValueError):
            pass
        self.end()
        raise Failed(TOO_MUCH)

    def pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        return cast(IO[bytes], self.process.stdin), cast(IO[bytes], self.process.stdout)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in self.pipes():
            with contextlib.suppress(OSError):
                pipe.close()


_pool = Pool()


def _renew() -> None:
    """After a fork: the children are the other process's, and so are its turns."""
    global _pool
    _pool = Pool()


os.register_at_fork(after_in_child=_renew)


# the child


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):  # where memory ends all the same, this process goes first
        Path("/proc/self/oom_score_adj").write_text("1000")
    parent = os.getppid()
    given = os.fdopen(0, "rb", buffering=0, closefd=False)
    while os.getppid() == parent:
        if _comes(given, LOOK_SECONDS):
            head = _read(given, HEAD.size)
            if len(head) < HEAD.size:
                return
            _answer(_read(given, HEAD.unpack(head)[0]))


def _read(given: Any, size: int) -> bytes:
    found = b""
    while len(found) < size and (piece := given.read(size - len(found))):
        found += piece
    return found


def _answer(question: bytes) -> None:
    """One line of JSON. The kernel ends this process where the seconds are over."""
    from policy import conditions

    text, values, seconds = pickle.loads(question)  # noqa: S301 - what the parent has written
    began = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        answer: dict[str, Any] = {"truth": conditions.here(text, values)}
    except conditions.ConditionError as failure:
        answer = {"failed": TOO_MUCH if "bad_alloc" in str(failure) else str(failure)}
    except MemoryError:
        answer = {"failed": TOO_MUCH}
    signal.setitimer(signal.ITIMER_PROF, 0)
    told = json.dumps({**answer, "used": time.process_time() - began})
    sys.stdout.write(told + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
