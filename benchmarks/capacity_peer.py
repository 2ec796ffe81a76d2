"""What the peers of the capacity benchmark share: a process that does all runs at once and says its cost."""

import asyncio
import json
import resource
import time
from collections.abc import Awaitable, Callable
from typing import Any

ASKED = "Find the fastest supplier (case-{})"
LOOK_SECONDS = 0.25


async def serve(work: Callable[[], Awaitable[Any]]) -> None:
    """Do the work and print seconds, processor seconds and kilobytes it took beyond what there was before."""
    idle_kb, cpu = memory_kb("self"), processor_seconds()
    peak = [idle_kb]
    watching = asyncio.create_task(_watch(peak))
    started = time.monotonic()
    await work()
    told = {
        "wall_s": time.monotonic() - started,
        "cpu_s": processor_seconds() - cpu,
        "idle_kb": idle_kb,
        "peak_kb": max(peak[0], memory_kb("self")),
    }
    watching.cancel()
    print(json.dumps(told), flush=True)


async def _watch(peak: list[int]) -> None:
    while True:
        peak[0] = max(peak[0], memory_kb("self"))
        await asyncio.sleep(LOOK_SECONDS)


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def memory_kb(pid: int | str) -> int:
    """The process's share of memory: its own, and its part of what it shares with others."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0
