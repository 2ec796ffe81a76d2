"""Live events as text/event-stream: what is in the log, in order, from where the client left off."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

import psycopg
from rest_framework.renderers import JSONRenderer

from common import db, redact
from common.api.slots import Slot
from common.web import let_go
from runs.api.feed import Feed, feed
from runs.api.readers import Reader
from runs.models import Run
from runs.models.choices import TERMINAL
from runs.observe import showing
from runs.outbound.following import Delta

HEARTBEAT_SECONDS = 15.0  # a comment, so that proxies and clients see the line is alive
RIGHTS_SECONDS = 5.0  # between two looks at whether the reader still may, where nothing happens
FRESH_SECONDS = 1.0  # and where much does; the streams of one reader share a look
LONGEST_SECONDS = 600.0  # then the client connects again, and its rights are looked at again
HELD_SECONDS = 0.05  # between two looks when an open transaction holds events back
HOLD_SECONDS = 15  # no transaction holds events back for longer
PAGE = 500  # events read at once
KEPT = 1000  # events kept as they are sent

EVENTS = """
SELECT run_id, seq, type, agent, payload, created_at, digest FROM runs_runevent
WHERE run_id = %s AND seq > %s ORDER BY seq LIMIT %s
"""
STATUS = "SELECT status, last_seq FROM runs_run WHERE id = %s"
TREE = "SELECT id, parent_run_id, status, last_seq FROM runs_run WHERE root_id = %s ORDER BY depth, id"
TREE_EVENTS = """
SELECT e.run_id, e.seq, e.type, e.agent, e.payload, e.created_at, e.digest
FROM unnest(%s::text[], %s::int[]) AS sent(run_id, seq)
JOIN LATERAL (SELECT * FROM runs_runevent e WHERE e.run_id = sent.run_id AND e.seq > sent.seq
              ORDER BY e.seq LIMIT %s) e ON true
ORDER BY e.run_id, e.seq
"""
TIMES = "SELECT run_id, seq, created_at FROM runs_runevent WHERE run_id = ANY(%s) ORDER BY run_id, seq"
ENDS = "SELECT max(created_at), run_id, max(seq) FROM runs_runevent WHERE run_id = ANY(%s) GROUP BY run_id"
# What began before this may still commit: an event's time is never earlier than its transaction's start.
HORIZON = """
SELECT GREATEST(LEAST(clock.now, min(xact_start)), clock.now - %s * interval '1 second')
FROM (SELECT clock_timestamp() AS now) clock
LEFT JOIN pg_stat_activity ON datname = current_database() AND backend_type = 'client backend'
     AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
GROUP BY clock.now
"""
COLUMNS = ("run", "seq", "type", "agent", "payload", "created_at", "digest")

Row = Any


class Mark(Enum):
    """What a stream says besides events and words."""

    RESYNC = "resync"  # what follows starts over: the last event's id is not of this stream
    END = "end"  # nothing more will ever come
    ALIVE = "alive"  # nothing has come for a while


Moment = Row | Delta | Mark
MARKS = {
    Mark.RESYNC: b"event: resync\ndata: {}\n\n",
    Mark.END: b"event: end\ndata: {}\n\n",
    Mark.ALIVE: b": still here\n",
}
Place = tuple[datetime, str, int]  # in a tree's order: time, run, seq


@dataclass(frozen=True)
class Batch:
    """What is to be sent now; `more` may be read at once, some is `held` back, or all has `ended`."""

    rows: list[Row] = field(default_factory=list)
    more: bool = False
    held: bool = False
    ended: bool = False


def parse_id(text: str) -> tuple[str, int] | None:
    """`{run}:{seq}` as the client got it; None when it is nothing of ours."""
    run_id, _, seq = text.partition(":")
    return (run_id, int(seq)) if seq.isascii() and seq.isdigit() and len(seq) < 10 else None


class RunCursor:
    """One run's events. Its seq is the order in which they were committed. `user_id`: whom it works for."""

    def __init__(self, run_id: str, root_id: str, user_id: int) -> None:
        self.run_id, self.root_id, self.user_id = run_id, root_id, user_id
        self.seq = 0

    async def resume(self, source: Feed, last: tuple[str, int] | None) -> bool:
        """Go on after `last`; False when it is not in this run."""
        found = await source.read(STATUS, [self.run_id])
        if last is None or last[0] != self.run_id or not found or last[1] > found[0][1]:
            return False
        self.seq = last[1]
        return True

    def sent_of(self, run_id: str) -> int | None:
        """The seq of what was last sent of the run; None for one that is not followed."""
        return self.seq if run_id == self.run_id else None

    async def read(self, source: Feed) -> Batch:
        # the status first: events that come after it are read all the same
        found = await source.read(STATUS, [self.run_id])
        rows = await source.read(EVENTS, [self.run_id, self.seq, PAGE])
        if rows:
            self.seq = rows[-1][1]
        more = len(rows) == PAGE
        return Batch(rows, more=more, ended=not more and (not found or found[0][0] in TERMINAL))


class TreeCursor:
    """A run's events and those of all below it, in one order that is the same on every connection.

    The order is (time, run, seq), where a run's time never runs backwards. Events of a transaction that
    committed late would belong before what has been sent: so nothing is sent that is younger than
    the oldest open transaction.
    """

    def __init__(self, run_id: str, root_id: str, user_id: int) -> None:
        self.run_id, self.root_id, self.user_id = run_id, root_id, user_id
        self.sent: dict[str, int] = {}
        self.times: dict[str, datetime] = {}

    async def resume(self, source: Feed, last: tuple[str, int] | None) -> bool:
        """Go on after `last`; False when it is not in this tree."""
        runs = below(await source.read(TREE, [self.root_id]), self.run_id)
        keys = self._in_order(await source.read(TIMES, [list(runs)]), {})
        position = next((key for key in keys if (key[1], key[2]) == last), None)
        if position is None:
            return False
        for key in keys:
            if key <= position:
                self.times[key[1]], self.sent[key[1]] = key[0], key[2]
        return True

    def sent_of(self, run_id: str) -> int | None:
        """The seq of what was last sent of the run; None for one that is not followed."""
        return self.sent.get(run_id)

    async def read(self, source: Feed) -> Batch:
        ((horizon,),) = await source.read(HORIZON, [HOLD_SECONDS])
        runs = below(await source.read(TREE, [self.root_id]), self.run_id)
        behind = {
            run: self.sent.get(run, 0) for run, (_, last) in runs.items() if last > self.sent.get(run, 0)
        }
        rows = await source.read(TREE_EVENTS, [list(behind), list(behind.values()), PAGE])
        by_key = {(row[0], row[1]): row for row in rows}
        keys = self._in_order([(row[0], row[1], row[5]) for row in rows], self.times)
        cut = end_of_pages(keys)
        ready = [key for key in keys if key[0] < horizon and (cut is None or key <= cut)]
        for at, run, seq in ready:
            self.times[run], self.sent[run] = at, seq
        left = len(ready) < len(keys)
        return Batch(
            [by_key[run, seq] for _, run, seq in ready],
            more=bool(ready) and left,
            held=left,
            ended=not left and cut is None and all(status in TERMINAL for status, _ in runs.values()),
        )

    @staticmethod
    def _in_order(rows: list[Row], times: dict[str, datetime]) -> list[Place]:
        """Each event's place: its time, or its run's latest so far when the clock ran backwards."""
        latest = dict(times)
        keys = []
        for run, seq, created_at in rows:
            latest[run] = max(created_at, latest.get(run, created_at))
            keys.append((latest[run], run, seq))
        return sorted(keys)


def end_of_pages(keys: list[Place]) -> Place | None:
    """Where a run has a full page there may be more: beyond the first such page's end nothing is certain."""
    by_run: dict[str, list[Place]] = {}
    for key in keys:
        by_run.setdefault(key[1], []).append(key)
    return min((mine[-1] for mine in by_run.values() if len(mine) == PAGE), default=None)


def below(tree: list[Row], run_id: str) -> dict[str, tuple[str, int]]:
    """(status, last_seq) of the run and all below it, from the rows of its whole tree, parents first."""
    found: dict[str, tuple[str, int]] = {}
    for each, parent, status, last_seq in tree:
        if each == run_id or parent in found:
            found[each] = (status, last_seq)
    return found


async def events(
    cursor: RunCursor | TreeCursor, last_event_id: str, reader: Reader, slot: Slot, deltas: bool = True
) -> AsyncIterator[bytes]:
    """The stream's bytes, until what it follows has ended, its reader may no longer read, or
    LONGEST_SECONDS are over. Gives the slot back. With `deltas` also what models say while they say it,
    which has no id: it is not in the log.

    Behind `retry` and comments stands no empty line: some clients take each block for an event.
    """
    try:
        let_go()
        yield b"retry: 2000\n"
        own = cursor.user_id == reader.user_id
        async with aclosing(moments(cursor, last_event_id, reader, deltas)) as stream:
            async for moment in stream:
                yield _bytes(moment, own)
    finally:
        slot.give_back()


def _bytes(moment: Moment, own: bool) -> bytes:
    if isinstance(moment, Delta):
        return spoken(moment)
    return MARKS[moment] if isinstance(moment, Mark) else written(moment, own)


async def moments(
    cursor: RunCursor | TreeCursor, last_event_id: str, reader: Reader, deltas: bool
) -> AsyncGenerator[Moment, None]:
    """What a stream says before it is written: events as rows of COLUMNS, models' words, and marks."""
    source = feed()
    until = time.monotonic() + LONGEST_SECONDS
    heard = time.monotonic()
    happened = True
    early: list[Delta] = []  # words whose question's own events have not been sent yet
    async with source.follow(cursor.root_id, words=deltas) as woken:
        if last_event_id and not await cursor.resume(source, parse_id(last_event_id)):
            yield Mark.RESYNC
        while time.monotonic() < until:
            woken.clear()
            said = [*early, *woken.take_words()]
            early = [delta for delta in said if _early(cursor, delta)]
            now = [one for one in said if one not in early and cursor.sent_of(one.run_id) is not None]
            try:
                batch = await cursor.read(source) if happened else Batch([])
                if not await reader.may_still(source, FRESH_SECONDS):  # after the read: of now
                    return
            except psycopg.OperationalError:
                early = said
                await asyncio.sleep(1)
                continue
            for delta in now:
                yield delta
            for row in batch.rows:
                heard = time.monotonic()
                yield row
            if batch.ended:
                yield Mark.END
                return
            if deltas:
                await source.announce(cursor.root_id)
            happened = True
            if batch.held:
                await asyncio.sleep(HELD_SECONDS)
            elif not batch.more and not (batch.rows and early):  # which may be said by now
                happened = await _woken(woken, min(RIGHTS_SECONDS, HEARTBEAT_SECONDS))
                if time.monotonic() - heard >= HEARTBEAT_SECONDS:
                    heard = time.monotonic()
                    yield Mark.ALIVE


def _early(cursor: RunCursor | TreeCursor, delta: Delta) -> bool:
    """Whether what the model was asked after has still to be sent: its words come later."""
    sent = cursor.sent_of(delta.run_id)
    return sent is not None and sent < delta.after


def spoken(delta: Delta) -> bytes:
    """Words as text/event-stream has them."""
    told = {
        "run": delta.run_id,
        "agent": delta.agent,
        "after": delta.after,
        "text": redact.masked(delta.text),
    }
    return b"event: delta\ndata: %s\n\n" % JSONRenderer().render(told)


def told_all(run: Run, whole_tree: bool, last_event_id: str) -> bool:
    """Whether a client that has heard up to this event has heard all there will ever be."""
    last = parse_id(last_event_id)
    if last is None or run.is_active:
        return False
    if not whole_tree:
        return last == (run.pk, run.last_seq)
    runs = below(db.rows(TREE, [run.root_id]), run.pk)
    if any(status not in TERMINAL for status, _ in runs.values()):
        return False
    ends = db.rows(ENDS, [list(runs)])
    return bool(ends) and last == max(ends)[1:]


async def _woken(woken: asyncio.Event, seconds: float) -> bool:
    """Whether something may have happened within so many seconds."""
    with suppress(TimeoutError):
        await asyncio.wait_for(woken.wait(), seconds)
    return woken.is_set()


def written(row: Row, own: bool) -> bytes:
    """One event as text/event-stream has it, with the JSON of `events/`. Written once for all who follow;
    `own`: for whom the run works for.
    """
    key, payload = (row[0], row[1], own), row[4]
    kept = _written.get(key)
    if kept is None or kept[0] != payload:  # pruning empties a payload
        event = dict(zip(COLUMNS, row, strict=True)) | {"payload": showing.payload(row[2], payload, own)}
        told = b"id: %s:%d\ndata: %s\n\n" % (row[0].encode(), row[1], JSONRenderer().render(event))
        if len(_written) >= KEPT:
            del _written[next(iter(_written))]
        kept = _written[key] = (payload, told)
    return kept[1]


# the latest events, with the payload they were of
_written: dict[tuple[str, int, bool], tuple[Any, bytes]] = {}
