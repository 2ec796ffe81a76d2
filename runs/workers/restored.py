"""After a restore from a backup: what may have been done since the backup's time is not done again by guess.

The database says nothing of what followed it. So every run that had not ended is taken to have gone on: its
log says that it was restored, and from then on whatever it would do outside stands before a person first
(runs/execution/dispatch.py). Due times that have passed meanwhile start nothing.
"""

from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction

from common.db import own_connection, row, rows
from common.postgres import lineage
from runs.log.log import RunGone, RunLog
from runs.models.choices import ACTIVE, EventType
from runs.outbound import lost
from runs.queue import put
from runs.workers import schedules

ALIVE_SECONDS = 15  # without a sign of life, after which a process is taken for gone

# The last sign of life is as old as the backup's time, within a few seconds.
LAST_SIGN = """
SELECT max(seen_at), max(seen_at) > clock_timestamp() - %s * interval '1 second'
FROM (SELECT seen_at FROM runs_workergroup UNION ALL SELECT seen_at FROM runs_carrier) signs
"""
ACTIVE_RUNS = "SELECT id FROM runs_run WHERE status = ANY(%s) ORDER BY id"
DUE = "SELECT id FROM runs_schedule WHERE next_at <= %s ORDER BY id"


class StillRunning(Exception):
    """Workers or carriers have given a sign of life just now."""


@dataclass
class Found:
    """What a restored installation has to look at. `point`: the last sign of life in the database."""

    point: datetime | None = None
    runs: int = 0
    in_flight: list[tuple[str, str]] = field(default_factory=list)  # (run, call) that a person has to look at
    schedules: int = 0


def after_restore(stopped_at: datetime) -> Found:
    """Mark what the database holds as restored. May be done again, if it was cut short.

    `stopped_at`: when the installation whose backup this is did its last work. Raises StillRunning.
    """
    point, alive = row(LAST_SIGN, [ALIVE_SECONDS])
    if alive:
        raise StillRunning
    found = Found(point)
    for (run_id,) in rows(ACTIVE_RUNS, [sorted(ACTIVE)]):
        mark(run_id, found)
    for (schedule_id,) in rows(DUE, [stopped_at]):
        found.schedules += schedules.leave_out(schedule_id, stopped_at)
    accept()
    return found


def mark(run_id: str, found: Found) -> None:
    """The run's log says that it was restored; of calls under way nobody knows what became."""
    with transaction.atomic():
        try:
            log = RunLog.lock(run_id)
        except RunGone:
            return
        if log.ended:
            return
        log.append(EventType.RUN_RESTORED)
        log.set(crashes=0)
        calls = lost.lose(run_id)
        log.flush()
        if calls:
            put.resume(run_id)
    found.runs += 1
    found.in_flight += [(run_id, call_id) for call_id in calls]


def accept() -> bool:
    """Let processes act on the database where it is now. Whether it was noted elsewhere before."""
    own = own_connection()
    try:
        here, noted = lineage.here(own), lineage.noted(own)
        if here is None:
            return False
        lineage.note(own, *here)
    finally:
        own.close()
    return noted is not None and noted != here
