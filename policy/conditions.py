"""Conditions of rules: CEL expressions over a call's arguments.

`amount <= 100 && currency == "EUR"`, or the same through `args.amount`. The engine is cel-cpp: regular
expressions are RE2, nesting and iterations are bounded, and there is no clock to ask. What each iteration
does is not, so that all but what is sure to be quick is evaluated in a process of its own (policy/apart.py).
Nothing else is asked or kept.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache, partial
from itertools import product
from types import MappingProxyType
from typing import Any

from cel_expr_python import cel

from common.normal_forms import normalized
from policy import apart, links, meanings
from policy.cel_words import plain
from policy.links import DOTS, LEFT_OUT
from policy.provenance.terms import Facts
from policy.provenance.words import in_one_form
from policy.strict import DIFFERENT, NO_TEXT, TooDeep, strict

MAX_LENGTH = 1000  # characters of one condition
MAX_REPORTED = 10  # problems reported at once
CACHED = 4096  # compiled conditions kept, about 1 KB each

# In CEL these names are types wherever they stand; arguments so called are reached as args.type.
TYPES = "bool|bytes|double|dyn|int|list|map|null_type|string|timestamp|type|uint"
TYPE_NAMES = frozenset(TYPES.split("|"))
KEYWORDS = frozenset(("args", "true", "false", "null", "in"))

# What a condition may ask of the values' origin, and the variable each stands for. Both are equally long,
# so that the places of problems stay true.
SOURCE = re.compile(r"(?<![\w.])args\.([A-Za-z_][A-Za-z0-9_]*)\.source\b(?!\s*\()")
FACTS = {
    "run.read_outside": "run_read_outside",
    "call.steering_from_outside": "call_steering_from_outside",
    "call.asked_for": "call_asked_for",
    "call.carries_confidential": "call_carries_confidential",
}
FACT = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, FACTS))})\b")
SOURCES = "sources"
ARGS_OF, KNOWN = "args", "known"  # of what a condition is asked about
# A field of a record read earlier in the run: `read.get_order.status`, `read["shop.get_order"].status`.
READ = re.compile(r"(?<![\w.])read\s*(?=[.\[])")
RESULTS = "read"

# A mail address, and the part of a link that names a host: they mean the same in capitals. In a value all
# that stands before the @ counts, in a condition what can stand there without a quotation mark.
HOST = r"[\w.\u0300-\U0010ffff-]+"
PLACE = re.compile(rf"(?<!\S)\S*@{HOST}|https?://[^\s/?#@]+", re.IGNORECASE)
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
PAGE, HOST_ALONE = re.compile(r"://[^\s/?#]+/"), re.compile(r"://[^\s/?#]+$")
ARGUMENT_OF = re.compile(r"\w\s*\(\s*$")  # what stands before a text that is given to a function
SPACES = re.compile(r"(\s+)")

# What means something else in small letters, as `\S` does in a pattern.
ESCAPED = re.compile(r"(\\+(?:[pP](?:\{[^}]*\}|\w)|.))", re.DOTALL)

# A label of a host as machines write it (`xn--bcher-kva` for `bücher`): the same host, spelled in ASCII.
LABEL = re.compile(r"(?<![\w-])xn--[a-z0-9-]{1,59}(?![\w-])", re.IGNORECASE)

# A label that machines write so; of more letters than these there is none.
LETTERS = re.compile(r"[\w\u0300-\U0010ffff-]+")
MOST_LETTERS = 63

# What is sure to be quick, and up to how many bytes of values: no call but these, or one macro and nothing
# put together. It goes by the whole text, strings included, so that nothing hides in what looks like one.
CALLED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*\(")
QUICK = frozenset(
    ("size", "has", "contains", "startsWith", "endsWith", "int", "uint", "double", "string", "bool")
) | frozenset(("timestamp", "duration", "type", "in"))
MACROS = frozenset(("all", "exists", "exists_one"))
QUICK_BYTES = 65_536
MACRO_BYTES = 4096
MOST_SUMS = 8

STRING = re.compile(
    r'[rR]?(?:"{3}(?:\\.|[^\\])*?"{3}|\'{3}(?:\\.|[^\\])*?\'{3}'
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')',
    re.DOTALL,
)
LITERAL = re.compile(rf"{STRING.pattern}|//[^\n]*", re.DOTALL)
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
BARE_TYPE = re.compile(rf"(?<![\w.])(?:{TYPES})\b(?!\s*\()")
NOTHING: Mapping[str, Any] = MappingProxyType({})
NO_OPERATION = "No matching overload"
WHOLE, EXACT = 2**63, 2**53  # below these a whole number is one to the engine, and to JavaScript
ARGS = re.compile(r"(?<![\w.])args\b")
ARGS_FIELD = re.compile(r"(?<![\w.])args\s*\.\s*([A-Za-z_][A-Za-z0-9_]*)")
ROOT = re.compile(r"(?<![\w.])[A-Za-z_][A-Za-z0-9_]*\b(?!\s*\()")
VARIABLE = re.compile(r"\b(?:all|exists|exists_one|map|filter)\s*\(\s*([A-Za-z_][A-Za-z0-9_]*)\s*,")
FIELD = re.compile(r"\.\s*([A-Za-z_][A-Za-z0-9_]*)\b(?!\s*\()")
IN_OBJECT = re.compile(r"\s+in\s+(?:args\.)?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
KEY_IN_ARGS = re.compile(r"(\"[^\"\\]*\"|'[^'\\]*')(?=\s+in\s+args\b(?!\s*[.\[]))")
ARGS_INDEX = re.compile(r"(?<![\w.])args\s*\[\s*(?=[\"'])")
MATCHES = re.compile(r"(?<=\bmatches)\s*\(\s*")
SURROGATE = re.compile("[\ud800-\udfff]")
ESCAPE = re.compile(r"(\\.)", re.DOTALL)
QUOTED = re.compile(r"([rR]?)(\"{3}|'{3}|[\"'])(.*)\2", re.DOTALL)
PATTERN_OF = re.compile(r"\bmatches\s*\([^()]*$")
KEY_OF = re.compile(r"([\w\])]+)\s*\[\s*$")
REPORTED_AT = re.compile(r"<input>:(\d+):(\d+): ([^\n]*)")

# Numbers of different kinds compare at run time; only the checker holds them apart.
COMPARED_NUMBERS = re.compile(
    r"found no matching overload for '(?:_[<>]=?_|_[=!]=_|@in)' applied to "
    r"'\((?:int, double|double, int|int, list\(double\)|double, list\(int\))\)'"
)


class ConditionError(ValueError):
    """The condition cannot be evaluated; the message says why."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a condition, and where (lines and columns from 1)."""

    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}"


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled condition: what it says, and the names of arguments it may read."""

    program: cel.Expression
    names: tuple[str, ...]
    reads_args: bool
    asks_origin: bool = False
    asks_results: bool = False
    quick_bytes: int = 0  # of values, up to which it is evaluated in this process


def holds(
    text: str,
    arguments: Mapping[str, Any],
    facts: Callable[[], Facts] | None = None,
    allows: bool = False,
    defaults: Mapping[str, Any] = NOTHING,
) -> bool:
    """Whether the condition is true of these arguments; ConditionError where it is neither true nor false."""
    return speaks(answers(text, arguments, facts, defaults), allows)


def speaks(found: frozenset[bool], allows: bool) -> bool:
    """Whether a rule with a condition of these answers speaks of the call: one that `allows` takes all of
    them to be true, any other one of them.
    """
    return found == {True} if allows else True in found


def answers(
    text: str,
    arguments: Mapping[str, Any],
    facts: Callable[[], Facts] | None = None,
    defaults: Mapping[str, Any] = NOTHING,
) -> frozenset[bool]:
    """Whether the condition is true of these arguments, in each way in which it may be meant: with `defaults`
    in the place of what is left out as well, unless it asks where values come from.

    `facts` is called only by a condition that asks where the values came from. Addresses and hosts
    are compared in one spelling: eve@BANK.example reaches whom eve@bank.example reaches. A whole number is
    one however it is written (5.0): it is asked about both, unless the condition's arithmetic takes one.

    A text that is a link is asked about in the form in which it is asked for as well (policy/links.py).

    The condition may speak of a part of one, in capitals ("Bank.example", "CEO"), and which of its texts do
    nobody can tell. So where there are addresses it is asked once more without regard to capitals; where it
    speaks of "xn--", with hosts as machines write them; and where characters of an address are taken for
    others (wide letters, accents apart, invisible ones), with those; each of these without regard to capitals
    as well.
    """
    condition = compiled(_condition_small(text))
    known = {}
    if condition.asks_origin or condition.asks_results:
        known = _origins(arguments, facts, condition.asks_results)
    stated = [arguments]
    if not condition.asks_origin and (further := _left_out(text, condition.names, arguments, defaults)):
        stated.append({**arguments, **further})
    try:
        return frozenset(found for said in stated for found in _about(text, condition, said, known))
    except (apart.Failed, meanings.Unclear) as failure:
        raise ConditionError(str(failure)) from failure
    except RecursionError as failure:
        raise ConditionError("a value is nested too deeply") from failure


def _about(
    text: str, condition: Condition, arguments: Mapping[str, Any], known: Mapping[str, Any]
) -> set[bool]:
    """The answers with numbers in each way in which they may be meant. What the condition's operations do not
    take in one of them, and in another do, its author has not meant.
    """
    found: set[bool] = set()
    failed: Exception | None = None
    for values in _numbers({ARGS_OF: arguments, KNOWN: known}):
        try:
            found |= {_asked(*one) for one in _spelled(text, condition, values[ARGS_OF], values[KNOWN])}
        except (ConditionError, apart.Failed) as failure:
            if NO_OPERATION not in str(failure):
                raise
            failed = failure
    if failed is not None and not found:
        raise failed
    return found


def _left_out(
    text: str, names: Collection[str], arguments: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """The defaults of what the condition may ask for and the call does not say."""
    found = {name: value for name, value in defaults.items() if name not in arguments}
    if not found or (through_args := _named_through_args(text)) is None:
        return found
    return {name: value for name, value in found.items() if name in names or name in through_args}


def _numbers(values: Any) -> Iterator[Any]:
    """The values as they are, with whole numbers as such however they are written, and as those have them who
    read each number as one with a fraction.
    """
    yield values
    numbers = [value for value in _leaves(values) if isinstance(value, int | float)]
    for way in (_as_whole, _as_read):
        if any(type(way(number)) is not type(number) or way(number) != number for number in numbers):
            yield _each(values, way)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list | tuple):
        yield value
        return
    for inner in value:
        yield from _leaves(inner)


def _as_whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < WHOLE else value


def _as_read(value: Any) -> Any:
    exact = not isinstance(value, int) or abs(value) <= EXACT or abs(value) >= WHOLE
    return value if exact else int(float(value))


def _each(value: Any, spelled: Callable[[Any], Any]) -> Any:
    """The same with everything in it that is no list or object `spelled`."""
    if isinstance(value, Mapping):
        return {name: _each(inner, spelled) for name, inner in value.items()}
    return [_each(inner, spelled) for inner in value] if isinstance(value, list | tuple) else spelled(value)


def _said(text: str, names: Collection[str], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments that the condition names; all of them where it asks of `args` as a whole. Raises Unclear
    where it names one in other letters, which its tool may take for the same.
    """
    places = [(arguments, _asks_for(text)), (_within(arguments), _asks_within(text))]
    places += [(_at(arguments, path), {name.casefold(): name}) for name, path in _asked_in(text)]
    for names_in, asks_for in places:
        for name in names_in:
            if (meant := asks_for.get(name.casefold(), name)) != name and not _is_place(name):
                raise meanings.Unclear(f"it asks for '{meant}', and the call has '{name}'")
    through_args = _named_through_args(text)
    if through_args is None:
        return arguments
    return {name: value for name, value in arguments.items() if name in names or name in through_args}


@lru_cache(maxsize=CACHED)
def _named_through_args(text: str) -> frozenset[str] | None:
    """The names in `args.name` and `args["name"]`; None where it asks of `args` as a whole, or writes a
    name in another way.
    """
    code = _code(text)
    literals = _in_brackets(text, code)
    fields = [field[1] for field in ARGS_FIELD.finditer(code)]
    plainly = all("\\" not in literal[0] and literal[0][:3] not in ('"""', "'''") for literal in literals)
    if not plainly or len(ARGS.findall(code)) > len(fields) + len(literals):
        return None
    return frozenset((*fields, *(literal[0][1:-1] for literal in literals)))


@lru_cache(maxsize=CACHED)
def _asks_for(text: str) -> dict[str, str]:
    """The names of arguments in it, by the same without regard to capitals; none that it has in two ways."""
    code = _code(_plain(text))
    roots = set(ROOT.findall(code)) - TYPE_NAMES - KEYWORDS - set(VARIABLE.findall(code))
    keys = {literal[0][1:-1] for literal in (*_in_brackets(text, _code(text)), *KEY_IN_ARGS.finditer(text))}
    return _without_capitals_unlike((*roots, *keys, *(field[1] for field in ARGS_FIELD.finditer(code))))


@lru_cache(maxsize=CACHED)
def _asks_within(text: str) -> dict[str, str]:
    """The same of the names in objects."""
    code = _code(_plain(text))
    fields = FIELD.findall(ARGS_FIELD.sub("", code))
    keys = {literal[0][1:-1] for literal in STRING.finditer(text) if _is_key_within(text, literal)}
    return _without_capitals_unlike((*fields, *keys))


def _is_key_within(text: str, literal: re.Match[str]) -> bool:
    key = KEY_OF.search(text[: literal.start()])
    return bool(key and key[1] not in ("args", "in"))


@lru_cache(maxsize=CACHED)
def _asked_in(text: str) -> list[tuple[str, list[str]]]:
    """The texts in `"name" in args.headers`, with the path of what they may be names in."""
    found = [(literal, IN_OBJECT.match(text, literal.end())) for literal in STRING.finditer(text)]
    return [(literal[0][1:-1], path[1].split(".")) for literal, path in found if path]


def _at(value: Any, path: Iterable[str]) -> Iterable[str]:
    """The names of the object at that path; none where there is no object."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else ()


def _without_capitals_unlike(names: Iterable[str]) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for name in names:
        found.setdefault(name.casefold(), set()).add(name)
    return {folded: only for folded, (only, *others) in found.items() if not others}


def _within(value: Any) -> Iterator[str]:
    """All names in its objects but its own."""
    for inner in value.values() if isinstance(value, Mapping) else value:
        if isinstance(inner, Mapping):
            yield from inner
        if isinstance(inner, Mapping | list | tuple):
            yield from _within(inner)


def _in_brackets(text: str, code: str) -> list[re.Match[str]]:
    """The literals in `args["name"]`."""
    indexes = [index for index in ARGS_INDEX.finditer(text) if code[index.start()] != " "]
    literals = [literal for index in indexes if (literal := STRING.match(text, index.end()))]
    return [literal for literal in literals if code[literal.end() :].lstrip().startswith("]")]


def _asked(text: str, values: Mapping[str, Any]) -> bool:
    quick = compiled(text).quick_bytes
    return here(text, values) if _size(values, quick) <= quick else apart.truth(text, values)


def _spelled(
    text: str, condition: Condition, arguments: Mapping[str, Any], known: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The condition and the values in each of the spellings in which it is asked: where a text is nothing but
    recipients, with names or other signs around them, about each of these alone as well.
    """
    composed = normalized("NFC", text)
    ways = [(_condition_small(text), _small), (_condition_small(composed), _usual)]
    if "xn" in text.lower():  # it speaks of how machines write hosts: xn--, or xn\\-\\- in a pattern
        ways.append((_condition_of_machines(composed), _of_machines))
    asked: set[str] = set()
    said = _said(text, condition.names, arguments)
    meanings.check_people(said)
    forms: list[Callable[[str], str]] = [str]
    link = partial(links.normal, escaped=any("%" in literal[0] for literal in STRING.finditer(text)))
    if any(link(one) != one for one in meanings.texts(said)):
        forms.append(link)
    pages: list[tuple[Callable[[str], str], Callable[[str], str]]] = [(str, str)]
    if any(FIRST_PAGE.fullmatch(form(one)) for one in meanings.texts(said) for form in forms):
        pages += _pages(text)
    for one, (spelled, way), form, (completed, page) in product(
        meanings.ways({ARGS_OF: arguments, KNOWN: known}, {ARGS_OF: said, KNOWN: known}), ways, forms, pages
    ):
        words, asked_of = completed(spelled), meanings.each(meanings.each(one, form), page)
        of = asked_of[ARGS_OF]
        values = {name: of[name] for name in condition.names if name in of} | asked_of[KNOWN]
        found = meanings.each(values | ({"args": of} if condition.reads_args else {}), way)
        if (key := repr((words, found))) in asked:
            continue
        asked.add(key)
        yield words, found
        without, lowered = _without_capitals(words), _lowered(found)
        if (without, lowered) != (words, found) and (_has_place(found) or _has_bare(found)):
            yield without, lowered


@lru_cache(maxsize=CACHED)
def _pages(text: str) -> list[tuple[Callable[[str], str], Callable[[str], str]]]:
    """How a condition that speaks of links, and the link to a host's first page, are written beside as they
    are: with its slash where it speaks of further pages, and without it otherwise.
    """
    said = [quoted[3] for literal in STRING.finditer(text) if (quoted := QUOTED.fullmatch(literal[0]))]
    if any(map(PAGE.search, said)):
        return [(_condition_with_slashes, _with_slash)]
    return [(str, _without_slash)] if any(map(HOST_ALONE.search, said)) else []


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
def _condition_small(text: str) -> str:
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
    return found if _is_place(found) or BARE.fullmatch(found) else word


def _places(text: str, spelled: Callable[[str], str]) -> str:
    return PLACE.sub(lambda place: spelled(place[0]), text) if _is_place(text) else text


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


def _is_place(text: str) -> bool:
    return "@" in text or "://" in text


def _has_place(value: Any) -> bool:
    return any(map(_is_place, meanings.texts(value)))


def _has_bare(value: Any) -> bool:
    return any(map(BARE.fullmatch, meanings.texts(value)))


def _lowered(value: Any) -> Any:
    """The same with every text in small letters, but for names."""
    if isinstance(value, str):
        return _in_small_letters(value)
    if isinstance(value, Mapping):
        return {name: _lowered(inner) for name, inner in value.items()}
    return [_lowered(inner) for inner in value] if isinstance(value, list) else value


@lru_cache(maxsize=CACHED)
def _without_capitals(text: str) -> str:
    """The condition with its texts in small letters, but for names of arguments; of a pattern, with no regard
    to capitals.
    """

    def small(literal: re.Match[str]) -> str:
        quoted = QUOTED.fullmatch(literal[0])
        before = text[: literal.start()]
        key = KEY_OF.search(before)
        if quoted is None or quoted[3] == _in_small_letters(quoted[3]) or (key and key[1] != "in"):
            return literal[0]
        raw, mark, words = quoted.groups()
        if PATTERN_OF.search(before):
            return f"{raw}{mark}(?i){words}{mark}"
        parts = [words] if raw else ESCAPE.split(words)
        parts[::2] = map(_in_small_letters, parts[::2])  # between the escapes
        return "".join((raw, mark, *parts, mark))

    return LITERAL.sub(small, text)


def _in_small_letters(text: str) -> str:
    """In one form of the Greek s as well, which has another at the end of a word, and of ß, which IDNA has as
    itself or as ss.
    """
    return text.lower().replace("ς", "σ").replace("ß", "ss")


def here(text: str, values: Mapping[str, Any]) -> bool:
    """Whether it is true of the values of its names, in this process. Raises ConditionError."""
    try:
        return _truth(compiled(text).program.eval(data=values))
    except ConditionError:
        raise
    except Exception as failure:  # the engine raises RuntimeError, its value conversion whatever it meets
        raise ConditionError(_reason(failure)) from failure


def _quick_bytes(text: str) -> int:
    """Bytes of values up to which a condition is sure to be quick; -1: it never is."""
    others = [name for name in CALLED.findall(text) if name not in QUICK]
    sums = text.count("+")
    if "//" in text or sums > MOST_SUMS:  # a comment may stand between a name and its bracket
        return -1
    if not others:
        return QUICK_BYTES
    return MACRO_BYTES if len(others) == 1 and others[0] in MACROS and not sums else -1


def _size(value: Any, most: int) -> int:
    """About how many bytes a value has, counted no further than `most`."""
    if isinstance(value, str):
        return len(value)
    found, parts = 8, tuple[Any, ...]()
    if isinstance(value, Mapping):
        found += sum(map(len, map(str, value)))
        parts = tuple(value.values())
    elif isinstance(value, list | tuple):
        parts = tuple(value)
    for part in parts:
        if found > most:
            break
        found += _size(part, most - found)
    return found


def _origins(
    arguments: Mapping[str, Any], facts: Callable[[], Facts] | None, results: bool
) -> dict[str, Any]:
    if facts is None:
        raise ConditionError("nothing says where the values come from")
    found = facts()
    return {
        SOURCES: {name: found.source(name, value) for name, value in arguments.items()},
        "run_read_outside": found.read_outside,
        "call_steering_from_outside": found.steering_from_outside,
        "call_asked_for": found.asked_for,
        "call_carries_confidential": bool(found.carries),
        **({RESULTS: found.results()} if results else {}),
    }


def _truth(answer: cel.Value) -> bool:
    """The answer, if it is one. The value of a null is never fetched: cel-expr-python 0.1.3 returns None
    without taking a reference to it, which ends a Python 3.11 process after some thousand times.
    """
    kind = answer.type()
    if kind == cel.Type.BOOL:
        return bool(answer.value())
    if kind == cel.Type.ERROR:
        raise ConditionError(_reason(answer.value()))
    raise ConditionError(f"it is {kind.name().lower()}, not true or false")


@lru_cache(maxsize=CACHED)
def compiled(text: str) -> Condition:
    """The condition ready to be evaluated, kept for the next time. ConditionError where it does not parse.

    Types are left to run time: one rule may speak of tools with different arguments.
    """
    problems = list(_malformed(text)) or (check(text) if BARE_TYPE.search(_code(text)) else [])
    if problems:
        raise ConditionError(str(problems[0]))
    try:
        program = _program(text)
    except RuntimeError as failure:
        problem = _problems(failure)[0]
        raise ConditionError(str(replace(problem, message=plain(problem.message)))) from failure
    code = _code(_plain(text))
    words = set(IDENTIFIER.findall(code))
    names = tuple(sorted(words - TYPE_NAMES - KEYWORDS - {SOURCES, *FACTS.values()}))
    asks_results = bool(READ.search(code))
    names = tuple(name for name in names if not (asks_results and name == RESULTS))
    return Condition(program, names, "args" in words, code != _code(text), asks_results, _quick_bytes(text))


def _program(text: str) -> cel.Expression:
    return strict(_untyped(), _untyped().compile(_plain(text), disable_check=True))


def check(text: str, schema: Mapping[str, Any] | None = None) -> list[Problem]:
    """What is wrong with a condition that is about to be saved; nothing, if it can be used.

    With a tool's JSON Schema, unknown argument names and operations its types do not allow are problems too.
    """
    problems = list(_malformed(text))
    if problems:
        return problems
    for number in (cel.Type.DOUBLE, cel.Type.INT):  # a JSON number arrives as either
        problems += _type_problems(_plain(text), _variables(_plain(text), schema, number))
    problems += _unknown_fields(text, schema)
    problems += _bad_patterns(text)
    problems += [] if problems else _too_deep(text)
    first_at = {(problem.line, problem.column): problem for problem in reversed(problems)}
    found = [first_at[place] for place in sorted(first_at)][:MAX_REPORTED]
    names = (schema or {}).get("properties") or {}
    return [replace(problem, message=plain(problem.message, names)) for problem in found]


def _too_deep(text: str) -> Iterator[Problem]:
    try:
        _program(text)
    except TooDeep as failure:
        yield Problem(1, 1, str(failure))


def _malformed(text: str) -> Iterator[Problem]:
    if not text.strip():
        yield Problem(1, 1, "the condition is empty")
    elif len(text) > MAX_LENGTH:
        yield Problem(1, MAX_LENGTH + 1, f"the condition is longer than {MAX_LENGTH} characters")
    elif surrogate := SURROGATE.search(text):
        yield _problem_at(text, surrogate.start(), "a lone surrogate is no character")


def _variables(text: str, schema: Mapping[str, Any] | None, number: cel.Type) -> dict[str, cel.Type]:
    if schema is None:
        names: dict[str, Any] = dict.fromkeys(IDENTIFIER.findall(_code(text)), None)
    else:
        names = dict(schema.get("properties") or {})
    return {
        name: _type_of(names[name], number)
        for name in names
        if IDENTIFIER.fullmatch(name) and name not in TYPE_NAMES and name not in KEYWORDS
    }


def _type_of(schema: Any, number: cel.Type) -> cel.Type:
    if not isinstance(schema, Mapping):
        return cel.Type.DYN
    kind = schema.get("type")
    if kind == "array":
        return cel.Type.List(_type_of(schema.get("items"), number))
    if kind == "object":
        return cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
    if not isinstance(kind, str):
        return cel.Type.DYN
    simple = {"string": cel.Type.STRING, "integer": cel.Type.INT, "boolean": cel.Type.BOOL, "number": number}
    return simple.get(kind, cel.Type.DYN)


def _type_problems(text: str, variables: dict[str, cel.Type]) -> list[Problem]:
    everything = {"args": cel.Type.Map(cel.Type.STRING, cel.Type.DYN)}
    if READ.search(_code(text)):
        everything[RESULTS] = cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
    if _asks_origin(text):
        everything[SOURCES] = cel.Type.Map(cel.Type.STRING, cel.Type.STRING)
        everything |= dict.fromkeys(FACTS.values(), cel.Type.BOOL)
    try:
        kind = cel.NewEnv(variables={**variables, **everything}).compile(text).return_type()
    except RuntimeError as failure:
        return [problem for problem in _problems(failure) if not COMPARED_NUMBERS.match(problem.message)]
    if kind not in (cel.Type.BOOL, cel.Type.DYN):
        return [Problem(1, 1, f"it is {kind.name().lower()}, not true or false")]
    return []


def _unknown_fields(text: str, schema: Mapping[str, Any] | None) -> Iterator[Problem]:
    if schema is None or schema.get("additionalProperties"):
        return
    known = schema.get("properties") or {}
    code = _code(text)
    for field in ARGS_FIELD.finditer(code):
        if field[1] not in known:
            yield _problem_at(text, field.start(1), _no_argument(field[1], known))
    for literal in _in_brackets(text, code):
        if (name := literal[0][1:-1]) not in known:
            yield _problem_at(text, literal.start(), _no_argument(name, known))


def _no_argument(name: str, known: Mapping[str, Any]) -> str:
    near = get_close_matches(name, list(known), 2)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"the tool has no argument '{name}'{hint}"


def _bad_patterns(text: str) -> Iterator[Problem]:
    """Regular expressions that are no RE2, found by trying each literal one."""
    for call in MATCHES.finditer(text):
        literal = STRING.match(text, call.end())
        if literal and _code(text)[call.start()] == "(":
            try:
                _truth(_untyped().compile(f'"".matches({literal[0]})', disable_check=True).eval())
            except (ConditionError, RuntimeError) as failure:
                yield _problem_at(text, literal.start(), _reason(failure))


def _plain(text: str) -> str:
    """The condition with what it asks of origins as variables: `args.to.source` is `sources["to"]`."""
    code = _code(text)
    for found in (*SOURCE.finditer(code), *FACT.finditer(code)):
        said = f'{SOURCES}["{found[1]}"] ' if found.re is SOURCE else FACTS[found[0]]
        text = text[: found.start()] + said + text[found.end() :]
    return text


def _asks_origin(plain: str) -> bool:
    return any(word in plain for word in (f'{SOURCES}["', *FACTS.values()))


def _problem_at(text: str, offset: int, message: str) -> Problem:
    line_start = text.rfind("\n", 0, offset) + 1
    return Problem(text.count("\n", 0, offset) + 1, offset - line_start + 1, message)


def _problems(failure: Exception) -> list[Problem]:
    found = [
        Problem(int(line), int(column), _reason(said))
        for line, column, said in REPORTED_AT.findall(str(failure))
    ]
    return found or [Problem(1, 1, _reason(failure))]


def _reason(said: object) -> str:
    for known in (DIFFERENT, NO_TEXT):
        if known in str(said):
            return known
    first_line = str(said).split("\n", 1)[0].replace(" (in container '')", "")
    return re.sub(r"^[A-Z_]+: ", "", first_line)[:300]


def _code(text: str) -> str:
    """The text with string literals and comments blanked out, every character where it was."""
    blank: Callable[[re.Match[str]], str] = lambda literal: " " * len(literal[0])  # noqa: E731
    return LITERAL.sub(blank, text)


@lru_cache(maxsize=1)
def _untyped() -> cel.Env:
    return cel.NewEnv()
