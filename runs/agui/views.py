"""AG-UI 1.0 over HTTP: one POST, answered by a stream of events.

Reads what events/stream/ reads, and asks as it does, again and again, whether its reader still may.
"""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection
from django.http import StreamingHttpResponse
from drf_spectacular.utils import extend_schema

from common.api import slots
from common.api.permissions import require_scope
from common.api.slots import Slot
from common.api.views import ApiView
from common.web import let_go
from groups.actors import Actor
from groups.api.views import project_named
from runs.agui import inputs, interrupts, threads
from runs.agui.inputs import VERSION, Input
from runs.agui.interrupts import Refused
from runs.agui.threads import Stretch
from runs.agui.translating import Translation
from runs.api.readers import SCOPE, Reader
from runs.api.stream import COLUMNS, Mark, TreeCursor, moments
from runs.models import Run
from runs.models.choices import EventType, RunStatus
from runs.observe import showing
from runs.outbound.following import Delta

JSON = dict[str, Any]


@extend_schema(exclude=True)  # the standard publishes its own description
class AguiView(ApiView):
    area = "runs"
    queryset = Run.objects.none()
    pagination_class = None
    filter_backends = ()

    def run(self, request: Any, project: str) -> Any:
        require_scope(request, SCOPE)  # what happens is told, too
        asked = inputs.read(request.data)
        found = project_named(request, project)
        slot = slots.take(request.user, request.auth, found.organization_id)
        try:
            stretch = threads.act(request, found, asked)
        except Refused as refused:
            slot.give_back()
            return _streamed(_told(asked, refused))
        except BaseException:
            slot.give_back()
            raise
        reader = Reader.of_api(request, stretch.run)
        return _streamed(Telling(asked, stretch, request.actor, reader, slot).stream())


def _streamed(told: Any) -> StreamingHttpResponse:
    return StreamingHttpResponse(
        told,
        content_type="text/event-stream",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


def _bytes(event: JSON) -> bytes:
    return b"data: %s\n\n" % json.dumps(event, ensure_ascii=False).encode()


def _started(asked: Input) -> JSON:
    return {
        "type": "RUN_STARTED",
        "threadId": asked.thread_id,
        "runId": asked.run_id,
        "protocolVersion": VERSION,
    }


async def _told(asked: Input, refused: Refused) -> AsyncIterator[bytes]:
    yield _bytes(_started(asked))
    yield _bytes({"type": "RUN_ERROR", "message": refused.message, "code": refused.code})


@dataclass
class Telling:
    """One stretch of a thread, told until it ends or waits for somebody."""

    asked: Input
    stretch: Stretch
    actor: Actor
    reader: Reader
    slot: Slot
    seen: dict[str, int] = field(default_factory=dict)  # by run: the last event that has been told

    @property
    def run(self) -> Run:
        return self.stretch.run

    @property
    def own(self) -> bool:
        return self.run.user_id == self.reader.user_id

    async def stream(self) -> AsyncIterator[bytes]:
        try:
            let_go()
            yield _bytes(_started(self.asked))
            async with aclosing(self._events()) as events:  # type: ignore[type-var]
                async for event in events:
                    yield event if isinstance(event, bytes) else _bytes(event)
        finally:
            self.slot.give_back()

    async def _events(self) -> AsyncIterator[JSON | bytes]:
        if self.stretch.told_before:
            yield await self._in_thread(self._snapshot)
        translation = Translation(self.run.pk, await self._in_thread(self._groups))
        cursor = TreeCursor(self.run.pk, self.run.root_id, self.run.user_id)
        cursor.sent, self.seen = dict(self.stretch.after), dict(self.stretch.after)
        if self.stretch.told_before and (end := await self._in_thread(self._stands)):
            for event in end:
                yield event
            return
        looks = self.stretch.told_before  # whether the tree may stand still by now
        async with aclosing(moments(cursor, "", self.reader, deltas=True)) as found:
            async for moment in found:
                if isinstance(moment, Mark):
                    if moment is Mark.ALIVE:
                        yield b": still here\n\n"
                    continue
                if isinstance(moment, Delta):
                    for event in translation.words(moment):
                        yield event
                    continue
                row = dict(zip(COLUMNS, moment, strict=True))
                said = showing.payload(row["type"], row["payload"], self.own)
                for event in translation.event(row["run"], row["seq"], row["type"], said):
                    yield event
                self.seen[row["run"]] = row["seq"]
                looks = looks or row["type"] in LOOKED_AT
                if looks and (end := await self._in_thread(self._stands)):
                    for event in [*translation.close(), *end]:
                        yield event
                    return
        for event in [*translation.close(), *(await self._in_thread(self._left))]:
            yield event

    async def _in_thread(self, look: Any) -> Any:
        return await sync_to_async(_and_let_go)(look)

    def _groups(self) -> dict[str, str]:
        below = Run.objects.filter(root=self.run.root_id, group__isnull=False)
        return dict(below.values_list("pk", "group__name"))

    def _snapshot(self) -> JSON:
        return {"type": "MESSAGES_SNAPSHOT", "messages": threads.snapshot(self.run, self.own)}

    def _left(self) -> list[JSON]:
        """Where the stream has ended before the stretch. It may have, as its reader may read no more."""
        return (self._stands() if self.reader.may_now() else []) or [AGAIN]

    def _stands(self) -> list[JSON]:
        """The stretch's last events, where it is over now and all of it has been told."""
        run = Run.objects.get(pk=self.run.pk)
        if self.seen.get(run.pk, 0) < run.last_seq:
            return []
        if run.status == RunStatus.FAILED:
            error = showing.payload(EventType.RUN_FAILED, run.error or {}, self.own)
            return [{"type": "RUN_ERROR", "message": error.get("message", ""), "code": error.get("code", "")}]
        if run.status == RunStatus.COMPLETED:
            return self._finished({"type": "success"}, {"run": run.pk})
        if run.status == RunStatus.CANCELLED:
            return self._finished({"type": "cancelled"})
        tree = Run.objects.filter(root=run.root_id).values_list("pk", "last_seq")
        if any(self.seen.get(pk, 0) < last for pk, last in tree) or not interrupts.paused(run):
            return []
        found = [one.shown for one in interrupts.of(self.actor, run)]
        state = {"type": "STATE_SNAPSHOT", "snapshot": {"run": run.pk, "status": run.status}}
        return [state, *self._finished({"type": "interrupt", "interrupts": found})] if found else []

    def _finished(self, outcome: JSON, result: JSON | None = None) -> list[JSON]:
        told = {"threadId": self.asked.thread_id, "runId": self.asked.run_id, "outcome": outcome}
        more = {"result": result} if result else {}
        return [self._snapshot(), {"type": "RUN_FINISHED", **told, **more}]


AGAIN = {
    "type": "RUN_ERROR",
    "message": "The stream has ended before the run: connect again with the same thread.",
    "code": "CONNECT_AGAIN",
}
LOOKED_AT = frozenset(
    {
        EventType.RUN_WAITING.value,
        EventType.RUN_COMPLETED.value,
        EventType.RUN_FAILED.value,
        EventType.RUN_CANCELLED.value,
    }
)


def _and_let_go(look: Any) -> Any:
    try:
        return look()
    finally:
        if not connection.in_atomic_block:
            connection.close()
