"""The way to every model: whatever its provider does, what comes back can be kept, or is a ProviderError."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import UnionType

import psycopg
from django import db
from django.conf import settings as limits

from common.canonical import NotJson, normalise
from common.failures import FAILURES
from runs.providers import loop, registry
from runs.providers.base import (
    AsyncProvider,
    Message,
    ModelSettings,
    ProviderError,
    Reply,
    ToolRequest,
    ToolSchema,
    Usage,
    Words,
)
from runs.providers.keys import Own

logger = logging.getLogger(__name__)

# The database that is away is no fault of the provider's, and nobody could write down that it was.
PASSED_ON = (ProviderError, db.Error, psycopg.Error)


def ask(
    model: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSchema],
    settings: Callable[[str], ModelSettings],
    own: Own | None = None,
) -> Reply:
    """The model's next message; `settings` makes them from the name its provider knows it by, `own` is what
    the organization has set for the provider.

    Raises ProviderError: the provider's own, or MODEL_ERROR with the class of what it raised instead. Its
    words stay in the log, where secrets are masked: nobody can say what they quote. Database errors pass.
    """
    try:
        provider, name = registry.get(model, own)
        return usable(provider.complete(messages, tools, settings(name)))
    except PASSED_ON:
        raise
    except Unfit as unfit:
        raise broken(model, f"gave a reply that cannot be used: {unfit}") from None
    except FAILURES as error:
        logger.exception("the provider of %s failed", model)
        raise broken(model, f"failed: {type(error).__name__}") from error


async def answer(
    model: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSchema],
    settings: Callable[[str], ModelSettings],
    words: Words | None = None,
    own: Own | None = None,
) -> Reply:
    """`ask` as a coroutine, for providers that can be awaited; words are told as they come."""
    try:
        provider, name = registry.get(model, own)
        assert isinstance(provider, AsyncProvider)  # noqa: S101 - others are asked in a thread
        return usable(await provider.answer(messages, tools, settings(name), words))
    except ProviderError:
        raise
    except asyncio.CancelledError as error:
        if loop.cancelled():
            raise
        raise broken(model, "failed: CancelledError") from error  # what an SDK leaked
    except Unfit as unfit:
        raise broken(model, f"gave a reply that cannot be used: {unfit}") from None
    except FAILURES as error:
        logger.exception("the provider of %s failed", model)
        raise broken(model, f"failed: {type(error).__name__}") from error


def broken(model: str, what: str) -> ProviderError:
    """Worth another try: an SDK's error for a network that was away looks like any other from here."""
    provider = model.strip().partition(":")[0]
    return ProviderError("MODEL_ERROR", f"The provider '{provider}' {what}", retryable=True)


class Unfit(Exception):
    """What a provider returned is no reply that could be kept; the message says why."""


def usable(reply: object) -> Reply:
    """What is kept of a reply, however it was asked for. Raises Unfit."""
    return checked(capped(reply))


def capped(reply: object) -> object:
    """The reply with CALLS_IN_REPLY of its calls; one more stands for the rest, and tells the model so."""
    most = limits.CALLS_IN_REPLY
    if not isinstance(reply, Reply) or not isinstance(reply.tool_calls, tuple | list):
        return reply
    asked = len(reply.tool_calls)
    if asked <= most:
        return reply
    first = tuple(reply.tool_calls[:most])
    return replace(reply, tool_calls=(*first, refused(reply.tool_calls[most], asked, most)))


def refused(call: object, asked: int, most: int) -> ToolRequest:
    words = (
        f"You asked for {asked} calls in one reply. The first {most} are carried out, this one and those "
        f"after it are refused: {asked - most} calls. Look at the results first, and then ask for what you "
        "still need."
    )
    name = call.name if isinstance(call, ToolRequest) and isinstance(call.name, str) else ""
    return ToolRequest(name, problem=words, code="TOO_MANY_CALLS")


def checked(reply: object) -> Reply:
    """The reply, once it is known that the log can take it. Raises Unfit."""
    if not isinstance(reply, Reply):
        raise Unfit(f"{type(reply).__name__} is no Reply")
    _expect(reply, content=str, model=str, usage=Usage, tool_calls=tuple | list)
    _expect(reply.usage, input_tokens=int, output_tokens=int)
    for call in reply.tool_calls:
        if not isinstance(call, ToolRequest):
            raise Unfit(f"{type(call).__name__} is no ToolRequest")
        _expect(call, name=str, arguments=dict)
    calls = [
        {"name": call.name, "arguments": call.arguments, "problem": call.problem} for call in reply.tool_calls
    ]
    try:
        normalise({"content": reply.content, "model": reply.model, "tool_calls": calls})
    except NotJson as problem:
        raise Unfit(str(problem)) from None
    return reply


def _expect(value: object, **kinds: type | UnionType) -> None:
    for name, kind in kinds.items():
        if not isinstance(found := getattr(value, name), kind):
            raise Unfit(f"{type(value).__name__}.{name} is of type {type(found).__name__}")
