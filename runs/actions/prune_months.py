"""Remove whole months of the log, where no organization keeps the record of any of their runs.

A month goes when it is over and each of its runs has ended, has been pruned (runs/actions/prune.py), and
ended longer ago than its organization keeps the record (`record_days`; empty keeps it for ever). What stays
is the runs' rows, calls and approvals, and a note that the month has gone, by which `verify_run` knows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from common import ids, months
from common.db import execute, row
from runs.log.months import TABLE

MARGIN = timedelta(days=1)  # what was begun in a month has been committed, or given up, so long after its end

# Nobody lengthens what an organization keeps between the look and the end of the transaction.
HOLD = "SELECT id FROM groups_organization FOR SHARE"
KEPT_BY = """
SELECT r.id, o.slug FROM runs_run r JOIN groups_organization o ON o.id = r.organization_id
WHERE r.id >= %s AND r.id < %s AND (
    r.ended_at IS NULL OR r.pruned_at IS NULL OR o.record_days IS NULL
    OR r.ended_at >= clock_timestamp() - o.record_days * interval '1 day')
ORDER BY r.id LIMIT 1
"""
NOTE = """
INSERT INTO runs_gonemonth (name, since, until, gone_at, runs, detached)
SELECT %(name)s, %(since)s::text, %(until)s::text, clock_timestamp(), count(*), %(detached)s
FROM runs_run WHERE id >= %(since)s AND id < %(until)s
"""


@dataclass(frozen=True)
class Month:
    """What became of a partition: `gone`, or `kept_by` a run and its organization's slug."""

    name: str
    bytes: int
    gone: bool
    kept_by: tuple[str, str] | None = None


def prune_months(*, detach: bool = False, dry_run: bool = False) -> Iterator[Month]:
    """Each month that is over, the oldest first. `detach` leaves its table in the database, for an archive.

    Each is a transaction of its own. Raises OperationalError where somebody holds the log's lock.
    """
    over = ids.first_of("run", row("SELECT clock_timestamp()")[0] - MARGIN)
    for found in months.partitions(TABLE):
        if found.until <= over:
            with months.short_locks():
                done = _prune(found, detach, dry_run)
            yield done


def _prune(found: months.Partition, detach: bool, dry_run: bool) -> Month:
    execute(HOLD)
    if kept_by := row(KEPT_BY, [found.since, found.until]):
        return Month(found.name, found.bytes, False, tuple(kept_by))
    if not dry_run:
        values = {"name": found.name, "since": found.since, "until": found.until, "detached": detach}
        execute(NOTE, values)
        months.detach(TABLE, found.name, drop=not detach)
    return Month(found.name, found.bytes, True)
