"""One outbound call, in a carrier: a model is awaited, what is not asynchronous gets a thread."""

import asyncio
import json
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import Any

from django.db import InterfaceError, OperationalError, close_old_connections, connections

from common import crash
from common.current import working_for
from common.failures import FAILURES
from common.tracing import Span
from policy.terms import Decision
from runs.gate import admission
from runs.observe import tracing
from runs.outbound import packing
from runs.outbound.table import Taken
from runs.providers import asking, loop, registry
from runs.providers.base import ModelSettings, ProviderError, Reply, Words
from runs.tools import leaving
from runs.tools.base import Tool, ToolContext
from runs.tools.call import Admitted, perform

logger = logging.getLogger(__name__)


async def ask(call: Taken, pool: Executor, gates: Executor, words: Words | None) -> dict[str, Any]:
    """What came of it, as `packing` writes it. Never raises for what the other side does.

    Tools run in threads of `pool`; `gates` has the few that ask policy, whose connections stay open.
    """
    try:
        async with asyncio.timeout(call.limit):
            return await (of_model(call, pool, words) if call.of_model else of_tool(call, pool, gates))
    except TimeoutError:
        return packing.LATE if call.left is not None and call.left <= call.seconds else _too_slow(call)
    except FAILURES as error:
        if isinstance(error, asyncio.CancelledError) and loop.cancelled():
            raise
        logger.exception("the call of %s for %s failed", call.target, call.run_id)
        return _broken(call, f"failed: {type(error).__name__}")


async def of_model(call: Taken, pool: Executor, words: Words | None) -> dict[str, Any]:
    messages, tools, facts = packing.read_model_request(call.request)

    def settings(name: str) -> ModelSettings:
        return ModelSettings(model=name, timeout=call.seconds, facts=facts)

    with working_for(call.run_id, call.root_id, call.organization_id), _span(call) as span:
        try:
            crash.point("before_slow")
            if registry.awaitable(call.model, call.own):
                reply = await asking.answer(call.model, messages, tools, settings, words, call.own)
            else:
                asked: Callable[[], Reply] = lambda: asking.ask(  # noqa: E731
                    call.model, messages, tools, settings, call.own
                )
                reply = await in_thread(pool, asked)
            crash.point("after_slow")
        except ProviderError as error:
            span.fail(error.code)
            return packing.reply(error)
        span.tell(tracing.said(reply))
    return packing.reply(reply)


def _span(call: Taken) -> AbstractContextManager[Span]:
    receipt = json.loads(call.receipt)
    return tracing.of_model(call.model, receipt["agent"], receipt["role"], call.root_id, call.own)


async def of_tool(call: Taken, pool: Executor, gates: Executor) -> dict[str, Any]:
    """Run the tool, unless policy has changed its mind while the call waited here: then a worker brings it
    before the gate again.
    """
    arguments, context = packing.read_tool_request(call.request)
    answer: dict[str, Any] = await in_thread(pool, lambda: _performed(call, arguments, context, gates))
    return answer


def _leaving(call: Taken, arguments: dict[str, Any]) -> Tool | None:
    """The tool, if the call may leave now. The thread's connection stays open for the next call."""
    close_old_connections()
    try:
        return admission.leaving(call.id, call.run_id, call.call_id, arguments)
    except (OperationalError, InterfaceError):
        connections.close_all()
        return None  # the database is away: the call has not left, and is asked about again


def _performed(
    call: Taken, arguments: dict[str, Any], context: ToolContext, gates: Executor
) -> dict[str, Any]:
    """Policy is asked by the thread that runs the tool: one may be waited for, while those of calls that were
    cancelled still hang, and what is asked before is not known to hold then.
    """
    tool = gates.submit(_leaving, call, arguments).result()
    if tool is None:
        return packing.HELD_BACK
    crash.point("before_slow")
    with leaving.looking(tool, lambda: gates.submit(_leaving, call, arguments).result()) as look:
        answer = perform(Admitted(tool, arguments, context.idempotency_key, ADMITTED), context)
    crash.point("after_slow")
    return packing.HELD_BACK if look.held else packing.result(answer)


ADMITTED = Decision("allow", "ADMITTED", "Admitted when it was asked for, and when it left.", ())


async def in_thread(pool: Executor, work: Callable[[], Any]) -> Any:
    """`work` in a thread of its own, without a connection to the database left behind."""

    def alone() -> Any:
        try:
            return work()
        finally:
            connections.close_all()

    return await asyncio.get_running_loop().run_in_executor(pool, alone)


def _too_slow(call: Taken) -> dict[str, Any]:
    said = f"'{call.model}' gave no answer within {call.seconds:g} seconds."
    if call.of_model:
        return packing.reply(ProviderError("MODEL_TIMEOUT", said, retryable=True))
    return packing.LOST


def _broken(call: Taken, what: str) -> dict[str, Any]:
    if call.of_model:
        return packing.reply(asking.broken(call.model, what))
    return packing.LOST
