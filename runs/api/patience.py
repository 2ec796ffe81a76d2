"""Long polls: an answer that is to come is waited for on the feed, without a thread and without polling."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any

import psycopg
from asgiref.sync import sync_to_async
from django.http import JsonResponse

from common.api import slots
from common.api.errors import CONTENT_TYPE, Problem
from common.web import let_go
from runs.api.feed import feed

Tell = Callable[[float, bool], Awaitable[None]]

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

    async def come(self, tell: Tell | None = None, every: float = math.inf) -> None:
        """Return when there is something new to see, or the time is over.

        `tell` hears, at first, whenever something moves, and each `every` seconds, how long it has been
        and whether somebody is asked.
        """
        source, began = feed(), time.monotonic()
        async with source.follow(self.root_id) as woken:
            while (spent := time.monotonic() - began) < self.seconds:
                woken.clear()
                with suppress(psycopg.OperationalError):  # the database may be away for a moment
                    (found,) = await source.read(MOVED, [self.run_id, self.call_id]) or [(True, False)]
                    if found[0] or (self.or_parked and found[1]):
                        return
                    if tell:
                        await tell(spent, found[1])
                with suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), min(every, self.seconds - spent))


def patient(view: Callable[..., Any], then: Callable[..., Any]) -> Callable[..., Any]:
    """The view, made to wait where its response names what is `awaited`; then `then` answers."""

    @wraps(view)
    async def answer(request: Any, *args: Any, **kwargs: Any) -> Any:
        response = await sync_to_async(view)(request, *args, **kwargs)
        awaited: Awaited | None = getattr(response, "awaited", None)
        if awaited is None or awaited.seconds <= 0:
            return response
        asked = response.renderer_context["request"]
        try:
            slot = slots.take(asked.user, asked.auth, asked.organization.pk)
        except Problem as refused:
            if request.method == "POST":
                return response  # the call has been taken: it is answered as it stands
            return JsonResponse(
                refused.problem, status=429, content_type=CONTENT_TYPE, headers=refused.headers
            )
        try:
            let_go()
            await awaited.come()
        finally:
            slot.give_back()
        # that Deputy's own page has sent it is known by now, and the body, where that is looked for, is read
        request.csrf_processing_done = True
        return await sync_to_async(then)(request, pk=awaited.run_id, call_id=awaited.call_id)

    return answer
