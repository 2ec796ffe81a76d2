"""What may be written into a page, checked before anything is stored."""

import re

from common.canonical import NotJson, normalise

from .errors import InvalidOperation

NAME_LENGTH = 200
DETAIL_LENGTH = 1_000_000
SEGMENT_ID = re.compile(r"[a-z][a-z0-9_]{0,31}")
INDEX = re.compile(r"[a-z][a-z0-9_]{0,31}-[0-9]{1,9}")


def name(value: str) -> str:
    """One line, not empty, at most 200 characters."""
    line = " ".join(text(value, "name").split())
    if not line:
        raise InvalidOperation("a page needs a name")
    if len(line) > NAME_LENGTH:
        raise InvalidOperation(f"a name is at most {NAME_LENGTH} characters, this one has {len(line)}")
    return line


def text(value: str, field: str) -> str:
    if not isinstance(value, str):
        raise InvalidOperation(f"{field} is text, not {type(value).__name__}")
    if len(value) > DETAIL_LENGTH:
        raise InvalidOperation(f"{field} is at most {DETAIL_LENGTH} characters, this one has {len(value)}")
    try:
        return str(normalise(value, field))
    except NotJson as problem:
        raise InvalidOperation(str(problem)) from problem


def segment_id(value: str) -> str:
    if not SEGMENT_ID.fullmatch(value):
        raise InvalidOperation(f"{value!r} is not a segment id: lower-case letters, digits and _, at most 32")
    return value


def is_index(value: object) -> bool:
    """Whether a page could be called so; what could not is never asked of the database."""
    return isinstance(value, str) and INDEX.fullmatch(value) is not None


def place(position: int | None, count: int) -> int:
    """Where among `count` siblings a page goes: at the end unless told."""
    if position is None:
        return count
    if not 0 <= position <= count:
        raise InvalidOperation(f"position {position} is not between 0 and {count}")
    return position
