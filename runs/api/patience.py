"""Long polls: an answer that is to come is waited for on the feed, without a thread and without polling."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any

import psycopg
from asgiref.sync import sync_to_async

from config.web import let_go
from runs.api.feed import feed

MOVED = """
SELECT c.ended_at IS NOT NULL OR r.ended_at IS NOT NULL,
       EXISTS (SELECT FROM runs_wait w
               WHERE w.run_id = r.id AND w.tool_call_id = c.id AND w.resolved_at IS NULL)
FROM runs_toolcall c JOIN runs_run r ON r.id = c.run_id WHERE c.run_id = %s AND c.call_id = %s
"""


@dataclass(frozen=True)
class Awaited:
    """A call whose end is waited for: `seconds` at most, and with `or_parked` not while somebody is asked."""

    run_id: str
    root_id: str
    call_id: str
    seconds: float
    or_parked: bool = False

    async def come(self) -> None:
        """Return when there is something new to see, or the time is over."""
        source, until = feed(), time.monotonic() + self.seconds
        async with source.follow(self.root_id) as woken:
            while (left := until - time.monotonic()) > 0:
                woken.clear()
                with suppress(psycopg.OperationalError):  # the database may be away for a moment
                    (found,) = await source.read(MOVED, [self.run_id, self.call_id]) or [(True, False)]
                    if found[0] or (self.or_parked and found[1]):
                        return
                with suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), left)


def patient(view: Callable[..., Any], then: Callable[..., Any]) -> Callable[..., Any]:
    """The view, made to wait where its response names what is `awaited`; then `then` answers."""

    @wraps(view)
    async def answer(request: Any, *args: Any, **kwargs: Any) -> Any:
        response = await sync_to_async(view)(request, *args, **kwargs)
        awaited: Awaited | None = getattr(response, "awaited", None)
        if awaited is None or awaited.seconds <= 0:
            return response
        let_go()
        await awaited.come()
        return await sync_to_async(then)(request, pk=awaited.run_id, call_id=awaited.call_id)

    return answer
