"""A carrier: one process that awaits thousands of outbound calls at once, and does errands in threads.

It takes calls from the table, asks, and writes the answers down, many in one commit, each with the message
on which a worker takes the run's next step. It writes no log and decides nothing, but that it gives back
unsent what policy does not let pass any more (asking.py). What it holds is its own as long as its lease
lasts (a row of its own, one statement for all calls); when it dies, the sweep gives the questions to models
to another carrier, and tells the runs of lost tool calls so.
"""

import asyncio
import contextlib
import logging
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
from django.conf import settings

from common.db import own_async_connection
from runs.outbound import asking, packing
from runs.outbound.calls import CHANNEL, DROPPED
from runs.outbound.circuits import Circuits
from runs.outbound.errands import Errands
from runs.outbound.following import FOLLOW
from runs.outbound.lease import Lease
from runs.outbound.table import Table, Taken
from runs.outbound.words import Words
from runs.queue.broker import CHANNEL as QUEUE_CHANNEL
from runs.queue.broker import ERRANDS

logger = logging.getLogger(__name__)

LISTEN_SECONDS = 5.0  # between two looks at whether the session that listens is still there
POLL_SECONDS = 5.0  # what a lost notification of new calls may cost
LOOK_SECONDS = 0.5  # what a lost notification that a call is dropped may cost
GATES = 2  # threads that ask policy whether a tool's call may leave, each with a connection
GATHER_SECONDS = 0.004  # answers of this time are written together
MOST = 500  # calls taken, or answers written, at once
LOCKED_SECONDS = 0.05  # between two looks at a call that somebody has locked
AWAY_SECONDS = 0.5  # between two attempts to reach the database
STOP_SECONDS = 5.0  # for calls under way to end, when the carrier is to stop


class Carrier:
    """All of one carrier. `queue` is the workers' queue."""

    def __init__(self, name: str, queue: str) -> None:
        self.name, self.queue = name, queue
        self.table = Table(name)
        self.flying: dict[int, tuple[Taken, asyncio.Task[None]]] = {}
        self.threads_used = 0
        self.answers: list[tuple[Taken, str]] = []
        self.hinted, self.answered = asyncio.Event(), asyncio.Event()
        self.stopping = asyncio.Event()
        self.table_turn = asyncio.Lock()
        self.circuits = Circuits(self.table)
        self.words = Words()
        self.pool = ThreadPoolExecutor(settings.CARRIER_THREADS, thread_name_prefix="tool")
        self.gates = ThreadPoolExecutor(GATES, thread_name_prefix="gate")
        self.lease = Lease(name)
        self.errands = Errands(name, self.lease)

    async def run(self) -> None:
        """Until SIGTERM or SIGINT; then what is under way gets a moment, and the rest is given back."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
        self.lease.start()
        mine = (self._listen, self._take, self._write, self._look, self._publish, self.errands.attend)
        duties = [asyncio.create_task(self._always(duty)) for duty in mine]
        await self.stopping.wait()
        await self._stop()
        for duty in duties:
            duty.cancel()
        await asyncio.gather(*duties, return_exceptions=True)
        with contextlib.suppress(psycopg.Error):
            await self.table.close()

    async def _stop(self) -> None:
        self.errands.stop()
        deadline = time.monotonic() + STOP_SECONDS
        while (self.flying or self.answers or self.errands.under_way) and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        questions = [number for number, (call, _) in self.flying.items() if call.of_model]
        with contextlib.suppress(psycopg.Error):
            async with self.table_turn:
                await self.table.give_back(questions)
                if len(questions) == len(self.flying):  # a tool's call is nobody's until the lease is over
                    await self.table.leave()

    async def _always(self, duty) -> None:  # type: ignore[no-untyped-def]
        """A duty goes on whatever it meets: the database may be away."""
        while True:
            try:
                await duty()
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                logger.warning("the carrier has lost its database: %s", type(error).__name__)
                async with self.table_turn:
                    await self.table.close()
            except Exception:
                logger.exception("a duty of the carrier failed")
            await asyncio.sleep(AWAY_SECONDS)

    # What comes in

    async def _listen(self) -> None:
        own = await own_async_connection()
        try:
            for channel in (CHANNEL, DROPPED, FOLLOW, ERRANDS):
                await own.execute(f"LISTEN {channel}")
            self.hinted.set()
            self.errands.hinted.set()
            while True:
                async for heard in own.notifies(timeout=LISTEN_SECONDS):
                    self._hear(heard)
                await own.execute("SELECT 1")  # raises where the session is gone without a word
        finally:
            await own.close()

    def _hear(self, heard: psycopg.Notify) -> None:
        if heard.channel == CHANNEL:
            self.hinted.set()
        elif heard.channel == ERRANDS:
            self.errands.hinted.set()
        elif heard.channel == DROPPED:
            self._drop_of(heard.payload)
        else:
            self.words.follow(heard.payload)

    def _drop_of(self, run_id: str) -> None:
        """Look at once at what is left of this run's calls."""
        if any(call.run_id == run_id for call, _ in self.flying.values()):
            asyncio.get_running_loop().create_task(self._look_once())

    async def _take(self) -> None:
        await self._give_back_unheard()
        while not self.stopping.is_set():
            self.hinted.clear()
            room = min(MOST, settings.CARRIER_CALLS - len(self.flying))
            threads = settings.CARRIER_THREADS - self.threads_used
            taken: list[Taken] = []
            until_next: float | None = None
            if room > 0:
                async with self.table_turn:
                    taken, until_next = await self.table.take(room, threads, self._under_way())
                for call in taken:
                    self._begin(call)
                self.lease.tick(self._under_way())
            if len(taken) < room or not room:
                wait = POLL_SECONDS if until_next is None else min(POLL_SECONDS, max(0.01, until_next))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.hinted.wait(), wait)
        await asyncio.sleep(POLL_SECONDS)

    async def _give_back_unheard(self) -> None:
        """What was taken when the connection was lost, so that this process never heard of it, is anybody's:
        nothing of it has begun, and our own lease would keep it from everybody for as long as we live.
        """
        async with self.table_turn:
            await self.table.give_back_others(list(self.flying))

    def _under_way(self) -> int:
        return len(self.flying) + len(self.errands.under_way)

    def _begin(self, call: Taken) -> None:
        self.threads_used += call.threaded
        self.flying[call.id] = call, asyncio.create_task(self._carry(call))

    async def _carry(self, call: Taken) -> None:
        """One call from its question to its answer."""
        try:
            answer = await asking.ask(call, self.pool, self.gates, self.words.of(call))
            self.circuits.heard(call, answer)
            self.answers.append((call, packing.text(answer)))
            self.answered.set()
        except asyncio.CancelledError:
            self._ended(call)
            raise
        finally:
            self.words.ended(call)

    def _ended(self, call: Taken) -> None:
        """The call is off our hands; there may be room, or a limit met no more."""
        if self.flying.pop(call.id, None):
            self.threads_used -= call.threaded
            self.hinted.set()

    # What goes out

    async def _write(self) -> None:
        while True:
            if not self.answers:
                await self.answered.wait()
            await asyncio.sleep(GATHER_SECONDS)
            self.answered.clear()
            await self._write_some(self.answers[:MOST])
            async with self.table_turn:
                await self.circuits.note()

    async def _write_some(self, some: list[tuple[Taken, str]]) -> None:
        async with self.table_turn:
            wanted = await self.table.answer([(call.id, answer) for call, answer in some], self.queue)
            if any(wanted.values()):
                await self.table.notify([(QUEUE_CHANNEL, self.queue)])
            for call, answer in some:
                if call.id not in wanted and not call.of_model:
                    await self.table.leave_evidence(call, answer)
        locked = [one for one in some if wanted.get(one[0].id) is False]
        self.answers[: len(some)] = locked
        for call, _ in some:
            if wanted.get(call.id) is not False:
                self._ended(call)
        if locked:
            await asyncio.sleep(LOCKED_SECONDS)

    async def _publish(self) -> None:
        """Words of models, every so often, to who follows."""
        while True:
            tellings = await self.words.due()
            async with self.table_turn:
                await self.table.tell(tellings)

    # What is held

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.lease.tick(self._under_way())
            if self.flying:
                await self._look_once()

    async def _look_once(self) -> None:
        """Let go of calls that nobody waits for any more, and read which runs are followed."""
        before = list(self.flying)
        async with self.table_turn:
            held = await self.table.held()
            await self.words.look(self.table)
        for number in before:
            if number not in held and number in self.flying and not self._has_answer(number):
                self.flying[number][1].cancel()

    def _has_answer(self, number: int) -> bool:
        return any(call.id == number for call, _ in self.answers)


def run(name: str, queue: str) -> None:
    """Carry calls until SIGTERM."""
    asyncio.run(Carrier(name, queue).run())
