"""Every budget ends in words, and a child never gets more than its parent has left."""

from datetime import timedelta
from itertools import pairwise

import pytest
from django.utils import timezone

from runs.execution import executor
from runs.models import Run, ToolCall
from tests.acting import message
from tests.factories import GroupFactory, MemberFactory
from tests.scripted import call, in_order, say

from .helpers import payload

pytestmark = pytest.mark.django_db

DOWN = call(("escalate_to_group", {"goal": "deeper"}))


def down_until_refused(messages, facts):
    """Escalate, and say what came of it."""
    results = [m.content for m in messages if m.role == "tool"]
    return say(results[-1]) if results else DOWN


@pytest.fixture
def lone_group(world):
    world.group.delete()
    group = GroupFactory(project=world.project)
    MemberFactory(group=group, is_lead=True)
    return group


def test_depth_fails_the_call_and_not_the_run(ask, lone_group, settings):
    settings.RUN_DEPTH = 3
    run = ask(down_until_refused)

    tree = Run.objects.filter(root=run).order_by("depth")
    assert [r.depth for r in tree] == [0, 1, 2, 3]
    assert {r.status for r in tree} == {"completed"}
    assert ToolCall.objects.get(run=tree[3]).error["code"] == "BUDGET_DEPTH"


def test_ten_levels_complete_in_one_process(ask, lone_group, settings):
    settings.RUN_DEPTH = 10
    run = ask(down_until_refused)

    chain = list(Run.objects.filter(root=run).order_by("depth"))
    assert (run.status, len(chain)) == ("completed", 11)
    assert all(child.parent_run_id == parent.pk for parent, child in pairwise(chain))


def test_children_fail_the_call_past_their_number(ask, lone_group, settings):
    settings.RUN_CHILDREN = 1
    twice = call(("escalate_to_group", {"goal": "a"}), ("escalate_to_group", {"goal": "b"}))
    run = ask(in_order(twice, say("a is done"), say("ok")))

    assert run.status == "completed"
    assert Run.objects.filter(parent_run=run).count() == 1
    assert ToolCall.objects.get(run=run, call_id__endswith=".1").error["code"] == "BUDGET_CHILDREN"


def test_a_run_out_of_steps_fails_saying_so(ask, settings):
    settings.RUN_STEPS = 2
    run = ask(lambda messages, facts: call(("list_available_groups", {})))

    assert (run.status, run.error["code"]) == ("failed", "BUDGET_STEPS")
    assert run.usage["steps"] == 2


def test_a_childs_tokens_are_carved_from_its_parent_and_the_rest_comes_back(ask, lone_group, settings):
    settings.RUN_TOKENS = 1000
    run = ask(in_order(DOWN, say("found", tokens=300), say("done", tokens=20)))

    child = Run.objects.get(parent_run=run)
    assert child.budgets["tokens"] == 1000 - 15
    assert run.usage["tokens"] == 15 + 300 + 20


def test_parallel_children_share_what_is_left(ask, lone_group, settings):
    settings.RUN_TOKENS = 1015
    twice = call(("escalate_to_group", {"goal": "a"}), ("escalate_to_group", {"goal": "b"}))
    run = ask(in_order(twice, say("a", tokens=1), say("b", tokens=1), say("done")))
    for child in Run.objects.filter(parent_run=run, status="pending"):
        executor.run(child.pk)

    assert [r.budgets["tokens"] for r in Run.objects.filter(parent_run=run)] == [500, 500]
    run.refresh_from_db()
    assert run.status == "completed"


def test_a_run_out_of_tokens_fails_saying_so(ask, settings):
    settings.RUN_TOKENS = 10
    run = ask(in_order(call(("list_available_groups", {}))))

    assert (run.status, run.error["code"]) == ("failed", "BUDGET_TOKENS")


def test_the_wall_clock_ends_a_run_but_not_while_a_person_is_waited_for(ask, settings):
    run = ask(in_order(call(("ask_user", {"question": "?"})), say("done")))
    long_ago = timezone.now() - timedelta(days=3)
    run.waits.update(created_at=long_ago)
    Run.objects.filter(pk=run.pk).update(deadline=long_ago + timedelta(hours=1))

    message(run.pk, "yes", "mia")
    executor.run(run.pk)
    run.refresh_from_db()
    assert run.status == "completed"

    late = ask(in_order(say("done")), drive=False)
    Run.objects.filter(pk=late.pk).update(deadline=long_ago)
    executor.run(late.pk)
    late.refresh_from_db()
    assert payload(late, "run.failed")["error"]["code"] == "BUDGET_SECONDS"


def test_a_child_has_the_time_its_parent_has_left_after_waiting_for_a_person(ask, lone_group):
    question = call(("ask_user", {"question": "?"}))
    run = ask(in_order(question, DOWN, say("found"), say("done")))
    long_ago = timezone.now() - timedelta(days=3)
    run.waits.update(created_at=long_ago)  # the answer comes three days later
    Run.objects.filter(pk=run.pk).update(deadline=long_ago + timedelta(hours=1))

    message(run.pk, "yes", "mia")
    executor.run(run.pk)
    child = Run.objects.get(parent_run=run)
    assert (child.status, child.output) == ("completed", "found")
    assert timedelta(0) < child.deadline - child.created_at <= timedelta(hours=1)
