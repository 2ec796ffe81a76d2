"""Slow models hold no worker: carriers await them, and whoever is killed loses only what was on the wire."""

import os
import signal
import time
from collections import Counter

import pytest
from django.db import connection
from django.test import override_settings

from common.db import rows
from runs.actions.signal import marks
from runs.models import OutboundCall, Run, ShownWords
from runs.outbound import lost
from runs.outbound.following import ANNOUNCE
from tests.acceptance.house import check_logs, status, until
from tests.acting import cancel, message, start
from tests.auditor import audit
from tests.model_server import Answer, ModelServer, says, slowly, streams

SLOW = 3.0  # seconds of one call
WONDERS = "Should it go to zed@example.net or not? "
LONG = 15.0  # seconds in which hundreds of runs come to their models


def asked_for(request) -> str:
    """The person's words in a request to a model."""
    return next(m["content"] for m in reversed(request.body["messages"]) if m["role"] == "user")


def by_words(request) -> Answer:
    """What the goal says: `slow`, `long`, `hang`, or at once. `wonder`: some words and no more; `mutter`:
    the same words, and soon the rest.
    """
    goal = asked_for(request)
    if goal in ("wonder", "mutter"):
        return streams(WONDERS, "More.", before=2.0, pause=600.0 if goal == "wonder" else 1.0)
    seconds = {"slow": SLOW, "long": LONG, "hang": 600.0}.get(goal.split()[0], 0.0)
    return slowly(says(f"Answer to {goal}"), seconds)


@pytest.fixture
def models():
    with ModelServer(by_words) as server:
        yield server


@pytest.fixture
def cluster(house, models):
    def start(**environment):
        return house.cluster(DEPUTY_MODEL_BASE_URL=models.base_url, **environment)

    return start


@pytest.fixture
def think(world):
    """Start a run whose model is asked over the network; returns its id."""

    def _think(goal: str, model: str = "compatible:slow", user=None) -> str:
        with override_settings(DEPUTY_MODEL=model):
            return start(user=user or world.user, project=world.project, goal=goal)

    return _think


def all_ended(runs) -> bool:
    connection.ensure_connection()
    return not Run.objects.filter(pk__in=runs, ended_at=None).exists()


def statuses(runs) -> Counter:
    return Counter(Run.objects.filter(pk__in=runs).values_list("status", flat=True))


def test_a_run_whose_model_is_slow_completes(house, think, ended, cluster):
    cluster()
    run = think("slow one")

    assert ended(run, 20) == "completed", house.report(run)
    assert not OutboundCall.objects.filter(run=run).exists()
    check_logs(run)


@pytest.mark.slow
def test_two_workers_have_many_slow_models_think_at_once(house, think, cluster, models):
    cluster()
    runs = [think(f"slow {n}") for n in range(200)]

    until(lambda: all_ended(runs), seconds=60, said=lambda: house.report(runs[0]))
    assert statuses(runs) == {"completed": 200}, house.report(runs[0])
    assert models.most_at_once > 50
    for run in runs[:5]:
        check_logs(run)


def test_two_models_that_hang_stop_nobody(house, think, ended, cluster):
    cluster()
    hanging = [think("hang one"), think("hang two", model="compatible:other")]
    until(lambda: OutboundCall.objects.exclude(begun_at=None).count() == 2)
    others = [think(f"quick {n}") for n in range(10)]

    for run in others:
        assert ended(run, 20) == "completed", house.report(run)
    assert statuses(hanging) == {"running": 2}
    for run in hanging:
        cancel(run)


def test_a_killed_carrier_loses_what_was_on_the_wire_and_nothing_else(house, think, ended, cluster, models):
    started = cluster()
    runs = [think(f"slow {n}") for n in range(20)]
    until(lambda: models.at_once == 20)
    (carrier,) = started.carriers()
    started.kill(carrier)
    again = [think(f"quick {n}") for n in range(5)]

    for run in [*runs, *again]:
        assert ended(run) == "completed", house.report(run)
        check_logs(run)
    asked = Counter(asked_for(request) for request in models.received)
    assert set(asked.values()) <= {1, 2}
    assert all(asked[f"quick {n}"] == 1 for n in range(5)), asked
    assert not Run.objects.filter(pk__in=runs).exclude(crashes=0).exists()


@pytest.mark.slow
def test_of_500_calls_under_way_only_those_are_repeated_whose_carrier_or_database_died(
    house, think, cluster, models
):
    started = cluster()
    runs = [think(f"long {n}") for n in range(500)]
    repeated = 0
    for victim in ("carrier", "worker", "postgres"):
        until(lambda: models.at_once > 400 or all_ended(runs))
        if victim != "worker":
            repeated += models.at_once
        if victim == "postgres":
            os.kill(house.postmaster(), signal.SIGKILL)
        else:
            started.kill((started.carriers() if victim == "carrier" else started.workers())[0])
        time.sleep(1)
    until(house.answers)
    connection.close()
    until(lambda: all_ended(runs), seconds=180, said=lambda: house.report(runs[0]))

    assert statuses(runs) == {"completed": 500}
    assert len(models.received) - 500 <= repeated
    assert not Run.objects.filter(pk__in=runs).exclude(crashes=0).exists()
    assert not audit(Run.objects.get(pk=runs[0]).organization_id)


def test_a_cancel_closes_the_connection_to_the_model(house, think, ended, cluster, models):
    cluster()
    run = think("hang on")
    until(lambda: models.at_once == 1)
    before = time.monotonic()
    cancel(run)

    until(lambda: models.closed, seconds=10)
    assert models.closed[0] - before < 5
    assert status(run) == "cancelled"
    assert not OutboundCall.objects.filter(run=run).exists()


def test_a_word_in_between_is_heard_at_once(house, think, ended, cluster, models):
    cluster()
    run = think("hang until somebody speaks")
    until(lambda: models.at_once == 1)
    message(run, "quick please", "somebody")

    assert ended(run, 20) == "completed", house.report(run)
    assert Run.objects.get(pk=run).output == "Answer to quick please"
    until(lambda: models.closed)


@pytest.fixture
def followed(think, cluster):
    """A run that somebody follows, once they have been shown what its model wonders; returns its id."""

    def _followed(goal: str) -> str:
        run = think(goal)
        rows(ANNOUNCE, [[run]])
        cluster()
        until(
            lambda: (
                "".join(ShownWords.objects.filter(run=run).order_by("pk").values_list("text", flat=True))
                == WONDERS
            )
        )
        return run

    return _followed


@pytest.mark.parametrize("way", ["a word in between", "cancelled"])
def test_an_address_in_words_that_were_taken_back_is_not_its_readers(followed, ended, world, way):
    run = followed("wonder")
    if way == "cancelled":
        cancel(run)
    words = "quick: email zed@example.net the news"
    assert marks(run, words) == {"copied": True}
    assert marks(run, "quick: email ann@example.net the news") == {}

    if way == "a word in between":
        message(run, words, "somebody")
        assert ended(run, 20) == "completed"
        assert marks(run, "Once more to zed@example.net") == {"copied": True}


def test_words_that_have_become_a_message_are_kept_once(followed, ended):
    run = followed("mutter")
    assert ended(run, 30) == "completed"
    assert ShownWords.objects.filter(run=run).exists()
    lost.forget()
    assert not ShownWords.objects.filter(run=run).exists()


@pytest.mark.slow
def test_a_run_whose_time_is_over_lets_go_of_its_model(house, think, ended, cluster, models):
    cluster()
    with override_settings(RUN_SECONDS=8):
        run = think("hang on")

    until(lambda: models.at_once == 1)
    assert ended(run, 30) == "failed"
    assert Run.objects.get(pk=run).error["code"] == "BUDGET_SECONDS"
    until(lambda: models.closed)
