"""Models behind an OpenAI-compatible chat endpoint: OpenAI, Ollama, vLLM and many more."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from runs.providers import failures, loop, streaming
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
    from openai import AsyncOpenAI

OPENAI_BASE_URL = "https://api.openai.com/v1"
NO_KEY = "none"  # the SDK insists on one; servers without keys ignore it


@dataclass(frozen=True)
class ChatProvider:
    """`POST {base_url}/chat/completions`, through the openai SDK with its own retries switched off.

    Every call has one deadline, kept by cancelling it (see `loop`). An address that an organization has set
    is asked past the guard (see `guarded`).
    """

    base_url: str = OPENAI_BASE_URL
    api_key: str = field(default="", repr=False)
    own: bool = False  # an organization's, to whom the environment's OPENAI_ORG_ID means nothing
    allow: frozenset[str] | None = None  # past the guard, which lets these pass; None: not past it

    def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], settings: ModelSettings
    ) -> Reply:
        """The model's next message. Raises ProviderError; never retries by itself."""
        return loop.reply(lambda: self.answer(messages, tools, settings), settings.timeout)

    async def answer(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema],
        settings: ModelSettings,
        words: Words | None = None,
    ) -> Reply:
        """The same as a coroutine, see AsyncProvider."""
        await loop.loaded("openai")  # 0.7 s, so only in processes that talk to such a model
        request = self._request(messages, tools, settings)
        async with self._explained(settings.timeout), asyncio.timeout(settings.timeout):
            body = await self._asked(request, settings.timeout, words)
        return read_reply(body, tools)

    async def _asked(
        self, request: dict[str, Any], timeout: float, words: Words | None
    ) -> str | dict[str, Any]:
        """The body of a successful answer; of a streamed one the completion it comes to."""
        completions = loop.shared(("chat", self), self._client).chat.completions
        # As extra_body the SDK sends the request as it is. As arguments it walks through every value by its
        # type first, which changes nothing here and took a third of a carrier's processor time.
        required: Any = {"model": request["model"], "messages": (), "timeout": timeout}
        if words is None:
            whole = await completions.with_raw_response.create(**required, extra_body=request)
            return _text_of(whole.http_response.content)
        request |= {"stream": True, "stream_options": {"include_usage": True}}
        asked = completions.with_streaming_response.create(**required, stream=True, extra_body=request)
        async with asked as answer:
            if loop.EVENT_STREAM not in answer.headers.get("content-type", ""):
                return _text_of(await answer.read())  # it streams nothing and answers all the same
            return await streaming.gathered(answer.http_response.aiter_bytes(), words)

    @asynccontextmanager
    async def _explained(self, timeout: float) -> AsyncIterator[None]:
        """Whatever goes wrong inside leaves as a ProviderError; being cancelled passes."""
        import openai

        try:
            yield
        except (TimeoutError, openai.APITimeoutError):
            raise failures.late(timeout) from None
        except openai.APIStatusError as error:
            response = error.response
            raise failures.from_status(
                response.status_code, response.headers, response.text, self.api_key
            ) from None
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, ProviderError):  # the guard's
                raise error.__cause__ from None
            raise self._no_answer(error.__cause__ or error) from None
        except ProviderError:
            raise
        except Exception as error:  # what neither SDK nor HTTP client can send or set up
            if type(error).__module__.partition(".")[0] in ("httpx2", "httpcore2"):  # while it streams
                raise self._no_answer(error) from None
            said = failures.words(f"{type(error).__name__}: {error}", self.api_key)
            raise ProviderError("MODEL_REFUSED", f"The model could not be asked: {said}") from error

    def _no_answer(self, cause: BaseException) -> ProviderError:
        said = failures.redacted(f"{type(cause).__name__}: {cause}", self.api_key)[:200]
        return ProviderError(
            "MODEL_CONNECTION", f"No complete answer from {self._origin()} ({said}).", retryable=True
        )

    def _client(self) -> "AsyncOpenAI":
        import openai

        client = openai.AsyncOpenAI(
            api_key=self.api_key or NO_KEY,
            base_url=self.base_url,
            max_retries=0,
            default_headers={"Authorization": f"Bearer {self.api_key or NO_KEY}"},
            http_client=loop.http_client(self.base_url, allow=self.allow),
        )
        if self.own or not self._is_openai():
            client.organization = client.project = None  # OPENAI_ORG_ID is nobody else's business
        return client

    def _request(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], settings: ModelSettings
    ) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": settings.model,
            "messages": [wire_message(each) for each in messages],
        }
        if tools:
            request["tools"] = [wire_tool(tool) for tool in tools]
        if settings.temperature is not None:
            request["temperature"] = settings.temperature
        if settings.max_output_tokens is not None:
            name = (
                "max_completion_tokens" if self._is_openai() else "max_tokens"
            )  # others know the old name only
            request[name] = settings.max_output_tokens
        return request

    def _is_openai(self) -> bool:
        return f".{urlsplit(self.base_url).hostname}".endswith(".api.openai.com")  # or one of its regions

    def _origin(self) -> str:
        """Scheme, host and port: a base URL may hold a password or a key."""
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


def wire_message(message: Message) -> dict[str, Any]:
    """One of Deputy's messages as chat.completions writes it."""
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": wire_id(message.tool_call_id), "content": spoken(message)}
    if message.tool_calls:
        calls = [
            {
                "id": wire_id(call.id),
                "type": "function",
                "function": {
                    "name": wire_name(call.name),
                    "arguments": storable(json.dumps(call.arguments, ensure_ascii=False)),
                },
            }
            for call in message.tool_calls
        ]
        return {"role": message.role, "content": spoken(message) or None, "tool_calls": calls}
    return {"role": message.role, "content": spoken(message)}


def wire_tool(tool: ToolSchema) -> dict[str, Any]:
    """One of Deputy's tools as chat.completions writes it."""
    function = {
        "name": wire_name(tool.name),
        "description": storable(tool.description),
        "parameters": wire_parameters(tool),
    }
    return {"type": "function", "function": function}


def _text_of(body: bytes) -> str:
    return body.decode("utf-8-sig", "replace")  # JSON is UTF-8, whatever the header says


def read_reply(body: str | dict[str, Any], tools: Sequence[ToolSchema]) -> Reply:
    """The reply in a successful answer's body, or in what it says. Raises ProviderError for none."""
    completion = _completion(body)
    choices = completion.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    truncated = choice.get("finish_reason") == "length"
    if choice.get("finish_reason") == "content_filter":
        raise ProviderError("MODEL_REFUSED", "The model's server withheld the reply (content filter).")
    content = storable(_text(message.get("content")) or _text(message.get("refusal")))
    calls = _calls(message.get("tool_calls"), names_back(tools), truncated)
    if not content.strip() and not calls:
        if truncated:
            raise ProviderError(
                "MODEL_EMPTY_REPLY", "The model used up its output limit before it said anything."
            )
        raise ProviderError(
            "MODEL_EMPTY_REPLY", "The model said nothing and asked for nothing.", retryable=True
        )
    model = completion.get("model")
    return Reply(
        content=content,
        tool_calls=calls,
        usage=_usage(completion.get("usage")),
        model=storable(model) if isinstance(model, str) else "",
        truncated=truncated,
    )


def _completion(body: str | dict[str, Any]) -> dict[str, Any]:
    try:
        completion = json.loads(body) if isinstance(body, str) else body
    except (ValueError, RecursionError):
        said = f"The model's server answered something that is not JSON: {failures.words(str(body))}"
        raise ProviderError("MODEL_UNAVAILABLE", said, retryable=True) from None
    if not isinstance(completion, dict):
        said = "The model's server answered JSON that is no completion."
        raise ProviderError("MODEL_UNAVAILABLE", said, retryable=True)
    error = completion.get("error")
    if error:  # some gateways report a failure with status 200
        status = error.get("code") if isinstance(error, dict) else None
        known = status if isinstance(status, int) and 400 <= status < 600 else 502
        raise failures.from_status(known, {}, body if isinstance(body, str) else json.dumps(body))
    return completion


def _text(content: object) -> str:
    """A message's text: a string, or the text parts of a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, dict)]
    return "".join(part for part in parts if isinstance(part, str))


def _calls(raw: object, back: dict[str, str], truncated: bool) -> tuple[ToolRequest, ...]:
    calls = raw if isinstance(raw, list) else []
    return tuple(_call(call, back, truncated) for call in calls if isinstance(call, dict))


def _call(call: dict[str, Any], back: dict[str, str], truncated: bool) -> ToolRequest:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    name = function.get("name")
    return requested(
        own_name(name, back) if isinstance(name, str) else "",
        function.get("arguments"),
        call.get("id"),
        truncated=truncated,
    )


def _usage(usage: object) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    return Usage(count(usage.get("prompt_tokens")), count(usage.get("completion_tokens")))
