"""Ways to keep a web process's few threads waiting, and its connections."""

import contextvars
import io
import resource
import socket
import threading
from functools import partial
from types import SimpleNamespace

import pytest
from django.test import override_settings

from common import current, processes
from common.outbound import OutboundError, check, fetch
from common.web import Application


def as_person(number, act):
    """`act`, in a request of a web process; of nobody who has signed in where there is no number."""

    def answer():
        current.answering(SimpleNamespace(user=SimpleNamespace(pk=number)))
        return act()

    return contextvars.Context().run(answer)


@pytest.fixture
def slow_names(monkeypatch):
    """Names that take long to look up. Whoever begins to look is counted."""
    begun, go_on = threading.Semaphore(0), threading.Event()

    def slow(*_args, **_kwargs):
        begun.release()
        go_on.wait(10)
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    waiting = []

    def begin(number, host):
        def wait():
            with pytest.raises(OutboundError, match="cannot be resolved"):
                check(f"https://{host}/")

        thread = threading.Thread(target=wait if number == "a worker" else partial(as_person, number, wait))
        thread.start()
        waiting.append(thread)
        assert begun.acquire(timeout=10)

    yield begin
    go_on.set()
    for thread in waiting:
        thread.join()


def refused(number, host="other.example", ask=check):
    with pytest.raises(OutboundError) as refusal:
        as_person(number, lambda: ask(f"https://{host}/"))
    return refusal.value.code == "BUSY"


@override_settings(WEB_THREADS=12)
def test_nobody_keeps_the_threads_of_a_web_process_waiting_for_slow_names(slow_names):
    for _ in range(2):
        slow_names(1, "slow.example")
    assert refused(1) and refused(1, ask=fetch)
    for number in (2, 2):
        slow_names(number, "slow.example")
    assert refused(3), "a third of the threads wait already"
    for _ in range(4):
        slow_names(None, "provider.example")
    assert refused(None, "provider.example"), "one host has a share of what those who sign in may wait for"
    slow_names(None, "another.example")
    slow_names(None, "another.example")
    assert refused(None, "third.example")


def test_workers_and_carriers_wait_as_long_as_they_need_to(slow_names):
    for _ in range(15):
        slow_names("a worker", "slow.example")
    slow_names(1, "slow.example")


def test_a_web_process_knows_which_request_it_answers():
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}

    def answer():
        request, _refused = Application().create_request(scope, io.BytesIO())
        return current.request() is request

    assert contextvars.Context().run(answer)


def test_a_process_may_have_more_connections_than_most_systems_begin_with(monkeypatch):
    set_to = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 524_288))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: set_to.append(limits))
    processes.many_files()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    processes.many_files()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    processes.many_files()
    assert set_to == [(65_536, 524_288), (4096, 4096)]
