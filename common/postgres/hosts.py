"""In which order the hosts of a URL are tried, where it names several.

libpq tries them as written. One whose machine is gone costs every new connection `connect_timeout`, and after
a failover a process makes several; so each process begins with the host that it found last. Where none would
do, the one that it began with goes last.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

Host = tuple[str, str]  # name or address, and port

_order: list[Host] = []  # of the hosts tried last, replaced as a whole: threads share it


@contextmanager
def in_turn(parameters: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The parameters of a connection with their hosts in the order to try; learns from its failure."""
    global _order
    named = _named(parameters)
    if len(named) < 2:
        yield parameters
        return
    if set(_order) != set(named):
        _order = named
    order = _order
    try:
        yield _with(parameters, order)
    except Exception:
        if _order is order:
            _order = [*order[1:], order[0]]
        raise


def found(made: Any) -> None:
    """Remember where this connection has led."""
    global _order
    host = _of(made)
    if host in _order and _order[0] != host:
        _order = [host, *(other for other in _order if other != host)]


def gone(made: Any) -> None:
    """Try the server of this connection last: it does not answer."""
    global _order
    host = _of(made)
    if host in _order:
        _order = [*(other for other in _order if other != host), host]


def same(parameters: dict[str, Any], made: Any) -> dict[str, Any]:
    """Parameters that lead to the server of that connection and to no other."""
    named = _named(parameters)
    if len(named) < 2:
        return parameters
    host = _of(made)
    return {**_with(parameters, [host] if host in named else named), "target_session_attrs": "any"}


def _named(parameters: dict[str, Any]) -> list[Host]:
    names = str(parameters.get("host") or "").split(",")
    ports = str(parameters.get("port") or "").split(",")
    if len(ports) == 1:
        ports *= len(names)
    return list(zip(names, ports, strict=True))


def _with(parameters: dict[str, Any], order: list[Host]) -> dict[str, Any]:
    names, ports = zip(*order, strict=True)
    port = {"port": ",".join(ports)} if parameters.get("port") else {}
    return {**parameters, "host": ",".join(names), **port}


def _of(made: Any) -> Host:
    port = str(made.info.port)
    host = str(made.info.host)
    return next((named for named in _order if named[0] == host and named[1] in (port, "")), (host, port))
