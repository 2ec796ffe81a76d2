"""Outside agents' calls in a real cluster: executed by a worker, and recovered when it is killed."""

import pytest
from django.test import override_settings

from runs.models import ToolCall
from tests.acceptance.house import MODEL, check_logs, status, until
from tests.acting import complete, request_call, start

pytestmark = pytest.mark.usefixtures("their_tools")


@pytest.fixture
def run(world):
    with override_settings(DEPUTY_MODEL=MODEL):
        yield start(user=world.user, project=world.project, goal="Work outside", driver="external")


def call_of(run):
    return ToolCall.objects.get(run=run)


def test_a_worker_executes_a_call(house, run):
    house.common_cluster()
    request_call(run, "1", "effect", {"name": "outside"})

    until(lambda: call_of(run).status == "succeeded", said=lambda: house.report(run))
    assert len(house.witness.keys([run], "outside")) == 1
    complete(run, "done")
    check_logs(run)


@pytest.mark.parametrize("point", [pytest.param("before_slow", marks=pytest.mark.slow), "after_slow"])
def test_a_call_that_may_be_repeated_is_after_a_kill(house, run, tmp_path, point):
    house.cluster(DEPUTY_CRASH_AT=point, DEPUTY_CRASH_ONCE=str(tmp_path / "killed"))
    request_call(run, "1", "keyed_effect", {"name": "outside"})

    until(lambda: call_of(run).status == "succeeded", said=lambda: house.report(run))
    used = house.witness.keys([run], "outside")
    assert (len(used), len(set(used))) == (1 if point == "before_slow" else 2, 1)
    assert (call_of(run).attempt, status(run)) == (2, "running")
    check_logs(run)


@pytest.mark.slow
@pytest.mark.parametrize(("point", "effects"), [("before_slow", 0), ("after_slow", 1)])
def test_a_call_that_may_not_be_repeated_waits_for_review_after_a_kill(house, run, tmp_path, point, effects):
    house.cluster(DEPUTY_CRASH_AT=point, DEPUTY_CRASH_ONCE=str(tmp_path / "killed"))
    request_call(run, "1", "effect", {"name": "outside"})

    until(lambda: call_of(run).status == "unknown", said=lambda: house.report(run))
    assert len(house.witness.keys([run], "outside")) == effects
    assert status(run) == "waiting"
    check_logs(run)


@pytest.mark.slow
def test_a_long_call_keeps_its_lease_and_is_executed_once(house, run):
    house.common_cluster()
    request_call(run, "1", "nap", {"seconds": 6})

    until(lambda: call_of(run).status == "succeeded", said=lambda: house.report(run))
    assert (call_of(run).attempt, len(house.witness.keys([run], "nap"))) == (1, 1)


def test_a_group_an_outside_agent_called_works_and_its_result_comes_back(house, run, world):
    house.common_cluster()
    request_call(run, "1", "escalate_to_group", {"goal": "brief", "group_id": world.group.pk})

    until(lambda: call_of(run).status == "succeeded", said=lambda: house.report(run))
    assert call_of(run).result["success"] is True, house.report(run)
    complete(run, "done")
    check_logs(run)
