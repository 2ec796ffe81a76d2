"""A message of the queue decides nothing: lost, doubled, out of order or late, it does no harm."""

import random
from datetime import timedelta

import pytest
from django.utils import timezone

from runs.execution import external
from runs.models import OutboundCall, Run
from runs.tools.base import ToolContext
from runs.workers import tasks
from runs.workers.sweep import sweep
from tests.acting import cancel
from tests.at_once import at_once
from tests.auditor import audit, unrest
from tests.scripted import by_role, call, in_order, say

from .helpers import types
from .outside import Outside, queued

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
DOWN = call(("escalate_to_group", {"goal": "Compare prices"}))
QUESTION = call(("ask_user", {"question": "?"}))


def nobody(messages, facts):
    raise AssertionError("no model is asked")


@pytest.fixture
def runs(ask, world):
    """A run in every state a message may find it in, by that state; and a group's."""
    found = {
        "waiting": ask(in_order(QUESTION)),
        "completed": ask(in_order(say("done"))),
        "failed": ask(lambda messages, facts: call(("list_available_groups", {}))),
    }
    parent = ask(by_role(Personal_agent=[DOWN], researcher=[QUESTION]))
    found |= {"parent": parent, "child": Run.objects.get(parent_run=parent)}
    found["cancelled"] = ask(nobody, drive=False)
    cancel(found["cancelled"].pk)
    return found


@pytest.mark.parametrize("task", [tasks.advance, tasks.wake])
def test_a_message_that_comes_again_or_an_hour_late_changes_nothing(runs, world, task):
    before = {name: types(run) for name, run in runs.items()}
    Run.objects.update(queued_at=timezone.now() - HOUR)
    for run in [*runs.values(), *runs.values()]:
        task(run.pk)

    assert {name: types(run) for name, run in runs.items()} == before
    assert audit(world.organization.pk) == []


def test_a_message_for_a_run_that_is_gone_does_nothing(world):
    for task in (tasks.advance, tasks.wake):
        task("run_gone")
    tasks.execute_call("tcl_gone")


def test_the_same_message_five_times_at_once_is_one_claim(ask, world):
    run = ask(in_order(say("done")), drive=False)
    assert at_once(*[lambda: tasks.advance(run.pk)] * 5) == [None] * 5

    run.refresh_from_db()
    assert (run.status, run.attempt, types(run).count("run.started")) == ("running", 1, 1)
    assert OutboundCall.objects.filter(run=run).count() == 1
    assert audit(world.organization.pk) == []


def test_messages_in_any_order_complete_all_runs(ask, world, settings):
    settings.DEPUTY_MODEL = "local"
    runs = [ask(in_order(), drive=False).pk for _ in range(6)]
    for run in random.Random(7).sample(runs * 2, 12):
        tasks.advance(run)

    assert set(Run.objects.values_list("status", flat=True)) == {"completed"}
    assert audit(world.organization.pk) == unrest(world.organization.pk) == []


def test_a_lost_message_is_sent_again_by_the_sweep(ask, world, monkeypatch, settings):
    settings.DEPUTY_MODEL = "local"
    run = ask(in_order(), drive=False)
    monkeypatch.setattr("runs.workers.sweep.put.enqueue", lambda run_id, turn: tasks.advance(run_id))
    Run.objects.update(queued_at=timezone.now() - HOUR)

    assert sweep().requeued == 1
    run.refresh_from_db()
    assert run.status == "completed"


def test_the_calls_of_an_outside_agent_take_disorder_as_well(world, add_tool):
    keys = []

    @add_tool(name="count", mutating=True)
    def count(run: ToolContext, *, n: int) -> None:
        keys.append(run.idempotency_key)

    outside = Outside(world)
    for number in range(4):
        outside.call(f"c{number}", "count", work=False, n=number)
    waiting = queued()
    for row_id in random.Random(3).sample(waiting * 3, 12):
        external.execute(row_id)

    assert [outside.look(f"c{number}").status for number in range(4)] == ["succeeded"] * 4
    assert (len(set(keys)), len(keys), types(outside.run).count("tool.called")) == (4, 4, 4)
    assert audit(world.organization.pk) == []
