"""Questions and answers of outbound calls as JSON, between the worker that asks and the carrier."""

import dataclasses
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from runs.providers.base import Message, ProviderError, Reply, ToolRequest, ToolSchema, Usage
from runs.tools.base import Answer, Done, Failed, ToolContext, Unknown, WaitFor

UNENCODABLE = re.compile("[\ud800-\udfff]")
LOST = {"lost": True}  # nobody knows what became of it: its carrier has died, or gave it up
LATE = {"late": True}  # its run's time was over before the answer came
HELD_BACK = {"held_back": True}  # policy did not let it pass any more; it has not left
NO_ANSWERS = (LOST, LATE, HELD_BACK)


def text(value: Any) -> str:
    """JSON that PostgreSQL takes as text, whatever somebody else's words hold."""
    said = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if said.isascii() or not UNENCODABLE.search(said):
        return said
    return json.dumps(value, separators=(",", ":"))


def read(told: str) -> Any:
    """What `text` has written."""
    return json.loads(told)


# What is asked


def model_request(
    messages: Sequence[Message], tools: Sequence[ToolSchema], facts: dict[str, Any] | None
) -> str:
    """`facts` for a provider that decides by them; None where they are not read."""
    return text(
        {
            "messages": [_message(message) for message in messages],
            "tools": [[tool.name, tool.description, tool.parameters] for tool in tools],
            "facts": facts or {},
        }
    )


def read_model_request(
    request: str,
) -> tuple[tuple[Message, ...], tuple[ToolSchema, ...], dict[str, Any]]:
    """Messages, tools and facts, as they went in."""
    asked = json.loads(request)
    return (
        tuple(_message_of(message) for message in asked["messages"]),
        tuple(ToolSchema(*tool) for tool in asked["tools"]),
        asked["facts"],
    )


def _message(message: Message) -> list[Any]:
    calls = [_call(call) for call in message.tool_calls]
    return [message.role, message.content, message.name, calls, message.tool_call_id]


def _message_of(told: list[Any]) -> Message:
    role, content, name, calls, tool_call_id = told
    return Message(role, content, name, tuple(ToolRequest(*call) for call in calls), tool_call_id)


def _call(call: ToolRequest) -> list[Any]:
    return [call.name, call.arguments, call.id, call.problem]


def tool_request(arguments: dict[str, Any], context: ToolContext) -> str:
    told = {field.name: getattr(context, field.name) for field in dataclasses.fields(context)}
    if context.filled is None:
        del told["filled"]  # a carrier of before does not know it
    return text({"arguments": arguments, "context": told | {"view": None}})


def read_tool_request(request: str) -> tuple[dict[str, Any], ToolContext]:
    """The arguments and who calls; such a tool sees no working memory of the caller's."""
    asked = json.loads(request)
    return asked["arguments"], ToolContext(**asked["context"])


# What comes back


def reply(told: Reply | ProviderError) -> dict[str, Any]:
    if isinstance(told, ProviderError):
        return {"failed": [told.code, told.message, told.retryable, told.retry_after]}
    return {
        "content": told.content,
        "tool_calls": [_call(call) for call in told.tool_calls],
        "usage": [told.usage.input_tokens, told.usage.output_tokens],
        "model": told.model,
        "truncated": told.truncated,
    }


def read_model(answer: dict[str, Any]) -> Reply | ProviderError:
    if "failed" in answer:
        code, message, retryable, retry_after = answer["failed"]
        return ProviderError(code, message, retryable=retryable, retry_after=retry_after)
    return Reply(
        answer["content"],
        tuple(ToolRequest(*call) for call in answer["tool_calls"]),
        Usage(*answer["usage"]),
        answer["model"],
        answer["truncated"],
    )


def result(told: Answer) -> dict[str, Any]:
    if isinstance(told, Done):
        return {"done": told.result, "events": [list(event) for event in told.events]}
    if isinstance(told, Failed):
        return {"failed": [told.code, told.message, told.details]}
    if isinstance(told, Unknown):
        return {"unknown": told.message}
    assert isinstance(told, WaitFor)  # noqa: S101 - only a tool inside the database spawns
    expires = told.expires_in.total_seconds() if told.expires_in else None
    more: list[Any] = [list(told.choices), told.key, told.repeats, told.link]
    more += [told.form] if told.form else []
    task = {"task": told.task} if told.task else {}
    return {"wait_for": [told.kind, told.question, expires, *more], **task}


def read_tool(answer: dict[str, Any]) -> Answer:
    if "failed" in answer:
        return Failed(*answer["failed"])
    if "unknown" in answer:
        return Unknown(answer["unknown"])
    if "wait_for" in answer:
        kind, question, expires, *more = answer["wait_for"]
        choices, key, repeats, link, *form = more or ((), "", False, "")  # a carrier of before says no more
        expires_in = None if expires is None else timedelta(seconds=expires)
        waits = WaitFor(kind, question, expires_in, tuple(choices), key, repeats, link, *form)
        return replace(waits, task=answer.get("task"))
    return Done(answer["done"], tuple((type, payload) for type, payload in answer["events"]))
