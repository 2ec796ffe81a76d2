"""Cancelling a deep tree, at whatever moment, ends all of it."""

import random
import threading
import time

import pytest

from runs.execution import executor
from runs.log.log import AlreadyEnded
from runs.models import Run
from runs.tools.base import ToolContext
from tests.acting import cancel
from tests.at_once import Beside
from tests.auditor import audit, unrest
from tests.factories import GroupFactory, MemberFactory
from tests.scripted import call, say

pytestmark = pytest.mark.django_db(transaction=True)

LEVELS = 4
DOWN = call(("escalate_to_group", {"goal": "deeper"}))


@pytest.fixture
def effects(add_tool):
    """A tool with an effect outside the database; the key of each call of it."""
    happened = []

    @add_tool(name="mark", mutating=True)
    def mark(run: ToolContext) -> None:
        happened.append(run.idempotency_key)

    return happened


def mark_and_go(messages, facts):
    """Each level has its effect and asks the next level."""
    done = sum(m.role == "tool" for m in messages)
    return (call(("mark", {})), DOWN, say("done"))[done]


@pytest.mark.parametrize("seed", range(12))
def test_a_tree_cancelled_at_any_moment_ends_whole(ask, world, settings, effects, seed):
    settings.RUN_DEPTH = LEVELS
    world.group.delete()
    MemberFactory(group=GroupFactory(project=world.project), is_lead=True)
    moment = random.Random(seed).uniform(0, 0.12)
    root = ask(mark_and_go, drive=False)
    worker = Beside(lambda: executor.run(root.pk))
    time.sleep(moment)
    try:
        cancel(root.pk, by="mia")
        happened = len(effects)
    except AlreadyEnded:
        happened = None
    assert worker.result() is None

    tree = Run.objects.filter(root=root)
    assert {run.status for run in tree} <= {"cancelled", "completed"}
    if happened is not None:
        root.refresh_from_db()
        assert root.status == "cancelled"
        assert len(effects) <= happened + 1  # the call that was under way
    assert audit(world.organization.pk) == unrest(world.organization.pk) == []
    admitted = {e.payload["idempotency_key"] for run in tree for e in run.events.filter(type="tool.called")}
    assert set(effects) <= admitted


def test_what_a_cancelled_run_had_under_way_is_not_known_and_its_worker_leaves_what_it_learnt(
    ask, world, add_tool
):
    begun, cancelled = threading.Event(), threading.Event()

    @add_tool(name="slow", mutating=True)
    def slow(run: ToolContext) -> str:
        begun.set()
        cancelled.wait(10)
        return "paid"

    root = ask(lambda messages, facts: call(("slow", {})), drive=False)
    worker = Beside(lambda: executor.run(root.pk))
    begun.wait(10)
    cancel(root.pk)
    assert root.calls.get().status == "unknown"
    cancelled.set()
    assert worker.result() is None

    made = root.calls.get()
    assert (made.status, made.evidence, made.result) == ("unknown", {"result": "paid"}, None)
    assert audit(world.organization.pk) == []
