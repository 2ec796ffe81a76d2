"""The ASGI application: Django, with a few threads for what is synchronous, lent only while they are used.

Django makes a thread for each request and keeps it until the response has ended; the connection to the
database dies with it. Here a process has WEB_THREADS threads, each with a connection that it keeps. A
request gets one when it first needs one, the same for all it does, and gives it back when it ends, or
waits: a stream, or a long poll, holds neither thread nor connection. Requests beyond that wait their turn.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

from asgiref.sync import ThreadSensitiveContext
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler

from common import current

ALIVE = "/healthz"


class Threads:
    """A process's threads. Used by its event loop alone, so nothing is locked."""

    def __init__(self, most: int) -> None:
        self.most, self.made = most, 0
        self.free: list[ThreadPoolExecutor] = []
        self.waiting: deque[Lent] = deque()

    def lend(self, to: "Lent") -> None:
        """Give a thread to the request now, or as soon as one is free."""
        if self.free:
            to.begin(self.free.pop())
        elif self.made < self.most:
            self.made += 1
            to.begin(ThreadPoolExecutor(1, "deputy-web"))
        else:
            self.waiting.append(to)

    def take_back(self, thread: ThreadPoolExecutor) -> None:
        """What the last request still does in it comes before what the next one asks."""
        if self.waiting:
            self.waiting.popleft().begin(thread)
        else:
            self.free.append(thread)


class Lent(Executor):
    """What one request does in a thread: at once where it has one, in order as soon as it gets one."""

    def __init__(self, threads: Threads) -> None:
        self.threads = threads
        self.thread: ThreadPoolExecutor | None = None
        self.queued: list[Callable[[], None]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        done: Future[Any] = Future()
        if self.thread is not None:
            self.thread.submit(_carry, done, fn, args, kwargs)
            return done
        self.queued.append(lambda: _carry(done, fn, args, kwargs))
        if len(self.queued) == 1:
            self.threads.lend(self)
        return done

    def begin(self, thread: ThreadPoolExecutor) -> None:
        self.thread, queued, self.queued = thread, self.queued, []
        for carry in queued:
            thread.submit(carry)

    def let_go(self) -> None:
        """Give the thread back; the next thing to do gets one again."""
        if self.queued:
            self.threads.waiting.remove(self)
            self.queued = []
        if self.thread is not None:
            thread, self.thread = self.thread, None
            self.threads.take_back(thread)


def _carry(done: "Future[Any]", fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
    if not done.set_running_or_notify_cancel():
        return
    try:
        done.set_result(fn(*args, **kwargs))
    except BaseException as error:
        done.set_exception(error)


_lent: ContextVar[Lent] = ContextVar("deputy_lent")


def let_go() -> None:
    """For a request that is about to wait: give its thread back. Outside of Application, nothing."""
    lent = _lent.get(None)
    if lent is not None:
        lent.let_go()


async def alive(scope: Any, send: Any) -> None:
    """Whether the process answers: said by its event loop, whatever its threads wait for."""
    known = scope["method"] in ("GET", "HEAD")
    body = b'{"status": "ok"}' if known else b""
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if not known:
        headers.append((b"allow", b"GET, HEAD"))
    await send({"type": "http.response.start", "status": 200 if known else 405, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


class Application(ASGIHandler):
    """What web processes serve."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = Threads(settings.WEB_THREADS)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise ValueError(f"Deputy speaks HTTP, not {scope['type']}.")
        if scope["path"] == ALIVE:
            await alive(scope, send)
            return
        lent = Lent(self.threads)
        token = _lent.set(lent)
        try:
            async with ThreadSensitiveContext(executor=lent):
                await self.handle(scope, receive, send)
        finally:
            _lent.reset(token)
            lent.let_go()

    def create_request(self, scope: Any, body_file: Any) -> Any:
        request, refused = super().create_request(scope, body_file)
        current.answering(request)
        return request, refused
