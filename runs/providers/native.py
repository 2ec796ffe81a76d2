"""Models of Anthropic and Google over their own APIs, through pydantic-ai's model classes without its agents.

Needs `requirements-models.txt`; everything else works without it.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from runs.providers import failures, loop
from runs.providers.base import (
    Message,
    ModelSettings,
    ProviderError,
    Reply,
    ToolRequest,
    ToolSchema,
    Usage,
    Words,
)
from runs.providers.wire import (
    count,
    names_back,
    own_name,
    requested,
    spoken,
    storable,
    wire_id,
    wire_name,
    wire_parameters,
)

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings as NativeSettings

Kind = Literal["anthropic", "google"]

SDK: dict[Kind, str] = {"anthropic": "anthropic", "google": "google.genai"}
EMPTY = "(empty)"  # both refuse a text without content
GO_ON = "Continue."
ANTHROPIC_MAX_TOKENS = 8192  # its API insists on a limit; without ours the SDK would switch to streaming


def require_installed(kind: Kind) -> None:
    """Raise ProviderError, saying what to install, unless the packages for `kind` are there."""
    if not (_installed("pydantic_ai") and _installed(SDK[kind])):
        said = f"Models of '{kind}:' need more packages: pip install -r requirements-models.txt"
        raise ProviderError("MODEL_REFUSED", said)


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False


@dataclass(frozen=True)
class NativeProvider:
    """One API of `kind` at `base_url`; SDK retries are off, the deadline is kept as for any model."""

    kind: Kind
    api_key: str = field(repr=False)
    base_url: str

    def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], settings: ModelSettings
    ) -> Reply:
        """The model's next message. Raises ProviderError; never retries by itself."""
        require_installed(self.kind)
        return loop.reply(lambda: self.answer(messages, tools, settings), settings.timeout)

    async def answer(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema],
        settings: ModelSettings,
        words: Words | None = None,
    ) -> Reply:
        """The same as a coroutine, see AsyncProvider."""
        require_installed(self.kind)
        await loop.loaded(f"pydantic_ai.models.{self.kind}")
        try:
            async with asyncio.timeout(settings.timeout):
                response = await self._asked(messages, tools, settings, words)
        except TimeoutError:
            raise failures.late(settings.timeout) from None
        except ProviderError:
            raise
        except Exception as error:
            raise self._failure(error, settings.timeout) from None
        return read_reply(response, tools)

    async def _asked(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema],
        settings: ModelSettings,
        words: Words | None,
    ) -> "ModelResponse":
        from pydantic_ai.direct import model_request, model_request_stream

        key = ("native", self.kind, self.base_url, self.api_key, settings.model)
        model = loop.shared(key, lambda: self.model(settings.model))
        told, asked, offered = wire_messages(messages), self._settings(settings), wire_tools(tools)
        if words is None:
            return await model_request(model, told, model_settings=asked, model_request_parameters=offered)
        async with model_request_stream(
            model, told, model_settings=asked, model_request_parameters=offered
        ) as stream:
            async for event in stream:
                if text := text_of(event):
                    words(text)
            return stream.get()

    def _settings(self, settings: ModelSettings) -> "NativeSettings":
        asked: NativeSettings = {}
        if settings.temperature is not None:
            asked["temperature"] = settings.temperature
        limit = settings.max_output_tokens or (ANTHROPIC_MAX_TOKENS if self.kind == "anthropic" else None)
        if limit is not None:
            asked["max_tokens"] = limit
        return asked

    def model(self, name: str) -> "Model":
        """pydantic-ai's model for `name`, made on the loop it will be used on."""
        http_client = loop.http_client(self.base_url)
        if self.kind == "anthropic":
            from anthropic import AsyncAnthropic
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            client = AsyncAnthropic(
                api_key=self.api_key, base_url=self.base_url, max_retries=0, http_client=http_client
            )
            client.auth_token = None  # of the environment: whose key is asked by, has been decided
            return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client))
        from google.genai.types import HttpRetryOptions
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        once = HttpRetryOptions(attempts=1)
        return GoogleModel(
            name,
            provider=GoogleProvider(
                api_key=self.api_key, base_url=self.base_url, http_client=http_client, retry_options=once
            ),
        )

    def _failure(self, error: Exception, timeout: float) -> ProviderError:
        """What pydantic-ai's exception is to Deputy."""
        from pydantic_ai import exceptions

        own = _own_error(error)
        if own is not None:
            return own
        if isinstance(error, exceptions.ModelHTTPError):
            return self._status(error)
        if isinstance(error, exceptions.ModelTimeoutError):
            return failures.late(timeout)
        said = failures.words(f"{type(error).__name__}: {error}", self.api_key)
        if isinstance(error, exceptions.ContentFilterError):
            return ProviderError("MODEL_REFUSED", f"The model's server withheld the reply: {said}")
        if isinstance(error, exceptions.ModelConnectionError):
            return ProviderError("MODEL_CONNECTION", f"No complete answer: {said}", retryable=True)
        if isinstance(error, exceptions.UserError):
            return ProviderError("MODEL_REFUSED", f"The model could not be asked: {said}")
        # the rest: answers that pydantic-ai cannot make sense of, some of which break it outright
        unread = f"The model's answer could not be read: {said}"
        return ProviderError("MODEL_UNAVAILABLE", unread, retryable=True)

    def _status(self, error: Any) -> ProviderError:
        body = error.body if isinstance(error.body, str) else json.dumps(error.body, default=str)
        found = failures.from_status(error.status_code, error.headers or {}, body, self.api_key)
        if found.retryable and found.retry_after is None:
            found.retry_after = error.retry_after  # Google says it in the body
        return found


def text_of(event: Any) -> str:
    """The words in one event of a stream; most have none."""
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return str(event.part.content)
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return str(event.delta.content_delta)
    return ""


def _own_error(error: BaseException | None) -> ProviderError | None:
    """The ProviderError that an SDK has wrapped in its own, if there is one."""
    for _ in range(10):
        if error is None or isinstance(error, ProviderError):
            return error
        error = error.__cause__ or error.__context__
    return None


def wire_messages(messages: Sequence[Message]) -> "list[ModelMessage]":
    """Deputy's messages as turns: what the model was told in one, what it said in the next.

    It starts and ends with something told, as both APIs demand.
    """
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart

    names = {call.id: call.name for message in messages for call in message.tool_calls}
    turns: list[ModelMessage] = []
    for message in messages:
        if message.role != "assistant":
            part = _told(message, names, opening=not any(isinstance(turn, ModelResponse) for turn in turns))
            if turns and isinstance(turns[-1], ModelRequest):
                turns[-1].parts = [*turns[-1].parts, part]
            else:
                turns.append(ModelRequest(parts=[part]))
            continue
        said: list[TextPart | ToolCallPart] = [TextPart(spoken(message))] if message.content.strip() else []
        said += [
            ToolCallPart(wire_name(call.name), call.arguments, wire_id(call.id))
            for call in message.tool_calls
        ]
        if turns and isinstance(turns[-1], ModelResponse):
            turns[-1].parts = [*turns[-1].parts, *said]
        elif said:
            turns.append(ModelResponse(parts=said))
    if not turns or isinstance(turns[0], ModelResponse) or not _asks(turns[0]):
        turns = _opened(turns)
    if isinstance(turns[-1], ModelResponse):
        turns.append(ModelRequest(parts=[UserPromptPart(GO_ON)]))
    return turns


def _told(message: Message, names: dict[str, str], *, opening: bool) -> "ModelRequestPart":
    from pydantic_ai.messages import SystemPromptPart, ToolReturnPart, UserPromptPart

    text = spoken(message)
    if message.role == "tool":
        name = wire_name(names.get(message.tool_call_id, "unknown"))
        return ToolReturnPart(name, text or EMPTY, wire_id(message.tool_call_id))
    if message.role == "system":
        # both APIs know system text at the start only
        return SystemPromptPart(text or EMPTY) if opening else UserPromptPart(f"System: {text or EMPTY}")
    return UserPromptPart(text or EMPTY)


def _asks(turn: "ModelMessage") -> bool:
    from pydantic_ai.messages import SystemPromptPart

    return any(not isinstance(part, SystemPromptPart) for part in turn.parts)


def _opened(turns: "list[ModelMessage]") -> "list[ModelMessage]":
    """`turns` with something for the user to have said first."""
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    prompt = UserPromptPart(GO_ON)
    if turns and isinstance(turns[0], ModelRequest):
        turns[0].parts = [*turns[0].parts, prompt]
        return turns
    return [ModelRequest(parts=[prompt]), *turns]


def wire_tools(tools: Sequence[ToolSchema]) -> "ModelRequestParameters":
    """Deputy's tools as pydantic-ai hands them to an API."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=wire_name(tool.name),
                description=storable(tool.description),
                parameters_json_schema=wire_parameters(tool),
                strict=False,  # the door to the tools checks arguments, against the schema as it is
            )
            for tool in tools
        ]
    )


def read_reply(response: "ModelResponse", tools: Sequence[ToolSchema]) -> Reply:
    """The reply in pydantic-ai's response. Raises ProviderError where there is none."""
    from pydantic_ai.messages import TextPart, ToolCallPart

    truncated = response.finish_reason == "length"
    if response.finish_reason == "content_filter":
        raise ProviderError("MODEL_REFUSED", "The model's server withheld the reply (content filter).")
    content = storable("".join(part.content for part in response.parts if isinstance(part, TextPart)))
    back = names_back(tools)
    calls: tuple[ToolRequest, ...] = tuple(
        requested(own_name(part.tool_name, back), part.args, part.tool_call_id, truncated=truncated)
        for part in response.parts
        if isinstance(part, ToolCallPart)
    )
    if not content.strip() and not calls:
        raise ProviderError(
            "MODEL_EMPTY_REPLY",
            "The model used up its output limit before it said anything."
            if truncated
            else "The model said nothing and asked for nothing.",
            retryable=not truncated,
        )
    usage = Usage(count(response.usage.input_tokens), count(response.usage.output_tokens))
    return Reply(content, calls, usage, storable(response.model_name or ""), truncated)
