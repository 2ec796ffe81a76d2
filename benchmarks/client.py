"""One client of a benchmark: a process of its own that does items and times each.

`serve(prepare, Client)` at the end of a module makes it a subject the harness can start. Standard library
only: a peer runs this in its own environment, without Deputy's packages.
"""

import json
import resource
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

FLUSH = "SELECT pg_stat_force_next_flush()"  # the server counts this connection's commits now, not later


class Client(Protocol):
    """Made with the database's URL; holds whatever connection it needs."""

    def item(self) -> None:
        """One unit of work, committed when it returns."""

    def execute(self, sql: str) -> None:
        """Run one statement, in a transaction of its own, on each connection that items use."""

    def close(self) -> None: ...


def serve(prepare: Callable[[str], None], **kinds: Callable[[str], Client]) -> None:
    """Do as the command line says: `prepare URL`, or `KIND URL WARM_UP ITEMS` with one of `kinds`.

    A client says `ready` when warm, starts at the harness's word, tells its results (start and end on the
    system's monotonic clock, the milliseconds of each item, what its process has grown by) and leaves at
    another word.
    """
    said, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints stays out of the conversation
    if sys.argv[1] == "prepare":
        prepare(sys.argv[2])
        return
    kind, url, warm_up, items = sys.argv[1:]
    client = kinds[kind](url)
    for _ in range(int(warm_up)):
        client.item()
    client.execute(FLUSH)
    print("ready", file=said, flush=True)
    if not sys.stdin.readline():
        return  # the harness is gone
    print(json.dumps(timed(client, int(items))), file=said, flush=True)
    sys.stdin.readline()
    client.close()


def timed(client: Client, items: int) -> dict[str, Any]:
    times = []
    memory, threads = peak_memory_kb(), threading.active_count()
    started = before = time.monotonic()
    for _ in range(items):
        client.item()
        now = time.monotonic()
        times.append((now - before) * 1000)
        before = now
    return {
        "started": started,
        "ended": before,
        "times_ms": times,
        "threads": threading.active_count() - threads,
        "memory_kb": peak_memory_kb() - memory,
    }


def peak_memory_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
