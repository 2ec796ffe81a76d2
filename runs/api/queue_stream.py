"""Word that the queue of approvals has changed: text/event-stream. It says nothing of what is in it: a page
asks for that itself, by the same rules as before.
"""

import asyncio
import time
from collections.abc import AsyncIterator

import psycopg

from common.api.slots import Slot
from common.web import let_go
from runs.api.feed import feed
from runs.api.readers import Reader

LOOK_SECONDS = 1.5  # the followers of an organization in one process share a look
HEARTBEAT_SECONDS = 15.0
LONGEST_SECONDS = 600.0
PENDING = """
SELECT count(*), max(id), min(id) FROM runs_approval WHERE organization_id = %s AND status = 'pending'
"""


async def changes(reader: Reader, slot: Slot) -> AsyncIterator[bytes]:
    """`event: queue` whenever approvals have come or gone, until the reader may no longer read, or
    LONGEST_SECONDS are over. Gives the slot back.
    """
    try:
        let_go()
        yield b"retry: 4000\n"
        source, until, heard, known = feed(), time.monotonic() + LONGEST_SECONDS, time.monotonic(), None
        async with source.follow(f"approvals of {reader.organization_id}"):
            while time.monotonic() < until:
                try:
                    if not await reader.may_still(source, LOOK_SECONDS):
                        return
                    now = await source.recent(PENDING, [reader.organization_id], LOOK_SECONDS)
                except psycopg.OperationalError:
                    now = known
                if now != known:
                    heard = time.monotonic()
                    if known is not None:
                        yield b"event: queue\ndata: {}\n\n"
                    known = now
                elif time.monotonic() - heard >= HEARTBEAT_SECONDS:
                    heard = time.monotonic()
                    yield b": still here\n"
                await asyncio.sleep(LOOK_SECONDS)
    finally:
        slot.give_back()
