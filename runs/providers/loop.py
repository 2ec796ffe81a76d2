"""One background event loop a process, on which every call to a model has a deadline that holds.

A socket's timeout counts from the last byte, so a server that drips a byte a second outlives any of
them; so do name lookups and slow handshakes. Cancelling a task ends all of these at once and closes its
connection. Connections belong to the loop they were made on and must not cross a fork: a child process
starts over with a loop and clients of its own.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Hashable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from runs.providers.base import ProviderError

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

MAX_REPLY_BYTES = 2 * 1024 * 1024
GRACE = 0.5  # seconds in which a cancelled call may still close its connection


class _Background:
    """The loop, its thread, and the clients made on it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.clients: dict[Hashable, Any] = {}
        threading.Thread(target=self.loop.run_forever, name="deputy-models", daemon=True).start()


_lock = threading.RLock()
_background: _Background | None = None
_inherited: list[_Background | None] = []


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


def shared(key: Hashable, make: Callable[[], T]) -> T:
    """This process's client for `key`, made at the first use. Only to be used inside `call`."""
    with _lock:
        clients = _running().clients
        if key not in clients:
            clients[key] = make()
        client: T = clients[key]
        return client


def http_client(base_url: str, max_bytes: int = MAX_REPLY_BYTES) -> "httpx2.AsyncClient":
    """A client that follows no redirects (prompt and key stay where they are sent); bodies are bounded."""
    import httpx2

    class Bounded(httpx2.AsyncBaseTransport):
        """Reads every body itself, decompressed, and stops at `max_bytes`: errors included."""

        def __init__(self) -> None:
            self.inner = httpx2.AsyncHTTPTransport(proxy=_proxy(base_url))

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            response = await self.inner.handle_async_request(request)
            body = bytearray()
            try:
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > max_bytes:
                        raise ProviderError(
                            "MODEL_REFUSED", f"The model's reply is larger than {max_bytes} bytes."
                        )
            finally:
                await response.aclose()
            kept = [
                (name, value)
                for name, value in response.headers.items()
                if name not in {"content-encoding", "content-length", "transfer-encoding"}
            ]
            return httpx2.Response(response.status_code, headers=kept, content=bytes(body), request=request)

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
    global _lock, _background
    _lock = threading.RLock()
    _inherited.append(_background)  # kept: collecting it would close what the parent still uses
    _background = None


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
