"""Answers that take their time: a message that is answered once its task has settled, and streams of a task.

Both read the feed that events/stream/ reads, and hold neither a thread nor a connection while they wait.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from asgiref.sync import sync_to_async
from django.db import connection
from django.http import StreamingHttpResponse

from common.api.slots import Slot
from common.web import let_go
from runs.a2a import tasks
from runs.a2a.agents import Client
from runs.a2a.errors import A2AError
from runs.api.feed import feed
from runs.api.readers import Reader
from runs.api.stream import COLUMNS, Mark, RunCursor, moments
from runs.models import A2ATask
from runs.models.choices import EventType
from runs.observe import showing
from runs.webhooks import task_words as words

JSON = dict[str, Any]
Wrap = Callable[[JSON], JSON]

SETTLED = """
SELECT status IN ('completed', 'failed', 'cancelled') OR (status = 'waiting' AND EXISTS (
    SELECT FROM runs_wait w
    WHERE w.run_id = r.id AND w.resolved_at IS NULL AND w.kind IN ('input', 'approval')))
FROM runs_run r WHERE id = %s
"""


@dataclass
class Settling:
    """An answer that waits until the task has ended or needs somebody, `seconds` at most."""

    task: A2ATask
    seconds: float
    slot: Slot
    reader: Reader
    answer: Callable[[], Any]
    refuse: Callable[[], Any]

    async def come(self) -> Any:
        """The answer, or the refusal where who has waited for it may not read it any more."""
        try:
            let_go()
            await self._settled()
        finally:
            self.slot.give_back()
        return await sync_to_async(self._answer)()

    def _answer(self) -> Any:
        return self.answer() if self.reader.may_now() else self.refuse()

    async def _settled(self) -> None:
        source, until = feed(), time.monotonic() + self.seconds
        async with source.follow(self.task.run.root_id) as woken:
            while (left := until - time.monotonic()) > 0:
                woken.clear()
                with suppress(psycopg.OperationalError):  # the database may be away for a moment
                    ((settled,),) = await source.read(SETTLED, [self.task.run_id]) or [(True,)]
                    if settled:
                        return
                with suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), left)


@dataclass
class Stream:
    """A task's stream: first the task, then what moves it. `until`: the states after which it ends."""

    client: Client
    task: A2ATask
    reader: Reader
    slot: Slot
    first: JSON
    wrap: Wrap
    until: frozenset[str]

    def response(self) -> StreamingHttpResponse:
        return StreamingHttpResponse(
            self._bytes(),
            content_type="text/event-stream",
            headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
        )

    async def _bytes(self) -> AsyncIterator[bytes]:
        try:
            let_go()
            yield self._event({"task": self.first})
            if self.first["status"]["state"] in self.until:
                return
            cursor = RunCursor(self.task.run_id, self.task.run.root_id, self.task.run.user_id)
            cursor.seq = self.task.run.last_seq
            async with aclosing(moments(cursor, "", self.reader, deltas=False)) as found:
                async for moment in found:
                    if moment is Mark.ALIVE:
                        yield b": still here\n\n"
                    for told in [] if isinstance(moment, Mark) else await self._told(moment):
                        yield self._event(words.placed(told, self.task.context_id))
                        if _state(told) in self.until:
                            return
        finally:
            self.slot.give_back()

    def _event(self, told: JSON) -> bytes:
        return b"data: %s\n\n" % json.dumps(self.wrap(told), ensure_ascii=False).encode()

    async def _told(self, row: Any) -> list[JSON]:
        event = dict(zip(COLUMNS, row, strict=True))
        said = showing.payload(event["type"], event["payload"], self.task.run.user_id == self.reader.user_id)
        place = (self.task.run_id, event["seq"])
        if event["type"] == EventType.MESSAGE_CREATED:
            return [_spoken(*place, said, event["created_at"])] if _is_interim(said) else []
        told = words.updates(*place, event["type"], said, event["created_at"])
        if any(_state(one) in words.INTERRUPTED for one in told):
            return await sync_to_async(self._asks)(told)
        return told

    def _asks(self, told: list[JSON]) -> list[JSON]:
        """With what is asked, where that is still so."""
        try:
            now = tasks.status_of(tasks.find(self.client, self.task.pk))
        except A2AError:
            return []
        finally:
            if not connection.in_atomic_block:
                connection.close()
        same = [one for one in told if _state(one) == now["state"]]
        return [{"statusUpdate": {"taskId": self.task.pk, "status": now}}] if same else told


def _state(told: JSON) -> str:
    return str(told.get("statusUpdate", {}).get("status", {}).get("state", ""))


def _is_interim(said: JSON) -> bool:
    """Whether an agent says something while it goes on: its last words are the output."""
    return bool(said.get("role") == "assistant" and said.get("content") and said.get("tool_calls"))


def _spoken(run_id: str, seq: int, said: JSON, at: Any) -> JSON:
    return words.moved(run_id, words.WORKING, at, f"{run_id}:{seq}", said["content"])
