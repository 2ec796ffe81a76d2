"""Groups of workers say that they live, so that anybody can see whether somebody works."""

import socket

from common.db import execute
from runs.board import BUSY, Board

FORGET_SECONDS = 3600  # a group that said nothing for this long is no longer kept

BEAT = """
WITH forgotten AS (
    DELETE FROM runs_workergroup WHERE seen_at < clock_timestamp() - %s * interval '1 second' AND name <> %s
)
INSERT INTO runs_workergroup (name, host, workers, busy, started_at, seen_at)
VALUES (%s, %s, %s, %s, clock_timestamp(), clock_timestamp())
ON CONFLICT (name) DO UPDATE SET workers = EXCLUDED.workers, busy = EXCLUDED.busy, seen_at = EXCLUDED.seen_at
"""


def beat(name: str, page: Board) -> None:
    """This group lives, with so many workers."""
    alive = [worker for worker in page.workers() if worker.alive]
    busy = sum(worker.doing == BUSY for worker in alive)
    host = socket.gethostname()[:200]
    execute(BEAT, [FORGET_SECONDS, name, name, host, len(alive), busy])


def forget(names: list[str]) -> None:
    """These groups are gone."""
    execute("DELETE FROM runs_workergroup WHERE name = ANY(%s)", [names])
