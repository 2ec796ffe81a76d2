"""Canonical JSON: one text for one value, the same before and after a trip through JSONB."""

import hashlib
import json
import math
from collections.abc import Iterable
from typing import Any

MAX_DEPTH = 64

Place = tuple["Place | None", str | int]  # of a value: what it stands in, and its key or number there


class NotJson(ValueError):
    """The value cannot be stored as JSON; the message says where and why."""


def normalise(value: Any, name: str = "$") -> Any:
    """`value` as JSONB will give it back: no NUL, no lone surrogate, no NaN, numbers in one form.

    Raises NotJson naming the path of the first offender, which begins with `name`.
    """
    return _normal(value, (None, name), 0)


def _normal(value: Any, at: Place, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise NotJson(f"{_path(at)}: nested deeper than {MAX_DEPTH} levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, at)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _number(value, at)
    if isinstance(value, dict):
        return {_text(_key(key, at), at): _normal(item, (at, key), depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_normal(item, (at, i), depth + 1) for i, item in enumerate(value)]
    raise NotJson(f"{_path(at)}: {type(value).__name__} is not JSON")


def _path(at: Place) -> str:
    """`$.to[3]`. Written for what is refused alone: below a long key, a text for each item takes minutes."""
    steps: list[str] = []
    outer, step = at
    while outer is not None:
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
        outer, step = outer
    return "".join([str(step), *reversed(steps)])


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def canonical(value: Any) -> str:
    """Sorted keys, no spaces, text as it is. Expects a normalised value."""
    return _encode(value)


def same(one: Any, other: Any) -> bool:
    """Whether two values are one as JSON: to Python 1 is the same as true, to whoever edits it is not."""
    try:
        return canonical(normalise(one)) == canonical(normalise(other))
    except NotJson:  # what cannot be stored is nothing that was
        return False


def digest(*parts: Any) -> str:
    """SHA-256 of the canonical JSON of `parts`, as 64 hexadecimal digits."""
    return hashlib.sha256(_encode(parts).encode()).hexdigest()


def digest_of(parts: Iterable[str]) -> str:
    """The same of parts that are canonical JSON already."""
    return hashlib.sha256(f"[{','.join(parts)}]".encode()).hexdigest()


def _key(key: Any, at: Place) -> str:
    if not isinstance(key, str):
        raise NotJson(f"{_path(at)}: the key {key!r} is not text")
    return key


def _text(value: str, at: Place) -> str:
    if "\x00" in value:
        raise NotJson(f"{_path(at)}: text holds a NUL character")
    try:
        value.encode()  # what UTF-8 cannot say are lone surrogates; quicker than looking at each character
    except UnicodeEncodeError:
        raise NotJson(f"{_path(at)}: text holds a lone surrogate") from None
    return value


def _number(value: float, at: Place) -> float | int:
    if not math.isfinite(value):
        raise NotJson(f"{_path(at)}: {value} is not a JSON number")
    if value == 0:
        return 0.0  # JSONB knows no negative zero
    if abs(value) >= 1e16 and value.is_integer():
        return int(value)  # JSONB writes these without an exponent
    return value
