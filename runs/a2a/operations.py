"""What A2A clients do: give tasks, say something, cancel, and have themselves told. The actions decide."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import transaction
from rest_framework.response import Response

from common import ids
from common.api.errors import Problem
from common.api.idempotency import once_named
from common.canonical import digest
from runs.a2a import pushes, tasks
from runs.a2a.agents import Client
from runs.a2a.errors import A2AError, invalid, no_task, refused
from runs.a2a.messages import Sent
from runs.actions.cancel import cancel
from runs.actions.message import message
from runs.actions.start import start
from runs.api.refusals import as_problems
from runs.models import A2ATask
from runs.models.choices import TERMINAL


def send(client: Client, sent: Sent) -> A2ATask:
    """Start a task, or say something to one: once for each messageId. Raises A2AError."""
    key = f"a2a-{digest(client.actor.token_id, client.agent.url, sent.message_id)}"
    asked = digest(sent.text, sent.context_id, sent.task_id, sent.push or {})
    with translated():
        answer = once_named(client.request, key, asked, lambda: Response({"task": _take(client, sent)}))
    return tasks.find(client, answer.data["task"])


def _take(client: Client, sent: Sent) -> str:
    task = _tell(client, sent) if sent.task_id else _begin(client, sent)
    if sent.push is not None:
        pushes.create(client, task, sent.push)
    return str(task.pk)


def _tell(client: Client, sent: Sent) -> A2ATask:
    """What is said answers a question where the token speaks as its person; it never decides an approval."""
    task = tasks.find(client, sent.task_id)
    if sent.context_id and sent.context_id != task.context_id:
        raise invalid("The task stands in another context than message.contextId.")
    if task.run.status in TERMINAL:
        raise A2AError("UNSUPPORTED_OPERATION", f"The task has already {task.run.status}.")
    with as_problems():
        message(task.run_id, sent.text, actor=client.actor)
    return task


def _begin(client: Client, sent: Sent) -> A2ATask:
    """A run of the token's user; runs of one context are one conversation of theirs."""
    if sent.hops > settings.A2A_HOPS:
        said = f"This task has come through {sent.hops} agents; at most {settings.A2A_HOPS} hand it on."
        raise A2AError("UNSUPPORTED_OPERATION", said)
    context = sent.context_id or ids.context_id()
    group = client.agent.group
    with as_problems():
        run_id = start(
            actor=client.actor,
            project=client.agent.project,
            goal=sent.text,
            session_key=context,
            group_id=group.pk if group else None,
        )
    return A2ATask.objects.create(
        run_id=run_id,
        organization_id=client.agent.project.organization_id,
        project=client.agent.project,
        group=group,
        context_id=context,
        message_id=sent.message_id,
        hops=sent.hops,
    )


def cancelled(client: Client, task: A2ATask) -> A2ATask:
    """Raises A2AError."""
    if task.run.status in TERMINAL:
        raise A2AError("TASK_NOT_CANCELABLE", f"The task has already {task.run.status}.")
    try:
        with translated(), as_problems():
            cancel(task.run_id, client.actor)
    except A2AError as error:
        if error.reason == "UNSUPPORTED_OPERATION":  # it has ended meanwhile
            raise A2AError("TASK_NOT_CANCELABLE", error.message) from None
        raise
    return tasks.find(client, task.pk)


@contextmanager
def translated() -> Iterator[None]:
    """What the REST API would answer, in A2A's words; nothing is kept of what was refused."""
    try:
        with transaction.atomic():
            yield
    except Problem as problem:
        raise of_problem(problem) from None


def of_problem(problem: Problem) -> A2AError:
    status, code, detail = (problem.problem[name] for name in ("status", "code", "detail"))
    if code == "RUN_ENDED":
        return A2AError("UNSUPPORTED_OPERATION", detail)
    if code == "IDEMPOTENCY_KEY_REUSED":
        return invalid("This messageId came before with another message.")
    if status == 404:
        return no_task()
    return refused(code, detail, status) if status in (403, 409, 429) else invalid(detail)


def pushed(client: Client, params: dict[str, Any]) -> dict[str, Any]:
    """CreateTaskPushNotificationConfig. Raises A2AError."""
    task = tasks.find(client, params.get("taskId"))
    with translated():
        return pushes.create(client, task, params)
