"""The piece of a text that answers, with what matched marked."""

import re
from functools import lru_cache

from common.text import terms

WINDOW = 240  # characters
MARK = "**"

_PIECE = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)
_SEARCHED = 20_000  # characters of a text that are looked through


def snippet(content: str, query_terms: frozenset[str]) -> str:
    """About 240 characters around the densest matches, each match between two `**`, cuts as `…`."""
    spans = _matches(content[:_SEARCHED], query_terms)
    start = _best_start(spans)
    end = start + WINDOW
    pieces, at = [], start
    for left, right in spans:
        if left >= start and right <= end:
            pieces += [content[at:left], MARK, content[left:right], MARK]
            at = right
    pieces.append(content[at:end])
    return ("…" if start else "") + "".join(pieces).strip() + ("…" if end < len(content) else "")


def _matches(text: str, query_terms: frozenset[str]) -> list[tuple[int, int]]:
    """Where the words, and the pairs of Chinese characters, of the query stand; neighbours joined."""
    pieces = [(match.start(), match.end()) for match in _PIECE.finditer(text)]
    spans: list[tuple[int, int]] = []
    for index, (left, right) in enumerate(pieces):
        following = pieces[index + 1] if index + 1 < len(pieces) else (0, 0)
        if _is_han(text[left]) and following[0] == right and _is_han(text[right]):
            right = following[1]
            if not _pair_terms(text[left:right]) & query_terms:
                continue
        elif _is_han(text[left]) or not _terms_of(text[left:right]) & query_terms:
            continue
        if spans and left <= spans[-1][1]:
            spans[-1] = (spans[-1][0], right)
        else:
            spans.append((left, right))
    return spans


def _best_start(spans: list[tuple[int, int]]) -> int:
    """The start of the window that covers most of the matches; a few characters before its first one."""
    best, best_covered = 0, 0
    for index, (left, _) in enumerate(spans):
        start = left if left > WINDOW // 4 else 0
        covered = 0
        for begin, end in spans[index:]:
            if end > start + WINDOW:
                break
            covered += end - begin
        if covered > best_covered:
            best, best_covered = max(0, start - WINDOW // 8 if start else 0), covered
    return best


def _is_han(character: str) -> bool:
    return "\u3040" <= character <= "\u9fff" or "\uf900" <= character <= "\ufaff"


@lru_cache(maxsize=32_768)
def _terms_of(word: str) -> frozenset[str]:
    return frozenset(terms(word))


@lru_cache(maxsize=32_768)
def _pair_terms(pair: str) -> frozenset[str]:
    return frozenset(term for term in terms(pair) if len(term) == 2)
