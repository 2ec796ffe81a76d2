"""Advisory file locks. The kernel lets go of them when their holder dies, however it dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from launch.errors import LaunchError


def open_lock(path: Path) -> int:
    """A descriptor to lock; children do not inherit it across exec."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LaunchError(f"cannot open {path}: {error.strerror}.") from None


def shared(path: Path) -> int:
    """Hold the lock with others; waits while one holds it alone. Closing the descriptor lets go."""
    descriptor = open_lock(path)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def alone(path: Path) -> int | None:
    """Hold the lock alone, or None at once when anybody holds it."""
    descriptor = open_lock(path)
    if attempt(descriptor, fcntl.LOCK_EX):
        return descriptor
    os.close(descriptor)
    return None


def attempt(descriptor: int, kind: int) -> bool:
    """Take or change a lock without waiting."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def held(path: Path) -> bool:
    """Whether somebody holds the lock alone."""
    descriptor = open_lock(path)
    try:
        return not attempt(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


@contextmanager
def turn(path: Path) -> Iterator[None]:
    """One at a time; waits for its turn."""
    descriptor = open_lock(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
