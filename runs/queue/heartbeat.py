"""Groups of workers say that they live, so that anybody can see whether somebody works, and whose messages
are free again: those of a group that has said nothing for DEAD_SECONDS.
"""

import socket

from django.conf import settings

from common.db import execute, row, rows
from runs.models.operations import LEVEL
from runs.queue.broker import OLDEST
from runs.queue.worker_status import BUSY, WorkerStatus

DEAD_SECONDS = 12  # a group that said nothing for this long is dead: three signs of life have not come

BEAT = f"""
INSERT INTO runs_workergroup (name, host, workers, busy, started_at, seen_at, level)
VALUES (%(name)s, %(host)s, %(workers)s, %(busy)s, clock_timestamp(), clock_timestamp(), {LEVEL})
ON CONFLICT (name) DO UPDATE SET workers = EXCLUDED.workers, busy = EXCLUDED.busy, seen_at = EXCLUDED.seen_at
RETURNING ({OLDEST}), EXISTS (SELECT FROM runs_workergroup
                              WHERE seen_at < clock_timestamp() - %(dead)s * interval '1 second')
"""  # noqa: S608 - the broker's question
BURY = """
WITH dead AS (
    DELETE FROM runs_workergroup WHERE seen_at < clock_timestamp() - %s * interval '1 second' RETURNING name),
given_back AS (
    UPDATE runs_queuemessage SET due_at = now(), holder = '' WHERE holder IN (SELECT name FROM dead))
SELECT name FROM dead
"""


def beat(name: str, page: WorkerStatus) -> tuple[float, bool]:
    """This group lives, with so many workers. Returns how many seconds the oldest message in PostgreSQL has
    been waiting, and whether there is a group that has died: a group with nothing to do asks the database as
    rarely as it can.
    """
    alive = [worker for worker in page.workers() if worker.alive]
    busy = sum(worker.doing == BUSY for worker in alive)
    said = {"name": name, "host": socket.gethostname()[:200], "workers": len(alive), "busy": busy}
    oldest, dead = row(BEAT, said | {"dead": DEAD_SECONDS, "queue": settings.Q_CLUSTER["name"]})
    return float(oldest), bool(dead)


def bury() -> list[str]:
    """Forget the groups that have died and let their messages be taken; returns their names."""
    return [name for (name,) in rows(BURY, [DEAD_SECONDS])]


def forget(names: list[str]) -> None:
    """These groups are gone."""
    execute("DELETE FROM runs_workergroup WHERE name = ANY(%s)", [names])
