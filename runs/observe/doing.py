"""What a run that has not ended is waiting for that is nobody's decision: a model, a tool, a worker."""

from dataclasses import dataclass
from datetime import datetime

from common.db import row
from runs.models import Run
from runs.models.choices import Driver, RunStatus
from runs.models.outbound import model_of

# Of several calls side by side the first that is not answered. `before`: calls of the same target that wait
# as well and will go first.
CALL = """
SELECT c.kind, c.target, COALESCE(c.begun_at, c.created_at), c.holder <> '',
       CASE WHEN c.holder <> '' THEN 0 ELSE (
           SELECT count(*) FROM runs_outboundcall o
           WHERE o.target = c.target AND o.holder = '' AND o.answered_at IS NULL
             AND (o.rank, o.id) < (c.rank, c.id)) END
FROM runs_outboundcall c WHERE c.run_id = %s AND c.answered_at IS NULL ORDER BY c.id LIMIT 1
"""
QUEUED = """
SELECT COALESCE(r.queued_at, r.created_at), (
    SELECT count(*) FROM runs_run o WHERE o.status = 'pending' AND o.driver = 'internal'
      AND COALESCE(o.queued_at, o.created_at) < COALESCE(r.queued_at, r.created_at))
FROM runs_run r WHERE r.id = %s AND r.status = 'pending'
"""


@dataclass(frozen=True)
class Doing:
    """`kind` is model, tool or worker; `name` the model or tool. `under_way` since `since`, or, where it is
    not, waiting since then with so many `before` it.
    """

    kind: str
    name: str
    since: datetime
    under_way: bool
    before: int


def of(run: Run) -> Doing | None:
    """What the run is at; None where it has ended, waits, is an outside agent's, or is held by a worker."""
    if run.driver == Driver.EXTERNAL:
        return None
    if run.status == RunStatus.PENDING:
        found = row(QUEUED, [run.pk])
        return Doing("worker", "", found[0], False, found[1]) if found else None
    if run.status != RunStatus.RUNNING:
        return None
    found = row(CALL, [run.pk])
    return Doing(found[0], model_of(found[1]), *found[2:]) if found else None
