"""The same guarantees with the queue on Redis, which may lose everything it holds at any time."""

import os
import signal

import pytest
from django.db import connection
from django.test import override_settings

from runs.models import Run, RunEvent
from runs.queue import put, redis_broker
from tests.acceptance.house import check_logs, cluster_process, until
from tests.acceptance.test_worker_cluster import SOON
from tests.redis_server import RedisServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def redis_server():
    server = RedisServer()
    server.start()
    yield server
    server.close()


@pytest.fixture
def cluster(house, redis_server, monkeypatch):
    """Workers, and this process, whose queue is on Redis."""
    monkeypatch.setattr(redis_broker, "_client", None)
    redis_server.client().flushall()
    with override_settings(Q_BROKER="redis", REDIS_URL=redis_server.url):
        yield house.cluster(Q_BROKER="redis", REDIS_URL=redis_server.url)


@pytest.mark.parametrize("victim", ["idle worker", "pusher", "group"])
def test_the_next_run_completes_after_a_kill_of(cluster, ask, ended, house, victim):
    *workers, monitor, pusher = cluster.inner()
    everybody = {cluster.group, cluster.sentinel(), *workers, monitor, pusher}
    chosen = {"idle worker": [workers[0]], "pusher": [pusher], "group": sorted(everybody)}[victim]
    for pid in chosen:
        cluster.kill(pid)
    runs = [ask("brief") for _ in range(4)]

    for run in runs:
        assert ended(run, SOON) == "completed", house.report(run)
    until(lambda: not any(cluster_process(pid) for pid in everybody), said=cluster.said)


def test_runs_whose_worker_was_killed_complete_with_one_effect_a_key(cluster, ask, ended, house):
    runs = [ask("team keyed_effect") for _ in range(4)]
    until(lambda: Run.objects.filter(pk__in=runs, status="running").exists())
    cluster.kill(cluster.workers()[0])

    for run in runs:
        assert ended(run) == "completed", house.report(run)
        check_logs(run)


def test_runs_go_on_after_a_kill_of_postgresql(cluster, ask, ended, house):
    first = ask("naps 3")
    until(lambda: house.witness.count([first]))
    connection.close()
    before = house.postmaster()
    os.kill(before, signal.SIGKILL)
    until(lambda: house.answers() and house.postmaster() != before)
    second = ask("team keyed_effect")

    assert [ended(run) for run in (first, second)] == ["completed", "completed"], house.report(first)
    check_logs(first)


def test_runs_start_while_redis_is_away_and_complete_afterwards(cluster, ask, ended, house, redis_server):
    redis_server.kill()
    runs = [ask("brief") for _ in range(4)]
    redis_server.start()

    for run in runs:
        assert ended(run) == "completed", house.report(run)
    assert cluster.process.poll() is None


def test_messages_that_are_lost_doubled_or_late_do_no_harm(cluster, ask, ended, house, redis_server):
    key = redis_broker.RedisBroker("deputy").list_key
    for pid in cluster.workers():  # nobody takes them for a moment
        os.kill(pid, signal.SIGSTOP)
    runs = [ask("alone effect") for _ in range(6)]
    here = redis_server.client()
    until(lambda: here.llen(key) >= 1)
    messages = here.lrange(key, 0, -1)
    here.delete(key)  # lost
    for message in messages[::-1]:  # doubled, and in another order
        here.rpush(key, message, message)
    here.lpop(key)
    for pid in cluster.workers():
        os.kill(pid, signal.SIGCONT)

    for run in runs:
        assert ended(run) == "completed", house.report(run)
        put.enqueue(run)  # an hour late
    until(lambda: here.llen(key) == 0)
    for run in runs:
        assert house.witness.count([run]) == {"it": 1}
        assert RunEvent.objects.filter(run=run, type="run.started").count() == 1
