"""Wait for the tasks that MCP servers make of calls: their servers are asked how far they are, by errands.

The run waits meanwhile, and holds neither a worker nor a carrier's slot. Asking changes nothing in its log;
what ends a task, or asks its person something, resolves the wait. A call that has become over in another
way (cancelled, too late, withdrawn, refused) has its task cancelled at the server. One message of the queue
asks about a task at a time; a carrier's death gives it back.
"""

import logging
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from common.canonical import NotJson, normalise
from common.db import execute, let_go, row, rows
from runs.log import tool_calls, waits
from runs.log.clocks import stood_still
from runs.log.log import RunGone, RunLog
from runs.log.state import Call
from runs.models import McpServer, McpTask, TaskState
from runs.models.choices import TERMINAL, WaitOutcome
from runs.models.queue import ErrandKind
from runs.outbound import packing
from runs.outbound.errands import Later, at_host
from runs.queue import put
from runs.tools.base import Answer, Done, Failed, ToolError
from runs.tools.mcp import accounts, registry, tasks
from runs.tools.mcp.client import LEAST_PAUSE, MOST_PAUSE, Asked, McpError
from runs.tools.mcp.tasks import Detail

logger = logging.getLogger(__name__)

TASK = "poll_mcp_task"
A_SECOND = 20  # questions to one server, however many tasks it has
IDLE_SECONDS = 60.0  # between two looks at a task whose run has something to do first
GIVE_UP = 30  # failures in a row
CANCELS = 10  # attempts to have a task cancelled
LOST_SECONDS = 300  # after which nobody can be asking about a task that is due
BATCH = 500

# Whether nobody waits for the task any more, and whether its wait is open.
STANDS = """
SELECT r.status = ANY(%s) OR c.ended_at IS NOT NULL, EXISTS (
    SELECT FROM runs_wait w WHERE w.run_id = r.id AND w.correlation_key = %s AND w.resolved_at IS NULL),
    r.deadline, clock_timestamp(), c.tool, r.user_id
FROM runs_run r JOIN runs_toolcall c ON c.run_id = r.id AND c.call_id = %s WHERE r.id = %s
"""
AGAIN = """
UPDATE runs_mcptask t SET generation = generation + 1, due_at = clock_timestamp() WHERE {which}
RETURNING id, organization_id, generation
"""
OF_RUN = AGAIN.format(which="run_id = %s")
LOST = AGAIN.format(
    which="""id = ANY(ARRAY(
    SELECT id FROM runs_mcptask WHERE due_at < now() - %s * interval '1 second'
    ORDER BY due_at LIMIT %s FOR NO KEY UPDATE SKIP LOCKED))"""
)
DUE = "UPDATE runs_mcptask SET due_at = clock_timestamp() + %s * interval '1 second' WHERE id = %s"


def keep(log: RunLog, call: Call, told: dict[str, Any], key: str) -> None:
    """Have the task asked about on which the call now waits by this key. In the transaction of the wait."""
    task = McpTask.objects.select_for_update().filter(run_id=log.id, call_id=call.call_id).first()
    if task is None:
        about = {"organization_id": log.organization_id, "server_id": told["server"], "url": told["url"]}
        task = McpTask(run_id=log.id, call_id=call.call_id, task_id=told["id"], **about)
    elif call.filled is not None and call.filled.get("task") == task.pk:
        task.answered = sorted({*task.answered, *call.filled["keys"]})
    task.state, task.correlation_key, task.answer = TaskState.WORKING, key, None
    task.seconds, task.failures, task.generation = told["seconds"], 0, task.generation + 1
    task.due_at = Now()
    task.save()
    _enqueue(task.pk, log.organization_id, task.generation, told["seconds"])


def known(run_id: str, call_id: str) -> bool:
    """Whether the call is a task at its server that goes on."""
    return McpTask.objects.filter(run_id=run_id, call_id=call_id).exclude(state=TaskState.ENDED).exists()


def take(run_id: str, call_id: str) -> Answer | None:
    """What the run is to take next; None where nobody knows what became of the task."""
    task = McpTask.objects.select_for_update().filter(run_id=run_id, call_id=call_id).first()
    if task is None:
        return None
    if task.state == TaskState.ENDED:
        task.delete()
    return packing.read_tool(packing.read(task.answer)) if task.answer else None


def hurry(run_id: str) -> None:
    """Have the run's tasks looked at now: it does not wait for them any more. Joins the transaction."""
    for found in rows(OF_RUN, [run_id]):
        _enqueue(*found)


def attend_due() -> int:
    """Ask again for what nobody can be asking about: its message was lost. Returns how many."""
    if put.has_backlog(ErrandKind.OTHER):
        return 0
    with transaction.atomic():
        found = rows(LOST, [LOST_SECONDS, BATCH])
        for each in found:
            _enqueue(*each)
    return len(found)


def _enqueue(task_id: str, organization_id: str, generation: int, delay: float = 0) -> None:
    turn = put.in_background(organization_id)
    put.enqueue_task(TASK, task_id, str(generation), delay=delay, turn=turn)


# An errand


def poll(task_id: str, generation: int) -> None:
    """Look at the task, and ask its server about it where its run still waits. Raises Later until it ends."""
    task = McpTask.objects.select_related("server").filter(pk=task_id, generation=generation).first()
    if task is None:
        return
    found = row(STANDS, [sorted(TERMINAL), task.correlation_key, task.call_id, task.run_id])
    over, waits_for_it, deadline, now, tool, user_id = found or (True, False, None, None, "", 0)
    if over:
        _cancel(task, user_id)
    elif task.state == TaskState.ENDED or not waits_for_it:
        _later(task, IDLE_SECONDS)
    elif deadline and now > deadline and (now - deadline).total_seconds() > stood_still(task.run_id)[0]:
        _resolve(task, WaitOutcome.EXPIRED)
        _later(task, LEAST_PAUSE)
    else:
        _ask(task, tool, user_id)


def _ask(task: McpTask, tool: str, user_id: int) -> None:
    server, answer = task.server, None
    if server is None or server.url != task.url:  # nobody else is told the task's id
        _end(task, None, ended=True)
        return
    try:
        detail = _told(task, server, user_id)
        if detail.status == "working" or not (detail.ended or _new(task, detail)):
            _go_on(task, detail.seconds)
        answer = _answer(task, server, tool, detail)
        _end(task, answer, ended=detail.ended)
    except accounts.NotConnected:
        _end(task, accounts.wanted(server, tool, task.run_id), ended=False)
    except McpError as error:
        _failed(task, error)


def _told(task: McpTask, server: McpServer, user_id: int) -> Detail:
    """Raises McpError, NotConnected, Later."""
    if not server.enabled:
        raise McpError("MCP_SERVER_OFF", "The MCP server is switched off.")
    ask = partial(tasks.get, server, task.task_id)
    let_go()
    with at_host(urlsplit(server.url).netloc.lower()):
        return accounts.calling(server, user_id, ask) if server.as_person else ask()


def _new(task: McpTask, detail: Detail) -> bool:
    """Whether it asks something that it has no answer of; without that, it has not read the answer yet."""
    return bool(detail.said.keys() - set(task.answered))


def _answer(task: McpTask, server: McpServer, tool: str, detail: Detail) -> Answer:
    """The call's answer, as a tool's own function would give it."""
    try:
        said = tasks.answer(server, _unanswered(task, detail))
        if isinstance(said, Asked):
            return registry.wanted(server, tool, said, task.pk)
        return Done(normalise(said))
    except (McpError, ToolError) as error:
        return Failed(error.code, error.message)
    except NotJson as error:
        return Failed("RESULT_NOT_JSON", f"The result of '{tool}' cannot be kept: {error}")


def _unanswered(task: McpTask, detail: Detail) -> Detail:
    if detail.ended:
        return detail
    asks = {key: request for key, request in detail.said.items() if key not in task.answered}
    return Detail(detail.status, detail.seconds, asks)


def _failed(task: McpTask, error: McpError) -> None:
    """No answer: asked again later, unless that has no sense any more."""
    if error.code == "TOO_LARGE":
        _end(task, Failed(error.code, error.message), ended=False)
    elif error.code == "MCP_TASK_UNKNOWN" or task.failures + 1 >= GIVE_UP:
        logger.info("%s is given up: %s", task.pk, error.message)
        _end(task, None, ended=error.code == "MCP_TASK_UNKNOWN")
    else:
        McpTask.objects.filter(pk=task.pk).update(failures=F("failures") + 1)
        _later(task, min(task.seconds * 2**task.failures, MOST_PAUSE))


def _go_on(task: McpTask, seconds: float) -> None:
    """It works on."""
    if task.failures or task.seconds != seconds:
        McpTask.objects.filter(pk=task.pk).update(failures=0, seconds=seconds)
    _later(task, seconds)


def _later(task: McpTask, seconds: float) -> None:
    """The same message again after a while, a longer one where its server has many tasks. Raises Later."""
    many = McpTask.objects.filter(server_id=task.server_id).count() if task.server_id else 0
    seconds = max(seconds, many / A_SECOND)
    execute(DUE, [seconds, task.pk])
    raise Later(seconds)


def _end(task: McpTask, answer: Answer | None, ended: bool) -> None:
    """The run is to take the answer. A task that has not `ended` at its server is kept an eye on."""
    state = TaskState.ENDED if ended or answer is None else TaskState.ASKING
    told = packing.text(packing.result(answer)) if answer is not None else None
    taken = _resolve(task, WaitOutcome.COMPLETED, state=state, answer=told)
    if not taken and told is not None and ended:
        tool_calls.leave_evidence(task.run_id, task.call_id, {"late": packing.read(told)})
    if not (taken and state == TaskState.ENDED):
        _later(task, IDLE_SECONDS if taken else LEAST_PAUSE)


def _resolve(task: McpTask, outcome: WaitOutcome, **changes: Any) -> bool:
    """Resolve the wait for the task, with what is known of it; False where its run waits no more."""
    with transaction.atomic():
        try:
            log = RunLog.lock(task.run_id)
        except RunGone:
            return False
        if log.ended or not waits.resolve(log, task.correlation_key, outcome.value):
            return False
        if changes:
            McpTask.objects.filter(pk=task.pk).update(**changes)
        waits.flush_and_enqueue(log)
    return True


def _cancel(task: McpTask, user_id: int) -> None:
    """Nobody waits for it any more: its server is asked to cancel it, and it is forgotten."""
    server = task.server
    if task.state != TaskState.ENDED and server is not None and server.url == task.url and server.enabled:
        ask = partial(tasks.cancel, server, task.task_id)
        let_go()
        try:
            accounts.calling(server, user_id, ask) if server.as_person else ask()
        except accounts.NotConnected:
            pass
        except McpError as error:
            if error.code != "MCP_TASK_UNKNOWN" and task.failures + 1 < CANCELS:
                McpTask.objects.filter(pk=task.pk).update(failures=F("failures") + 1)
                _later(task, min(LEAST_PAUSE * 2**task.failures, MOST_PAUSE))
    McpTask.objects.filter(pk=task.pk).delete()
