"""How many connections Deputy needs, and what it says where there are fewer."""

import pytest

from common import connections
from common.env import BadSetting
from launch import postgres


class Server:
    """A server that allows so many."""

    def __init__(self, *limits):
        self.limits = limits

    def execute(self, sql):
        return self

    def fetchone(self):
        return self.limits


def test_the_embedded_server_is_sized_by_workers_and_threads(monkeypatch):
    monkeypatch.delenv("WORKERS", raising=False)
    assert postgres._connections() == connections.LEAST
    monkeypatch.setenv("WORKERS", "64")
    needed = connections.of_cluster(64, 1, 8) + 2 * connections.of_web(12)
    assert postgres._connections() > needed


def test_enough_connections_are_no_matter():
    connections.check(Server(97, -1, -1), 97, "a cluster", embedded=False)


@pytest.mark.parametrize("limits", [(96, -1, -1), (500, 96, -1), (500, -1, 96)])
def test_too_few_are_refused_in_one_line_that_says_what_to_change(limits):
    with pytest.raises(BadSetting) as refused:
        connections.check(Server(*limits), 97, "a cluster with WORKERS=30", embedded=False)
    said = str(refused.value)
    assert "a cluster with WORKERS=30 needs 97 connections" in said
    assert "allows 96" in said
    assert "max_connections" in said
    assert "\n" not in said


def test_an_embedded_server_that_runs_already_has_to_be_started_again():
    with pytest.raises(BadSetting, match="start again"):
        connections.check(Server(97, -1, -1), 198, "a cluster", embedded=True)


def test_behind_a_pooler_the_server_has_to_allow_what_goes_past_it():
    assert connections.of_web(12, pooled=True) == connections.OF_A_WEB_PROCESS
    beside = connections.of_cluster(4, 1, 8, pooled=True)
    assert connections.of_cluster(4, 1, 8) - beside == 4 + 8  # a worker's own, and an errand's each
