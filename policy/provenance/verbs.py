"""Which verb a tool's name carries, wherever it stands: `github_create_issue`, `cart_add`, `getUser`."""

import re
from collections.abc import Iterator
from itertools import chain, pairwise

from policy.provenance import lexicon

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_COMPOUNDS = {
    ("log", "in"),
    ("sign", "in"),
    ("sign", "up"),
    ("sign", "out"),
    ("log", "out"),
    ("check", "in"),
    ("check", "out"),
    ("set", "up"),
    ("turn", "on"),
    ("turn", "off"),
    ("opt", "out"),
    ("opt", "in"),
}
_OF_STATE = frozenset(("new", "complete", "clear", "clean", "like"))  # `list_new_orders` makes none
_ADDS = frozenset(("and", "or", "then"))
_KNOWN = lexicon.READS.union(*lexicon.MEANS.values())


def split(name: str) -> list[str]:
    """The words of a name, small: `getUserInfo`, `get_user_info` and `GET /users/{id}` alike."""
    words = [word.lower() for word in _WORDS.findall(name)]
    joined: list[str] = []
    while words:
        pair = len(words) > 1 and (words[0], words[1]) in _COMPOUNDS
        joined.append("".join(words[:2]) if pair else words[0])
        del words[: 2 if pair else 1]
    return joined


def noun(name: str) -> str:
    """The last word of a name, which says what it is one of: id, of `order_id`; empty where it has none."""
    return (split(name) or [""])[-1]


def verb_of(words: list[str], description: str = "") -> str:
    """The verb among the words of a name, or else the description's first word; empty where neither has one.

    A word that may be a noun (`email_search`, `order_cancel`) yields to one that may not. Where a reading
    and an acting verb are both in doubt, the acting one is taken.
    """
    first = words[0] if words and words[0] in _KNOWN else ""
    plain = [word for word in words if word in _KNOWN and word not in lexicon.NOUNS_TOO]
    acting = [word for word in plain if word not in lexicon.READS | _OF_STATE]
    if first in lexicon.READS:
        return next(chain(_also(words), acting), first)
    if first and first not in lexicon.NOUNS_TOO:
        return first
    if plain:
        return (acting or plain)[0]
    said = next(_also(words), "") or _told(description)
    doubtful = [word for word in words if word in _KNOWN]
    if not first and said in _KNOWN:
        return said
    if first and len(doubtful) > 1 and words[-1] in lexicon.READS and said in lexicon.READS:
        return words[-1]
    return doubtful[0] if doubtful else said


def _told(description: str) -> str:
    """The verb a description begins with; the first that acts behind it, where it begins by reading."""
    first = _first_word(description)
    if first not in lexicon.READS:
        return first
    later = (_base(word) for word in re.findall(r"(?:\band|\bthen|,)\s+([a-z]{2,})\b", description.lower()))
    return next((word for word in later if word in lexicon.VERBS and word not in lexicon.READS), first)


def _also(words: list[str]) -> Iterator[str]:
    """The acting verbs that a name adds to a reading one: `search_and_invite`, `export_contacts_to_email`."""
    for before, word in pairwise(words):
        added = before in _ADDS and word in lexicon.VERBS and word not in lexicon.READS
        if added or (before == "to" and word in lexicon.MEANS["send"] | lexicon.MEANS["pay"]):
            yield word


def own_verb(words: list[str], description: str) -> str:
    """The word a request would use for a tool whose verb the lexicon does not know: `star`, `refuel`."""
    said = _first_word(description, known=False)
    return said if said in words else ""


def _first_word(description: str, known: bool = True) -> str:
    """The verb a description begins with, in its base form: `Creates a …`, `Search for …`."""
    found = re.match(r"\s*([A-Za-z]{2,})", description)
    if not found:
        return ""
    word = found[1].lower()
    base = _base(word)
    return base if base in _KNOWN else "" if known else word.removesuffix("s")


def _base(word: str) -> str:
    """`creates` as `create`; a word that is no known verb as it is."""
    bases = (word, word.removesuffix("s"), word.removesuffix("es"), word.removesuffix("ies") + "y")
    return next((base for base in bases if base in _KNOWN | lexicon.VERBS), word)
