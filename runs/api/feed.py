"""What wakes the followers of a process: one LISTEN, one look a second, however many they are.

A notification only says that a look is worth while. What happened is read from the log, over one further
connection that all
followers of the process share; nobody holds one of their own.
"""

import asyncio
import logging
import time
import weakref
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import psycopg

from common.db import own_async_connection
from runs.log.log import CHANNEL
from runs.outbound import following
from runs.outbound.following import CHANNEL as DELTAS
from runs.outbound.following import Delta

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0  # what a lost notification may cost
AWAY_SECONDS = 1.0  # between two attempts to reach the database

ANNOUNCE_SECONDS = 10.0  # between two times of saying who follows
MOST_WORDS = 1000  # pieces kept for a follower that does not read

LAST_SEQS = "SELECT root_id, sum(last_seq) FROM runs_run WHERE root_id = ANY(%s) GROUP BY root_id"


class Woken(asyncio.Event):
    """Set whenever something may have happened. `words` gathers what models say meanwhile, where wanted."""

    def __init__(self, wants_words: bool) -> None:
        super().__init__()
        self.wants_words = wants_words
        self.words: deque[Delta] = deque(maxlen=MOST_WORDS)

    def hear(self, delta: Delta) -> None:
        if self.wants_words:
            self.words.append(delta)
            self.set()

    def take_words(self) -> list[Delta]:
        """What has been said since the last time."""
        said = list(self.words)
        self.words.clear()
        return said


class Feed:
    """The followers of one event loop. Its connections open with the first and close with the last."""

    def __init__(self) -> None:
        self.followers: dict[str, set[Woken]] = {}
        self.announced: dict[str, float] = {}  # when carriers last heard of a tree's followers
        self._reader: Any = None
        self._reading = asyncio.Lock()
        self._to_come: dict[tuple[str, str], asyncio.Task[list[Any]]] = {}  # reads that have not begun
        self._recent: dict[tuple[str, str], tuple[float, list[Any]]] = {}  # what `recent` read, and when
        self._task: asyncio.Task[None] | None = None
        self._listener: Any = None  # the connection that listens, once it does

    def __len__(self) -> int:
        return sum(map(len, self.followers.values()))

    @asynccontextmanager
    async def follow(self, root_id: str, words: bool = False) -> AsyncIterator[Woken]:
        """An event that is set whenever something may have happened in the tree, or been said."""
        woken = Woken(words)
        self.followers.setdefault(root_id, set()).add(woken)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._listen())
        try:
            yield woken
        finally:
            self._leave(root_id, woken)

    async def read(self, sql: str, parameters: Any) -> list[Any]:
        """All rows, not to be changed: who asks the same at the same moment shares them.

        Only a read that has not begun is shared, so that nobody hears less than was there when they
        asked. Tries once more on a fresh connection when the old one has gone.
        """
        key = (sql, repr(parameters))
        if key not in self._to_come:
            self._to_come[key] = asyncio.create_task(self._read(key, parameters))
        return await asyncio.shield(self._to_come[key])

    async def recent(self, sql: str, parameters: Any, seconds: float) -> list[Any]:
        """All rows, as somebody has read them within the last `seconds`: not to be changed."""
        key, now = (sql, repr(parameters)), time.monotonic()
        at, rows = self._recent.get(key, (float("-inf"), []))
        if now - at < seconds:
            return rows
        rows = await self.read(sql, parameters)
        self._recent = {old: kept for old, kept in self._recent.items() if now - kept[0] < seconds}
        self._recent[key] = now, rows
        return rows

    async def _read(self, key: tuple[str, str], parameters: Any) -> list[Any]:
        async with self._reading:
            del self._to_come[key]
            for last in (False, True):
                try:
                    if self._reader is None:
                        self._reader = await own_async_connection()
                    return list(await (await self._reader.execute(key[0], parameters)).fetchall())
                except psycopg.OperationalError:
                    await self._close_reader()
                    if last:
                        raise
        raise AssertionError

    def _leave(self, root_id: str, woken: Woken) -> None:
        here = self.followers[root_id]
        here.discard(woken)
        if not here:
            del self.followers[root_id]
            self.announced.pop(root_id, None)
        if not self.followers and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _listen(self) -> None:
        """Until the last follower has left."""
        try:
            while True:
                with suppress(psycopg.Error):
                    await self._listen_once()
                await asyncio.sleep(AWAY_SECONDS)
        finally:
            await asyncio.shield(self._close_reader())

    async def _listen_once(self) -> None:
        connection = await own_async_connection()
        try:
            await connection.execute(f"LISTEN {CHANNEL}")
            await connection.execute(f"LISTEN {DELTAS}")
            self._listener = connection
            for root_id in self.followers:
                self._wake(root_id)
            seen: dict[str, int] = {}
            while True:
                async for heard in connection.notifies(timeout=POLL_SECONDS):
                    self._hear(heard)
                seen = await self._look(connection, seen)
        finally:
            if self._listener is connection:  # and not the next one's
                self._listener = None
            await connection.close()

    def _hear(self, heard: psycopg.Notify) -> None:
        if heard.channel == CHANNEL:
            self._wake(heard.payload)
        elif delta := following.read(heard.payload):
            for woken in self.followers.get(delta.root_id, ()):
                woken.hear(delta)

    async def announce(self, root_id: str) -> None:
        """Let carriers know that somebody wants to hear the words of this tree's models.

        Not before this process listens: what a carrier then said would reach nobody. Followers are woken
        when it does, and come again.
        """
        if self._listener is None:
            return
        if time.monotonic() - self.announced.get(root_id, -ANNOUNCE_SECONDS) >= ANNOUNCE_SECONDS:
            self.announced[root_id] = time.monotonic()
            await self.read(following.ANNOUNCE, [[root_id]])

    async def _announce_again(self, connection: Any) -> None:
        now = time.monotonic()
        due = [root_id for root_id, at in self.announced.items() if now - at >= ANNOUNCE_SECONDS]
        if due:
            await connection.execute(following.ANNOUNCE, [due])
            self.announced |= dict.fromkeys(due, now)

    async def _look(self, connection: Any, seen: dict[str, int]) -> dict[str, int]:
        """Wake those in whose tree something happened since the last look."""
        await self._announce_again(connection)
        found = await connection.execute(LAST_SEQS, [list(self.followers)])
        now = dict(await found.fetchall())
        for root_id, total in now.items():
            if seen.get(root_id) != total:
                self._wake(root_id)
        return now

    def _wake(self, root_id: str) -> None:
        for woken in self.followers.get(root_id, ()):
            woken.set()

    async def _close_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            with suppress(psycopg.Error):
                await reader.close()


_feeds: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Feed]" = weakref.WeakKeyDictionary()


def feed() -> Feed:
    """The feed of the running loop."""
    return _feeds.setdefault(asyncio.get_running_loop(), Feed())
