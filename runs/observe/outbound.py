"""Outbound calls as they stand, by model or tool and organization; carriers; circuits that are open."""

from dataclasses import dataclass
from datetime import datetime

from common.db import row, rows
from runs.models.outbound import OPEN_AT
from runs.models.queue import ErrandKind, lane, lanes

CALLS = """
SELECT c.target, o.slug, count(*) FILTER (WHERE c.holder <> ''), count(*) FILTER (WHERE c.holder = ''),
       COALESCE(EXTRACT(epoch FROM clock_timestamp() - min(c.begun_at)), 0)::float8,
       COALESCE(EXTRACT(epoch FROM clock_timestamp()
                - min(c.due_at) FILTER (WHERE c.holder = '' AND c.due_at <= now())), 0)::float8
FROM runs_outboundcall c JOIN groups_organization o ON o.id = c.organization_id
WHERE c.answered_at IS NULL GROUP BY 1, 2 ORDER BY 3 DESC, 4 DESC, 1, 2
"""
ERRANDS = """
SELECT queue, count(*), EXTRACT(epoch FROM now() - min(due_at))::float8 FROM runs_queuemessage
WHERE queue = ANY(%s) AND due_at <= now() GROUP BY queue
"""
CARRIERS = "SELECT count(*) FROM runs_carrier WHERE seen_at > now() - interval '30 seconds'"
TROUBLED = """
SELECT target, failures, reason, paused_until FROM runs_outboundtarget
WHERE failures >= %s OR paused_until > now() ORDER BY target
"""


@dataclass(frozen=True)
class Calls:
    """One model's or tool's calls of one organization (its slug); ages of the oldest, in seconds."""

    target: str
    organization: str
    under_way: int
    waiting: int
    oldest: float
    oldest_waiting: float


@dataclass(frozen=True)
class Troubled:
    """A model with an open circuit, or one that asked for a pause."""

    target: str
    failures: int
    reason: str
    paused_until: datetime | None

    @property
    def open(self) -> bool:
        return self.failures >= OPEN_AT


def calls() -> list[Calls]:
    return [Calls(*found) for found in rows(CALLS)]


def errands() -> list[tuple[str, int, float]]:
    """Of each kind of errand: how many wait to be taken, and for how many seconds the oldest has."""
    found = {queue: (count, age) for queue, count, age in rows(ERRANDS, [lanes()])}
    return [(kind.value, *found.get(lane(kind), (0, 0.0))) for kind in ErrandKind]


def carriers() -> int:
    """How many have said within half a minute that they live."""
    return int(row(CARRIERS)[0])


def troubled() -> list[Troubled]:
    return [Troubled(*found) for found in rows(TROUBLED, [OPEN_AT])]
