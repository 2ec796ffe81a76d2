"""One client of a benchmark: a process of its own that does items and times each.

`serve(prepare, Client)` at the end of a module makes it a subject the harness can start. Standard library
only: a peer runs this in its own environment, without Deputy's packages.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

FLUSH = "SELECT pg_stat_force_next_flush()"  # the server counts this connection's commits now, not later


class Client(Protocol):
    """Made with the database's URL; holds whatever connection it needs."""

    def item(self) -> None:
        """One unit of work, committed when it returns."""

    def execute(self, sql: str) -> None:
        """Run one statement, in a transaction of its own, on the connection that items use."""

    def close(self) -> None: ...


def serve(prepare: Callable[[str], None], make: Callable[[str], Client]) -> None:
    """Do as the command line says: `prepare URL`, or `work URL WARM_UP ITEMS`.

    At work the harness reads a line when warm, gives the word with a line, and reads the results: start and
    end on the system's monotonic clock and the milliseconds of each item.
    """
    said, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints stays out of the conversation
    if sys.argv[1] == "prepare":
        prepare(sys.argv[2])
        return
    _, url, warm_up, items = sys.argv[1:]
    client = make(url)
    for _ in range(int(warm_up)):
        client.item()
    client.execute(FLUSH)
    print("ready", file=said, flush=True)
    sys.stdin.readline()
    result = timed(client, int(items))
    client.close()
    print(json.dumps(result), file=said, flush=True)


def timed(client: Client, items: int) -> dict[str, Any]:
    times = []
    started = before = time.monotonic()
    for _ in range(items):
        client.item()
        now = time.monotonic()
        times.append((now - before) * 1000)
        before = now
    return {"started": started, "ended": before, "times_ms": times}
