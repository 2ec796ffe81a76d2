"""Connections to a name that is resolved once, whose addresses are judged, and that end with a deadline.

The connection goes to an address that was judged: there is no second lookup that could answer
differently. TLS still proves the name.
"""

import functools
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any

import httpcore
import httpx

from common.outbound.addresses import is_public
from common.outbound.errors import OutboundError

Address = tuple[socket.AddressFamily, Any]  # a family and its socket address


class Deadline:
    """A moment that every wait of one fetch looks at. `before` is called once, before anything is said."""

    def __init__(self, seconds: float, before: Callable[[], None] | None = None) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._before = before
        self.spoken = False  # whether anything of a request has gone out by it

    def speaks(self) -> None:
        """Something of a request goes out now. Raises what `before` raises."""
        if not self.spoken and self._before is not None:
            self._before()
        self.spoken = True

    def left(self) -> float:
        """Seconds, more than 0. Raises OutboundError when there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise self.passed()
        return left

    def passed(self) -> OutboundError:
        return OutboundError("TIMEOUT", f"no complete answer within {self._seconds:g} seconds")


def judged(host: str, port: int, deadline: Deadline, allow_private: Collection[str]) -> list[Address]:
    """The addresses of a host, each of them allowed. Raises OutboundError if one is not."""
    addresses = _resolved(host, port, deadline)
    allowed = {entry.lower() for entry in allow_private}
    if _joined(host, port) in allowed:
        return addresses
    for _, (ip, *_) in addresses:
        if not (is_public(ip) or ip in allowed or _joined(ip, port) in allowed):
            raise OutboundError("ADDRESS_REFUSED", f"{host} is at an address that is not public")
    return addresses


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _resolved(host: str, port: int, deadline: Deadline) -> list[Address]:
    """Ask the system's resolver, which knows no time-out, in a thread that may be left behind."""
    outcome: SimpleQueue[list[Any] | Exception] = SimpleQueue()

    def look_up() -> None:
        try:
            outcome.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as error:  # gaierror, or UnicodeError for what can be no name
            outcome.put(error)

    threading.Thread(target=look_up, daemon=True).start()
    try:
        found = outcome.get(timeout=deadline.left())
    except Empty:
        raise deadline.passed() from None
    if isinstance(found, Exception) or not found:
        raise OutboundError("CONNECTION", f"the name {host} cannot be resolved")
    return [(family, address) for family, _, _, _, address in found]


class PinnedBackend(httpcore.NetworkBackend):
    """Connects to the given addresses and to nothing else, whatever host it is asked for."""

    def __init__(self, addresses: list[Address], deadline: Deadline) -> None:
        self._addresses = addresses
        self._deadline = deadline

    def connect_tcp(self, *_: Any, **__: Any) -> httpcore.NetworkStream:
        failure = "no address"
        for tried, address in enumerate(self._addresses):
            share = self._deadline.left() / (len(self._addresses) - tried)
            try:
                return _Stream(_connected(address, share), self._deadline)
            except OSError as error:
                failure = error.strerror or str(error)
        self._deadline.left()
        raise httpcore.ConnectError(failure)


def _connected(address: Address, timeout: float) -> socket.socket:
    family, where = address
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout)
        sock.connect(where)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        sock.close()
        raise
    return sock


class _Stream(httpcore.NetworkStream):
    """A socket whose every operation ends with the deadline; httpcore's own time-outs are not used."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock = sock
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with self._bounded(httpcore.ReadError):
            return self._sock.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._deadline.speaks()
        while buffer:
            with self._bounded(httpcore.WriteError):
                buffer = buffer[self._sock.send(buffer) :]

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        with self._bounded(httpcore.ConnectError):
            sock = ssl_context.wrap_socket(self._sock, server_hostname=server_hostname)
        return _Stream(sock, self._deadline)

    def close(self) -> None:
        self._sock.close()

    def get_extra_info(self, info: str) -> Any:
        return self._sock if info == "ssl_object" and isinstance(self._sock, ssl.SSLSocket) else None

    @contextmanager
    def _bounded(self, failure: type[Exception]) -> Iterator[None]:
        self._sock.settimeout(self._deadline.left())
        try:
            yield
        except TimeoutError:
            raise self._deadline.passed() from None
        except (OSError, ValueError) as error:  # ssl gives ValueError for what can be no server's name
            raise failure(str(error)) from error


@functools.cache
def tls() -> ssl.SSLContext:
    """Made once a process, as it reads every known authority; heeds SSL_CERT_FILE and SSL_CERT_DIR."""
    return httpx.create_ssl_context()
