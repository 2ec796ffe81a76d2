"""The queue: how the rest of Deputy reaches django-q2. A message says where to look; it decides nothing."""

from datetime import datetime
from functools import partial

from django.conf import settings
from django.db import transaction
from django_q.conf import Conf
from django_q.signing import SignedPackage
from django_q.tasks import async_task

from common.db import Statement, row
from runs.models.queue import ErrandKind, lane
from runs.queue.broker import ERRANDS, PostgresBroker
from runs.queue.turns import BACKGROUND, NOBODY, PEOPLE, Turn

ADVANCE = "runs.workers.tasks.advance"
WAKE = "runs.workers.tasks.wake"
EXECUTE_CALL = "runs.workers.tasks.execute_call"
RESUME = "runs.workers.tasks.resume"
TASKS = "runs.workers.tasks."

ERRAND_TASKS = {  # what carriers do (runs/outbound/errands.py)
    "send_webhook": ErrandKind.WEBHOOKS,
    "deliver": ErrandKind.MAIL,
    "answer_chat": ErrandKind.MAIL,
    "notify_webhook_disabled": ErrandKind.MAIL,
    "execute_call": ErrandKind.CALLS,
    "refresh_mcp_server": ErrandKind.OTHER,
    "refresh_remote_agent": ErrandKind.OTHER,
    "cancel_remote_task": ErrandKind.OTHER,
    "poll_mcp_task": ErrandKind.OTHER,
    "revoke_account": ErrandKind.OTHER,
    "revoke_sign_in": ErrandKind.OTHER,
    "embed_memories": ErrandKind.OTHER,
}
BACKLOG_SECONDS = 5
BACKLOG = """
SELECT EXISTS (SELECT FROM runs_queuemessage
               WHERE queue = %s AND holder = '' AND due_at < now() - %s * interval '1 second')
"""

# No result is kept, and no time-out set: a step's own deadline guards it (runs/queue/lease.py).
OPTIONS = {"save": False, "timeout": -1}
OF_INSTALLATION = Turn(NOBODY, BACKGROUND)
REQUEUE_AFTER = 15  # seconds a pending run may wait on the queue before it is queued again
PENDING = """
SELECT COALESCE(EXTRACT(epoch FROM clock_timestamp() - min(queued_at)), 0)::float8 FROM runs_run
WHERE status = 'pending' AND driver = 'internal'
"""


def enqueue(
    run_id: str, delay: float = 0, beside: list[Statement] | None = None, turn: Turn | None = None
) -> None:
    """Ask for a worker to drive the run. Joins the caller's transaction: no commit, no message.

    With a `delay` (seconds), ask for one to look then whether what the run waits for has come due. With
    `beside`, the message is written by the statements that the caller gathers there (RunLog.also). `turn`
    (RunLog.turn) says whose turn it is; without it the run's row is asked, which has to be stored by then.
    """
    _send(WAKE if delay else ADVANCE, (run_id,), run_id, delay, beside, turn)


def enqueue_call(run_id: str, tool_call_id: str, delay: float = 0) -> None:
    """Ask for a carrier to carry on a call of this run, which an outside agent drives."""
    _send(EXECUTE_CALL, (tool_call_id,), run_id, delay)


def enqueue_task(
    name: str,
    *arguments: str,
    delay: float = 0,
    beside: list[Statement] | None = None,
    turn: Turn = OF_INSTALLATION,
) -> None:
    """Ask for a function of runs/workers/tasks.py to be called, if need be after `delay` seconds: an errand
    by a carrier, the rest by a worker.

    Joins the caller's transaction, and like every message may come twice. `beside` as for `enqueue`; `turn`
    says whose turn it is, by default the installation's.
    """
    _send(f"{TASKS}{name}", arguments, None, delay, beside, turn)


def has_backlog(kind: ErrandKind) -> bool:
    """Whether errands of this kind wait, because no carrier runs or there are many. None of them counts as
    lost then: the lane must not grow by itself.
    """
    return bool(row(BACKLOG, [lane(kind), BACKLOG_SECONDS])[0])


def for_people(organization_id: str) -> Turn:
    """The turn of what somebody of this organization waits for."""
    return Turn(organization_id, PEOPLE)


def in_background(organization_id: str) -> Turn:
    """The turn of background work, which no person waits for."""
    return Turn(organization_id, BACKGROUND)


def resume(run_id: str, delay: float = 0) -> None:
    """Ask for a worker to take the step after a running run's outbound calls. Joins the transaction."""
    _send(RESUME, (run_id,), run_id, delay)


class _Sealing:
    """A broker that keeps the message and sends nothing."""

    list_key = Conf.CLUSTER_NAME
    message = ""

    def enqueue(self, task: str) -> int:
        self.message = task
        return 0


def sealed(task: str, *arguments: str) -> str:
    """The message by which a worker is asked to call the task, for somebody else to put on the queue."""
    broker = _Sealing()
    async_task(task, *arguments, q_options={**OPTIONS, "broker": broker})
    return broker.message


def opened(message: str) -> tuple[str, tuple[str, ...], datetime]:
    """The task that a message asks for, by its dotted name, its arguments, and when it was sent. Raises
    BadSignature.
    """
    task = SignedPackage.loads(message)
    return task["func"], tuple(task["args"]), task["started"]


def requeue_after() -> int:
    """Seconds a pending run may wait before its message counts as lost."""
    if not on_redis():
        return REQUEUE_AFTER
    from runs.queue import redis_broker

    return redis_broker.requeue_after()


def forward(holder: str) -> None:
    """On Redis, hand over the messages that PostgreSQL keeps and that are due."""
    if on_redis():
        from runs.queue import redis_broker

        redis_broker.forward(Conf.CLUSTER_NAME, holder)


def oldest(in_postgres: float) -> float:
    """Seconds the oldest work that workers could begin has been waiting; 0 where the queue is away.

    `in_postgres` is what a sign of life (heartbeat.beat) has learnt of the queue there.
    """
    if not on_redis():
        return in_postgres
    from runs.queue import redis_broker

    return 0.0 if redis_broker.waiting() is None else float(row(PENDING)[0])


def on_redis() -> bool:
    return bool(settings.Q_BROKER == "redis")


def _send(
    task: str,
    arguments: tuple[str, ...],
    run_id: str | None,
    delay: float,
    beside: list[Statement] | None = None,
    turn: Turn | None = None,
) -> None:
    if not settings.QUEUE_ENABLED:
        return
    kind = ERRAND_TASKS.get(task.removeprefix(TASKS))
    if on_redis() and run_id and not delay and not kind:  # what the sweep would find again may be lost
        transaction.on_commit(partial(_send_to_redis, task, arguments))
        return
    table = PostgresBroker(lane(kind) if kind else None)
    if kind:
        table.channel = ERRANDS
    table.run_id, table.delay, table.beside, table.turn = run_id, delay, beside, turn
    async_task(task, *arguments, q_options={**OPTIONS, "broker": table})


def _send_to_redis(task: str, arguments: tuple[str, ...]) -> None:
    from runs.queue import redis_broker

    async_task(task, *arguments, q_options={**OPTIONS, "broker": redis_broker.RedisBroker()})
