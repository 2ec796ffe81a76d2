"""A task at a remote agent, from the call that gives it to the answer.

The row that keeps it (RemoteTask) is written before anything is done about what the agent said, so that a
call which is made again looks at its task, and gives no second one.
"""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models.functions import Now

from common.canonical import digest
from runs.models import A2ATask, RemoteAgent, RemoteTask
from runs.models.choices import WaitKind
from runs.tools import forms
from runs.tools.a2a import client
from runs.tools.a2a.client import PeerError, Reply
from runs.tools.base import Done, Failed, ToolContext, ToolError, WaitFor

FIRST_SECONDS, MOST_SECONDS = 1.0, 300.0  # between two looks: doubled each time, up to the most
MOST_FAILURES = 8  # looks in a row without an answer
LONGEST = timedelta(days=7)  # of a task; the run's own time is usually over before
QUESTION_WAITS = timedelta(days=7)  # for the person to answer what the agent asks
ANSWER = {"answer": {"type": "string", "minLength": 1, "maxLength": 20_000}}
ASKS = {"type": "object", "properties": ANSWER, "required": ["answer"]}
ENDS = {
    client.FAILED: ("A2A_FAILED", "failed"),
    client.REJECTED: ("A2A_REJECTED", "rejected the task"),
    client.CANCELED: ("A2A_CANCELED", "cancelled the task"),
}


def advance(agent: RemoteAgent, run: ToolContext, text: str, context_id: str) -> Any:
    """Give the call's task, tell it its person's answer, or look at it. Raises PeerError, ToolError."""
    task = of_call(run.run_id, run.call_id)
    if task is None:
        return _begun(agent, run, text, context_id)
    if task.url != agent.endpoint:
        raise ToolError(f"The remote agent '{agent}' has moved since it was given the task.", "A2A_MOVED")
    if run.filled is not None and task.ended_at is None:
        return _answered(agent, run, task)
    return _looked(agent, run, task)


def of_call(run_id: str, call_id: str) -> RemoteTask | None:
    """The call's task, also one that is over: of a call that is made again, nobody was told how it ended."""
    return RemoteTask.objects.filter(run_id=run_id, call_id=call_id).order_by("id").last()


def _begun(agent: RemoteAgent, run: ToolContext, text: str, context_id: str) -> Any:
    if context_id and not _may_continue(agent, run, context_id):
        raise ToolError(f"No task of this person's here was in the context '{context_id}'.", "A2A_CONTEXT")
    reply = client.send(agent, text, _message_id(run), _hops(run), contextId=context_id)
    if not reply.task_id:
        return answer(agent, reply)
    ended = Now() if reply.state in client.TERMINAL else None
    task = RemoteTask.objects.create(
        organization_id=run.organization_id,
        agent=agent,
        run_id=run.run_id,
        call_id=run.call_id,
        url=agent.endpoint,
        task_id=reply.task_id,
        context_id=reply.context_id,
        state=reply.state,
        ended_at=ended,
    )
    return _settled(agent, run, task, reply)


def _message_id(run: ToolContext) -> str:
    """The same for the same words of the same call: who honours it takes them for one message."""
    return digest(run.idempotency_key, str(run.filled["token"]) if run.filled else "")[:40]


def _may_continue(agent: RemoteAgent, run: ToolContext, context_id: str) -> bool:
    """Whether the conversation is one of the same person in the same project: the agent knows all of them by
    the same credentials, and would tell one person what another has said.
    """
    mine = RemoteTask.objects.filter(agent=agent, url=agent.endpoint, context_id=context_id)
    return mine.filter(run__user_id=run.user_id, run__project_id=run.project_id).exists()


def _hops(run: ToolContext) -> int:
    """How many Deputies the task has come through with this one. Raises ToolError for too many: two that ask
    each other would go on for ever.
    """
    came = A2ATask.objects.filter(run_id=run.root_id).values_list("hops", flat=True).first() or 0
    if came >= settings.A2A_HOPS:
        said = (
            f"This task has come here from {came} agents one after the other; it is handed to no further one."
        )
        raise ToolError(said, "A2A_LOOP")
    return came + 1


def _answered(agent: RemoteAgent, run: ToolContext, task: RemoteTask) -> Any:
    """The person has answered, or declined to."""
    filled: dict[str, Any] = run.filled or {}
    said = filled["responses"]["q"]
    if said["action"] != "accept":
        raise ToolError(f"The run's person does not answer what '{agent}' asks.", "DECLINED")
    placed = {"taskId": task.task_id, "contextId": task.context_id}
    reply = client.send(agent, said["content"]["answer"], _message_id(run), 1, **placed)
    if reply.task_id and reply.task_id != task.task_id:
        raise PeerError("A2A_BAD_ANSWER", f"The remote agent '{agent}' answers with another task.")
    return _kept(agent, run, task, reply)


def _looked(agent: RemoteAgent, run: ToolContext, task: RemoteTask) -> Any:
    try:
        reply = client.look(agent, task.task_id)
    except PeerError as error:
        if not error.passing or task.failures >= MOST_FAILURES:
            raise
        task.polls, task.failures = task.polls + 1, task.failures + 1
        task.save(update_fields=["polls", "failures"])
        return _later(agent, task, f"{error.message} Deputy asks again.")
    return _kept(agent, run, task, reply)


def _kept(agent: RemoteAgent, run: ToolContext, task: RemoteTask, reply: Reply) -> Any:
    over = not reply.task_id or reply.state in client.TERMINAL
    task.state, task.polls, task.failures = reply.state, task.polls + 1, 0
    task.save(update_fields=["state", "polls", "failures"])
    if over:
        RemoteTask.objects.filter(pk=task.pk).update(ended_at=Now())
    return _settled(agent, run, task, reply)


def _settled(agent: RemoteAgent, run: ToolContext, task: RemoteTask, reply: Reply) -> Any:
    """What the call makes of the task as it stands."""
    if reply.state == client.INPUT_REQUIRED:
        return _question(agent, task, reply)
    if reply.state in client.TERMINAL or not reply.task_id:
        return answer(agent, reply)
    if reply.state == client.AUTH_REQUIRED:
        said = client.quoted(reply.said)
        return _later(
            agent, task, f"The remote agent '{agent}' waits for an authorization on its own side:\n{said}"
        )
    return _later(agent, task, f"The remote agent '{agent}' is at work.")


def answer(agent: RemoteAgent, reply: Reply) -> Done | Failed:
    """The call's result; all of it is the agent's word."""
    if reply.state != client.COMPLETED:
        code, what = ENDS[reply.state]
        said = client.cut(reply.said or reply.text, client.MAX_SAID)
        return Failed(code, f"The remote agent '{agent}' {what}{f': {said}' if said else '.'}")
    told = {"agent": agent.name, "text": reply.text}
    if reply.task_id:
        told |= {"task_id": reply.task_id, "context_id": reply.context_id}
    return Done(told)


def _later(agent: RemoteAgent, task: RemoteTask, said: str) -> WaitFor | Failed:
    """Look again after a while."""
    if RemoteTask.objects.filter(pk=task.pk, created_at__lt=Now() - LONGEST).exists():
        days = LONGEST.days
        return Failed("A2A_TOO_LONG", f"The remote agent '{agent}' has not done it within {days} days.")
    seconds = min(FIRST_SECONDS * 2 ** min(task.polls, 20), MOST_SECONDS)
    return WaitFor(WaitKind.TIMER.value, said, timedelta(seconds=seconds), key=f"a2a:{task.pk}", repeats=True)


def _question(agent: RemoteAgent, task: RemoteTask, reply: Reply) -> WaitFor:
    """What the agent asks goes to the run's person, who answers the agent and nobody else."""
    said = reply.said or reply.text or "It says only that it needs an answer."
    try:
        form = forms.form(agent.name, task.url, {"q": (said, ASKS)}, f"{task.task_id}-{task.polls}")
    except forms.NoForm as no:
        raise ToolError(f"What '{agent}' asks cannot be put to anybody: {no}.", "A2A_BAD_ANSWER") from None
    question = forms.question(agent.call_name, form, [said], f"The remote agent '{agent}'")
    return WaitFor(WaitKind.INPUT.value, question, QUESTION_WAITS, form=form)
