"""Of the hosts that a URL names, a process begins with the one that it found last."""

from types import SimpleNamespace

import psycopg
import pytest
from psycopg import errors

from common.postgres import Connection, hosts

SEVERAL = {"host": "db1,db2,db3", "port": "5432,5433,5432", "dbname": "deputy"}


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Nothing is known of any host yet; returns what moves the time on."""
    now = [100.0]
    monkeypatch.setattr(hosts, "_order", [])
    monkeypatch.setattr(hosts, "_silent", {})
    monkeypatch.setattr(hosts.time, "monotonic", lambda: now[0])
    return lambda seconds: now.__setitem__(0, now[0] + seconds)


def led_to(host, port):
    return SimpleNamespace(info=SimpleNamespace(host=host, port=port))


def order(parameters=SEVERAL):
    return [(one["host"], one.get("port")) for one in hosts.to_try(parameters)]


def names():
    return [host for host, _ in order()]


def test_the_host_that_answered_last_is_tried_first_with_its_own_port():
    assert order() == [("db1", "5432"), ("db2", "5433"), ("db3", "5432")]
    hosts.found(led_to("db2", 5433))
    assert order() == [("db2", "5433"), ("db1", "5432"), ("db3", "5432")]


def test_a_host_that_does_not_answer_is_left_alone_for_a_moment(clock):
    first, *_ = hosts.to_try(SEVERAL)
    hosts.failed(first, psycopg.OperationalError("it is a standby"))
    assert names() == ["db1", "db2", "db3"]
    hosts.failed(first, errors.ConnectionTimeout("gone"))
    hosts.gone(led_to("db3", 5432))
    hosts.gone(led_to("elsewhere", 5432))
    assert names() == ["db2"]
    hosts.gone(led_to("db2", 5433))
    assert names() == ["db1", "db2", "db3"]  # there is no other
    hosts.found(led_to("db3", 5432))
    assert names() == ["db3"]
    clock(hosts.SILENT_SECONDS)
    assert names() == ["db3", "db1", "db2"]


def test_without_ports_there_are_none():
    assert order({"host": "db1,db2"}) == [("db1", None), ("db2", None)]
    hosts.found(led_to("db2", 5432))
    assert order({"host": "db1,db2"}) == [("db2", None), ("db1", None)]


def test_a_single_host_and_another_url_are_left_alone():
    assert order({"host": "/run/socket", "port": 5432}) == [("/run/socket", 5432)]
    hosts.failed({"host": "/run/socket", "port": 5432}, errors.ConnectionTimeout("gone"))
    assert order({"host": "/run/socket", "port": 5432}) == [("/run/socket", 5432)]
    assert names() == ["db1", "db2", "db3"]
    hosts.found(led_to("elsewhere", 5432))
    assert names() == ["db1", "db2", "db3"]


def test_a_lost_session_is_asked_about_where_it_was():
    order()
    asked = hosts.same(SEVERAL | {"target_session_attrs": "read-write"}, led_to("db2", 5433))
    assert (asked["host"], asked["port"], asked["target_session_attrs"]) == ("db2", "5433", "any")
    assert hosts.same({"host": "db1"}, led_to("db1", 5432)) == {"host": "db1"}


def test_where_none_would_do_the_last_one_says_why():
    nowhere = {"host": "127.0.0.1,127.0.0.1", "port": "1,2", "connect_timeout": 2}
    with pytest.raises(psycopg.OperationalError, match="port 2"):
        Connection.connect(**nowhere)
