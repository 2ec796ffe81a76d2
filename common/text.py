"""Text analysis, one pipeline for search and routing: English, Chinese, mixed, and everything else.

What is indexed and what is asked go through the same `terms`, so a rule here only has to treat both
alike; it need not be linguistically right.
"""

import re
import threading
from functools import cache, lru_cache
from typing import Any

import opencc

from common.normal_forms import normalized

MAX_TERM = 64  # characters of a term; longer ones (encoded blobs) are cut, not lost

_HAN = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af々〇"
# Written without spaces between words: Han, kana, Thai, Lao, Myanmar, Khmer. Hangul has spaces, but its
# particles stick to the nouns, so that pairs of syllables find more there too.
_UNSPACED = _HAN + "\u3041-\u30ff\u31f0-\u31ff\uac00-\ud7a3\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
# Python's \w lacks the vowel signs of the Indic scripts, which would cut their words apart.
_LETTER = rf"(?:(?![{_UNSPACED}])(?:[^\W_]|[\u0900-\u0dff]))"
_WORD = rf"{_LETTER}+(?:'{_LETTER}+)*"

_HUMP = "\ue000"  # stands where a camelCase word bends, once everything is small
_TOKEN = re.compile(
    rf"(?P<unspaced>[{_UNSPACED}]+)"
    r"|(?P<sharp>(?<![^\W_])[a-z](?:\+\+|\#)(?!\w))"  # c++, c#
    rf"|(?P<word>{_WORD}(?:[._\-/@:{_HUMP}]+{_WORD})*)"
)
_PART = re.compile(rf"{_WORD}(?:{_HUMP}{_WORD})*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
# Combining accents, and the points of Hebrew and Arabic, which most people leave out when they type.
_ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670]")
_APOSTROPHES = str.maketrans("\u2018\u2019\u02bc\uff07", "''''")


def terms(text: str) -> list[str]:
    """The terms of `text`, in order, repeated as often as they occur.

    English words as stems; Chinese (and other scripts without spaces) as pairs of characters and as
    single ones, Traditional folded into Simplified; other words without their accents; names from code
    whole and in parts (`send_email`: `send_email`, `send`, `email`). No word is too common to keep: a
    term's weight is for those who search to say.
    """
    found: list[str] = []
    for token in _TOKEN.finditer(_folded(text)):
        if token.lastgroup == "unspaced":
            found += _pairs(token[0])
        elif token.lastgroup == "sharp":
            found.append(token[0])
        else:
            found += _words(token[0])
    return found


_HAN_CHARACTER = re.compile(f"[{_HAN}]")
_KANA = re.compile("[\u3041-\u30ff]")
_ANY_WORD = re.compile(_WORD)


def is_chinese(text: str) -> bool:
    """Is `text` mostly Chinese: more Chinese characters than words of other scripts, and little kana."""
    text = normalized("NFKC", text)
    han = len(_HAN_CHARACTER.findall(text))
    return han > len(_ANY_WORD.findall(text)) and han > 3 * len(_KANA.findall(text))


_ENDS = re.compile(
    r"(?:[。！？｡…]+|；)[”’」』）》\"')\]]*"
    r"|(?P<narrow>(?<![.!?])[.!?]+)[\"'”’)\]]*(?=\s)"
    r"|\n"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'“‘])(?:(?:mr|mrs|ms|dr|prof|sr|jr|st|vs|etc|fig|eq|vol|pp|al|inc|ltd|co|corp|dept"
    r"|est|approx|gen|col|sgt|capt|rev|hon|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec)"
    r"|[a-z]|(?:[a-z]\.)+[a-z])\.$",
    re.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """The sentences of `text`, trimmed, none empty. A line break always ends one."""
    found, start = [], 0
    for end in _ENDS.finditer(text):
        if end.lastgroup == "narrow" and not _ends_sentence(text, start, end):
            continue
        found.append(text[start : end.end()].strip())
        start = end.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def _ends_sentence(text: str, start: int, end: re.Match[str]) -> bool:
    """A full stop after an abbreviation, or before a small letter, is not the end of a sentence."""
    if end["narrow"] != ".":
        return True
    following = text[end.end() : end.end() + 40].lstrip()[:1]
    before = text[max(start, end.start() - 20) : end.end("narrow")]
    return not following.islower() and not _ABBREVIATION.search(before)


def _folded(text: str) -> str:
    """`text` with one form for each letter: width, apostrophes, camelCase as words, case, accents, script."""
    text = normalized("NFKC", text).translate(_APOSTROPHES)
    text = _CAMEL.sub(_HUMP, _THOUSANDS.sub("", text)).casefold()
    if text.isascii():
        return text
    plain = _ACCENTS.sub("", normalized("NFD", text))
    return normalized("NFC", plain).translate(_SIMPLIFIED)


def _simplified() -> dict[int, str]:
    """Each Traditional character's Simplified one. Character by character, so that it never depends on
    what stands beside it, and many times faster than converting phrases."""
    han = [chr(code) for code in range(0x3400, 0xA000)]
    folded = opencc.OpenCC("t2s").convert("\n".join(han)).split("\n")
    return {ord(old): new for old, new in zip(han, folded, strict=True) if old != new}


_SIMPLIFIED = _simplified()


def _pairs(run: str) -> list[str]:
    """`竞品组`: `竞品`, `品组`, `竞`, `品`, `组`. The single ones find what pairs cut at the wrong place
    (and questions of one character); over sentences they are worth two points of recall."""
    return [run[i : i + 2] for i in range(len(run) - 1)] + list(run)


def _words(token: str) -> list[str]:
    """The stems of a token's words; before them the whole token if it reads like a name or a number.

    `GitHub` is `github`, `git` and `hub`: people write it in one word as often as not.
    """
    parts = _PART.findall(token)
    found = [token.replace(_HUMP, "")[:MAX_TERM]] if len(parts) > 1 and _is_name(token) else []
    for part in parts:
        found.append(_stem(part.replace(_HUMP, "")))
        if _HUMP in part:
            found += [_stem(word) for word in part.split(_HUMP)]
    return found


def _is_name(token: str) -> bool:
    """`send_email`, `config.settings`, `10:30`, `covid-19`; not `well-known`, `and/or`, `one,two`."""
    return any(character in "_.@" or character.isdigit() for character in token)


_stemming = threading.Lock()  # the stemmer keeps the word it works on in itself


@cache
def _stemmer() -> Any:
    import snowballstemmer  # the stemmers of all languages, a twentieth of the time that Deputy takes to load

    return snowballstemmer.stemmer("english")


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    if len(word) > MAX_TERM:
        return word[:MAX_TERM]
    if not word.isascii() or not word[0].isalpha():
        return word
    with _stemming:
        return str(_stemmer().stemWord(word))
