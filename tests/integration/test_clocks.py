"""All clocks are the database's: a process whose own clock is wrong ends nothing too early or too late."""

import time
from datetime import UTC, datetime

import pytest
from django.utils import timezone

from common.db import row
from runs.execution import executor
from runs.models import Approval, Run, Wait
from runs.workers.sweep import anything_due, sweep
from tests.acting import approve, message
from tests.auditor import audit, unrest
from tests.factories import MembershipFactory, permit
from tests.scripted import Scripted, by_role, call, in_order, say

from .helpers import payload

pytestmark = pytest.mark.django_db

HOUR = 3600
QUESTION = call(("ask_user", {"question": "?"}))
SEND = call(("send_email", {"to": ["a@example.com"], "subject": "Hello", "body": "Text"}))
DOWN = call(("escalate_to_group", {"goal": "Compare prices"}))


@pytest.fixture
def approver(world):
    member = MembershipFactory(organization=world.organization)
    return permit(member.user, "decide_approval")


@pytest.fixture(params=[HOUR, -HOUR], ids=["an hour fast", "an hour slow"])
def jumped(request, monkeypatch):
    """Call it, and this process's clock is wrong from then on."""
    real = time.time

    def jump():
        monkeypatch.setattr(time, "time", lambda: real() + request.param)
        monkeypatch.setattr(timezone, "now", lambda: datetime.fromtimestamp(time.time(), UTC))
        assert abs((timezone.now() - row("SELECT clock_timestamp()")[0]).total_seconds()) > HOUR / 2

    return jump


def test_nothing_expires_by_the_clock_of_a_process(ask, world, jumped):
    parent = ask(by_role(Personal_agent=[DOWN], researcher=[SEND]))
    executing = ask(in_order(), drive=False)
    Run.objects.filter(pk=executing.pk).update(
        status="running", attempt=1, lease_expires_at=row("SELECT clock_timestamp() + interval '1 min'")[0]
    )
    before = list(Wait.objects.values_list("expires_at", flat=True))
    jumped()

    assert not anything_due()
    assert not sweep().any
    executor.run(parent.pk)
    assert list(Wait.objects.values_list("expires_at", flat=True)) == before
    assert set(Wait.objects.values_list("resolved_at", flat=True)) == {None}
    assert Run.objects.get(pk=executing.pk).status == "running"


def test_what_is_decided_and_answered_after_a_jump_counts(ask, world, jumped, mailoutbox, approver):
    run = ask(in_order(SEND, QUESTION, say("done")))
    jumped()
    approve(Approval.objects.get(run=run).pk, approver)
    executor.run(run.pk)
    message(run.pk, "yes", "mia")
    executor.run(run.pk)

    run.refresh_from_db()
    assert (run.status, len(mailoutbox)) == ("completed", 1)
    assert audit(world.organization.pk) == unrest(world.organization.pk) == []


def test_what_is_begun_after_a_jump_has_its_whole_time(ask, world, jumped, settings):
    jumped()
    run = ask(by_role(Personal_agent=[DOWN, say("done")], researcher=[SEND]))
    child = Run.objects.get(parent_run=run)
    (now,) = row("SELECT clock_timestamp()")

    def left(moment):
        return round((moment - now).total_seconds() / 60)

    assert left(Wait.objects.get(kind="child").expires_at) == settings.CHILD_WAIT_SECONDS / 60
    assert left(Approval.objects.get(run=child).expires_at) == settings.APPROVAL_SECONDS / 60
    assert [left(r.deadline) for r in (run, child)] == [settings.RUN_SECONDS / 60] * 2
    assert not sweep().any


def test_a_claim_after_a_jump_has_a_lease_by_the_databases_clock(ask, jumped, settings):
    lease = []

    def look(messages, facts):
        lease.append(
            row("SELECT EXTRACT(epoch FROM lease_expires_at - clock_timestamp())::float8 FROM runs_run")
        )
        return say("done")

    jumped()
    run = ask(look)
    assert run.status == "completed"
    assert 0 < lease[0][0] <= settings.LEASE_SECONDS


def test_times_in_a_log_are_the_databases(ask, jumped):
    jumped()
    run = ask(in_order(say("done")))
    (now,) = row("SELECT clock_timestamp()")

    assert all(abs((now - event.created_at).total_seconds()) < HOUR / 2 for event in run.events.all())
    assert payload(run, "run.completed")["output"] == "done"
    assert Scripted.asked
