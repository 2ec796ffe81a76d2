"""Unicode's normal forms, in a time that grows with the text alone.

Python sorts the marks above and below one letter by comparing each with those before it, and lets nothing
else of its process run meanwhile: fifty thousand of them took seconds, half a million minutes. No writing has
more than thirty in a row, and Unicode lets an invisible joiner stand behind thirty, across which nothing is
sorted (UAX 15, Stream-Safe Text Format).
"""

import re
import unicodedata
from functools import cache
from typing import Literal
from urllib.parse import SplitResult, urlsplit

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

MOST_MARKS = 30
ENDLESS = 200  # marks that nobody puts above one letter, not even for fun
JOINER = "\u034f"
LAST_PLANE_WITH_MARKS = 0x1FFFF  # the highest of them; beyond are Chinese characters and variation selectors


def normalized(form: Form, text: str) -> str:
    """`text` in the form; of more marks in a row than any writing has, a joiner stands behind each thirty."""
    if text.isascii():
        return text
    return unicodedata.normalize(form, _too_many_marks().sub(rf"\g<0>{JOINER}", text))


def is_endless(text: str) -> bool:
    """Whether marks stand in a row that nobody has written. Others ask for normal forms as well, such as
    urllib of an address, and cannot be told to do so otherwise.
    """
    return not text.isascii() and _endless_marks().search(text) is not None


def split_url(address: str) -> SplitResult:
    """urllib's `urlsplit`. Raises ValueError as that does, and for marks without end."""
    if is_endless(address):
        raise ValueError("no address holds so many marks")
    return urlsplit(address)


@cache
def _too_many_marks() -> re.Pattern[str]:
    """Thirty marks that another one follows."""
    return re.compile(f"{_mark()}{{{MOST_MARKS}}}(?={_mark()})")


@cache
def _endless_marks() -> re.Pattern[str]:
    return re.compile(f"{_mark()}{{{ENDLESS}}}")


@cache
def _mark() -> str:
    """Any of them, for a pattern."""
    return f"[{''.join(filter(_is_mark, map(chr, range(0x300, LAST_PLANE_WITH_MARKS))))}]"


def _is_mark(character: str) -> bool:
    """Whether it is sorted among marks, or falls apart into some."""
    return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) != 0
