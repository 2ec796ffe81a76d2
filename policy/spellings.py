"""The spellings in which a condition is asked: addresses, hosts and links have the same on both sides."""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache, partial
from itertools import product
from typing import Any

from common.normal_forms import normalized
from policy import cel_names, links, meanings
from policy.cel_text import CACHED, ESCAPE, KEY_OF, LITERAL, PATTERN_OF, QUOTED, STRING, quotations
from policy.links import DOTS, LEFT_OUT
from policy.provenance.words import in_one_form

# A mail address, and the part of a link that names a host: they mean the same in capitals. In a value all
# that stands before the @ counts, in a condition what can stand there without a quotation mark.
HOST = r"[\w.\u0300-\U0010ffff-]+"
PLACE = re.compile(rf"(?<!\S)(?!https?://)\S*@{HOST}|https?://[^\s/?#@]+(?:@{HOST})?|@{HOST}", re.IGNORECASE)
SPOKEN = re.compile(
    rf"(?<![^\s@<>,;:\"'()|])[^\s@<>,;:\"'()|]*@{HOST}|@{HOST}|https?://[^\s/?#@\"'()|\[\]{{}}]+",
    re.IGNORECASE,
)

# A host alone, or a link without what usually begins one: programs that open it complete it. It may be
# another name with a dot as well.
BARE = re.compile(
    rf"\s*(?:https?:)?[/\\]*(?=\S*[.。]){HOST}(?:[:/?#\\].*)?",
    re.IGNORECASE | re.DOTALL,
)

# A link to a host's first page: the same one with and without its slash. And a link to any page.
FIRST_PAGE = re.compile(r"(https?://[^\s/?#]+)/?((?:[?#].*)?)", re.IGNORECASE | re.DOTALL)
PAGE = re.compile(r"://[^\s/?#]+/|[\w-]\.[\w-]+/")
EMPTY_PART = re.compile(r"[^\s:\"'/]//")
HOST_ALONE = re.compile(r"://[^\s/?#]+(?:[?#]|$)")
ARGUMENT_OF = re.compile(r"\w\s*\(\s*$")  # what stands before a text that is given to a function
SPACES = re.compile(r"(\s+)")

# What means something else in small letters, as `\S` does in a pattern.
ESCAPED = re.compile(r"(\\+(?:[pP](?:\{[^}]*\}|\w)|.))", re.DOTALL)

# A label of a host as machines write it (`xn--bcher-kva` for `bücher`): the same host, spelled in ASCII.
LABEL = re.compile(r"(?<![\w-])xn--[a-z0-9-]{1,59}(?![\w-])", re.IGNORECASE)

# A label that machines write so; of more letters than these there is none.
LETTERS = re.compile(r"[\w\u0300-\U0010ffff-]+")
MOST_LETTERS = 63

OF_A_TIME = re.compile(r"\b(?:get[A-Z]\w*|timestamp|duration)\s*\(\s*$")  # takes the name of a time zone
CAPITALS = re.compile(r"\[:upper:\]|\\[pP]\{?L", re.IGNORECASE)  # of a pattern
MOST_COMPARED = 100  # texts of a call


def ways(
    text: str,
    names: Collection[str],
    reads_args: bool,
    arguments: Mapping[str, Any],
    known: Mapping[str, Any],
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The condition and the values in each of the spellings in which it is asked: where a text is nothing but
    recipients, with names or other signs around them, about each of these alone as well. `names` are those
    that the condition may read, and whether it `reads_args` as a whole. Raises Unclear.
    """
    composed = normalized("NFC", text)
    spellings = [(condition_small(text), _small), (condition_small(composed), _usual)]
    if "xn" in text.lower():  # it speaks of how machines write hosts: xn--, or xn\\-\\- in a pattern
        spellings.append((_condition_of_machines(composed), _of_machines))
    asked: set[str] = set()
    said = cel_names.said(text, names, arguments)
    meanings.check_people(said)
    texts = dict.fromkeys(meanings.texts(said))
    forms = [form for form in _forms(text) if any(form(one) != one for one in texts)]
    pages: list[tuple[Callable[[str], str], Callable[[str], str]]] = [(str, str)]
    if any(map(FIRST_PAGE.fullmatch, (*texts, *(form(one) for form in forms for one in texts)))):
        pages += _pages(text)
    meant = meanings.ways({**arguments, meanings.BESIDE: known}, {**said, meanings.BESIDE: known}, forms)
    for one, (spelled, way), (completed, page) in product(meant, spellings, pages):
        words, asked_of = completed(spelled), one if page is str else meanings.each(one, page)
        of = {name: value for name, value in asked_of.items() if name != meanings.BESIDE}
        values = {name: of[name] for name in names if name in of} | asked_of[meanings.BESIDE]
        found = meanings.each(values | ({"args": of} if reads_args else {}), way)
        if (key := repr((words, found))) in asked:
            continue
        asked.add(key)
        yield words, found
        named = {name: found.get(name, of.get(name)) for name in said}
        for further in _without_regard(words, found, dict.fromkeys(meanings.texts(named))):
            if (key := repr(further)) not in asked:
                asked.add(key)
                yield further


@lru_cache(maxsize=CACHED)
def _forms(text: str) -> list[Callable[[str], str]]:
    """In which forms links are asked about beside as they are: with escapes where the condition has some, and
    without where it has none, or other letters than ASCII's; with a part of a page, or the usual port, where
    it has one.
    """
    said = "".join(literal[0] for literal in STRING.finditer(text))
    form = partial(links.normal, with_part="#" in said, with_port=bool(links.USUAL_PORT.search(said)))
    escaped = {True} if links.ESCAPES.search(said) else {False}
    escaped |= set() if said.isascii() else {False}
    paths = range(links.KEEPING_SLASHES if True in escaped else len(links.PATHS))
    if EMPTY_PART.search(said):
        paths = range(1)
    return [partial(form, path_as=number, escaped=way) for way in sorted(escaped) for number in paths]


@lru_cache(maxsize=CACHED)
def _pages(text: str) -> list[tuple[Callable[[str], str], Callable[[str], str]]]:
    """How a condition that speaks of links, and the link to a host's first page, are written beside as they
    are: with its slash where it speaks of pages, and without it where it speaks of none, or of a host alone.
    """
    said = [words for _, words in quotations(text)]
    of_pages, of_hosts = any(map(PAGE.search, said)), any(map(HOST_ALONE.search, said))
    with_slash = [(_condition_with_slashes, _with_slash)] if of_pages else []
    return with_slash + ([(str, _without_slash)] if of_hosts or not of_pages else [])


@lru_cache(maxsize=CACHED)
def _condition_with_slashes(text: str) -> str:
    """The condition with links to hosts' first pages with their slash, where one is a whole text that values
    are compared with.
    """

    def completed(literal: re.Match[str]) -> str:
        quoted = QUOTED.fullmatch(literal[0])
        if quoted is None or ARGUMENT_OF.search(text[: literal.start()]):
            return literal[0]
        raw, mark, words = quoted.groups()
        return f"{raw}{mark}{_with_slash(words)}{mark}"

    return LITERAL.sub(completed, text)


def _with_slash(text: str) -> str:
    return f"{page[1]}/{page[2]}" if (page := FIRST_PAGE.fullmatch(text)) else text


def _without_slash(text: str) -> str:
    return f"{page[1]}{page[2]}" if (page := FIRST_PAGE.fullmatch(text)) else text


@lru_cache(maxsize=CACHED)
def condition_small(text: str) -> str:
    """The condition with addresses and hosts in one spelling; what its patterns ask stays."""
    return _places_in_condition(LABEL.sub(_as_people_write, text), _place_small)


@lru_cache(maxsize=CACHED)
def _condition_of_machines(text: str) -> str:
    """The same with hosts as machines write them."""
    return _places_in_condition(text, _place_of_machines)


def _places_in_condition(text: str, spelled: Callable[[str], str]) -> str:
    def place(found: re.Match[str]) -> str:
        parts = ESCAPED.split(found[0])
        parts[::2] = map(spelled, parts[::2])  # between the escapes
        return "".join(parts)

    return SPOKEN.sub(place, text)


def _small(text: str) -> str:
    """The text with addresses and hosts in one spelling: in small letters, and as people write them."""
    return _places(LABEL.sub(_as_people_write, text) if "xn--" in text.lower() else text, _place_small)


def _usual(text: str) -> str:
    """The same of one with an address whose characters may be written in other ways: wide, or in parts."""
    return _small(_plain_words(text))


def _of_machines(text: str) -> str:
    """The same with hosts as machines write them."""
    plain_text = _plain_words(text)
    is_bare = BARE.fullmatch(plain_text)
    return _place_of_machines(plain_text) if is_bare else _places(plain_text, _place_of_machines)


def _plain_words(text: str) -> str:
    return text if text.isascii() else "".join(map(_plain_word, SPACES.split(text)))


def _plain_word(word: str) -> str:
    if word.isascii():
        return word
    found = in_one_form(LEFT_OUT.sub("", word)).translate(DOTS)
    return found if _is_place_or_host(found) else word


def _places(text: str, spelled: Callable[[str], str]) -> str:
    return PLACE.sub(lambda place: spelled(place[0]), text) if meanings.is_place(text) else text


def _place_small(place: str) -> str:
    return place.lower().translate(DOTS)


def _place_of_machines(place: str) -> str:
    small = _place_small(place)
    start = max(small.rfind("@"), small.rfind("//")) + 1
    return small[:start] + LETTERS.sub(_as_machines_write, small[start:])


def _as_machines_write(label: re.Match[str]) -> str:
    if label[0].isascii() or len(label[0]) > MOST_LETTERS:
        return label[0]
    return f"xn--{label[0].encode('punycode').decode()}"


def _as_people_write(label: re.Match[str]) -> str:
    """`bücher` for `xn--bcher-kva`; what no host could have stays, as does what would end a text."""
    small = label[0].lower()
    try:
        found = small[4:].encode().decode("punycode")
    except UnicodeError:
        return small
    usual = all(sign == "-" or sign.isalnum() or unicodedata.category(sign)[0] == "M" for sign in found)
    return found.lower() if usual and not found.isascii() else small


def _without_regard(text: str, values: Any, said: Collection[str]) -> Iterator[tuple[str, Any]]:
    """The condition and the values without regard to capitals in texts with addresses or hosts, and in what
    may be a part of one; and in all, where another text of the values may be. `said`: the texts it names.
    """
    places = {one: _in_small_letters(one) for one in said if _is_place_or_host(one)}
    others = {one: _in_small_letters(one) for one in said if one not in places}
    many = len(said) > MOST_COMPARED
    parts = frozenset(
        start
        for start, part in _capitals(text)
        if many or part == "\\" or any(part in place for place in places.values())
    )
    capitals = [one for one, small in places.items() if one != small]
    odd = any(BARE.fullmatch(one) or places[one] != one.lower() for one in capitals)
    if places and (parts or odd):
        yield _without_capitals(text, parts), _lowered(values, _is_place_or_host)
    meets = any(small in place for one, small in others.items() if one != small for place in places.values())
    if places and (many or meets or any(a != b and places[a] in places[b] for a in capitals for b in places)):
        yield _without_capitals(text), _lowered(values)


@lru_cache(maxsize=CACHED)
def _capitals(text: str) -> tuple[tuple[int, str], ...]:
    """Where the condition's texts with capitals begin, and each in small letters; a pattern, and one with
    escapes, as a backslash.
    """
    found: list[tuple[int, str]] = []
    for literal, words in quotations(text):
        is_pattern = PATTERN_OF.search(text[: literal.start()])
        if _has_capitals(words, is_pattern):
            unknown = "\\" in words or is_pattern
            found.append((literal.start(), "\\" if unknown else _in_small_letters(words)))
    return tuple(found)


def _is_place_or_host(text: str) -> bool:
    return meanings.is_place(text) or bool(BARE.fullmatch(text))


def _lowered(value: Any, which: Callable[[str], bool] = bool) -> Any:
    """The same with every text, or those of `which` it is true, in small letters, but for names."""

    def small(leaf: Any) -> Any:
        return _in_small_letters(leaf) if isinstance(leaf, str) and which(leaf) else leaf

    return meanings.each_leaf(value, small)


@lru_cache(maxsize=CACHED)
def _without_capitals(text: str, starts: frozenset[int] | None = None) -> str:
    """The condition with its texts, or those that begin at these places, in small letters, but for names of
    arguments; of a pattern, with no regard to capitals.
    """

    def small(literal: re.Match[str]) -> str:
        if starts is not None and literal.start() not in starts:
            return literal[0]
        quoted = QUOTED.fullmatch(literal[0])
        before = text[: literal.start()]
        key = KEY_OF.search(before)
        is_pattern = PATTERN_OF.search(before)
        if quoted is None or not _has_capitals(quoted[3], is_pattern) or (key and key[1] != "in"):
            return literal[0]
        raw, mark, words = quoted.groups()
        if OF_A_TIME.search(before):
            return literal[0]
        if is_pattern:
            return f"{raw}{mark}(?i){words}{mark}"
        parts = [words] if raw else ESCAPE.split(words)
        parts[::2] = map(_in_small_letters, parts[::2])  # between the escapes
        return "".join((raw, mark, *parts, mark))

    return LITERAL.sub(small, text)


def _has_capitals(text: str, is_pattern: object) -> bool:
    return text != _in_small_letters(text) or bool(is_pattern and CAPITALS.search(text))


def _in_small_letters(text: str) -> str:
    """In one form of the Greek s as well, which has another at the end of a word, and of ß, which IDNA has as
    itself or as ss.
    """
    return text.lower().replace("ς", "σ").replace("ß", "ss")
