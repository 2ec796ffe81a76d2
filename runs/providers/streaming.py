"""A streamed chat completion, put together again: the same dict that the server would have sent whole."""

import json
from collections.abc import AsyncIterator
from typing import Any

from runs.providers.base import ProviderError, Words

DONE = "[DONE]"


async def gathered(pieces: AsyncIterator[bytes], words: Words) -> dict[str, Any]:
    """The completion in these bytes of an event stream; `words` is told its text as it comes.

    Raises ProviderError where the stream ends before the reply does.
    """
    whole = Completion()
    async for data in events(pieces):
        if data == DONE:
            whole.done = True
            break
        whole.add(_read(data), words)
        if whole.error:
            return {"error": whole.error}
    if not (whole.done or whole.finish_reason):
        raise ProviderError("MODEL_CONNECTION", "The answer ended in the middle.", retryable=True)
    return whole.as_dict()


async def events(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The data of each event. Lines end with LF or CRLF alone: JSON may hold other separators as they are."""
    rest = b""
    data: list[str] = []
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            text = line.removesuffix(b"\r").decode("utf-8", "replace")
            if text.startswith("data:"):
                data.append(text[5:].removeprefix(" "))
            elif not text and data:
                yield "\n".join(data)
                data = []
    last = rest.decode("utf-8", "replace")
    data += [last[5:].strip()] if last.startswith("data:") else []
    if data:
        yield "\n".join(data)


def _read(data: str) -> dict[str, Any]:
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError):
        said = "The model's server streamed something that is not JSON."
        raise ProviderError("MODEL_UNAVAILABLE", said, retryable=True) from None
    return chunk if isinstance(chunk, dict) else {}


class Completion:
    """What has come of a completion so far. Whatever is not as it should be counts as not there."""

    def __init__(self) -> None:
        self.done = False
        self.error: Any = None
        self.finish_reason: str | None = None
        self.text: list[str] = []
        self.refusal: list[str] = []
        self.calls: dict[int, dict[str, Any]] = {}
        self.usage: Any = None
        self.model: Any = None

    def add(self, chunk: dict[str, Any], words: Words) -> None:
        self.error = chunk.get("error") or self.error
        self.usage = chunk.get("usage") or self.usage
        self.model = chunk.get("model") or self.model
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else {}
        if not isinstance(choice, dict):
            return
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._add(delta, words)

    def _add(self, delta: dict[str, Any], words: Words) -> None:
        content = delta.get("content")
        if isinstance(content, str) and content:
            self.text.append(content)
            words(content)
        if isinstance(delta.get("refusal"), str):
            self.refusal.append(delta["refusal"])
        calls = delta.get("tool_calls")
        for position, call in enumerate(calls if isinstance(calls, list) else []):
            if isinstance(call, dict):
                self._add_call(call, position)

    def _add_call(self, call: dict[str, Any], position: int) -> None:
        number = call.get("index")
        known = self.calls.setdefault(
            number if isinstance(number, int) else position, {"id": None, "name": "", "arguments": []}
        )
        known["id"] = call.get("id") or known["id"]
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        known["name"] = function.get("name") or known["name"]
        if isinstance(function.get("arguments"), str):
            known["arguments"].append(function["arguments"])

    def as_dict(self) -> dict[str, Any]:
        calls = [
            {"id": call["id"], "function": {"name": call["name"], "arguments": "".join(call["arguments"])}}
            for _, call in sorted(self.calls.items())
        ]
        message = {"content": "".join(self.text), "refusal": "".join(self.refusal), "tool_calls": calls}
        choice = {"message": message, "finish_reason": self.finish_reason}
        return {"choices": [choice], "usage": self.usage, "model": self.model}
