"""Waits that end in the call's being made again: it needs something first that a person gives elsewhere.

A need is named `kind:what`, and the wait's key begins with it. Whoever knows of a kind of need registers how
to see whether it is met; whoever has met one has its waits resolved (runs/actions/repeat.py).
"""

from collections.abc import Callable

from runs.models.choices import REPEATS as PREFIX

__all__ = ["PREFIX", "key", "met", "of_need", "register"]

Met = Callable[[str, int, str], bool]
_kinds: dict[str, Met] = {}


def register(kind: str, met: Met) -> None:
    """Say how to see whether a need of this kind is met, by organization, user and what it is.

    Asked in the transaction that opens the wait, `met` holds back whoever is just about to meet the need
    until that transaction has ended: so a need that is met meanwhile is seen by one of the two.
    """
    _kinds[kind] = met


def key(need: str, call_id: str, seq: int) -> str:
    """The wait's correlation key: a call may come to wait for the same need more than once."""
    return f"{PREFIX}{need}-{call_id}-{seq}"


def of_need(need: str) -> str:
    """How the keys of waits for this need begin."""
    return f"{PREFIX}{need}-"


def met(organization_id: str, user_id: int, need: str) -> bool:
    """Whether it is there. False for a need of a kind that nobody knows."""
    kind, _, what = need.partition(":")
    return kind in _kinds and _kinds[kind](organization_id, user_id, what)
