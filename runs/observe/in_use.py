"""What an organization has of each thing that is limited, and its limit."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from common.api import slots
from common.db import row

LOOK = """
SELECT (SELECT count(*) FROM runs_run WHERE organization_id = o.id AND status = 'pending'), o.queue_limit,
    (SELECT count(*) FROM runs_outboundcall
     WHERE organization_id = o.id AND holder <> '' AND answered_at IS NULL),
    LEAST(o.calls_limit, %s), used.size, o.storage_limit, used.measured_at
FROM groups_organization o LEFT JOIN groups_storageuse used ON used.organization_id = o.id WHERE o.id = %s
"""


@dataclass(frozen=True)
class InUse:
    """Of an organization, each with its limit: pending runs, calls under way, bytes of the database, and
    streams and waiting requests of this web process. `size` is None until it was measured, and its
    limit where there is none.
    """

    runs: tuple[int, int]
    calls: tuple[int, int]
    size: tuple[int | None, int | None]
    streams: tuple[int, int]
    measured_at: datetime | None


def in_use(organization_id: str) -> InUse:
    found = row(LOOK, [settings.ORGANIZATION_CALLS, organization_id])
    pending, pending_most, calls, calls_most, size, megabytes, measured_at = found
    return InUse(
        runs=(pending, settings.QUEUE_LIMIT if pending_most is None else pending_most),
        calls=(calls, calls_most),
        size=(size, None if megabytes is None else megabytes * 1_048_576),
        streams=(slots.count(organization_id), settings.STREAMS_ORGANIZATION),
        measured_at=measured_at,
    )
