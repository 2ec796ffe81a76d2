"""Locks are taken from the top of the tree: nobody who keeps to that order meets a deadlock."""

import pytest
from django.db import transaction

from runs.execution import executor
from runs.log.log import RunLog
from runs.models import Run
from tests.at_once import Beside, until_blocked
from tests.auditor import audit
from tests.scripted import by_role, call, say

pytestmark = pytest.mark.django_db(transaction=True)

TWO = call(("escalate_to_group", {"goal": "a"}), ("escalate_to_group", {"goal": "b"}))


def test_a_child_that_ends_as_soon_as_it_is_claimed_locks_its_parent_first(ask, world):
    seen = {"researcher": [say("seen")], "analyst": [say("seen")], "lead": [say("DECISION: seen")]}
    parent = ask(by_role(Personal_agent=[TWO, say("one of two")], **seen))
    child = Run.objects.get(parent_run=parent, status="pending")
    Run.objects.filter(pk=child.pk).update(deadline=child.created_at)

    with transaction.atomic():
        RunLog.lock(parent.pk)
        worker = Beside(lambda: executor.run(child.pk))
        until_blocked(worker)
        RunLog.lock(child.pk)  # as cancelling the tree does: it would wait for the worker, which waits for us
    assert worker.result() is None

    child.refresh_from_db()
    assert (child.status, child.error["code"]) == ("failed", "BUDGET_SECONDS")
    assert audit(world.organization.pk) == []
