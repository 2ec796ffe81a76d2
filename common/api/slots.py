"""How many answers a caller and an organization may keep open at once: live streams, polls that wait.

Counted in each web process, since what an open answer costs is that process's. A slot that nobody gave back,
because its answer was never begun, is free again once nothing refers to it.
"""

from threading import Lock
from typing import Any
from weakref import WeakSet

from django.conf import settings

from common.api.errors import Problem

AGAIN_SECONDS = 5
TOKENS = 2  # a person's answers altogether are as many as those of so many tokens


class Slot:
    """One open answer."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys

    def give_back(self) -> None:
        with _lock:
            for key in self.keys:
                _leave(key, self)


_lock = Lock()  # views take slots in threads
_open: dict[str, WeakSet[Slot]] = {}


def take(user: Any, token: Any, organization_id: str) -> Slot:
    """A slot of the token, or of the person's session. Raises Problem: 429 TOO_MANY_STREAMS."""
    person = f"user {user.pk}"
    most = {f"token {token.pk}" if token is not None else f"session {person}": settings.STREAMS}
    most[person] = TOKENS * settings.STREAMS
    most[organization_id] = settings.STREAMS_ORGANIZATION
    with _lock:
        for key, limit in most.items():
            if len(_open.get(key, ())) >= limit:
                raise _refused(limit)
        slot = Slot(tuple(most))
        for key in most:
            _open.setdefault(key, WeakSet()).add(slot)
    return slot


def count(organization_id: str = "") -> int:
    """The open answers of this process, of one organization or of all."""
    if organization_id:
        with _lock:
            return len(_open.get(organization_id, ()))
    with _lock:
        return len({slot for slots in _open.values() for slot in slots})


def _leave(key: str, slot: Slot) -> None:
    slots = _open.get(key)
    if slots is not None:
        slots.discard(slot)
        if not slots:
            del _open[key]


def _refused(limit: int) -> Problem:
    return Problem(
        429,
        "TOO_MANY_STREAMS",
        f"There are {limit} streams and waiting requests open already; close some, or ask without waiting.",
        headers={"Retry-After": str(AGAIN_SECONDS)},
    )
