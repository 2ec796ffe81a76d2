"""A remote A2A agent for tests: a small HTTP server that answers what a test tells it to."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.a2a_client import fits
from tests.integration.test_outbound import serving

CARD_PATH = "/.well-known/agent-card.json"
TEXT = {"text/plain"}


def parts(words: str) -> list[dict[str, Any]]:
    return [{"text": words}]


def task(state: str, answer: str = "", said: str = "", id: str = "task-1") -> dict[str, Any]:
    """A Task; `answer` is its artifact, `said` the message of its status."""
    status: dict[str, Any] = {"state": f"TASK_STATE_{state}"}
    if said:
        status["message"] = {"messageId": "said", "role": "ROLE_AGENT", "parts": parts(said)}
    told = {"id": id, "contextId": "context-1", "status": status}
    if answer:
        told["artifacts"] = [{"artifactId": "a", "parts": parts(answer)}]
    return told


class Peer:
    """`plays` are its answers, one after the other: tasks, whole results, or functions of the handler."""

    def __init__(self) -> None:
        self.port = 0
        self.plays: list[Any] = []
        self.calls: list[tuple[str, Any, dict[str, str]]] = []  # (method, params, headers)
        self.card: dict[str, Any] = {}
        self.answers_card: Any = None  # a function of the handler, in place of the card

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return self.address + CARD_PATH

    def says(self, *plays: Any) -> None:
        self.plays = list(plays)

    def methods(self) -> list[str]:
        return [method for method, _, _ in self.calls]

    def told(self, call: int = 0) -> str:
        """The words of a message it was sent."""
        return str(self.calls[call][1]["message"]["parts"][0]["text"])

    def usual(self, binding: str = "JSONRPC") -> dict[str, Any]:
        mode = ["text/plain"]
        skill = {"id": "s", "name": "Prices", "description": "Knows what rivals charge", "tags": ["prices"]}
        return {
            "name": "Price scout",
            "description": "Looks up prices.",
            "version": "2",
            "supportedInterfaces": [
                {"url": f"{self.address}/a2a", "protocolBinding": binding, "protocolVersion": "1.0"}
            ],
            "capabilities": {},
            "defaultInputModes": mode,
            "defaultOutputModes": mode,
            "skills": [skill],
        }

    def show_card(self, handler: BaseHTTPRequestHandler) -> None:
        if self.answers_card:
            self.answers_card(handler)
        else:
            reply(handler, self.card)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("content-length") or 0)
        body = json.loads(handler.rfile.read(length)) if length else {}
        rpc = "jsonrpc" in body
        method = body["method"] if rpc else f"{handler.command} {handler.path}"
        params = body.get("params") if rpc else body
        if method == "SendMessage" or method.endswith("message:send"):
            fits("SendMessageRequest", params)
        self.calls.append((method, params, {name.lower(): v for name, v in handler.headers.items()}))
        play = self.plays.pop(0)
        if callable(play):
            play(handler)
            return
        if "status" in play and (method == "SendMessage" or method.endswith("message:send")):
            play = {"task": play}
        reply(handler, {"jsonrpc": "2.0", "id": body.get("id"), "result": play} if rpc else play)


def reply(handler: BaseHTTPRequestHandler, said: Any, status: int = 200, **headers: str) -> None:
    content = said.encode() if isinstance(said, str) else json.dumps(said).encode()
    handler.send_response(status)
    for name, value in {"content-type": "application/json", **headers}.items():
        handler.send_header(name, value)
    handler.send_header("content-length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


@contextmanager
def running() -> Iterator[Peer]:
    peer = Peer()
    site: dict[str, Any] = {CARD_PATH: peer.show_card, "/a2a": peer.answer, "/a2a/message:send": peer.answer}
    site |= {"/a2a/tasks/task-1": peer.answer, "/a2a/tasks/task-1:cancel": peer.answer}
    with serving(site) as peer.port:
        peer.card = peer.usual()
        yield peer
