"""What the queue calls. A message that comes twice, late, or for a run that is gone does nothing."""

from runs import board, executor, queue
from runs.actions import sweep


def advance(run_id: str) -> None:
    """Drive a pending run."""
    if board.stopping():  # somebody else's, then
        queue.enqueue(run_id)
        return
    executor.run(run_id)


def wake(run_id: str) -> None:
    """Resolve what the run waits for and is due by now, and drive it."""
    sweep.expire_waits_of(run_id)
    advance(run_id)
