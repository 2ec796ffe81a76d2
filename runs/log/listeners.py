"""Who is told of events in the statement that appends them: an outbox, for instance.

The log knows nobody of them. An app says at start who listens (runs/apps.py), so that what a listener
writes commits with the events, and an organization that nobody listens to pays no statement for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from common.db import Statement


@dataclass(frozen=True)
class Listener:
    """What a log must know of a listener.

    `wanted`: an SQL condition on an organization's id, `{}`: whether anybody there wants to hear of events.
    `statement(log, events)`: the INSERT ... RETURNING id of what there is to write about these events of a
    RunLog, or None. Neither class is named here, since the log imports this module.
    `stored`: what to do with the ids, and the organization's, in the same transaction.
    """

    wanted: str
    statement: Callable[..., Statement | None]
    stored: Callable[[Sequence[str], str], None]


_listeners: list[Listener] = []


def listen(listener: Listener) -> None:
    """Tell this listener of events from now on; called at start, before any log is locked."""
    if listener not in _listeners:
        _listeners.append(listener)


def listeners() -> Sequence[Listener]:
    return _listeners


def wanted(organization: str) -> str:
    """An SQL expression: whether anybody listens to the organization whose id this column has."""
    return " OR ".join(f"({one.wanted.format(organization)})" for one in _listeners) or "false"
