"""Event streams on the real web server: what many of them hold, and what a restart of it costs them."""

import asyncio
from contextlib import contextmanager

import pytest
from django.test import override_settings

from benchmarks.streams import Listener, all_open, held, worker_of
from groups.models import Token
from groups.scopes import SCOPES
from runs.models import Run
from tests.acceptance.house import MODEL
from tests.acceptance.web import Web
from tests.acting import complete, message, start

STREAMS = 80
THREADS = 4  # that web lends to requests


@pytest.fixture
def web(house):
    served = Web(house, WEB_THREADS=str(THREADS), STREAMS=str(STREAMS + 1))
    served.wait()
    yield served
    served.end()


@pytest.fixture
def run(world):
    with override_settings(DEPUTY_MODEL=MODEL):
        return start(user=world.user, project=world.project, goal="Be followed", driver="external")


@pytest.fixture
def listen(web, world, run):
    _, secret = Token.objects.issue(world.project.organization, world.user, scopes=list(SCOPES))
    return lambda: Listener(web.url, secret, run)


@contextmanager
def statements(house):
    """The lines of PostgreSQL's log with what it was asked meanwhile. Its counters of transactions are up to
    ten seconds late for who has nothing more to ask.
    """
    log, found = house.server.place.folder / "postgres.log", []
    before = log.stat().st_size
    with house.beside() as own:
        log_all(own, "all")
        try:
            yield found
        finally:
            log_all(own, "none")
    with open(log, encoding="utf-8") as file:
        file.seek(before)
        found += [line for line in file if " statement: " in line or " execute " in line]


def log_all(own, what):
    own.execute(f"ALTER SYSTEM SET log_statement = '{what}'")
    own.execute("SELECT pg_reload_conf()")


def ids(run):
    return [f"{run}:{seq}" for seq in range(1, Run.objects.get(pk=run).last_seq + 1)]


@pytest.mark.slow
def test_streams_hold_no_thread_and_no_connection_and_ask_the_database_nothing(house, web, run, listen):
    async def many():
        first, rest = listen(), [listen() for _ in range(STREAMS)]
        following = [asyncio.create_task(first.follow())]
        await all_open([first])
        one = held(worker_of(web.process.pid), house.url)
        one_asks = await asked_meanwhile()
        following += [asyncio.create_task(each.follow()) for each in rest]
        await all_open(rest)
        all_of_them = held(worker_of(web.process.pid), house.url)
        all_ask = await asked_meanwhile()
        await asyncio.to_thread(complete, run, "Done.")
        await asyncio.wait_for(asyncio.gather(*following), 60)
        return one, all_of_them, one_asks, all_ask, [first, *rest]

    async def asked_meanwhile():
        with statements(house) as said:
            await asyncio.sleep(3)
        return len(said)

    one, all_of_them, one_asks, all_ask, listeners = asyncio.run(many())
    assert all_of_them.threads <= one.threads + THREADS, web.said()
    assert all_of_them.connections <= one.connections + THREADS
    assert all_ask <= one_asks + STREAMS // 4, "the database is asked once for all, not for each"
    assert {tuple(each.heard) for each in listeners} == {tuple(ids(run))}


@pytest.mark.slow
def test_clients_go_on_after_a_restart_of_web_without_a_gap_or_a_repeat(house, web, run, listen):
    async def through_it():
        listeners = [listen() for _ in range(10)]
        following = [asyncio.create_task(each.follow()) for each in listeners]
        await all_open(listeners)
        web.restart()
        for i in range(5):
            await asyncio.to_thread(message, run, f"word {i}", "mia")
        await asyncio.to_thread(web.wait)
        await all_open(listeners, 2)
        await asyncio.to_thread(complete, run, "Done.")
        await asyncio.wait_for(asyncio.gather(*following), 60)
        return listeners

    for each in asyncio.run(through_it()):
        assert (list(each.heard), each.repeated) == (ids(run), 0)
