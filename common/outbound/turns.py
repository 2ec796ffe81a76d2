"""How many requests of browsers and programs may wait for other servers at once, in one web process.

A web process has few threads (WEB_THREADS), and a request that looks up a name or asks another server holds
one meanwhile, for seconds where that server is slow, by accident or on purpose. So most of the threads are
kept from it, and most of what one person could take. Workers and carriers wait as long as they need to.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from common import current, turns
from common.outbound.errors import OutboundError


@contextmanager
def turn(host: str) -> Iterator[None]:
    """Around what waits for `host`. Raises OutboundError: BUSY, before anything is asked."""
    limits = _limits(host)
    if not turns.take(limits):
        raise OutboundError("BUSY", "too much is being asked elsewhere just now: try again in a moment")
    try:
        yield
    finally:
        turns.give_back(limits)


def _limits(host: str) -> dict[str, int]:
    """What a request takes one of, and how many there are; nothing outside of web processes.

    Whoever is only about to sign in is nobody yet: there each host has a share, so that no organization's
    provider of identities keeps people from another's.
    """
    request = current.request()
    if request is None:
        return {}
    if (person := turns.person_of(request)) is not None:
        return turns.of_person(person)
    return {f"host {host}": turns.third(), "nobody": max(1, settings.WEB_THREADS // 2)}
