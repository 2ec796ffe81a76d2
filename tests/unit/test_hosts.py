"""Of the hosts that a URL names, a process begins with the one that it found last."""

from types import SimpleNamespace

import pytest

from common.postgres import hosts

SEVERAL = {"host": "db1,db2,db3", "port": "5432,5433,5432", "dbname": "deputy"}


@pytest.fixture(autouse=True)
def nothing_learnt(monkeypatch):
    monkeypatch.setattr(hosts, "_order", [])


def led_to(host, port):
    return SimpleNamespace(info=SimpleNamespace(host=host, port=port))


def order(parameters=SEVERAL):
    with hosts.in_turn(parameters) as ordered:
        return ordered["host"], ordered.get("port")


def test_the_host_that_answered_last_is_tried_first_with_its_own_port():
    assert order() == ("db1,db2,db3", "5432,5433,5432")
    hosts.found(led_to("db2", 5433))
    assert order() == ("db2,db1,db3", "5433,5432,5432")
    hosts.found(led_to("db3", 5432))
    assert order()[0] == "db3,db2,db1"


def test_where_none_would_do_the_first_goes_last():
    with pytest.raises(OSError, match="gone"), hosts.in_turn(SEVERAL):
        raise OSError("gone")
    assert order()[0] == "db2,db3,db1"


def test_one_that_does_not_answer_goes_last():
    order()
    hosts.gone(led_to("db1", 5432))
    assert order()[0] == "db2,db3,db1"
    hosts.gone(led_to("elsewhere", 5432))
    assert order()[0] == "db2,db3,db1"


def test_without_ports_there_are_none():
    assert order({"host": "db1,db2"}) == ("db1,db2", None)
    hosts.found(led_to("db2", 5432))
    assert order({"host": "db1,db2"}) == ("db2,db1", None)


def test_a_single_host_and_another_url_are_left_alone():
    assert order({"host": "/run/socket", "port": 5432}) == ("/run/socket", 5432)
    order()
    hosts.found(led_to("elsewhere", 5432))
    assert order()[0] == "db1,db2,db3"


def test_a_lost_session_is_asked_about_where_it_was():
    order()
    asked = hosts.same(SEVERAL | {"target_session_attrs": "read-write"}, led_to("db2", 5433))
    assert (asked["host"], asked["port"], asked["target_session_attrs"]) == ("db2", "5433", "any")
    assert hosts.same({"host": "db1"}, led_to("db1", 5432)) == {"host": "db1"}
