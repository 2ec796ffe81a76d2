"""What a model is to Deputy: `complete(messages, tools, settings) -> Reply`, and nothing more."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, runtime_checkable

from common.canonical import digest

MessageRole = Literal["system", "user", "assistant", "tool"]
Words = Callable[[str], None]  # is told what a model says, piece by piece, as it comes


@dataclass(frozen=True)
class ToolRequest:
    """A call the model asks for.

    `id` is Deputy's call id in a message of the past and the provider's own, which nobody relies
    on, in a fresh reply. `problem` says why the arguments could not be read as a JSON object
    (`arguments` is then `{}`); such a call is never run, the model gets the problem as its result, with
    the error code `code`.
    """

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str = ""
    problem: str | None = None
    code: str = "INVALID_ARGUMENTS"


@dataclass(frozen=True)
class Message:
    """One turn of a conversation. `name` is the speaker; a `tool` message answers `tool_call_id`."""

    role: MessageRole
    content: str
    name: str = ""
    tool_calls: tuple[ToolRequest, ...] = ()
    tool_call_id: str = ""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what a model is sent of it; computed once, however often the message is sent again."""
        calls = [[call.name, call.arguments] for call in self.tool_calls]
        return digest(self.role, self.name, self.content, calls)


@dataclass(frozen=True)
class ToolSchema:
    """A tool as a model sees it; `parameters` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Usage:
    """Tokens of one call, as the provider counted them (0 where it does not say)."""

    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True)
class ModelSettings:
    """How to ask. `timeout` is in seconds for the whole call.

    `facts` is the prompt once more as data (goal, speaker, groups with scores, memories): a model
    that reads text ignores it, the local one decides by it.
    """

    model: str
    timeout: float = 120.0
    temperature: float | None = None
    max_output_tokens: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """What the model said: text, calls it asks for (in order), and what it cost.

    `truncated`: the output limit cut it off; the text is kept as far as it came.
    """

    content: str
    tool_calls: tuple[ToolRequest, ...] = ()
    usage: Usage = Usage()
    model: str = ""
    truncated: bool = False


class ProviderError(Exception):
    """The model could not be asked or gave nothing usable.

    `code` is stable: MODEL_RATE_LIMITED, MODEL_UNAVAILABLE, MODEL_TIMEOUT, MODEL_CONNECTION,
    MODEL_EMPTY_REPLY, MODEL_REFUSED (bad key, bad request), MODEL_UNKNOWN, MODEL_ERROR (the provider itself
    is broken, see `asking`). `retry_after` is in seconds.
    """

    def __init__(
        self, code: str, message: str, *, retryable: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.retry_after = retry_after


class Provider(Protocol):
    """A source of replies. Stateless; may be called from several threads of one process."""

    def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], settings: ModelSettings
    ) -> Reply:
        """The model's next message. Raises ProviderError, anything else being a defect (see `asking`).

        It never retries by itself.
        """
        ...


@runtime_checkable
class AsyncProvider(Protocol):
    """A provider that can be asked without a thread: a carrier awaits thousands of them at once."""

    async def answer(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema],
        settings: ModelSettings,
        words: Words | None = None,
    ) -> Reply:
        """`complete` as a coroutine. With `words`, the text is asked for as a stream and told as it comes;
        the reply is the same. Cancelling it closes its connection.
        """
        ...
