"""Guards that other tests lean on, each shown by itself: break one, and its test here fails."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from django.db import transaction

from common.db import execute, own_connection, row
from policy.models import Grant
from runs.actions.claim import claim
from runs.execution import executor
from runs.execution.executor import Taken
from runs.gate.approvals import use_grant
from runs.log.log import COLUMNS, Fenced, RunLog, WrongTransition
from runs.models import Run, Wait
from runs.models.choices import TRANSITIONS, EventType, RunStatus
from runs.queue.broker import PostgresBroker, Taker
from runs.workers.sweep import sweep
from tests.at_once import Beside, until_blocked
from tests.factories import MembershipFactory
from tests.scripted import by_role, call, in_order, say

from .helpers import payload, types

DOWN = call(("escalate_to_group", {"goal": "Compare prices"}))
SEND = call(("send_email", {"to": ["a@example.com"], "subject": "Hello", "body": "Text"}))


# The fence


@pytest.mark.django_db
def test_a_worker_whose_run_was_claimed_again_writes_nothing_although_the_run_is_running(ask):
    run = ask(in_order(), drive=False)
    stale = executor.take(Taken(run.pk), True)
    Run.objects.filter(pk=run.pk).update(lease_expires_at="2020-01-01T00:00:00Z")
    sweep()
    assert claim(run.pk) == 2
    before = types(run)

    with pytest.raises(Fenced, match="claimed as 1, now running at 2"), stale.claimed.step() as log:
        log.append(EventType.MEMORY_WRITTEN)
    assert types(run) == before


# The table of transitions


@pytest.mark.parametrize("old", RunStatus)
def test_a_status_follows_only_where_the_table_says_so(old):
    columns = dict.fromkeys(COLUMNS, "") | {"status": old.value}
    for new in RunStatus:
        log = RunLog.make(datetime.now(UTC), columns)
        if new in TRANSITIONS[old]:
            log.set(status=new.value)
            assert (log.status, log.changes["status"]) == (new, new)
        else:
            with pytest.raises(WrongTransition):
                log.set(status=new.value)
            assert log.status == old


# The clock of a wait for a child


def backdated(ask, kind_of_play, minutes):
    """A parent whose wait for its child began so long ago that its clock is over."""
    parent = ask(kind_of_play)
    child = Run.objects.get(parent_run=parent)
    execute(
        "UPDATE runs_wait SET created_at = created_at - %s * interval '1 minute',"
        " expires_at = expires_at - %s * interval '1 minute' WHERE run_id = ANY(%s)",
        [minutes, minutes, [parent.pk, child.pk]],
    )
    return parent, child


@pytest.mark.django_db
def test_the_clock_of_a_childs_wait_stands_still_while_a_person_is_waited_for_and_goes_on_after(
    ask, settings
):
    settings.APPROVAL_SECONDS = 7 * 24 * 3600
    parent, child = backdated(ask, by_role(Personal_agent=[DOWN], researcher=[SEND]), minutes=60)
    sweep()
    open_wait = Wait.objects.get(run=parent, kind="child")
    assert (open_wait.resolved_at, Run.objects.get(pk=child.pk).status) == (None, "waiting")

    decided_after(child, open_wait, minutes=58)  # two of the sixty minutes count, of the five there are
    assert Wait.objects.get(pk=open_wait.pk).resolved_at is None
    decided_after(child, open_wait, minutes=50)  # ten count
    assert Wait.objects.get(pk=open_wait.pk).outcome == "expired"


@pytest.mark.django_db
def test_a_child_whose_time_is_over_is_not_given_up_while_it_waits_for_a_person(ask):
    parent, child = backdated(ask, by_role(Personal_agent=[DOWN], researcher=[SEND]), minutes=60)
    execute("UPDATE runs_wait SET created_at = clock_timestamp() WHERE run_id = %s", [child.pk])
    sweep()
    assert Wait.objects.get(run=parent, kind="child").resolved_at is None


def decided_after(child, open_wait, minutes):
    """The child's person took so long to decide; then the clock of the parent's wait is looked at."""
    execute(
        "UPDATE runs_wait SET resolved_at = created_at + %s * interval '1 minute', outcome = 'rejected'"
        " WHERE run_id = %s AND kind = 'approval'",
        [minutes, child.pk],
    )
    execute(
        "UPDATE runs_wait SET expires_at = clock_timestamp() - interval '1 s' WHERE id = %s", [open_wait.pk]
    )
    sweep()


@pytest.mark.django_db
def test_a_child_that_takes_too_long_is_cancelled_and_its_parent_told_so_with_the_time_it_had(ask, settings):
    parent = ask(by_role(Personal_agent=[DOWN, say("done")], researcher=[]), drive=False)
    entered = executor.take(Taken(parent.pk), True)
    executor.transact(entered.claimed, executor.speak(entered.claimed), may_pass=False)
    child = Run.objects.get(parent_run=parent)
    execute(
        "UPDATE runs_wait SET created_at = created_at - interval '1 hour',"
        " expires_at = expires_at - interval '1 hour' WHERE run_id = %s",
        [parent.pk],
    )
    sweep()
    child.refresh_from_db()
    completed = payload(parent, "wait.completed")
    assert child.status == "cancelled"
    assert completed["outcome"] == "expired"
    milliseconds = settings.CHILD_WAIT_SECONDS * 1000
    assert completed["payload"]["error"] == f"Group run {child.pk} did not complete within {milliseconds}ms"
    assert Run.objects.get(pk=parent.pk).status == "pending"


# A grant's last use


@pytest.mark.django_db(transaction=True)
def test_two_calls_at_once_cannot_both_have_a_grants_last_use(world):
    grant = Grant.objects.create(
        organization=world.organization,
        project=world.project,
        tool="send_email",
        any_arguments=True,
        granted_by=MembershipFactory(organization=world.organization, role="decider").user,
        max_uses=1,
    )
    (now,) = row("SELECT clock_timestamp()")
    log = SimpleNamespace(now=now, organization_id=world.organization.pk)

    def use(key):
        with transaction.atomic():
            return use_grant(log, admitted(key))

    def admitted(key):
        return SimpleNamespace(decision=SimpleNamespace(grant_id=grant.pk), idempotency_key=key)

    with transaction.atomic():
        assert use_grant(log, admitted("a" * 64))
        second = Beside(lambda: use("b" * 64))
        until_blocked(second)
    assert second.result() is False
    assert grant.uses.count() == 1


# Messages are taken by one


def put_message(number):
    sender = PostgresBroker("deputy")
    sender.run_id = f"run_{number}"
    return sender.enqueue(str(number))


@pytest.mark.django_db(transaction=True)
def test_a_message_that_another_is_taking_is_passed_over_without_waiting():
    first, second = put_message(1), put_message(2)
    taker = Taker("deputy")
    with own_connection() as other, other.transaction():
        other.execute("SELECT id FROM runs_queuemessage WHERE id = %s FOR UPDATE", [first])
        beside = Beside(taker.take)
        until_blocked(beside)
        assert beside.done
        assert beside.result() == [(second, "2")]
    if taker.connection is not None:
        taker.connection.close()
