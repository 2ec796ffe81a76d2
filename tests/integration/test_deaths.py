"""What a dead worker had is another's at once, and what nobody has died of is nobody's fault."""

from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from common.db import own_connection
from runs.actions.claim import claim
from runs.models import ApprovalNotice, Carrier, OutboundCall, QueueMessage, Run, WorkerGroup
from runs.models.queue import ErrandKind, lane
from runs.notices import delivery, watch
from runs.queue import broker, heartbeat, put
from runs.queue.worker_status import Death
from runs.workers import deaths, tasks
from runs.workers.sweep import anything_due, sweep
from tests.admin_world import tenant
from tests.integration.api_client import Api
from tests.scripted import in_order, say

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)


def held(holder="group", **fields):
    later = timezone.now() + HOUR
    fields = {"queue": "deputy", "payload": "x"} | fields
    return QueueMessage.objects.create(holder=holder, due_at=later, **fields)


def due(message):
    message.refresh_from_db()
    return message.holder == "" and message.due_at <= timezone.now()


@pytest.fixture
def at_work(ask, settings):
    """A run that a worker holds."""
    run = ask(in_order(say("ok")), drive=False)
    settings.QUEUE_ENABLED = True
    claim(run.pk)
    return Run.objects.get(pk=run.pk)


def test_the_message_of_a_dead_worker_is_another_s_at_once_and_later_and_later_when_they_keep_dying(db):
    message = held()
    deaths.settle(Death(1, message.pk, 0, True, ""), "group")
    assert due(message)

    QueueMessage.objects.update(holder="group")
    deaths.settle(Death(1, message.pk, 0, True, ""), "group")
    message.refresh_from_db()
    assert message.deaths == 2
    assert not due(message)


@pytest.mark.parametrize(("by_itself", "crashes"), [(True, 1), (False, 0)])
def test_the_run_of_a_dead_worker_is_pending_again_at_once(at_work, by_itself, crashes):
    deaths.settle(Death(1, 0, at_work.attempt, by_itself, at_work.pk), "group")
    at_work.refresh_from_db()
    assert (at_work.status, at_work.crashes) == ("pending", crashes)
    assert QueueMessage.objects.filter(run_id=at_work.pk).exists()

    deaths.settle(Death(1, 0, at_work.attempt, by_itself, at_work.pk), "group")
    assert Run.objects.get(pk=at_work.pk).crashes == crashes  # told twice, counted once


def test_a_death_says_nothing_of_a_run_that_another_has_claimed_since(at_work):
    deaths.settle(Death(1, 0, at_work.attempt - 1, True, at_work.pk), "group")
    assert Run.objects.get(pk=at_work.pk).status == "running"


def test_a_lease_that_runs_out_is_no_crash_however_often(at_work):
    for _ in range(5):
        Run.objects.update(lease_expires_at=timezone.now() - HOUR)
        assert sweep().leases == 1
        claim(at_work.pk)

    at_work.refresh_from_db()
    assert (at_work.status, at_work.crashes) == ("running", 0)


def test_a_group_that_shows_no_sign_of_life_has_its_messages_taken_from_it(db):
    silent = timezone.now() - timedelta(seconds=heartbeat.DEAD_SECONDS + 1)
    WorkerGroup.objects.create(name="dead", host="h", workers=2, busy=0, seen_at=silent)
    WorkerGroup.objects.create(name="alive", host="h", workers=2, busy=0)
    of_dead, of_alive = held("dead"), held("alive")

    assert heartbeat.bury() == ["dead"]
    assert (due(of_dead), due(of_alive)) == (True, False)


def test_messages_of_a_group_nobody_knows_are_anybodys(db):
    WorkerGroup.objects.create(name="alive", host="h", workers=2, busy=0)
    orphan, of_alive = held("nobody"), held("alive")

    assert broker.give_back_orphans() == 1
    assert (due(orphan), due(of_alive)) == (True, False)


def test_the_notices_of_one_dead_sender_are_given_back_and_no_others(db):
    approval = tenant().approval
    ApprovalNotice.objects.all().delete()
    later, organization = timezone.now() + HOUR, approval.organization
    kept = {"organization": organization, "approval": approval, "status": "sending", "due_at": later}
    notice = ApprovalNotice.objects.create(holder="group:12;", **kept)

    for group, pid in (("group", 1), ("group", 123), ("other", None)):
        assert delivery.give_back(group, pid) == 0
    assert delivery.give_back("group", 12) == 1
    notice.refresh_from_db()
    assert notice.status == "pending"


def test_a_run_that_somebody_else_holds_goes_back_to_the_queue(ask, settings):
    run = ask(in_order(say("ok")), drive=False)
    settings.QUEUE_ENABLED = True
    with own_connection() as other, connection.cursor() as cursor:
        other.autocommit = False
        other.execute("SELECT id FROM runs_run WHERE id = %s FOR UPDATE", [run.pk])
        cursor.execute("SET lock_timeout = '200ms'")
        tasks.advance(run.pk)
        other.rollback()
    connection.close()

    message = QueueMessage.objects.get(run_id=run.pk, later=True)
    assert message.due_at > timezone.now()
    tasks.advance(run.pk)
    assert OutboundCall.objects.filter(run_id=run.pk, kind="model").exists()  # its model is asked


def test_a_notice_that_the_database_could_not_take_is_asked_for_again(db, monkeypatch, settings):
    settings.QUEUE_ENABLED = True
    monkeypatch.setattr(tasks, "PAUSES", (0, 0))
    enqueue, failures = put.enqueue_task, [OperationalError()]

    def away(*_):
        raise OperationalError

    def at_the_second_attempt(*arguments, **named):
        if failures:
            raise failures.pop()
        enqueue(*arguments, **named)

    monkeypatch.setattr(watch, "attend", away)
    monkeypatch.setattr(put, "enqueue_task", at_the_second_attempt)
    tasks.notify("apr_1")
    assert QueueMessage.objects.count() == 1


def test_programs_and_people_are_told_that_somebody_else_is_at_it(world, ask, client):
    run = ask(in_order(say("ok")), drive=False)
    with own_connection() as other, connection.cursor() as cursor:
        other.autocommit = False
        other.execute("SELECT id FROM runs_run WHERE id = %s FOR UPDATE", [run.pk])
        cursor.execute("SET lock_timeout = '200ms'")
        refused = Api(world.user, world.organization).post(f"runs/{run.pk}/cancel/", {})
        other.rollback()
    connection.close()

    assert (refused.status_code, refused.json()["code"]) == (503, "LOCKED")
    assert refused["Content-Type"] == "application/problem+json"
    assert refused.headers["Retry-After"] == "1"
    assert Run.objects.get(pk=run.pk).status == "pending"


def test_a_page_that_cannot_be_made_now_says_so_with_503(rf):
    from psycopg.errors import LockNotAvailable

    from common.api.errors import Unavailable

    error = OperationalError("words of the server")
    error.__cause__ = LockNotAvailable()
    answer = Unavailable(lambda request: None).process_exception(rf.get("/admin/"), error)

    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert b"Somebody else is at this" in answer.content
    assert b"words of the server" not in answer.content


def carrier(name, lives=True):
    until = timezone.now() + (HOUR if lives else -HOUR)
    return Carrier.objects.create(name=name, host="h", lease_expires_at=until)


def test_the_errands_of_a_dead_carrier_are_another_s_at_once(db):
    carrier("car_dead"), carrier("car_alive")
    of_dead = held("car_dead", queue=lane(ErrandKind.MAIL))
    of_alive = held("car_alive", queue=lane(ErrandKind.MAIL))
    deaths.settle(Death(1, 0, 0, True, "car_dead"), "group")

    assert (due(of_dead), due(of_alive)) == (True, False)
    assert of_dead.deaths == 1
    assert Carrier.objects.get(name="car_dead").lease_expires_at <= timezone.now()


def test_the_sweep_finds_carriers_of_whose_deaths_nobody_told(db):
    carrier("car_dead", lives=False), carrier("car_alive")
    gone, of_dead, of_alive = (
        held(name, queue=lane(ErrandKind.WEBHOOKS)) for name in ("car_gone", "car_dead", "car_alive")
    )

    assert anything_due() and sweep().outbound == 2
    assert (due(gone), due(of_dead), due(of_alive)) == (True, True, False)
    assert broker.give_back_orphans() == 0
    assert not anything_due()
