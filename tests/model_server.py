"""A small OpenAI-compatible server on a free loopback port; a test says what each request gets."""

import json
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass
class Answer:
    """What one request gets. `body`: JSON, or bytes as they are.

    `stream`: the text in pieces, `pause` seconds apart, as a stream of events where it asks for one.
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
    stream: tuple[str, ...] = ()
    pause: float = 0.0


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


def streams(*pieces: str, pause: float = 0.0, before: float = 0.0) -> Answer:
    """A chat completion whose text comes in these pieces, or whole where nobody asked for a stream."""
    whole = says("".join(pieces))
    return Answer(whole.body, stream=pieces, pause=pause, before=before)


def slowly(answer: Answer, seconds: float) -> Answer:
    """The same after so many seconds of silence."""
    return replace(answer, before=seconds)


def asks_for(name: str, arguments: Any, call_id: str = "call_x") -> dict[str, Any]:
    """One tool call of a completion; `arguments` is text as the model wrote it, or JSON."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


class Server(ThreadingHTTPServer):
    request_queue_size = 1024  # many may come at once


class ModelServer:
    """`with ModelServer(says("hi")) as server:` answers in that order; a function answers from the request.

    The last answer is given again when the script has run out. `server.received` holds the requests.
    """

    def __init__(self, *script: Answer | Callable[[Received], Answer]) -> None:
        self.script = deque(script)
        self.received: list[Received] = []
        self.connections: set[tuple[str, int]] = set()
        self.closed: list[float] = []  # when who asked went away while the server was silent
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self.at_once = self.most_at_once = 0
        self._server = Server(("127.0.0.1", 0), self._handler())
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

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            yield
        finally:
            with self._lock:
                self.at_once -= 1

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
                with suppress(OSError), server._counted():  # a client that gave up
                    answer = server._next(Received(self.path, headers, body))
                    if answer.stream and body.get("stream"):
                        self._stream(answer)
                    else:
                        self._answer(answer)

            def _stream(self, answer: Answer) -> None:
                self._silence(answer.before)
                self.wfile.write(b"HTTP/1.1 200 Said\r\nContent-Type: text/event-stream\r\n")
                self.wfile.write(b"Connection: close\r\n\r\n")
                self.close_connection = True
                for piece in answer.stream:
                    self._event({"choices": [{"index": 0, "delta": {"content": piece}}], "model": "tiny-1"})
                    server._stopping.wait(answer.pause)
                self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
                self._event({"choices": [], "usage": answer.body["usage"]})
                self.wfile.write(b"data: [DONE]\n\n")

            def _event(self, data: Any) -> None:
                self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
                self.wfile.flush()

            def _silence(self, seconds: float) -> None:
                """Say nothing for so long, or until whoever asked has gone."""
                end = time.monotonic() + seconds
                while (left := end - time.monotonic()) > 0 and not server._stopping.is_set():
                    readable, _, _ = select.select([self.connection], [], [], min(left, 0.5))
                    if readable and not self.connection.recv(1, socket.MSG_PEEK):
                        server.closed.append(time.monotonic())
                        raise ConnectionError

            def _answer(self, answer: Answer) -> None:
                self._silence(answer.before)
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
