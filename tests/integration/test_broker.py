"""The queue's broker: what is enqueued, taken, delayed, lost and given back."""

import pytest
from django.db import connection, transaction
from django.test import override_settings

from common import notifications
from runs.models import QueueMessage
from runs.queue import broker, put
from runs.queue.broker import PostgresBroker, Taker
from runs.workers import sweep

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def taker():
    taker = Taker("deputy")
    yield taker
    if taker.connection is not None:
        taker.connection.close()


def put_message(payload="x", run_id="run_1", delay=0):
    sender = PostgresBroker("deputy")
    sender.run_id, sender.delay = run_id, delay
    return sender.enqueue(payload)


def test_a_message_is_there_when_its_transaction_has_committed(taker):
    with transaction.atomic():
        number = put_message()
        assert taker.take() is None
    taker.look_at = 0.0
    assert taker.take() == [(number, "x")]


def test_a_message_of_a_transaction_that_failed_is_never_there(taker):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        put_message()
        _ = 1 / 0
    assert taker.take() is None
    assert not QueueMessage.objects.exists()


def test_whoever_is_told_of_a_message_finds_it_also_when_it_came_without_a_transaction(taker, monkeypatch):
    found = []
    monkeypatch.setattr(notifications, "send", lambda channel, payload="": found.append(taker.take()))
    number = put_message()
    assert found == [[(number, "x")]]


def test_a_taken_message_is_not_taken_again_until_its_lease_ends(taker):
    number = put_message()
    assert taker.take() == [(number, "x")]
    taker.look_at = 0.0
    assert taker.take() is None
    QueueMessage.objects.update(due_at="2020-01-01T00:00:00Z")
    taker.look_at = 0.0
    assert taker.take() == [(number, "x")]


def test_messages_of_a_group_that_is_gone_are_given_back(taker):
    number = put_message()
    taker.take()
    assert broker.give_back([broker.holder]) == 1
    taker.look_at = 0.0
    assert taker.take() == [(number, "x")]


def test_a_delayed_message_comes_when_it_is_due_and_no_later_than_the_next_look(taker):
    number = put_message(delay=0.5)
    assert taker.take() is None
    came = [taken for taken in (taker.take() for _ in range(10)) if taken]
    assert came == [[(number, "x")]]


def test_the_taker_comes_back_after_its_connection_was_cut(taker):
    taker.take()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [taker.connection.info.backend_pid])
    number = put_message()
    came = [taken for taken in (taker.take() for _ in range(5)) if taken]
    assert came == [[(number, "x")]]


def test_a_pending_run_is_queued_again_only_when_no_message_waits_for_it(ask):
    run = ask(lambda messages, facts: None, drive=False)
    type(run).objects.update(queued_at="2020-01-01T00:00:00Z")
    with override_settings(QUEUE_ENABLED=True):
        put.enqueue(run.pk)
        assert sweep.sweep().requeued == 0
        QueueMessage.objects.all().delete()
        assert sweep.sweep().requeued == 1
    assert QueueMessage.objects.get().run_id == run.pk
