"""A model server that takes its time: OpenAI-compatible, thousands of requests at once, one thread.

    python -m benchmarks.capacity_model PORT SECONDS

Answers each chat completion after SECONDS; the models `quick` and `writing` at once, and those whose
names begin with `hanging` never. `writing` calls `send_email` first; `talking` streams two pieces, after one
second and two, each with the moment it was sent (the monotonic clock). A goal that contains `escalate` is
answered with a call of `escalate_to_group` by who may make it and has not yet; everything else with a text.

`GET /stats` tells how many requests there were, how many at once at most, how long after one reply's last
byte the next request of the same case (`case-N` in its messages) came, and when (the monotonic clock) who
asked for a case went away; `GET /asked/case-N` when its last request came; `/reset` begins anew.
"""

import asyncio
import json
import re
import sys
import time
from typing import Any

CASE = re.compile(rb"case-\d+")
ANSWER = "The second supplier delivers within two days; it costs eleven per cent more."
SECONDS = {"quick": 0.0, "writing": 0.0, "talking": 1.0}
FOR_EVER = 3600.0  # seconds
BODY_MOST = 8_000_000  # bytes


class Stats:
    def __init__(self) -> None:
        self.requests = self.now = self.peak = 0
        self.replied: dict[bytes, float] = {}  # when a case's last reply left
        self.gaps_ms: list[float] = []
        self.asked: dict[str, float] = {}  # when a case's last request came
        self.closed: dict[str, float] = {}  # when who asked for this case went away

    def begins(self, case: bytes) -> None:
        self.requests += 1
        self.now += 1
        self.asked[case.decode()] = time.monotonic()
        self.peak = max(self.peak, self.now)
        if case in self.replied:
            self.gaps_ms.append((time.monotonic() - self.replied.pop(case)) * 1000)

    def ends(self, case: bytes) -> None:
        self.now -= 1
        self.replied[case] = time.monotonic()

    def told(self) -> dict[str, Any]:
        gaps = sorted(self.gaps_ms)
        at = (
            {p: round(gaps[min(len(gaps) - 1, int(len(gaps) * p / 100))], 1) for p in (50, 95)}
            if gaps
            else {}
        )
        told = {"requests": self.requests, "peak": self.peak, "now": self.now, "gap_ms": at}
        return {**told, "closed": self.closed}


class Server:
    def __init__(self, seconds: float) -> None:
        self.seconds, self.stats = seconds, Stats()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
                body = await reader.readexactly(min(int(length[1]), BODY_MOST)) if length else b""
                await self.answer(head.split(b" ", 2)[1], body, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def answer(
        self, path: bytes, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if path == b"/reset":
            self.stats = Stats()
            return await send(writer, {})
        if path == b"/stats":
            return await send(writer, self.stats.told())
        if path.startswith(b"/asked/"):
            return await send(writer, self.stats.asked.get(path.decode().rpartition("/")[2]))
        case, asked = (CASE.search(body) or [b""])[0], json.loads(body)
        stats = self.stats
        stats.begins(case)
        try:
            if not await self.silent(reader, self.seconds_of(asked["model"])):
                stats.closed[case.decode()] = time.monotonic()
                raise ConnectionResetError
            await reply(asked, writer)
        finally:
            stats.ends(case)

    def seconds_of(self, model: str) -> float:
        return FOR_EVER if model.startswith("hanging") else SECONDS.get(model, self.seconds)

    async def silent(self, reader: asyncio.StreamReader, seconds: float) -> bool:
        """Wait so long; whether who asked is still there."""
        if not seconds:
            return True
        try:
            await asyncio.wait_for(reader.read(1), seconds)
        except TimeoutError:
            return True
        return False


async def reply(asked: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    if asked["model"] == "talking" and asked.get("stream"):
        await talk(writer)
    message = reply_to(asked)
    await (stream(writer, message) if asked.get("stream") else send(writer, completion(message)))


async def talk(writer: asyncio.StreamWriter) -> None:
    """Words one after the other, without the length of the whole."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    about = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "talking"}
    for piece in ("first", "second"):
        delta = {"role": "assistant", "content": f"{piece} {time.monotonic()} "}
        chunk = {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        writer.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await writer.drain()
        await asyncio.sleep(1)
    chunk = {**about, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    writer.write(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())
    await writer.drain()
    raise ConnectionResetError  # the connection is the end of it


def reply_to(asked: dict[str, Any]) -> dict[str, Any]:
    """A call of escalate_to_group, or the answer."""
    may = any(tool["function"]["name"] == "escalate_to_group" for tool in asked.get("tools") or ())
    said = [message for message in asked["messages"] if message["role"] in ("user", "tool")]
    goal = next((str(one["content"]) for one in reversed(said) if one["role"] == "user"), "")
    if may and "escalate" in goal and said[-1]["role"] != "tool":
        arguments = json.dumps({"goal": goal.replace("escalate", "compare")})
        call = {"name": "escalate_to_group", "arguments": arguments}
        return {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": call}]}
    if asked["model"] == "writing" and said[-1]["role"] != "tool":
        letter = json.dumps({"to": ["everybody@example.com"], "subject": goal, "body": ANSWER})
        call = {"name": "send_email", "arguments": letter}
        return {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": call}]}
    return {"content": ANSWER}


def completion(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    about = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "slow"}
    return {**about, "choices": [choice], "usage": usage, **more}


async def send(writer: asyncio.StreamWriter, value: Any) -> None:
    await respond(writer, "application/json", json.dumps(value))


async def stream(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    """The same as chunks of server-sent events."""
    told = completion(message)
    choice = told["choices"][0]
    calls = [{"index": n, **call} for n, call in enumerate(message.get("tool_calls") or ())]
    delta = {"role": "assistant", "content": message["content"], **({"tool_calls": calls} if calls else {})}
    about = {key: told[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    chunks: list[dict[str, Any]] = [
        {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**about, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
        {**about, "choices": [], "usage": told["usage"]},
    ]
    events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    await respond(writer, "text/event-stream", events)


async def respond(writer: asyncio.StreamWriter, content_type: str, text: str) -> None:
    body = text.encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


async def main() -> None:
    port, seconds = int(sys.argv[1]), float(sys.argv[2])
    server = await asyncio.start_server(Server(seconds).serve, "127.0.0.1", port, backlog=4096, limit=2**20)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
