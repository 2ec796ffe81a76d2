"""How many requests of browsers and programs may wait for other servers at once, in one web process.

A web process has few threads (WEB_THREADS), and a request that looks up a name or asks another server holds
one meanwhile, for seconds where that server is slow, by accident or on purpose. So most of the threads are
kept from it, and most of what one person could take. Workers and carriers wait as long as they need to.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from django.conf import settings

from common import current
from common.outbound.errors import OutboundError

PERSONS_OWN = 2
NOBODY, PEOPLE = "nobody", "people"

_lock = Lock()
_taken: Counter[str] = Counter()


@contextmanager
def turn(host: str) -> Iterator[None]:
    """Around what waits for `host`. Raises OutboundError: BUSY, before anything is asked."""
    limits = _limits(host)
    with _lock:
        if any(_taken[key] >= most for key, most in limits.items()):
            raise OutboundError("BUSY", "too much is being asked elsewhere just now: try again in a moment")
        _taken.update(limits.keys())
    try:
        yield
    finally:
        with _lock:
            for key in limits:
                _taken[key] -= 1
                if not _taken[key]:
                    del _taken[key]


def _limits(host: str) -> dict[str, int]:
    """What a request takes one of, and how many there are; nothing outside of web processes.

    Whoever is only about to sign in is nobody yet: there each host has a share, so that no organization's
    provider of identities keeps people from another's.
    """
    request = current.request()
    if request is None:
        return {}
    third = max(1, settings.WEB_THREADS // 3)
    if (person := getattr(getattr(request, "user", None), "pk", None)) is not None:
        return {f"user {person}": PERSONS_OWN, PEOPLE: third}
    return {f"host {host}": third, NOBODY: max(1, settings.WEB_THREADS // 2)}
