"""HTTP for the MCP SDK, through the guard that every outbound request of Deputy's takes."""

import contextlib
import json
from collections.abc import Collection, Mapping
from typing import Any

import anyio
import httpx2

from common.outbound import Fetched, OutboundError, fetch
from runs.tools import leaving
from runs.tools.base import ToolError

CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"  # in _meta
TASKS = "io.modelcontextprotocol/tasks"  # the extension
OF_CALLS = frozenset({"tools/call", "tasks/update", "resources/read"})  # what says something of a call
MAX_ANSWER = 2_000_000  # bytes of one answer, unpacked
OURS = frozenset({"accept-encoding", "connection", "content-length", "host", "transfer-encoding"})


class Guarded(httpx2.AsyncBaseTransport):
    """One request to public addresses, or those in `allow`, within `timeout` seconds; no redirects.

    The SDK decides about redirects, and each comes through here. `failure` is why there was no answer,
    `status` the last one: the SDK's own errors do not say. `of_all` are headers of every request, `of_call`
    those of `tools/call` alone, which the SDK would make only after listing all tools. Connections older than
    2026-07-28 name no method in a header, and have none of these. `asked` is the JSON-RPC id of the last
    request, where `of_all` traces it. `may_have_acted`: a call of a tool has left and was not refused by 401.
    `held`: policy did not let it leave. `said`: `result` or `error`, as a server answered it. `unanswered`:
    it was not refused, and nothing was said of it. `tasks`: calls may become tasks.
    `about_task`: the last request was about one.
    """

    def __init__(
        self,
        timeout: float,
        allow: Collection[str],
        of_call: Mapping[str, str],
        of_all: Mapping[str, str],
        tasks: bool = False,
    ) -> None:
        self.timeout, self.allow, self.of_call, self.of_all = timeout, allow, of_call, of_all
        self.tasks, self.about_task = tasks, False
        self.asked: Any = None
        self.failure: OutboundError | None = None
        self.status = 0
        self.may_have_acted = self.unanswered = False
        self.held: ToolError | None = None
        self.said = ""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":  # a stream of the server's own messages, which nobody here reads
            return httpx2.Response(405, request=request)
        request.headers.update(self.of_all)
        if request.headers.get("mcp-method") == "tools/call":
            request.headers.update(self.of_call)
        content = await request.aread()
        method = request.headers.get("mcp-method", "")
        self.about_task = method.startswith("tasks/")
        if method == "tools/call" or self.about_task:
            request, content = _declaring(request, content, self.tasks or self.about_task)
        message = json.loads(content) if content else {}  # the end of a session has no body
        if self.of_all:
            self.asked = message.get("id", self.asked)
        calls = message.get("method") == "tools/call"
        looks = message.get("method") in OF_CALLS
        self.may_have_acted |= calls
        try:
            answer = await anyio.to_thread.run_sync(
                self._fetch, request, content, looks, abandon_on_cancel=True
            )
        except OutboundError as error:
            self.failure = error
            raise httpx2.ConnectError(error.message, request=request) from None
        except ToolError as held:
            self.held = held
            raise httpx2.ConnectError(held.message, request=request) from None
        self.status = answer.status
        if calls and answer.status == 401:
            self.may_have_acted = False
        if calls:
            self.said = _said(message.get("id"), answer.text)
            self.unanswered = not self.said and not 300 <= answer.status < 500
        return httpx2.Response(
            answer.status, headers=_told(answer), content=answer.text.encode(), request=request
        )

    def _fetch(self, request: httpx2.Request, content: bytes, looks: bool) -> Fetched:
        """Raises OutboundError; ToolError where it `looks` and policy does not let it leave any more."""
        answer = fetch(
            str(request.url),
            method=request.method,
            headers={name: value for name, value in request.headers.items() if name not in OURS},
            content=content,
            timeout=self.timeout,
            max_bytes=MAX_ANSWER,
            max_redirects=0,
            allow_private=self.allow,
            before=leaving.once_more if looks else None,
        )
        if answer.truncated:
            raise OutboundError("TOO_LARGE", f"the answer is larger than {MAX_ANSWER} bytes")
        return answer


def _said(asked: Any, text: str) -> str:
    """`result` or `error`: the response of JSON-RPC to what was `asked`, alone or in a stream of events; or
    nothing.
    """
    lines = (line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:"))
    for each in (text, *lines):
        with contextlib.suppress(ValueError):
            said = json.loads(each)
            if not isinstance(said, dict) or (type(said.get("id")), said.get("id")) != (type(asked), asked):
                continue
            if isinstance(said.get("result"), dict):
                return "result"
            if _is_error(said.get("error")):
                return "error"
    return ""


def _is_error(said: Any) -> bool:
    return (
        isinstance(said, dict) and isinstance(said.get("code"), int) and isinstance(said.get("message"), str)
    )


def _declaring(request: httpx2.Request, content: bytes, tasks: bool) -> tuple[httpx2.Request, bytes]:
    """The same request, saying that forms can be filled in, and whether the call may become a task. The SDK
    would say so of addresses to be opened, too, and to servers of older versions, which then ask in the
    middle of their answer.
    """
    said = json.loads(content)
    declared = said["params"]["_meta"].setdefault(CAPABILITIES, {})
    declared["elicitation"] = {"form": {}}
    if tasks:
        declared.setdefault("extensions", {})[TASKS] = {}
    content = json.dumps(said).encode()
    headers = [pair for pair in request.headers.multi_items() if pair[0] != "content-length"]
    return httpx2.Request(request.method, request.url, headers=headers, content=content), content


def _told(answer: Fetched) -> dict[str, str]:
    """The answer's headers; its text is UTF-8 by now."""
    kind = answer.headers.get("content-type", "").partition(";")[0].strip()
    return {**answer.headers, "content-type": kind}
