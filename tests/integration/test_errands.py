"""Errands: which lane a task takes, how many of each a carrier does at once, and what becomes of them."""

import asyncio
import threading
from contextlib import suppress

import pytest
from django.db import OperationalError
from django.utils import timezone

from runs.models import QueueMessage
from runs.models.queue import ErrandKind, lane
from runs.notices import delivery
from runs.outbound import errands
from runs.outbound.errands import Errands, Later, at_host, do
from runs.outbound.lease import Lease
from runs.queue import put
from runs.webhooks import sending
from runs.workers import tasks

pytestmark = pytest.mark.django_db(transaction=True)

MAIL, WEBHOOKS = lane(ErrandKind.MAIL), lane(ErrandKind.WEBHOOKS)


@pytest.fixture(autouse=True)
def queue(settings):
    settings.QUEUE_ENABLED = True
    settings.CARRIER_ERRANDS = 8


def message(name, *arguments):
    put.enqueue_task(name, *arguments)
    return QueueMessage.objects.latest("id")


@pytest.mark.parametrize("broker", ["postgres", "redis"])
def test_a_task_that_waits_for_the_network_takes_a_lane_that_no_worker_takes_from(settings, broker):
    settings.Q_BROKER = broker
    put.enqueue_call("run_1", "tcl_1")
    for name in ("notify", *put.ERRAND_TASKS):
        put.enqueue_task(name, "x")

    found = list(QueueMessage.objects.order_by("id").values_list("queue", flat=True))
    kinds = ["calls", "", "webhooks", "mail", "mail", "mail", "calls", *["other"] * 7]
    assert found == [f"deputy.{kind}" if kind else "deputy" for kind in kinds]


def test_every_errand_is_a_task():
    assert all(callable(getattr(tasks, name)) for name in put.ERRAND_TASKS)


def doing(seconds, wanted):
    """A carrier does errands for so long, or until what is wanted has come; returns how many of each lane
    were under way at most.
    """

    async def main():
        carrier = Errands("car_test", Lease("car_test"))
        attending = asyncio.create_task(carrier.attend())
        most = {}
        for _ in range(int(seconds / 0.05)):
            for each in carrier.turns:
                busy = sum(its == each for its, _ in carrier.under_way.values())
                most[each] = max(most.get(each, 0), busy)
            if wanted(carrier):
                break
            await asyncio.sleep(0.05)
        attending.cancel()
        with suppress(asyncio.CancelledError):
            await attending
        return most

    return asyncio.run(main())


def test_no_kind_of_errand_takes_all_threads(monkeypatch):
    go_on = threading.Event()
    monkeypatch.setattr(delivery, "deliver", lambda *_: go_on.wait(20))
    for number in range(8):
        put.enqueue_task("deliver", f"chn_{number}")
    try:
        most = doing(2, lambda carrier: False)
    finally:
        go_on.set()

    assert most[MAIL] == 4
    assert QueueMessage.objects.filter(holder="car_test").count() == 4


def test_a_message_goes_when_its_errand_is_done_and_stays_where_it_could_not_be(monkeypatch):
    said = {"org_1": None, "org_2": Later(30), "org_3": OperationalError(), "org_4": ValueError()}

    tried = []

    def deliver(channel_id, tries=0):
        tried.append(channel_id)
        if said[channel_id]:
            raise said[channel_id]

    monkeypatch.setattr(delivery, "deliver", deliver)
    there = {name: message("deliver", name).pk for name in said}
    doing(10, lambda carrier: len(tried) == 4 and not carrier.under_way)
    left = {each.pk: each for each in QueueMessage.objects.all()}

    assert set(left) == {there["org_2"], there["org_3"]}
    assert {each.holder for each in left.values()} == {""}
    assert left[there["org_2"]].due_at > timezone.now()


def test_what_cannot_be_read_is_no_errand():
    assert do("nonsense") is None


def test_an_errand_that_only_a_newer_release_knows_is_left_to_it_for_a_day(monkeypatch, caplog):
    payload = message("tell_the_moon", "now").payload
    assert do(payload) == errands.NEWER_SECONDS
    monkeypatch.setattr(errands, "ROLL_OUT_SECONDS", 0)
    assert do(payload) is None
    assert "tell_the_moon failed" in caplog.text


def test_few_errands_wait_for_the_same_host():
    with at_host("a"), at_host("a"):
        with pytest.raises(Later), at_host("a"):
            pass
        with at_host("b"):
            pass
    with at_host("a"):
        pass
    assert not errands._at_hosts


def test_while_errands_wait_none_counts_as_lost():
    waiting = message("send_webhook", "msg_1")
    assert not put.has_backlog(ErrandKind.WEBHOOKS)
    QueueMessage.objects.filter(pk=waiting.pk).update(due_at="2020-01-01T00:00:00Z")
    assert put.has_backlog(ErrandKind.WEBHOOKS) and not put.has_backlog(ErrandKind.MAIL)
    assert sending.send_due() == 0
