"""A parent is never stranded: however its child ends, it wakes and is told which child and how."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.execution import executor
from runs.models import Run, ToolCall, Wait
from runs.providers.base import ProviderError
from runs.workers.sweep import sweep, worker_died
from tests.acting import cancel, message
from tests.at_once import at_once
from tests.auditor import audit, unrest
from tests.scripted import Scripted, by_role, call, say

from .helpers import payload

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
DOWN = call(("escalate_to_group", {"goal": "Compare prices"}))
QUESTION = call(("ask_user", {"question": "?"}))


@pytest.fixture
def tree(ask):
    """A parent that waits for its child, which waits for an answer."""
    parent = ask(by_role(Personal_agent=[DOWN, say("so be it")], researcher=[QUESTION, BROKEN]))
    return parent, Run.objects.get(parent_run=parent)


BROKEN = ProviderError("MODEL_REFUSED", "bad key")


def fails(parent, child):
    message(child.pk, "2026", "mia")
    executor.run(child.pk)


def is_cancelled(parent, child):
    cancel(child.pk, by="mia")


def takes_too_long(parent, child):
    Wait.objects.filter(run=child).delete()  # it waits for nobody: its clock runs
    Run.objects.filter(pk=child.pk).update(status="pending", waiting_reason=None)
    Wait.objects.filter(run=parent).update(
        created_at=timezone.now() - HOUR, expires_at=timezone.now() - HOUR / 2
    )
    sweep()


def is_poison(parent, child):
    message(child.pk, "2026", "mia")
    Scripted.play, before = staticmethod(dies), Scripted.play
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            executor.run(child.pk)
        worker_died(child.pk, Run.objects.get(pk=child.pk).attempt, by_itself=True)
    Scripted.play = before


def dies(messages, facts):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("end", "status", "outcome", "words"),
    [
        (fails, "failed", "failed", "Group run failed: bad key"),
        (is_cancelled, "cancelled", "cancelled", "Group run cancelled by mia."),
        (takes_too_long, "cancelled", "expired", "Group run {child} did not complete within 300000ms"),
        (is_poison, "failed", "failed", "Group run failed: The run took its worker down 3 times."),
    ],
)
def test_a_parent_hears_how_its_child_ended(tree, end, status, outcome, words):
    parent, child = tree
    end(parent, child)
    executor.run(parent.pk)

    child.refresh_from_db()
    parent.refresh_from_db()
    assert (child.status, parent.status, parent.output) == (status, "completed", "so be it")
    told = payload(parent, "wait.completed")
    assert (told["outcome"], told["payload"]["child_run"]) == (outcome, child.pk)
    result = ToolCall.objects.get(run=parent).result
    assert result == {"success": False, "error": words.format(child=child.pk)}
    assert audit(parent.organization_id) == unrest(parent.organization_id) == []


def test_a_child_that_ends_in_two_ways_at_once_is_told_once(tree):
    parent, child = tree
    Wait.objects.filter(run=parent).update(expires_at=timezone.now() - HOUR)
    Run.objects.filter(pk=child.pk).update(crashes=2)
    at_once(lambda: cancel(child.pk), sweep, lambda: cancel(child.pk, by="mia"), lambda: fails(parent, child))
    executor.run(parent.pk)

    parent.refresh_from_db()
    assert parent.status == "completed"
    assert payload(parent, "wait.completed")["payload"]["success"] is False
    assert audit(parent.organization_id) == unrest(parent.organization_id) == []
