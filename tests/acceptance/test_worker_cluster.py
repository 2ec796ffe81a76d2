"""Runs complete in a real cluster, whichever of its processes is killed, and nothing happens twice."""

import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import suppress

import pytest
from django.db import connection, transaction

from runs.actions.claim import claim
from runs.models import OutboundCall, QueueMessage, Run, RunEvent, ToolCall
from runs.models.choices import ACTIVE
from runs.workers import worker
from tests.acceptance.house import check_logs, cluster_process, status, tree, until
from tests.acting import cancel

LEVELS = 10
SOON = 15  # seconds within which a run completes although something was killed


def effects_were_right(house, run):
    """Every effect happened, under one key each; returns how often each key was used."""
    ids = [r.pk for r in tree(run)]
    keys = {role: house.witness.keys(ids, role) for role in ("scout", "lead")}
    assert all(len(set(used)) == 1 for used in keys.values()), keys
    assert Counter(ToolCall.objects.filter(run__in=ids).values_list("tool", "status")) == {
        ("escalate_to_group", "succeeded"): 1,
        ("keyed_effect", "succeeded"): 2,
    }
    return [len(used) for used in keys.values()]


def test_one_worker_completes_ten_levels_of_escalation(house, ask, ended):
    house.cluster(WORKERS="1")
    run = ask(f"deep {LEVELS}", RUN_DEPTH=LEVELS)

    assert ended(run) == "completed", house.report(run)
    runs = tree(run)
    assert [r.depth for r in runs] == list(range(LEVELS + 1))
    assert [r.parent_run_id for r in runs[1:]] == [r.pk for r in runs[:-1]]
    assert [r.status for r in runs] == ["completed"] * (LEVELS + 1)
    check_logs(run)


@pytest.mark.slow
def test_of_two_workers_that_claim_a_run_one_wins_200_times(house, ask):
    runs = [ask("brief") for _ in range(200)]
    start = threading.Barrier(2)
    won = {0: [], 1: []}

    def race(worker):
        try:
            for run in runs:
                start.wait(30)
                with transaction.atomic():
                    attempt = claim(run)
                won[worker].append(attempt)
        finally:
            connection.close()

    threads = [threading.Thread(target=race, args=(worker,)) for worker in won]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [sorted(pair, key=str) for pair in zip(*won.values(), strict=True)] == [[1, None]] * 200


def dying(house, point, once):
    """A cluster one of whose processes dies there, once. It has nothing to do that earlier tests have left:
    it would die at that. Their runs are cancelled, since the sweep finds those whose messages are gone.
    """
    house.end_common()
    for left in Run.objects.filter(status__in=ACTIVE, parent_run=None):
        cancel(left.pk)
    OutboundCall.objects.all().delete()
    QueueMessage.objects.all().delete()
    house.cluster(WORKERS="1", DEPUTY_CRASH_AT=point, DEPUTY_CRASH_ONCE=str(once))


@pytest.mark.parametrize(
    ("point", "tool_ran_twice"),
    [
        ("after_slow:3", True),  # its first member's tool has done its work, and only the outside knows
        pytest.param("before_commit:2", False, marks=pytest.mark.slow),  # one has spoken
        pytest.param("before_slow:2", False, marks=pytest.mark.slow),  # nobody in it has been asked
        pytest.param("after_commit:4", False, marks=pytest.mark.slow),  # between two members
    ],
)
def test_a_tree_completes_after_its_worker_was_killed_in_a_child(
    house, ask, ended, tmp_path, point, tool_ran_twice
):
    once = tmp_path / "crashed"
    dying(house, point, once)
    run = ask("team keyed_effect")

    assert ended(run) == "completed", house.report(run)
    assert once.exists()
    assert effects_were_right(house, run) == [2 if tool_ran_twice else 1, 1]
    check_logs(run)


def test_a_call_that_may_be_repeated_runs_after_a_kill_before_it(house, ask, ended, tmp_path):
    dying(house, "before_slow:2", tmp_path / "crashed")
    run = ask("alone keyed_effect")

    assert ended(run) == "completed", house.report(run)
    assert house.witness.count([run]) == {"it": 1}


@pytest.mark.parametrize(
    ("point", "effects"), [pytest.param("before_slow:2", 0, marks=pytest.mark.slow), ("after_slow:2", 1)]
)
def test_a_call_that_may_not_be_repeated_waits_for_review_after_a_kill(house, ask, tmp_path, point, effects):
    dying(house, point, tmp_path / "crashed")
    run = ask("alone effect")

    until(lambda: status(run) == "waiting", said=lambda: house.report(run))
    assert Run.objects.get(pk=run).waiting_reason == "review"
    assert ToolCall.objects.get(run=run).status == "unknown"
    assert house.witness.count([run])["it"] == effects
    check_logs(run)


@pytest.mark.slow
def test_trees_complete_when_a_worker_is_killed_at_any_moment(house, ask, ended):
    cluster = house.common_cluster()
    runs = [ask("team keyed_effect") for _ in range(6)]
    time.sleep(random.uniform(0, 0.4))
    cluster.kill(random.choice(cluster.workers()))

    for run in runs:
        assert ended(run) == "completed", house.report(run)
        assert max(effects_were_right(house, run)) <= 2
        check_logs(run)


@pytest.mark.parametrize(
    "victim",
    [
        "group",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("idle worker", "monitor", "pusher", "sentinel", "parent")
        ),
    ],
)
def test_the_next_run_completes_after_a_kill_of(house, ask, ended, victim):
    cluster = house.common_cluster()
    *workers, monitor, pusher = cluster.inner()
    before = {cluster.group, cluster.sentinel(), *workers, monitor, pusher}
    chosen = {
        "idle worker": [workers[0]],
        "monitor": [monitor],
        "pusher": [pusher],
        "sentinel": [cluster.sentinel()],
        "parent": [cluster.group],
        "group": sorted(before),
    }[victim]
    for pid in chosen:
        with suppress(ProcessLookupError):  # those of a group end by themselves, too
            cluster.kill(pid)
    runs = [ask("brief") for _ in range(4)]

    for run in runs:
        assert ended(run, SOON) == "completed", house.report(run)
    until(lambda: not any(cluster_process(pid) for pid in before), said=cluster.said)


@pytest.mark.slow
def test_a_busy_worker_finishes_its_run_while_its_group_is_replaced(house, ask, ended):
    cluster = house.common_cluster()
    busy = ask("nap 3")
    until(lambda: house.witness.count([busy]))
    begun = {member for member in cluster.workers() if working(member)}
    cluster.kill(next(pid for pid in cluster.workers() if pid not in begun))
    brief = ask("brief")

    assert ended(brief, SOON) == "completed"
    assert ended(busy) == "completed", house.report(busy)
    assert house.witness.count([busy]) == {"nap": 1}


def working(pid):
    """Whether the process sleeps in a tool and does not wait for the queue's lock or pipe."""
    with open(f"/proc/{pid}/syscall") as file:
        return file.read().split()[0] in NAPPING


NAPPING = {"230", "35", "115"}  # clock_nanosleep, nanosleep: x86-64, and arm64's


@pytest.mark.slow
def test_workers_come_back_by_themselves_after_a_kill_of_postgresql(house, ask, ended):
    cluster = house.common_cluster()
    first = ask("naps 3")
    until(lambda: house.witness.count([first]))
    connection.close()
    before = house.postmaster()
    os.kill(before, signal.SIGKILL)
    until(lambda: house.answers() and house.postmaster() != before)
    second = ask("team keyed_effect")

    assert ended(second) == "completed", house.report(second)
    assert ended(first) == "completed", house.report(first)
    check_logs(first)
    assert cluster.process.poll() is None


def test_a_model_that_asks_to_come_later_is_asked_on_time(house, ask, ended, tmp_path):
    house.common_cluster()
    run = ask(f"flaky {tmp_path / 'failed'}")

    assert ended(run) == "completed", house.report(run)
    at = dict(RunEvent.objects.filter(run=run).values_list("type", "created_at"))
    waited = (at["wait.completed"] - at["run.waiting"]).total_seconds()
    assert 1.3 < waited < 4  # the next sweep would come up to 5 s later


@pytest.mark.slow
def test_nothing_is_left_when_the_watchdog_is_killed(house, ask, ended):
    cluster = house.common_cluster()
    everybody = {cluster.group, cluster.sentinel(), *cluster.inner()}
    cluster.kill(cluster.process.pid)
    cluster.process.wait()

    until(lambda: not any(cluster_process(pid) for pid in everybody), seconds=5)
    run = ask("brief")
    house.common_cluster()
    assert ended(run, SOON) == "completed"


@pytest.mark.slow
def test_two_clusters_share_the_work_and_do_nothing_twice(house, ask, ended):
    house.cluster()
    house.cluster()
    runs = [ask("alone effect") for _ in range(20)]

    for run in runs:
        assert ended(run) == "completed", house.report(run)
        assert house.witness.count([run]) == {"it": 1}
        assert RunEvent.objects.filter(run=run, type="run.started").count() == 1


def test_sigterm_stops_cleanly_and_the_run_goes_on_elsewhere(house, ask, ended):
    cluster = house.cluster()
    run = ask("naps 6")
    until(lambda: house.witness.count([run]))
    began = time.monotonic()
    everybody = {cluster.group, cluster.sentinel(), *cluster.inner()}
    cluster.process.terminate()

    assert cluster.process.wait(20) == 0
    assert time.monotonic() - began < 10
    assert not any(cluster_process(pid) for pid in everybody)
    left = Run.objects.get(pk=run)  # let go of between two steps, not when its lease had run out
    assert (left.status, left.lease_expires_at) in (("pending", None), ("running", None))
    house.cluster()
    assert ended(run) == "completed", house.report(run)
    assert len(set(house.witness.keys([run], "nap"))) == 6
    assert Run.objects.get(pk=run).crashes == 0


@pytest.fixture
def no_autovacuum(house):
    """PostgreSQL's own work after the migrations would be counted."""
    with house.beside() as own:
        own.execute("ALTER SYSTEM SET autovacuum = off")
        own.execute("SELECT pg_reload_conf()")
    yield
    with house.beside() as own:
        own.execute("ALTER SYSTEM RESET autovacuum")
        own.execute("SELECT pg_reload_conf()")


@pytest.mark.slow
def test_an_idle_cluster_asks_the_database_a_few_times_a_second(house, no_autovacuum):
    house.cluster(SWEEP_SECONDS="5")
    connection.close()
    time.sleep(10)
    before, seconds = house.transactions(), worker.UPKEEP_SECONDS  # one round of upkeep among them
    time.sleep(seconds)

    a_second = (house.transactions() - before) / seconds
    print(f"{a_second:.2f} transactions a second")
    # every five seconds: six looks for what is due, one for work, four of the carrier; and signs of life
    assert a_second < 4
