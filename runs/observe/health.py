"""Is there work, and does anybody do it: what probes and metrics ask of the database, in one look."""

from dataclasses import dataclass

from common.db import row
from runs.models.queue import lanes

LIVE_SECONDS = 30  # a group of workers that said nothing for so long does not live
LATE_SECONDS = 60  # work that nobody has begun for so long is late

LOOK = """
SELECT
    (SELECT count(*) FROM runs_queuemessage WHERE due_at <= clock_timestamp() AND NOT queue = ANY(%(lanes)s)),
    (SELECT EXTRACT(epoch FROM clock_timestamp() - min(due_at))::float8
     FROM runs_queuemessage WHERE due_at <= clock_timestamp() AND NOT queue = ANY(%(lanes)s)),
    (SELECT EXTRACT(epoch FROM clock_timestamp() - min(COALESCE(queued_at, created_at)))::float8
     FROM runs_run WHERE status = 'pending' AND driver = 'internal'),
    live.groups, live.workers, live.busy
FROM (SELECT count(*) AS groups, COALESCE(sum(workers), 0) AS workers, COALESCE(sum(busy), 0) AS busy
      FROM runs_workergroup WHERE seen_at > clock_timestamp() - %(live)s * interval '1 second') live
"""


@dataclass(frozen=True)
class Health:
    """Messages that workers may take, how long (seconds) the oldest one and the oldest pending run have
    waited, and the groups of workers that live, with their workers and how many of those are busy.
    """

    queue_depth: int
    queue_age: float
    pending_age: float
    groups: int
    workers: int
    busy: int

    @property
    def late(self) -> bool:
        """Whether work lies where nobody takes it."""
        return max(self.queue_age, self.pending_age) > LATE_SECONDS


def health() -> Health:
    depth, queue_age, pending_age, *groups = row(LOOK, {"live": LIVE_SECONDS, "lanes": lanes()})
    return Health(depth, queue_age or 0.0, pending_age or 0.0, *groups)
