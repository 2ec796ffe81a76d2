"""In which order the hosts of a URL are tried, where it names several.

libpq tries them as written, and one whose machine is gone costs every new connection `connect_timeout`;
after a failover a process makes several. So each process begins with the host that it found last, and leaves
one that did not answer alone for a moment, as long as there are others.
"""

import time
from collections.abc import Iterator
from typing import Any

from psycopg import errors

Host = tuple[str, str]  # name or address, and port

SILENT_SECONDS = 5.0  # that a host which did not answer is not tried again

_order: list[Host] = []  # of the hosts tried last, replaced as a whole: threads share it
_silent: dict[Host, float] = {}  # which did not answer, and until when they are left alone


def to_try(parameters: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The parameters of a connection, for one host after the other."""
    global _order
    named = _named(parameters)
    if len(named) < 2:
        yield parameters
        return
    if set(_order) != set(named):
        _order = named
    now = time.monotonic()
    live = [host for host in _order if _silent.get(host, 0.0) <= now]
    for host in live or _order:
        yield _to(parameters, host)


def failed(parameters: dict[str, Any], error: Exception) -> None:
    """A connection to one host, made with these parameters, has failed."""
    (host,) = _named(parameters) or [("", "")]
    if isinstance(error, errors.ConnectionTimeout) and host in _order:
        _silent[host] = time.monotonic() + SILENT_SECONDS


def found(made: Any) -> None:
    """Remember where this connection has led."""
    global _order
    host = _of(made)
    _silent.pop(host, None)
    if host in _order and _order[0] != host:
        _order = [host, *(other for other in _order if other != host)]


def gone(made: Any) -> None:
    """The server of this connection does not answer."""
    host = _of(made)
    if host in _order:
        _silent[host] = time.monotonic() + SILENT_SECONDS


def same(parameters: dict[str, Any], made: Any) -> dict[str, Any]:
    """Parameters that lead to the server of that connection and to no other."""
    named = _named(parameters)
    if len(named) < 2:
        return parameters
    return {**_to(parameters, _of(made)), "target_session_attrs": "any"}


def _named(parameters: dict[str, Any]) -> list[Host]:
    names = str(parameters.get("host") or "").split(",")
    ports = str(parameters.get("port") or "").split(",")
    if len(ports) == 1:
        ports *= len(names)
    return list(zip(names, ports, strict=True))


def _to(parameters: dict[str, Any], host: Host) -> dict[str, Any]:
    return {**parameters, "host": host[0], **({"port": host[1]} if host[1] else {})}


def _of(made: Any) -> Host:
    host, port = str(made.info.host), str(made.info.port)
    return next((named for named in _order if named[0] == host and named[1] in (port, "")), (host, port))
