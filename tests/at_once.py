"""Several at once, each on a connection of its own."""

import fcntl
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connection

from common.db import row

PATIENCE = 30.0  # seconds
CROWD = 20  # connections
# of this database: the other test processes' databases are on the same server
BLOCKED = """
    SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted AND pid IN (
        SELECT pid FROM pg_locks JOIN pg_database ON oid = database WHERE datname = current_database()
    )
"""


def at_once(*todo: Callable[[], Any]) -> list[Any]:
    """What each returned, or the exception it raised, when all began at the same moment."""
    barrier = threading.Barrier(len(todo))
    told: list[Any] = [None] * len(todo)

    def one(number: int) -> None:
        try:
            connection.ensure_connection()
            barrier.wait(PATIENCE)
            told[number] = todo[number]()
        except Exception as error:
            told[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=one, args=(number,)) for number in range(len(todo))]
    with _crowd(len(threads)):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads), "somebody waits for ever"
    return told


@contextmanager
def _crowd(size: int) -> Iterator[None]:
    """One crowd at a time on this machine: two would take all of a server's hundred connections."""
    if size < CROWD:
        yield
        return
    with (Path(tempfile.gettempdir()) / f"deputy-crowd-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Beside:
    """One thing done beside the test, from the moment it is made; `result` waits for it."""

    def __init__(self, todo: Callable[[], Any]) -> None:
        self.told: Any = None
        self.todo = todo
        self.thread = threading.Thread(target=self._do)
        self.thread.start()

    def _do(self) -> None:
        try:
            self.told = self.todo()
        except Exception as error:
            self.told = error
        finally:
            connection.close()

    @property
    def done(self) -> bool:
        return not self.thread.is_alive()

    def result(self) -> Any:
        self.thread.join(PATIENCE)
        assert self.done, "it waits for ever"
        return self.told


def until_blocked(other: Beside, count: int = 1) -> None:
    """Return when so many connections wait for a lock, or the other has come through without."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and not other.done:
        waiting = row(BLOCKED)[0]
        if waiting >= count:
            return
        time.sleep(0.005)
