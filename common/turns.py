"""How many requests may hold one of a web process's few threads (WEB_THREADS) for long, at once.

Whoever holds one while others wait, for another server or for much that has to be read, takes a turn: so most
of the threads are kept from it, and most of what one person could take. Nobody outside of web processes does.
"""

from collections import Counter
from collections.abc import Mapping
from threading import Lock

from django.conf import settings
from django.http import HttpRequest

PERSONS_OWN = 2

_lock = Lock()
_taken: Counter[str] = Counter()


def third() -> int:
    """Of a process's threads."""
    return max(1, settings.WEB_THREADS // 3)


def person_of(request: HttpRequest) -> object | None:
    """The id of the account that is signed in; a request that is only being authenticated has none."""
    return getattr(getattr(request, "user", None), "pk", None)


def of_person(person: object) -> dict[str, int]:
    """What a request of somebody's takes one of, and how many there are."""
    return {f"user {person}": PERSONS_OWN, "people": third()}


def take(limits: Mapping[str, int]) -> bool:
    """Take one of each, unless of one of them as many are taken as there are."""
    with _lock:
        if any(_taken[key] >= most for key, most in limits.items()):
            return False
        _taken.update(limits.keys())
        return True


def give_back(limits: Mapping[str, int]) -> None:
    with _lock:
        for key in limits:
            _taken[key] -= 1
            if not _taken[key]:
                del _taken[key]
