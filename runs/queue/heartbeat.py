"""Groups of workers say that they live, so that anybody can see whether somebody works."""

import socket

from django.conf import settings

from common.db import execute, row
from runs.queue.broker import OLDEST
from runs.queue.worker_status import BUSY, WorkerStatus

FORGET_SECONDS = 3600  # a group that said nothing for this long is no longer kept

BEAT = f"""
WITH forgotten AS (
    DELETE FROM runs_workergroup WHERE seen_at < clock_timestamp() - %s * interval '1 second' AND name <> %s
)
INSERT INTO runs_workergroup (name, host, workers, busy, started_at, seen_at)
VALUES (%s, %s, %s, %s, clock_timestamp(), clock_timestamp())
ON CONFLICT (name) DO UPDATE SET workers = EXCLUDED.workers, busy = EXCLUDED.busy, seen_at = EXCLUDED.seen_at
RETURNING ({OLDEST})
"""  # noqa: S608 - the broker's question


def beat(name: str, page: WorkerStatus) -> float:
    """This group lives, with so many workers. Returns how many seconds the oldest message in PostgreSQL has
    been waiting: a group with nothing to do asks the database as rarely as it can.
    """
    alive = [worker for worker in page.workers() if worker.alive]
    busy = sum(worker.doing == BUSY for worker in alive)
    said = [name, socket.gethostname()[:200], len(alive), busy]
    return float(row(BEAT, [FORGET_SECONDS, name, *said, settings.Q_CLUSTER["name"]])[0])


def forget(names: list[str]) -> None:
    """These groups are gone."""
    execute("DELETE FROM runs_workergroup WHERE name = ANY(%s)", [names])
