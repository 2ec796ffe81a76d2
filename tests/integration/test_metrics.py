"""What Prometheus reads, and what probes are told: figures of the database, for those who may see them."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from common import env
from common.db import own_connection
from runs.models import Approval, QueueMessage, Run, WorkerGroup
from runs.observe import counts
from runs.providers.base import Reply, Usage
from runs.queue import heartbeat
from runs.queue.worker_status import WorkerStatus
from tests.admin_world import tenant
from tests.scripted import call, say

COPY = """
INSERT INTO runs_runevent (organization_id, run_id, seq, type, agent, payload, created_at, digest)
SELECT organization_id, run_id, %s, type, agent, payload, clock_timestamp(), '' FROM runs_runevent
WHERE run_id = %s AND seq = 1
"""
TOKEN = "a-token-for-metrics"


def figures(client, **more):
    """Every sample, by its name and the values of its labels, in the order of their names."""
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}, **more)
    assert answer.status_code == 200
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


@pytest.fixture
def watched():
    with override_settings(METRICS_TOKEN=TOKEN):
        yield


@pytest.mark.django_db
def test_nobody_reads_metrics_unless_somebody_may(client, admin_client):
    for settings in ({}, {"METRICS_TOKEN": TOKEN}):
        with override_settings(**settings):
            for header in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer "}):
                answer = client.get("/metrics", headers={**header, "X-Forwarded-For": "127.0.0.1"})
                assert answer.status_code == 404, (settings, header)
    assert admin_client.get("/metrics").status_code == 200


@pytest.mark.django_db
def test_a_network_may_be_allowed(client, monkeypatch):
    monkeypatch.setenv("METRICS_ALLOW", "10.0.0.0/8, ::1")
    with override_settings(METRICS_ALLOW=env.networks("METRICS_ALLOW")):
        assert client.get("/metrics", REMOTE_ADDR="10.1.2.3").status_code == 200
        assert client.get("/metrics", REMOTE_ADDR="::1").status_code == 200
        assert client.get("/metrics", REMOTE_ADDR="11.1.2.3").status_code == 404
        assert client.get("/metrics", REMOTE_ADDR="").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_metrics_say_how_things_stand(client, ask, watched):
    ask(lambda messages, facts: call(("ask_user", {"question": "Which year?"})))
    ask(lambda messages, facts: say("never asked"), drive=False)
    QueueMessage.objects.create(queue="deputy", payload="x", due_at=timezone.now() - timedelta(seconds=90))
    status = WorkerStatus()
    status.use(0)
    status.ready()
    assert 90 <= heartbeat.beat("one", status)[0] < 600

    found = figures(client)

    assert found["deputy_runs", "input", "waiting"] == found["deputy_runs", "", "pending"] == 1
    assert found["deputy_queue_messages",] == 1
    assert 90 <= found["deputy_queue_oldest_seconds",] < 600
    assert found["deputy_workers", "idle"] == found["deputy_worker_groups",] == 1
    assert found["deputy_workers", "busy"] == found["deputy_approvals_pending",] == 0


@pytest.mark.django_db(transaction=True)
def test_metrics_count_what_has_happened_since_they_were_first_read(client, ask, watched):
    ask(lambda messages, facts: say("before anybody looked"))
    figures(client)

    asked = call(("memory_search", {"query": "prices"}), ("no_such_tool", {}))
    replies = [
        Reply("", asked.tool_calls, Usage(5, 7), "m-1"),
        Reply("Done.", (), Usage(11, 13), "m-1"),
    ]
    ask(lambda messages, facts: replies.pop(0))
    figures(client)  # notes how far the log goes
    found = figures(client)

    assert found["deputy_events_total", "run.completed"] == 1
    assert found["deputy_model_tokens_total", "input", "m-1"] == 16
    assert found["deputy_model_tokens_total", "output", "m-1"] == 20
    assert found["deputy_tool_calls_total", "completed", "memory_search"] == 1
    assert found["deputy_tool_calls_total", "failed", "(unknown)"] == 1  # a name a model made up is no label
    assert found["deputy_step_seconds_count", "model"] == 2
    assert found["deputy_step_seconds_count", "tool"] == 1
    assert figures(client)["deputy_events_total", "run.completed"] == 1  # each event once


@pytest.mark.django_db(transaction=True)
def test_an_event_is_counted_although_a_later_one_was_committed_first(ask):
    run = ask(lambda messages, facts: say("x"))
    counts.count()
    slow = own_connection()
    slow.autocommit = False
    slow.execute(COPY, [1000, run.pk])
    with connection.cursor() as cursor:
        cursor.execute(COPY, [1001, run.pk])

    for _ in range(3):
        counts.count()
    early = counts.read()
    slow.commit()
    slow.close()
    for _ in range(2):
        counts.count()

    assert early == {}
    assert counts.read()["events"] == {("run.created",): 2}


@pytest.mark.django_db(transaction=True)
def test_who_finds_another_process_counting_leaves_it_to_that(ask):
    counts.count()
    ask(lambda messages, facts: say("x"))
    counts.count()
    other = own_connection()
    other.autocommit = False
    other.execute(counts.CURSOR)

    counts.count()
    other.rollback()
    other.close()

    assert counts.read() == {}
    counts.count()
    assert counts.read()["events"]["run.completed",] == 1


class TestReadiness:
    def test_the_public_hears_whether_and_not_why(self, client, db):
        assert client.get("/readyz").json() == {"status": "ok"}
        answer = client.get("/readyz?all")
        assert answer.status_code == 503
        assert answer["Content-Type"] == "application/problem+json"
        assert answer.json() == {
            "type": "/problems/not-ready/",
            "title": "Service Unavailable",
            "status": 503,
            "code": "NOT_READY",
            "detail": "Not ready.",
        }

    def test_a_web_process_serves_although_nobody_works(self, client, db, watched):
        answer = client.get("/readyz", headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 200
        assert answer.json()["checks"]["workers"] == {"ok": False, "groups": 0, "workers": 0, "busy": 0}

    def test_all_is_well_with_workers_and_no_old_work(self, client, db, watched):
        WorkerGroup.objects.create(name="a", host="h", workers=2, busy=1)
        answer = client.get("/readyz?all", headers={"Authorization": f"Bearer {TOKEN}"})
        assert (answer.status_code, answer.json()["status"]) == (200, "ok")
        assert {name: check["ok"] for name, check in answer.json()["checks"].items()} == {
            "database": True,
            "migrations": True,
            "queue": True,
            "workers": True,
            "approvals": True,
        }

    def test_a_group_that_has_fallen_silent_does_not_count(self, client, db, watched):
        silent = timezone.now() - timedelta(minutes=2)
        WorkerGroup.objects.create(name="a", host="h", workers=2, busy=1, seen_at=silent)
        answer = client.get("/readyz?all", headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.json()["detail"] == "Not ready: workers."

    def test_work_that_nobody_takes_is_late(self, client, world, ask, watched):
        WorkerGroup.objects.create(name="a", host="h", workers=2, busy=1)
        run = ask(lambda messages, facts: say("x"), drive=False)
        Run.objects.filter(pk=run.pk).update(queued_at=timezone.now() - timedelta(minutes=5))
        answer = client.get("/readyz?all", headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.json()["detail"] == "Not ready: queue."
        assert answer.json()["checks"]["queue"]["oldest_pending_run_seconds"] >= 300

    def test_a_database_of_an_older_release_is_not_ready(self, client, db, watched):
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM django_migrations WHERE name = '0001_squashed_0023_model_keys'")
        answer = client.get("/readyz", headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 503
        assert answer.json()["checks"]["migrations"]["missing"] == ["runs.0001_squashed_0023_model_keys"]
        assert client.get("/readyz").json()["detail"] == "Not ready."


class TestSignsOfLife:
    def test_a_group_says_that_it_lives_and_is_forgotten_when_it_stops(self, db):
        status = WorkerStatus()
        assert heartbeat.beat("one", status) == (0.0, False)
        heartbeat.beat("one", status)
        assert WorkerGroup.objects.get().workers == 0
        heartbeat.forget(["one"])
        assert not WorkerGroup.objects.exists()

    def test_one_that_died_long_ago_is_forgotten_by_the_others(self, db):
        WorkerGroup.objects.create(
            name="dead", host="h", workers=2, busy=0, seen_at=timezone.now() - timedelta(hours=2)
        )
        assert heartbeat.beat("alive", WorkerStatus()) == (0.0, True)
        assert heartbeat.bury() == ["dead"]
        assert [group.name for group in WorkerGroup.objects.all()] == ["alive"]


def test_approvals_are_counted_with_the_age_of_the_oldest(db, client, watched):
    made = tenant()
    Approval.objects.filter(pk=made.approval.pk).update(requested_at=timezone.now() - timedelta(hours=2))
    found = figures(client)
    assert found["deputy_approvals_pending",] == 1
    assert found["deputy_approval_oldest_seconds",] >= 7200
