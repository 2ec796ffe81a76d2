"""What the queue calls."""

from runs import executor


def advance(run_id: str) -> None:
    """Drive a pending run. A message that comes twice, late, or for a run that is gone does nothing."""
    executor.run(run_id)
