"""Calls to models on an event loop, where a deadline holds; for who has no loop, one in the background.

A socket's timeout counts from the last byte, so a server that drips a byte a second outlives any of
them; so do name lookups and slow handshakes. Cancelling a task ends all of these at once and closes its
connection. Connections belong to the loop they were made on and must not cross a fork: a child process
starts over with a loop and clients of its own. A carrier awaits its calls on the loop it runs.
"""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from importlib import import_module
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from runs.providers import failures, guarded
from runs.providers.base import ProviderError

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

MAX_REPLY_BYTES = 2 * 1024 * 1024
IDLE_CONNECTIONS = 100  # kept open for the next calls, to one server
EVENT_STREAM = "text/event-stream"
GRACE = 0.5  # seconds in which a cancelled call may still close its connection


class _Background:
    """The loop and its thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="deputy-models", daemon=True).start()


_lock = threading.RLock()
_background: _Background | None = None
_clients: "dict[tuple[asyncio.AbstractEventLoop, Hashable], Any]" = {}  # a client belongs to its loop
_inherited: list[Any] = []


def call(make: Callable[[], Awaitable[T]], timeout: float) -> T:
    """The result of `make()`, run on the background loop. Raises TimeoutError after `timeout` seconds.

    An exception in the waiting thread (a worker told to stop) cancels the call as well.
    """

    async def within() -> T:
        async with asyncio.timeout(timeout):
            return await make()

    future = asyncio.run_coroutine_threadsafe(within(), _running().loop)
    try:
        return future.result(timeout + GRACE)
    except BaseException:
        future.cancel()
        raise


def reply(make: Callable[[], Awaitable[T]], timeout: float) -> T:
    """The same for a model. Raises ProviderError where its time was over."""
    try:
        return call(make, timeout)
    except TimeoutError:
        raise failures.late(timeout) from None


def cancelled() -> bool:
    """Whether somebody wants the running task to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def loaded(module: str) -> None:
    """Import a large package without holding up the loop."""
    if module not in sys.modules:
        await asyncio.to_thread(import_module, module)


def shared(key: Hashable, make: Callable[[], T]) -> T:
    """The running loop's client for `key`, made at the first use. Only to be used in a coroutine."""
    pair = (asyncio.get_running_loop(), key)
    with _lock:
        if pair not in _clients:
            _clients[pair] = make()
        client: T = _clients[pair]
        return client


def http_client(
    base_url: str, max_bytes: int = MAX_REPLY_BYTES, allow: frozenset[str] | None = None
) -> "httpx2.AsyncClient":
    """A client that follows no redirects (prompt and key stay where they are sent); bodies are bounded.

    With `allow` it reaches public addresses and these only.
    """
    import httpx2

    class Pieces(httpx2.AsyncByteStream):
        """An answer's body, decompressed, which ends with an error at `max_bytes`."""

        def __init__(self, response: httpx2.Response) -> None:
            self.response = response

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for piece in self.response.aiter_bytes():
                size += len(piece)
                if size > max_bytes:
                    raise ProviderError(
                        "MODEL_REFUSED", f"The model's reply is larger than {max_bytes} bytes."
                    )
                yield piece

        async def aclose(self) -> None:
            await self.response.aclose()

    class Bounded(httpx2.AsyncBaseTransport):
        """Reads every body itself, decompressed, and stops at `max_bytes`, errors included; events of a
        stream are handed on as they come.
        """

        def __init__(self) -> None:
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=IDLE_CONNECTIONS)
            if allow is None:
                self.inner = httpx2.AsyncHTTPTransport(proxy=_proxy(base_url), limits=limits)
            else:
                self.inner = guarded.transport(allow, IDLE_CONNECTIONS)

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            response = await self.inner.handle_async_request(request)
            kept = [
                (name, value)
                for name, value in response.headers.items()
                if name not in {"content-encoding", "content-length", "transfer-encoding"}
            ]
            pieces = Pieces(response)
            if response.status_code == 200 and EVENT_STREAM in response.headers.get("content-type", ""):
                return httpx2.Response(200, headers=kept, stream=pieces, request=request)
            try:
                body = b"".join([piece async for piece in pieces])
            finally:
                await response.aclose()
            return httpx2.Response(response.status_code, headers=kept, content=body, request=request)

        async def aclose(self) -> None:
            await self.inner.aclose()

    return httpx2.AsyncClient(transport=Bounded(), timeout=None, follow_redirects=False, trust_env=False)


def _running() -> _Background:
    global _background
    with _lock:
        if _background is None:
            _background = _Background()
        return _background


def _start_over() -> None:
    """In a forked child the loop's thread is gone, the lock may be held, the sockets are the parent's."""
    global _lock, _background, _clients
    _lock = threading.RLock()
    _inherited.append((_background, _clients))  # kept: collecting it would close what the parent still uses
    _background, _clients = None, {}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_over)


def _proxy(base_url: str) -> str | None:
    """The environment's proxy for `base_url`; a server on this machine is always asked directly."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    if _loopback(host) or proxy_bypass(host):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def _loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
