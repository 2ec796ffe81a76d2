"""Slow models hold no worker: carriers await them, and whoever is killed loses only what was on the wire."""

from collections import Counter

import pytest
from django.db import connection
from django.test import override_settings

from runs.actions.start import start
from runs.models import OutboundCall, Run
from tests.acceptance.house import check_logs, until
from tests.model_server import Answer, ModelServer, says, slowly

SLOW = 3.0  # seconds of one call


def asked_for(request) -> str:
    """The person's words in a request to a model."""
    return next(m["content"] for m in reversed(request.body["messages"]) if m["role"] == "user")


def by_words(request) -> Answer:
    """What the goal says: `slow`, `hang`, or at once."""
    goal = asked_for(request)
    seconds = {"slow": SLOW, "hang": 600.0}.get(goal.split()[0], 0.0)
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


def test_two_workers_have_many_slow_models_think_at_once(house, think, cluster, models):
    cluster()
    runs = [think(f"slow {n}") for n in range(200)]

    until(lambda: all_ended(runs), seconds=60, said=lambda: house.report(runs[0]))
    assert statuses(runs) == {"completed": 200}, house.report(runs[0])
    assert models.most_at_once > 50
    for run in runs[:5]:
        check_logs(run)
