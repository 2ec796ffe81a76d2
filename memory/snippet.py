"""The piece of a text that answers, with what matched marked."""

import re
from functools import lru_cache

from common.text import terms

WINDOW = 240  # characters
MARK = "**"

_HAN = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_RUN = re.compile(rf"(?P<han>[{_HAN}]+)|[^\W{_HAN}]+")
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
    spans: list[tuple[int, int]] = []
    for run in _RUN.finditer(text):
        for left, right in _matches_in(run, query_terms):
            if spans and left <= spans[-1][1]:
                spans[-1] = (spans[-1][0], right)
            else:
                spans.append((left, right))
    return spans


def _matches_in(run: re.Match[str], query_terms: frozenset[str]) -> list[tuple[int, int]]:
    """The whole run if it is a word of the query; the pairs of the query in a run of Chinese characters."""
    start, end = run.span()
    if not run["han"]:
        return [] if _terms_of(run[0]).isdisjoint(query_terms) else [(start, end)]
    return [
        (left, left + 2)
        for left in range(start, end - 1)
        if not _pair_terms(run.string[left : left + 2]).isdisjoint(query_terms)
    ]


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


@lru_cache(maxsize=32_768)
def _terms_of(word: str) -> frozenset[str]:
    return frozenset(terms(word))


@lru_cache(maxsize=32_768)
def _pair_terms(pair: str) -> frozenset[str]:
    return frozenset(term for term in terms(pair) if len(term) == 2)
