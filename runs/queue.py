"""The queue: how the rest of Deputy reaches django-q2. A message says where to look; it decides nothing."""

from django.conf import settings
from django_q.brokers import get_broker
from django_q.tasks import async_task

from runs.broker import PostgresBroker

ADVANCE = "runs.tasks.advance"
WAKE = "runs.tasks.wake"
EXECUTE_CALL = "runs.tasks.execute_call"

# No result is kept, and no time-out set: a step's own deadline guards it (runs/lease.py).
OPTIONS = {"save": False, "timeout": -1}


def enqueue(run_id: str, delay: float = 0) -> None:
    """Ask for a worker to drive the run. Joins the caller's transaction: no commit, no message.

    With a `delay` (seconds), ask for one to look then whether what the run waits for has come due.
    """
    _send(WAKE if delay else ADVANCE, (run_id,), run_id, delay)


def enqueue_call(run_id: str, tool_call_id: str) -> None:
    """Ask for a worker to carry on a call of this run, which an outside agent drives."""
    _send(EXECUTE_CALL, (tool_call_id,), run_id, 0)


def enqueue_task(name: str, *arguments: str, delay: float = 0) -> None:
    """Ask for a worker to call a function of runs/tasks.py, if need be after `delay` seconds. Joins the
    caller's transaction, and like every message may come twice.
    """
    _send(f"runs.tasks.{name}", arguments, None, delay)


def _send(task: str, arguments: tuple[str, ...], run_id: str | None, delay: float) -> None:
    if not settings.QUEUE_ENABLED:
        return
    broker = get_broker()
    if isinstance(broker, PostgresBroker):
        broker.run_id, broker.delay = run_id, delay
    elif delay:  # another broker cannot wait: the next sweep sees to it
        return
    async_task(task, *arguments, q_options={**OPTIONS, "broker": broker})
