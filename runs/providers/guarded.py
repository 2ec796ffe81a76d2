"""Connections to servers an organization has named: public addresses only, judged before each connection.

As for every other request an organization may send Deputy on (common/outbound): the name is resolved once,
each of its addresses is judged, and the connection goes to one of those.
"""

import asyncio
import functools
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from common.outbound import OutboundError
from common.outbound.connection import Deadline, judged, tls
from runs.providers.base import ProviderError

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 10.0


def transport(allow: Collection[str], idle: int) -> "httpx2.AsyncHTTPTransport":
    """HTTP past the guard, without a proxy. `allow`: host:port of what is reached though it is not public."""
    import httpcore2
    import httpx2

    class Judging(httpcore2.AsyncNetworkBackend):
        def __init__(self) -> None:
            self.inner = httpcore2.AnyIOBackend()

        async def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,
            local_address: str | None = None,
            socket_options: Iterable[Any] | None = None,
        ) -> httpcore2.AsyncNetworkStream:
            addresses = await addresses_of(host, port, allow)
            for address in addresses[:-1]:
                try:
                    return await self.inner.connect_tcp(address, port, CONNECT_SECONDS)
                except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                    continue
            return await self.inner.connect_tcp(addresses[-1], port, CONNECT_SECONDS)

        async def connect_unix_socket(self, *args: Any, **kwargs: Any) -> httpcore2.AsyncNetworkStream:
            raise ProviderError("MODEL_REFUSED", "Sockets of this machine are not asked.")

        async def sleep(self, seconds: float) -> None:
            await asyncio.sleep(seconds)

    made = httpx2.AsyncHTTPTransport()
    made._pool = httpcore2.AsyncConnectionPool(
        ssl_context=tls(),
        max_connections=None,
        max_keepalive_connections=idle,
        keepalive_expiry=5.0,
        network_backend=Judging(),
    )
    return made


async def addresses_of(host: str, port: int, allow: Collection[str]) -> list[str]:
    """The host's addresses, all of them allowed. Raises ProviderError, which names no address."""
    judge = functools.partial(judged, host, port, Deadline(CONNECT_SECONDS), allow)
    try:
        return [str(address[0]) for _, address in await asyncio.to_thread(judge)]
    except OutboundError as error:
        code = "MODEL_REFUSED" if error.code == "ADDRESS_REFUSED" else "MODEL_CONNECTION"
        said = f"The model's server cannot be asked: {error.message}."
        raise ProviderError(code, said, retryable=code == "MODEL_CONNECTION") from None
