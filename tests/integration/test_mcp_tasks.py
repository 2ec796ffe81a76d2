"""MCP servers that answer calls with tasks (SEP-2663), which runs wait for, against a server of the SDK."""

# ruff: noqa: F811 - fixtures of other modules

import pytest

from common.db import execute
from policy.models import CapabilityRule
from runs.actions import mcp_tasks
from runs.actions.cancel import cancel
from runs.actions.decide import DecisionRefused
from runs.actions.message import message
from runs.actions.signal import SignalRefused, signal
from runs.execution import executor
from runs.models import Approval, Carrier, McpServer, McpTask, Run, TaskState, ToolCall, Wait, WorkerGroup
from runs.outbound import packing, table
from runs.outbound.errands import Later
from runs.queue import heartbeat, put
from runs.queue.worker_status import WorkerStatus
from runs.tools import forms
from runs.tools.mcp import client, registry, tasks
from runs.workers import sweep
from tests.acting import approve, at_the_pages, request_call
from tests.factories import MembershipFactory
from tests.integration.helpers import events
from tests.integration.outside import Outside, work_off
from tests.integration.test_mcp_asks import BOOK, HOW_MANY
from tests.integration.test_mcp_servers import (  # noqa: F401
    FIND,
    accepted,
    crm,
    site,
)
from tests.scripted import call, say

pytestmark = pytest.mark.django_db
FOUND = {"status": "completed", "result": {"content": [{"type": "text", "text": "found Ada, at last"}]}}


@pytest.fixture
def working(world, crm, site, ask):
    """A run whose call the server has made a task of."""
    site.behave(FIND, BOOK)
    accepted(crm, world.user)

    def begin(tool="crm.find_customer", always=False, **task):
        site.behave(FIND, BOOK, task=task, always=always)
        heard = []

        def model(messages, facts):
            heard[:] = messages
            done = any(one.role == "tool" for one in messages)
            return say("Done.") if done else call((tool, {"name": "Ada"}))

        run = ask(model)
        for approval in Approval.objects.filter(run=run, status="pending"):
            decider = MembershipFactory(organization=world.organization, role="administrator").user
            approve(approval.pk, decider)
            executor.run(run.pk)
        run.heard = heard
        run.refresh_from_db()
        return run

    return begin


def poll():
    """What a carrier does with the one task's message; returns after how long it is to be done again."""
    task = McpTask.objects.get()
    try:
        mcp_tasks.poll(task.pk, task.generation)
    except Later as later:
        return later.seconds
    return None


def go_on(run):
    executor.run(run.pk)
    run.refresh_from_db()
    return run


def methods(site):
    return [one["method"] for one in site.asked]


def test_a_run_waits_for_a_task_and_its_result_is_the_calls(working, site):
    run = working(pollIntervalMs=2000)
    assert (run.status, run.waiting_reason) == ("waiting", "signal")
    assert ToolCall.objects.get(run=run).status == "waiting"
    before = len(events(run))
    assert [poll(), poll()] == [2.0, 2.0]
    assert len(events(run)) == before  # asking leaves nothing in the log
    asked = site.asked[0]
    assert (asked["method"], asked["task"], asked["mcp-name"]) == ("tasks/get", "task-1", "task-1")
    declared = asked["meta"]["io.modelcontextprotocol/clientCapabilities"]
    assert declared["extensions"] == {"io.modelcontextprotocol/tasks": {}}

    site.say(task=FOUND)
    assert poll() is None
    assert go_on(run).status == "completed" and len(site.calls) == 1
    assert ToolCall.objects.get(run=run).result == {"text": "found Ada, at last"}
    assert "found Ada, at last" in str([one.content for one in run.heard])
    assert not McpTask.objects.exists() and "task-1" not in str(events(run))


def test_how_a_task_ends_is_how_its_call_ends(working, site):
    for task, code, words in (
        ({"status": "failed", "error": {"code": -32603, "message": "No paper."}}, "MCP_REFUSED", "No paper."),
        ({"status": "cancelled"}, "MCP_TASK_CANCELLED", "has cancelled the call"),
        (
            {
                "status": "completed",
                "result": {"isError": True, "content": [{"type": "text", "text": "No Ada."}]},
            },
            "MCP_TOOL_ERROR",
            "No Ada.",
        ),
        ({"status": "completed", "result": {"content": "odd"}}, "MCP_BAD_ANSWER", "not MCP"),
        (
            {"status": "completed", "result": {"content": [{"type": "text", "text": "x" * 3_000_000}]}},
            "TOO_LARGE",
            "larger than",
        ),
    ):
        run = working()
        site.say(task=task)
        poll()
        error = ToolCall.objects.get(run=go_on(run)).error
        assert (run.status, error["code"], words in error["message"]) == ("completed", code, True), error
        McpTask.objects.all().delete()


def test_wishes_of_a_server_count_within_limits(working, site, monkeypatch):
    wishes = {0: 1, -5: 1, 1500: 1.5, 10**400: 60, "soon": 5, True: 5, None: 5, 1e3: 5}
    assert {wish: client.pause(wish) for wish in wishes} == wishes
    monkeypatch.setattr(registry, "MAX_TASKS", 60)
    run = working(pollIntervalMs=0)
    assert McpTask.objects.get().seconds == 1 and poll() == 1
    many = {"organization_id": run.organization_id, "server": McpServer.objects.get(), "run": run}
    now = Wait.objects.get(run=run).created_at
    rest = {"url": site.url, "task_id": "x", "seconds": 1, "due_at": now, "correlation_key": "x"}
    McpTask.objects.bulk_create(McpTask(call_id=str(n), **many, **rest) for n in range(59))
    task = McpTask.objects.get(task_id="task-1")
    with pytest.raises(Later) as later:
        mcp_tasks.poll(task.pk, task.generation)
    assert later.value.seconds == 60 / mcp_tasks.A_SECOND
    more = working()  # Deputy no longer says that calls may become tasks
    assert more.status == "completed" and not McpTask.objects.filter(run=more).exists()


def test_no_call_becomes_a_task_while_anybody_of_the_release_before_is_at_work(working):
    """Its workers would wait for the task, of which they know nothing, for a week."""
    heartbeat.beat("new", WorkerStatus())
    execute(table.BEAT, table.told("new", 0))
    for older in (WorkerGroup, Carrier):
        newer = older.objects.get(name="new").level
        older.objects.update(level=0)
        run = working()
        assert (run.status, McpTask.objects.filter(run=run).count()) == ("completed", 0)
        older.objects.update(level=newer)
    assert McpTask.objects.filter(run=working()).count() == 1


def test_a_task_that_was_not_asked_for_or_has_no_usable_id_fails_the_call(working, site, monkeypatch):
    for made in ({"taskId": ""}, {"taskId": 5}, {"taskId": "x" * 2000}, {"taskId": "a\nb"}):
        site.behave(FIND, BOOK)
        run = working(**made)
        assert ToolCall.objects.get(run=run).error["code"] == "MCP_BAD_ANSWER"
    monkeypatch.setattr(registry, "MAX_TASKS", 0)
    run = working(always=True)
    assert "nobody asked for" in ToolCall.objects.get(run=run).error["message"]


def test_a_server_that_speaks_of_another_task_or_fails_is_asked_again_and_given_up(working, site):
    run = working("crm.make_booking", pollIntervalMs=1000)
    site.say(task={**FOUND, "taskId": "task-2"})
    assert [poll(), poll(), poll()] == [1, 2, 4] and Run.objects.get(pk=run.pk).status == "waiting"
    site.say(task={}, crashes=True)
    assert poll() == 8
    site.say(crashes=False)
    assert poll() == 5 and McpTask.objects.get().failures == 0
    McpTask.objects.update(failures=mcp_tasks.GIVE_UP - 1)
    site.say(crashes=True)
    assert poll() is None
    assert go_on(run).waiting_reason == "review" and len(site.calls) == 1


def test_an_unknown_task_puts_what_acts_to_review_and_what_reads_fails(working, site):
    run = working("crm.make_booking")
    site.say(task=None)
    assert poll() is None and go_on(run).waiting_reason == "review"
    assert len(site.calls) == 1 and not McpTask.objects.exists()

    run = working()
    site.say(task=None)
    poll()
    assert ToolCall.objects.get(run=go_on(run)).error["code"] == "MCP_TASK_UNKNOWN"
    assert len(site.calls) == 1


def test_a_run_that_waits_no_more_has_its_task_cancelled_and_takes_no_result(world, working, site):
    run = working("crm.make_booking")
    generation = McpTask.objects.get().generation
    cancel(run.pk, at_the_pages(world.user, world.organization.pk))
    task = McpTask.objects.get()
    assert task.generation == generation + 1 and mcp_tasks.poll(task.pk, generation) is None
    site.say(task=FOUND)
    assert poll() is None and methods(site) == ["tasks/cancel"]
    left = ToolCall.objects.get(run=run)
    assert not McpTask.objects.exists() and (left.status, left.result) == ("unknown", None)


def test_a_result_that_comes_while_its_run_is_cancelled_stays_beside_the_log(
    world, working, site, monkeypatch
):
    run = working("crm.make_booking")
    site.say(task=FOUND)
    real = tasks.get

    def meanwhile(*args):
        found = real(*args)
        cancel(run.pk, at_the_pages(world.user, world.organization.pk))
        return found

    monkeypatch.setattr(tasks, "get", meanwhile)
    before = McpTask.objects.get()
    with pytest.raises(Later):
        mcp_tasks.poll(before.pk, before.generation)
    assert poll() is None and Run.objects.get(pk=run.pk).status == "cancelled"
    left = ToolCall.objects.get(run=run)
    assert (left.status, left.result) == ("unknown", None) and "at last" in str(left.evidence)


def test_a_task_that_never_ends_ends_with_its_runs_time(working, site):
    run = working()
    Run.objects.filter(pk=run.pk).update(deadline="2020-01-01T00:00:00Z")
    assert poll() == 1 and methods(site) == []
    assert go_on(run).status == "failed" and run.error["code"] == "BUDGET_SECONDS"
    poll()
    assert methods(site) == ["tasks/cancel"] and not McpTask.objects.exists()


def test_a_wait_that_is_over_says_so(working, site):
    run = working()
    Wait.objects.filter(run=run).update(expires_at="2020-01-01T00:00:00Z")
    sweep.sweep()
    assert go_on(run).status == "completed"
    late = ToolCall.objects.get(run=run)
    assert (late.status, late.error["code"]) == ("expired", "MCP_TASK_LATE")
    poll()
    assert methods(site) == ["tasks/cancel"]


def test_a_task_that_asks_is_given_the_persons_answer_and_nothing_else(world, working, site):
    """The form goes the way of forms; the keys are answered once, and no call is made again."""
    run = working("crm.make_booking")
    site.say(task={"status": "input_required", "inputRequests": HOW_MANY})
    assert poll() == 60 and go_on(run).waiting_reason == "input"
    assert poll() == 60 and methods(site) == ["tasks/get"]  # nobody is asked while the person thinks
    mia = at_the_pages(world.user, world.organization.pk)
    key = Wait.objects.get(run=run, resolved_at=None).correlation_key
    with pytest.raises(SignalRefused):
        message(run.pk, "many", mia, key)
    message(run.pk, "3", mia, key)
    go_on(run)
    update = site.asked[-1]
    assert (update["method"], update["responses"]["q"]["content"]) == ("tasks/update", {"seats": 3})
    assert run.waiting_reason == "signal" and len(site.calls) == 1
    assert poll() == 5  # the server has not read the answer yet
    site.say(task=FOUND)
    assert poll() is None
    assert go_on(run).status == "completed" and len(site.calls) == 1
    assert Approval.objects.filter(run=run).count() == 1


@pytest.mark.parametrize(("tool", "then"), [("crm.make_booking", "review"), ("crm.find_customer", "")])
def test_an_answer_of_which_nothing_is_heard_may_have_been_acted_upon(
    world, working, site, monkeypatch, tool, then
):
    """The task goes on at its server: made again by the agent, the call would act twice."""
    run = working(tool)
    site.say(task={"status": "input_required", "inputRequests": HOW_MANY})
    poll()
    go_on(run)

    def no_answer(*arguments):
        raise client.McpError("TIMEOUT", "no answer")

    monkeypatch.setattr(tasks, "update", no_answer)
    key = Wait.objects.get(run=run, resolved_at=None).correlation_key
    message(run.pk, "3", at_the_pages(world.user, world.organization.pk), key)
    assert (go_on(run).waiting_reason or "") == then
    assert len(site.calls) == 1 and ToolCall.objects.get(run=run).status == ("unknown" if then else "failed")


def test_a_task_that_asks_for_ever_is_stopped_and_cancelled(world, working, site):
    run = working()
    mia = at_the_pages(world.user, world.organization.pk)
    for number in range(forms.MAX_ROUNDS):
        site.say(task={"status": "input_required", "inputRequests": {f"q{number}": HOW_MANY["q"]}})
        poll()
        go_on(run)
        message(run.pk, "3", mia, Wait.objects.get(run=run, resolved_at=None).correlation_key)
        go_on(run)
    site.say(task={"status": "input_required", "inputRequests": {"last": HOW_MANY["q"]}})
    poll()
    assert ToolCall.objects.get(run=go_on(run)).error["code"] == "TOO_MANY_QUESTIONS"
    assert poll() is None and methods(site)[-1] == "tasks/cancel" and len(site.calls) == 1


def test_a_deny_that_was_added_meanwhile_keeps_the_answer_and_cancels_the_task(world, working, site):
    run = working()
    site.say(task={"status": "input_required", "inputRequests": HOW_MANY})
    poll()
    go_on(run)
    CapabilityRule.objects.create(organization=world.organization, tool="crm.find_customer", effect="deny")
    key = Wait.objects.get(run=run, resolved_at=None).correlation_key
    message(run.pk, "3", at_the_pages(world.user, world.organization.pk), key)
    go_on(run)
    assert ToolCall.objects.get(run=run).status == "denied"
    poll()
    assert methods(site) == ["tasks/get", "tasks/cancel"]


def test_nobody_is_asked_about_other_arguments_than_its_task_has(world, working, site):
    """What is asked for anew while a task goes on is decided as it stands: the server knows no other."""
    run = working("crm.make_booking")
    site.say(task={"status": "input_required", "inputRequests": HOW_MANY})
    poll()
    go_on(run)
    CapabilityRule.objects.create(
        organization=world.organization, tool="crm.make_booking", effect="require_human", deciders_needed=2
    )
    key = Wait.objects.get(run=run, resolved_at=None).correlation_key
    message(run.pk, "3", at_the_pages(world.user, world.organization.pk), key)
    assert go_on(run).waiting_reason == "approval" and methods(site) == ["tasks/get"]

    first, second = (MembershipFactory(organization=world.organization, role="decider").user for _ in "ab")
    asked = Approval.objects.get(run=run, status="pending")
    with pytest.raises(DecisionRefused) as refused:
        approve(asked.pk, first, arguments={"name": "Bob"})
    assert refused.value.code == "BEGUN"
    assert ToolCall.objects.get(run=run).effective_arguments == {"name": "Ada"}
    approve(asked.pk, first, arguments={"name": "Ada"})
    approve(Approval.objects.get(run=run, status="pending").pk, second)
    assert go_on(run).waiting_reason == "signal"
    assert methods(site) == ["tasks/get", "tasks/update"] and len(site.calls) == 1


def test_a_worker_that_dies_with_the_answer_goes_on_with_the_same_task(world, working, site, monkeypatch):
    run = working("crm.make_booking")
    site.say(task={"status": "input_required", "inputRequests": HOW_MANY})
    poll()
    go_on(run)
    key = Wait.objects.get(run=run, resolved_at=None).correlation_key
    message(run.pk, "3", at_the_pages(world.user, world.organization.pk), key)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(executor, "perform", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        go_on(run)
    Run.objects.update(lease_expires_at="2020-01-01T00:00:00Z")
    sweep.sweep()
    assert go_on(run).waiting_reason == "signal" and len(site.calls) == 1
    assert methods(site)[-1] == "tasks/update"


def test_nobody_else_ends_a_task_and_no_other_server_hears_of_it(world, working, site):
    run = working("crm.make_booking")
    key = McpTask.objects.get().correlation_key
    with pytest.raises(SignalRefused) as refused:
        signal(run.pk, key, at_the_pages(world.user, world.organization.pk), {"text": "mine"})
    assert refused.value.code == "RESERVED_KEY"
    McpServer.objects.update(url=site.url + "/")
    assert poll() is None and methods(site) == []
    assert go_on(run).waiting_reason == "review"


def test_a_call_of_an_outside_agent_waits_for_its_task_too(world, working, site):
    working()
    McpTask.objects.all().delete()
    outside = Outside(world)
    request_call(outside.run.pk, "c1", "crm.find_customer", {"name": "Ada"})
    work_off()
    assert outside.look("c1").waits_for.kind == "signal"
    site.say(task=FOUND)
    assert poll() is None
    work_off()
    assert outside.look("c1").result == {"text": "found Ada, at last"}


def test_a_task_whose_message_is_lost_is_asked_about_again(working, monkeypatch):
    working()
    sent = []
    monkeypatch.setattr(put, "enqueue_task", lambda *told, **_: sent.append(told))
    assert mcp_tasks.attend_due() == 0
    McpTask.objects.update(due_at="2020-01-01T00:00:00Z")
    assert mcp_tasks.attend_due() == 1
    task = McpTask.objects.get()
    assert sent == [("poll_mcp_task", task.pk, str(task.generation))] and task.state == TaskState.WORKING


def test_carriers_hand_tasks_on_whole():
    told = registry.waiting(McpServer(name="crm", url="https://crm.example/"), client.Task("t", 2.0))
    assert packing.read_tool(packing.result(told)) == told
