"""Threads that a web process lends: the same for all a request does, and for nobody who only waits."""

import asyncio
import threading

import pytest
from asgiref.sync import ThreadSensitiveContext, sync_to_async

from common.web import Lent, Threads


@pytest.fixture
def threads():
    lending = Threads(2)
    yield lending
    for thread in lending.free:
        thread.shutdown()


def here():
    return threading.get_ident()


async def in_request(threads, what):
    """What a request does, with a thread lent to it."""
    lent = Lent(threads)
    try:
        async with ThreadSensitiveContext(executor=lent):
            return await what(lent)
    finally:
        lent.let_go()


def test_a_request_does_everything_in_one_thread(threads):
    async def twice(lent):
        return {await sync_to_async(here)() for _ in range(3)}

    (used,) = asyncio.run(in_request(threads, twice))
    assert used != here()
    assert len(threads.free) == 1


def test_a_request_that_needs_no_thread_takes_none(threads):
    async def nothing(lent):
        return "done"

    assert asyncio.run(in_request(threads, nothing)) == "done"
    assert (threads.made, threads.free) == (0, [])


def test_there_are_never_more_threads_than_said_and_all_get_their_turn(threads):
    async def many():
        async def one(lent):
            return await sync_to_async(here)()

        return await asyncio.gather(*(in_request(threads, one) for _ in range(20)))

    found = asyncio.run(many())
    assert len(found) == 20
    assert len(set(found)) <= 2 == threads.made
    assert not threads.waiting


def test_who_waits_has_given_the_thread_back_and_gets_one_again(threads):
    threads.most = 1

    async def both():
        go_on = asyncio.Event()

        async def waits(lent):
            await sync_to_async(here)()
            lent.let_go()
            await go_on.wait()
            return await sync_to_async(here)()

        async def passes(lent):
            await sync_to_async(here)()
            go_on.set()

        waiting = asyncio.create_task(in_request(threads, waits))
        await asyncio.sleep(0)
        await asyncio.wait_for(in_request(threads, passes), 10)
        return await asyncio.wait_for(waiting, 10)

    assert asyncio.run(both()) != here()
    assert threads.made == 1


def test_who_gives_up_while_waiting_for_a_thread_is_taken_off_the_list(threads):
    threads.most = 0

    async def give_up():
        async def one(lent):
            await sync_to_async(here)()

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(in_request(threads, one), 0.01)

    asyncio.run(give_up())
    assert not threads.waiting


def test_an_error_comes_back_to_who_asked(threads):
    def fails():
        raise ValueError("so it is")

    async def one(lent):
        await sync_to_async(fails)()

    with pytest.raises(ValueError, match="so it is"):
        asyncio.run(in_request(threads, one))
