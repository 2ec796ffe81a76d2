"""The queue: the only place that knows django-q2. A message is a run's id and decides nothing."""

from django.conf import settings
from django_q.tasks import async_task

ADVANCE = "runs.tasks.advance"


def enqueue(run_id: str) -> None:
    """Ask for a worker to drive the run. Joins the caller's transaction: no commit, no message."""
    if settings.QUEUE_ENABLED:
        async_task(ADVANCE, run_id, q_options={"save": False})
