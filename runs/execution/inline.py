"""Drive runs in this process, without a cluster."""

from collections.abc import Callable

from django.db import transaction

from common.db import rows
from runs.actions import claim as claiming
from runs.execution import executor

PENDING = (
    "SELECT id FROM runs_run WHERE root_id = %s AND status = 'pending' AND driver = 'internal' ORDER BY id"
)


def drive(root_id: str, after_each: Callable[[], object] = lambda: None) -> bool:
    """Drive what is pending in the tree of `root_id` until nothing is; whether there was anything.

    `after_each` is called each time a run has been let go of.
    """
    driven = False
    while pending := [run_id for (run_id,) in rows(PENDING, [root_id])]:
        for run_id in pending:
            driven |= _drive_one(run_id, after_each)
    return driven


def _drive_one(run_id: str, after_each: Callable[[], object]) -> bool:
    """The run and every handoff it passes on. False when another worker has it."""
    with transaction.atomic():
        attempt = claiming.claim(run_id)
    taken: executor.Taken | executor.Entered | None
    taken = None if attempt is None else executor.Taken(run_id, attempt)
    if taken is None:
        return False
    while taken:
        taken = executor.advance(taken)
        after_each()
    return True
