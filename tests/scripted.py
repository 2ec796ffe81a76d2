"""A model whose replies tests write. `DEPUTY_PROVIDERS = {"scripted": "tests.scripted.Scripted"}`.

In one process tests set `Scripted.play`; a real cluster finds its play by the model's name:
`scripted:tests.plays.deep` is the function `deep` of the module `tests.plays`.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from django.utils.module_loading import import_string

from runs.providers.base import Message, ModelSettings, Reply, ToolRequest, ToolSchema, Usage

Play = Callable[[Sequence[Message], dict[str, Any]], Reply]


def say(content: str, tokens: int = 15) -> Reply:
    return Reply(content, usage=Usage(tokens, 0), model="scripted")


def call(*requests: tuple[str, dict[str, Any]], content: str = "") -> Reply:
    calls = tuple(ToolRequest(name, arguments) for name, arguments in requests)
    return Reply(content, calls, usage=Usage(10, 5), model="scripted")


class Scripted:
    """Answers by `play(messages, facts)`; a reply that is an exception is raised."""

    play: ClassVar[Play]
    asked: ClassVar[list[tuple[Sequence[Message], ModelSettings]]] = []

    def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], settings: ModelSettings
    ) -> Reply:
        type(self).asked.append((messages, settings))
        play = import_string(settings.model) if "." in settings.model else type(self).play
        reply = play(messages, settings.facts)
        if isinstance(reply, BaseException):
            raise reply
        return reply


def in_order(*replies: Any) -> Play:
    """The replies one after the other, whoever asks."""
    left = list(replies)
    return lambda messages, facts: left.pop(0)


def by_role(**plays: Any) -> Play:
    """For each role (spaces as _) its own list of replies."""
    left = {role: list(replies) for role, replies in plays.items()}
    return lambda messages, facts: left[facts["role"].replace(" ", "_")].pop(0)
