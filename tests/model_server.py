"""A small OpenAI-compatible server on a free loopback port; a test says what each request gets."""

import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass
class Answer:
    """What one request gets. `body`: JSON, or bytes as they are.

    `before`: seconds of silence first. `drip`: seconds between single bytes of the body; `drip_headers`: the
    same for the header. `cut_after`: the connection is dropped after so many bytes of the body.
    """

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    before: float = 0.0
    drip: float = 0.0
    drip_headers: float = 0.0
    cut_after: int | None = None


@dataclass
class Received:
    """A request as it came in."""

    path: str
    headers: dict[str, str]
    body: Any


def says(content: str | None, *calls: dict[str, Any], finish: str = "stop", **extra: Any) -> Answer:
    """A chat completion with this text and these calls."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = list(calls)
    completion = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny-1",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }
    return Answer({**completion, **extra})


def asks_for(name: str, arguments: Any, call_id: str = "call_x") -> dict[str, Any]:
    """One tool call of a completion; `arguments` is text as the model wrote it, or JSON."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


class ModelServer:
    """`with ModelServer(says("hi")) as server:` answers in that order; a function answers from the request.

    The last answer is given again when the script has run out. `server.received` holds the requests.
    """

    def __init__(self, *script: Answer | Callable[[Received], Answer]) -> None:
        self.script = deque(script)
        self.received: list[Received] = []
        self.connections: set[tuple[str, int]] = set()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.block_on_close = False

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def root_url(self) -> str:
        return self.base_url.removesuffix("/v1")

    def __enter__(self) -> Self:
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()

    def _next(self, request: Received) -> Answer:
        with self._lock:
            self.received.append(request)
            answer = self.script.popleft() if len(self.script) > 1 else self.script[0]
        return answer(request) if callable(answer) else answer

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else each answer waits 40 ms for an acknowledgement

            def do_POST(self) -> None:
                server.connections.add(self.client_address)
                length = int(self.headers.get("content-length", 0))
                body = json.loads(self.rfile.read(length) or b"null")
                headers = {name.lower(): value for name, value in self.headers.items()}
                with suppress(OSError):  # a client that gave up
                    self._answer(server._next(Received(self.path, headers, body)))

            def _answer(self, answer: Answer) -> None:
                server._stopping.wait(answer.before)
                raw = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                headers = {
                    "Content-Type": "application/json",
                    "Content-Length": str(len(raw)),
                    **answer.headers,
                }
                head = f"HTTP/1.1 {answer.status} Said\r\n".encode()
                head += b"".join(f"{name}: {value}\r\n".encode() for name, value in headers.items()) + b"\r\n"
                self._write(head, answer.drip_headers)
                if answer.cut_after is not None:
                    self._write(raw[: answer.cut_after], 0)
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                self._write(raw, answer.drip)

            def _write(self, data: bytes, pause: float) -> None:
                if not pause:
                    self.wfile.write(data)
                    return
                for position in range(len(data)):
                    if server._stopping.is_set():
                        self.close_connection = True
                        return
                    self.wfile.write(data[position : position + 1])
                    self.wfile.flush()
                    time.sleep(pause)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
