"""Text to the numbers of its word pieces, as BERT's uncased tokenizer has them (WordPiece)."""

import unicodedata
from collections.abc import Iterator, Mapping

from common.normal_forms import normalized

LONGEST = 100  # characters of a word; a longer one is unknown
ASCII_SYMBOLS = frozenset("$+<=>^`|~")  # no punctuation to Unicode, but words end there
HAN = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


def pieces(text: str, vocabulary: Mapping[str, int], unknown: int, most: int) -> list[int]:
    """The numbers of the first pieces of a text."""
    found: list[int] = []
    for word in words(text):
        if len(found) >= most:
            break
        found += _split(word, vocabulary) or [unknown]
    return found[:most]


def words(text: str) -> Iterator[str]:
    """Small letters without accents; each mark of punctuation and each Chinese character is a word."""
    text = "".join(_spaced(character) for character in text)
    for word in normalized("NFD", text).lower().split():
        yield from _parted("".join(each for each in word if unicodedata.category(each) != "Mn"))


def _spaced(character: str) -> str:
    if character in "\t\n\r" or unicodedata.category(character) == "Zs":
        return " "
    if character in "\0\ufffd" or unicodedata.category(character)[0] == "C":
        return ""
    return f" {character} " if any(first <= ord(character) <= last for first, last in HAN) else character


def _parted(word: str) -> Iterator[str]:
    start = 0
    for place, character in enumerate(word):
        if character in ASCII_SYMBOLS or unicodedata.category(character)[0] == "P":
            if place > start:
                yield word[start:place]
            yield character
            start = place + 1
    if start < len(word):
        yield word[start:]


def _split(word: str, vocabulary: Mapping[str, int]) -> list[int] | None:
    """The longest known beginning, then the longest of the rest, and so on; None where something is left."""
    found, start = [], 0
    while start < len(word) <= LONGEST:
        mark = "##" if start else ""
        end = next((end for end in range(len(word), start, -1) if mark + word[start:end] in vocabulary), None)
        if end is None:
            return None
        found.append(vocabulary[mark + word[start:end]])
        start = end
    return found
