"""The queue on Redis: what goes there, when, and what stays in PostgreSQL."""

import pytest
from django.db import transaction
from django.test import override_settings
from django_q.signing import SignedPackage

from runs.models import QueueMessage, Run
from runs.queue import broker, put, redis_broker
from runs.queue.redis_broker import RedisBroker
from runs.workers import sweep
from tests.redis_server import RedisServer
from tests.scripted import say

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def server():
    server = RedisServer()
    server.start()
    yield server
    server.close()


@pytest.fixture
def on_redis(server, monkeypatch):
    monkeypatch.setattr(redis_broker, "_client", None)
    with override_settings(Q_BROKER="redis", REDIS_URL=server.url, QUEUE_ENABLED=True):
        RedisBroker("deputy").delete_queue()
        yield RedisBroker("deputy")


def taken(messages):
    """What was taken, as (row's number, function, arguments)."""
    found = [(number, SignedPackage.loads(payload)) for number, payload in messages or []]
    return [(number, task["func"], *task["args"]) for number, task in found]


def test_a_message_for_a_run_is_sent_when_its_transaction_has_committed(on_redis):
    with transaction.atomic():
        put.enqueue("run_1")
        assert on_redis.queue_size() == 0
    assert taken(on_redis.dequeue()) == [(None, put.ADVANCE, "run_1")]
    assert not QueueMessage.objects.exists()


def test_a_message_of_a_transaction_that_failed_is_never_sent(on_redis):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        put.enqueue("run_1")
        _ = 1 / 0
    assert on_redis.queue_size() == 0


def test_other_messages_stay_in_postgresql_until_they_are_acknowledged(on_redis, monkeypatch):
    put.enqueue_task("notify", "apr_1")
    kept = QueueMessage.objects.get()
    put.forward("group")
    put.forward("group")

    assert taken(on_redis.dequeue()) == [(kept.pk, "runs.workers.tasks.notify", "apr_1")]
    assert on_redis.queue_size() == 0  # forwarded once
    assert QueueMessage.objects.get().holder == "group"
    dealt_with = []
    monkeypatch.setattr(broker.acknowledgements, "add", dealt_with.append)
    on_redis.acknowledge(kept.pk)
    on_redis.acknowledge(None)  # a run's, which has no row
    assert dealt_with == [kept.pk]


def test_a_forwarded_message_of_a_group_that_died_is_forwarded_again(on_redis):
    put.enqueue_task("notify", "apr_1")
    put.forward("dead")
    on_redis.dequeue()

    broker.give_back(["dead"])
    put.forward("alive")

    assert taken(on_redis.dequeue())[0][1:] == ("runs.workers.tasks.notify", "apr_1")


def test_what_is_to_happen_later_is_forwarded_when_it_is_due(on_redis):
    put.enqueue("run_1", delay=60)
    put.forward("group")
    assert on_redis.queue_size() == 0
    QueueMessage.objects.update(due_at="2020-01-01T00:00:00Z")
    put.forward("group")
    assert taken(on_redis.dequeue())[0][1:] == (put.WAKE, "run_1")


def test_messages_from_before_the_change_to_redis_are_not_lost(on_redis):
    with override_settings(Q_BROKER="postgres"):
        put.enqueue("run_1")
    put.forward("group")
    assert taken(on_redis.dequeue())[0][1:] == (put.ADVANCE, "run_1")


def test_a_lost_message_is_sent_again_soon_and_one_in_a_long_queue_is_not(on_redis, ask):
    run = ask(lambda messages, facts: say("x"), drive=False)
    Run.objects.filter(pk=run.pk).update(queued_at="2020-01-01T00:00:00Z")
    assert on_redis.queue_size() == 1
    assert put.requeue_after() == redis_broker.BUSY_AFTER
    on_redis.delete_queue()
    assert put.requeue_after() == redis_broker.EMPTY_AFTER

    assert sweep.sweep().requeued == 1
    assert taken(on_redis.dequeue()) == [(None, put.ADVANCE, run.pk)]


def test_a_redis_that_is_away_stops_nobody_from_starting_a_run(ask, monkeypatch, tmp_path):
    monkeypatch.setattr(redis_broker, "_client", None)
    monkeypatch.setattr(broker, "AWAY_SECONDS", 0)
    with override_settings(Q_BROKER="redis", REDIS_URL=f"unix://{tmp_path}/none", QUEUE_ENABLED=True):
        run = ask(lambda messages, facts: say("x"), drive=False)
        assert run.status == "pending"
        assert RedisBroker("deputy").dequeue() is None
        assert put.oldest(90.0) == 0.0  # nobody replaces workers for that
        put.enqueue_task("notify", "apr_1")
        put.forward("group")
        assert QueueMessage.objects.get().holder == ""  # not handed over
    monkeypatch.setattr(redis_broker, "_client", None)
