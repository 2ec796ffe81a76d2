"""Canonical JSON: one text for one value, the same before and after a trip through JSONB."""

import hashlib
import json
import math
from collections.abc import Iterable
from typing import Any

MAX_DEPTH = 64


class NotJson(ValueError):
    """The value cannot be stored as JSON; the message says where and why."""


def normalise(value: Any, path: str = "$", depth: int = 0) -> Any:
    """`value` as JSONB will give it back: no NUL, no lone surrogate, no NaN, numbers in one form.

    Raises NotJson naming the path of the first offender.
    """
    if depth > MAX_DEPTH:
        raise NotJson(f"{path}: nested deeper than {MAX_DEPTH} levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _number(value, path)
    if isinstance(value, dict):
        return {
            _text(_key(key, path), path): normalise(item, f"{path}.{key}", depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [normalise(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
    raise NotJson(f"{path}: {type(value).__name__} is not JSON")


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


def _key(key: Any, path: str) -> str:
    if not isinstance(key, str):
        raise NotJson(f"{path}: the key {key!r} is not text")
    return key


def _text(value: str, path: str) -> str:
    if "\x00" in value:
        raise NotJson(f"{path}: text holds a NUL character")
    try:
        value.encode()  # what UTF-8 cannot say are lone surrogates; quicker than looking at each character
    except UnicodeEncodeError:
        raise NotJson(f"{path}: text holds a lone surrogate") from None
    return value


def _number(value: float, path: str) -> float | int:
    if not math.isfinite(value):
        raise NotJson(f"{path}: {value} is not a JSON number")
    if value == 0:
        return 0.0  # JSONB knows no negative zero
    if abs(value) >= 1e16 and value.is_integer():
        return int(value)  # JSONB writes these without an exponent
    return value
