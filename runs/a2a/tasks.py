"""Tasks: the runs that A2A clients started at an agent's address, as A2A shows them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from common.times import instant
from groups.api.access import visible
from runs.a2a.agents import Client
from runs.a2a.errors import invalid, no_task
from runs.models import A2ATask, Run, RunEvent, Wait
from runs.models.choices import FORMS, REPEATS, EventType, RunStatus, WaitKind
from runs.observe import showing
from runs.webhooks import push
from runs.webhooks import task_words as words

JSON = dict[str, Any]

MOST_HISTORY = 100  # messages of a task that are shown
PAGE, LARGEST_PAGE = 50, 100
SPOKEN = {"user": "ROLE_USER", "assistant": "ROLE_AGENT"}
LAST = RunEvent.objects.filter(run=OuterRef("run_id"), seq=OuterRef("run__last_seq"))


def of(client: Client) -> QuerySet[A2ATask]:
    """The tasks of this address that the client's user sees."""
    mine = A2ATask.objects.filter(project=client.agent.project, group=client.agent.group)
    return visible(mine, client.membership).select_related("run")


def find(client: Client, id: Any) -> A2ATask:
    """Raises A2AError, the same for what does not exist and for what is not seen."""
    task = of(client).filter(pk=id).first() if isinstance(id, str) and "\x00" not in id else None
    if task is None:
        raise no_task()
    return task


def shown(client: Client, task: A2ATask, history: int | None = None, artifacts: bool = True) -> JSON:
    """A Task. `history`: how many messages at most."""
    run = task.run
    told: JSON = {"id": run.pk, "contextId": task.context_id, "status": status_of(task)}
    if artifacts and run.status == RunStatus.COMPLETED and run.output:
        told["artifacts"] = [words.artifact(run.pk, run.output)]
    said = spoken(client, task, MOST_HISTORY if history is None else min(history, MOST_HISTORY))
    return {**told, "history": said} if said else told


def state_of(run: Run, waits: Sequence[Wait]) -> str:
    kinds = (words.kind_of(wait.kind, wait.correlation_key) for wait in waits)
    return words.state(run.status, run.started_at is not None, kinds)


def status_of(task: A2ATask) -> JSON:
    run = task.run
    waits = list(Wait.objects.filter(run=run, resolved_at=None).order_by("id"))
    state = state_of(run, waits)
    said = push.asked(run, waits) if state in words.INTERRUPTED else str((run.error or {}).get("message", ""))
    last = RunEvent.objects.filter(run=run, seq=run.last_seq).values_list("created_at", flat=True).first()
    told = {"status": words.status(run.pk, state, last or run.created_at, f"{run.pk}:{run.last_seq}", said)}
    placed: JSON = words.placed({"statusUpdate": told}, task.context_id)["statusUpdate"]["status"]
    return placed


def spoken(client: Client, task: A2ATask, most: int) -> list[JSON]:
    """The latest messages, oldest first: what the run was told, and what its agent said."""
    if not most:
        return []
    events = RunEvent.objects.filter(run=task.run, type=EventType.MESSAGE_CREATED)
    own = task.run.user_id == client.actor.user_id
    found = []
    for event in events.filter(Q(payload__role__in=list(SPOKEN)) & ~Q(payload__content="")).order_by("-seq")[
        :most
    ]:
        said = showing.payload(event.type, event.payload, own)
        if said.get("content"):
            found.append(_message(task, event.seq, said))
    return found[::-1]


def _message(task: A2ATask, seq: int, said: JSON) -> JSON:
    id = task.message_id if seq == 2 else f"{task.run_id}:{seq}"
    told = words.message(task.run_id, id, said["content"], SPOKEN[said["role"]])
    return {**told, "contextId": task.context_id}


def listed(client: Client, params: JSON) -> JSON:
    """ListTasks: what moved last comes first. Raises A2AError."""
    size = page_size(params.get("pageSize"))
    found = _filtered(of(client), params).annotate(moved=Subquery(LAST.values("created_at")[:1]))
    if after := a_time(params.get("statusTimestampAfter")):
        found = found.filter(moved__gte=after)
    total = found.count()
    start = page_start(params.get("pageToken"))
    page = list(found.order_by("-moved", "-pk")[start : start + size])
    more = start + size < total
    history = params.get("historyLength")
    artifacts = bool(params.get("includeArtifacts"))
    return {
        "tasks": [shown(client, task, history or 0, artifacts) for task in page],
        "nextPageToken": str(start + size) if more else "",
        "pageSize": size,
        "totalSize": total,
    }


def _filtered(tasks: QuerySet[A2ATask], params: JSON) -> QuerySet[A2ATask]:
    if context := params.get("contextId"):
        tasks = tasks.filter(context_id=str(context).replace("\x00", ""))
    state = params.get("status")
    if state in (None, "", "TASK_STATE_UNSPECIFIED"):
        return tasks
    if not isinstance(state, str) or state not in STATES:
        raise invalid("status is one of A2A's task states.")
    return tasks.filter(STATES[state])


def _open(which: Q) -> Exists:
    return Exists(Wait.objects.filter(which, run=OuterRef("run_id"), resolved_at=None))


# The same as task_words.state, for whole lists.
ELSEWHERE = (Q(correlation_key__startswith=REPEATS) & ~Q(kind=WaitKind.TIMER)) | Q(
    correlation_key__startswith=FORMS
)
ASKS = Q(_open(Q(kind=WaitKind.INPUT) & ~ELSEWHERE))
NEEDS = Q(_open(Q(kind=WaitKind.APPROVAL) | ELSEWHERE))
WAITS, PENDING = Q(run__status=RunStatus.WAITING), Q(run__status=RunStatus.PENDING)
STATES = {
    words.SUBMITTED: PENDING & Q(run__started_at=None),
    words.WORKING: Q(run__status=RunStatus.RUNNING)
    | (PENDING & Q(run__started_at__isnull=False))
    | (WAITS & ~ASKS & ~NEEDS),
    words.INPUT_REQUIRED: WAITS & ASKS,
    words.AUTH_REQUIRED: WAITS & ~ASKS & NEEDS,
    "TASK_STATE_REJECTED": Q(pk__in=[]),
    **{state: Q(run__status=status) for status, state in words.ENDED.items()},
}


def page_size(value: Any) -> int:
    if value in (None, 0):
        return PAGE
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST_PAGE:
        raise invalid(f"pageSize is a whole number from 1 to {LARGEST_PAGE}.")
    return value


def page_start(value: Any) -> int:
    if value in (None, ""):
        return 0
    if not isinstance(value, str) or not (value.isascii() and value.isdigit() and len(value) < 9):
        raise invalid("This pageToken is none of Deputy's.")
    return int(value)


def a_time(value: Any) -> datetime | None:
    if value in (None, ""):
        return None
    found = instant(value)
    if found is None:
        raise invalid("statusTimestampAfter is a time such as 2026-11-23T09:00:00.000Z.")
    return found
