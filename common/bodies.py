"""How large a request's body may be, counted as it arrives: before anybody is asked who sends it.

Django reads a whole body before it asks for a token, and a chunked one announces no size. Here no more than
the limit is ever taken from the connection.
"""

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings

from common.api.errors import CODES, CONTENT_TYPE
from common.api.errors import body as problem

App = Callable[[Any, Any, Any], Awaitable[None]]

# Addresses of pages that take files: people's own, and the admin's imports.
UPLOADS = re.compile(r"/ask/|/talk/[^/]+/send/|.*/admin/.*/import/")
GONE = {"type": "http.disconnect"}


def limited(app: App) -> App:
    """`app`, which never sees more of a body than `limit` allows: 413, and the connection ends."""

    async def within(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        body = Body(limit(scope["path"]), scope["path"], receive, send)
        if body.announced(scope["headers"]) > body.most:
            await body.refuse()
        else:
            await app(scope, body.receive, body.send)

    return within


def limit(path: str) -> int:
    """Bytes that a body sent to this address may have."""
    return int(settings.UPLOAD_BYTES if UPLOADS.fullmatch(path) else settings.BODY_BYTES)


class Body:
    """One request's body, and the answer to it."""

    def __init__(self, most: int, path: str, receive: Any, send: Any) -> None:
        self.most, self.path = most, path
        self._receive, self._send = receive, send
        self.taken = 0
        self.answering = self.refused = False

    @staticmethod
    def announced(headers: Any) -> int:
        """The bytes that Content-Length speaks of; 0 where it is missing or makes no sense."""
        length = dict(headers).get(b"content-length", b"")
        return int(length[:18]) if length.isdigit() else 0

    async def receive(self) -> Any:
        """The next piece; as if the client had gone once there is too much of it."""
        if self.refused:
            return GONE
        message = await self._receive()
        self.taken += len(message.get("body", b""))
        if self.taken <= self.most:
            return message
        await self.refuse()
        return GONE

    async def send(self, message: Any) -> None:
        """The application's answer, which nobody hears after a refusal."""
        if not self.refused:
            self.answering = True
            await self._send(message)

    async def refuse(self) -> None:
        self.refused = True
        if self.answering:
            return
        kind, words = self._words()
        headers = [
            (b"content-type", kind.encode()),
            (b"content-length", b"%d" % len(words)),
            (b"connection", b"close"),  # what is still to come is not read
        ]
        await self._send({"type": "http.response.start", "status": 413, "headers": headers})
        await self._send({"type": "http.response.body", "body": words})

    def _words(self) -> tuple[str, bytes]:
        words = too_large(self.most)
        if any(door in self.path for door in ("/api/", "/mcp", "/a2a/")):
            return CONTENT_TYPE, json.dumps(problem(413, CODES[413], words)).encode()
        return "text/plain; charset=utf-8", words.encode()


def too_large(most: int) -> str:
    return f"A body has at most {most} bytes here."
