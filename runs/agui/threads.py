"""A thread: a person's conversation in a project, or a run by its id; and what an input does to it."""

import re
from dataclasses import dataclass
from typing import Any

from rest_framework.response import Response

from common.api.errors import Problem, invalid
from common.api.idempotency import once_named
from common.canonical import digest
from groups.models import Project
from runs.actions.message import message
from runs.actions.start import start
from runs.agui import interrupts, translating
from runs.agui.inputs import Input
from runs.api import access
from runs.api.refusals import as_problems
from runs.models import Run, RunEvent, in_conversation
from runs.models.choices import EventType
from runs.observe import showing

JSON = dict[str, Any]

RUN = re.compile(r"run_[0-9a-z]{26}\Z")
OWN_ID = re.compile(r"run_[0-9a-z]{26}:\d+")  # of a message that Deputy has told the client
MOST_RUNS, MOST_MESSAGES = 20, 500  # of a thread, in a snapshot


@dataclass(frozen=True)
class Stretch:
    """What is to be told from here on: the events of the run and those below it, of each after `after`."""

    run: Run
    after: dict[str, int]
    told_before: bool  # whether it was under way already


def act(request: Any, project: Project, asked: Input) -> Stretch:
    """Do what the input says. Raises Problem, interrupts.Refused."""
    run = latest(request, project, asked.thread_id)
    before = _tree(run) if run is not None else {}
    if asked.resume:
        if run is None:
            raise interrupts.Refused("NO_SUCH_INTERRUPT", "Nothing of this thread waits.")
        interrupts.resume(request.actor, run, asked.resume)
        return Stretch(Run.objects.get(pk=run.pk), before, True)
    said = asked.words.strip() and not OWN_ID.fullmatch(asked.message_id)
    if not said:
        if run is None:
            raise invalid("/messages", "required", "A thread begins with a message of its user.")
        return Stretch(run, before, True)
    key = f"agui-{digest(_who(request), project.pk, asked.thread_id, asked.message_id)}"
    answer = once_named(request, key, digest(asked.words), lambda: _say(request, project, run, asked))
    found = Run.objects.get(pk=answer.data["run"])
    if "Idempotency-Replayed" in answer.headers:  # the client comes again after its connection broke
        return Stretch(found, _tree(found), True)
    begun = run is None or run.pk != found.pk
    return Stretch(found, {}, False) if begun else Stretch(found, before, True)


def _tree(run: Run) -> dict[str, int]:
    """The last event of the run, and of each below it."""
    return dict(Run.objects.filter(root=run.root_id).values_list("pk", "last_seq"))


def _who(request: Any) -> str:
    return request.auth.pk if request.auth is not None else "session"


def _say(request: Any, project: Project, run: Run | None, asked: Input) -> Response:
    """A word to the run while it is active; else the next run of the conversation."""
    if run is not None and run.is_active:
        if interrupts.paused(run):
            raise interrupts.Refused("INTERRUPTS_MISSING", "The thread waits: answer what is open by resume.")
        with as_problems():
            message(run.pk, asked.words, actor=request.actor)
        return Response({"run": run.pk})
    if run is not None and run.user_id != request.user.pk:
        raise Problem(409, "RUN_ENDED", "This is somebody else's run, and it has ended.")
    with as_problems():
        begun = start(
            actor=request.actor,
            project=project,
            goal=asked.words,
            context=asked.context,
            session_key=(run.session_key if run is not None else "") or asked.thread_id,
        )
    return Response({"run": begun})


def latest(request: Any, project: Project, thread_id: str) -> Run | None:
    """The run that the thread is at. Whoever sees a run follows it by its id; other threads are one's own.

    Raises Problem 404.
    """
    runs = access.runs(request.membership).filter(project=project, parent_run=None)
    named = runs.filter(pk=thread_id).first() if RUN.match(thread_id) else None
    if RUN.match(thread_id) and named is None:
        raise Problem(404, "NOT_FOUND", "No such run.")
    if named is not None and named.user_id != request.user.pk:
        return named
    key = (named.session_key if named is not None else "") or thread_id
    return runs.filter(user=request.user, session_key=key).order_by("-id").first() or named


def snapshot(run: Run, own: bool) -> list[JSON]:
    """The messages of the run's conversation up to it, as AG-UI has them."""
    runs = [run.pk]
    if run.session_key:
        same = Run.objects.filter(
            in_conversation(run.session_key),
            organization=run.organization_id,
            user=run.user_id,
            project=run.project_id,
            parent_run=None,
            pk__lte=run.pk,
        )
        runs = list(same.order_by("-id").values_list("pk", flat=True)[:MOST_RUNS])
    wanted = [EventType.MESSAGE_CREATED.value, *translating.RESULTS]
    events = RunEvent.objects.filter(run__in=runs, type__in=wanted).order_by("-run", "-seq")[:MOST_MESSAGES]
    found = [_message(event, showing.payload(event.type, event.payload, own)) for event in events]
    return [one for one in reversed(found) if one is not None]


def _message(event: RunEvent, said: JSON) -> JSON | None:
    id = f"{event.run_id}:{event.seq}"
    if event.type in translating.RESULTS and "call_id" in said:
        call = translating.tool_call_id(event.run_id, said["call_id"])
        return {"id": id, "role": "tool", "toolCallId": call, "content": translating.outcome_of_call(said)}
    if said.get("role") == "user":
        return {"id": id, "role": "user", "content": said.get("content") or ""}
    if said.get("role") != "assistant":
        return None
    told: JSON = {"id": id, "role": "assistant", "content": said.get("content") or ""}
    calls = translating.calls_of(event.run_id, event.seq, said)
    return {**told, "toolCalls": calls} if calls else told
