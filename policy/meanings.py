"""The values that a call may mean beside those it has: one recipient of a text that names several."""

import email.utils
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from functools import cache
from itertools import chain, product
from math import prod
from typing import Any

from policy.provenance.words import INVISIBLE, in_one_form

BESIDE = "\0"  # what is known beside the arguments, none of which has this name
MOST_RECIPIENTS = 50  # in one text
MOST_TOGETHER = 2500  # ways to take one recipient of each of several texts
MOST_MIXED = 150_000  # texts in all the ways in which an argument's are mixed: about a second
FEW_WAYS = 64  # to mix them, of which all are looked at

# What may stand between and around the addresses of a text that is nothing but recipients, as in
# `"Ann" <ann@bank.example>, bob@post.example (home)`.
BETWEEN = re.compile(r"[,;|\n\r]")
ENDS = re.compile(r"(?<=[,;])\s++|(?<!\s)\s++(?=[,;]|\Z)|^\s++")  # of lines, beside what separates
# Signs that one server leaves out and another does not.
CONTROLS = re.compile(
    rf"[\x00-\x1f\x7f-\x9f\u2028\u2029]|(?:{INVISIBLE.pattern})\s|\s(?:{INVISIBLE.pattern})"
)
NAMED = re.compile(r"[^<>@]*<([^<>]*)>[^<>@]*")
SEVERAL_NAMED = re.compile(r"[^<>@]*(?:<[^<>]*@[^<>]*>[^<>@]*){2,}")
COMMENT = re.compile(r"\([^()@]*\)")
INNERMOST, COMMENTS_DEEP = re.compile(r"\([^()]*\)"), 3
BEFORE = re.compile(r"[^@<>:/]*+:(?!/)")  # a group's name, or mailto:
ANGLED = re.compile(r"<\s*(?:mailto:)?([^<>@\s]+@[^<>@\s]+)\s*>", re.IGNORECASE)
LONGEST = 200_000  # characters of a text that is looked at for recipients
AROUND = "<>()[]\"'."
MARKED = AROUND + "*{}`=~#!?$&^%+-_/\\"  # signs that an address may begin or end with, and seldom does
NEAR = re.compile(r"(?<!\s)\s*+([@.])\s*+")
ENCODED = "=?"  # how an encoded word begins; blanks between two of them are none of the text
ENCODED_WORD = re.compile(r"=\?([^?*\s]++)(?:\*[^?\s]*+)?(\?[bq]\?[^?]*+\?=)(?:\s++(?==\?))?", re.IGNORECASE)
LINK_ALONE = re.compile(r"\s*+[a-z][a-z0-9+.-]*+:[/\\]\S*+\s*+", re.IGNORECASE)
# What has an @ and is nobody: a path, a mention, a version, a place that programs copy from.
NO_RECIPIENT = re.compile(
    r"^[^@]*/[^@]*@|(?<!\S)@\w|\w@[\w.-]*\.?\d+(?![\w.-])|^\S*\w@[\w.-]+:(?!\d+$)[^\s@,;]+$"
)
FEW = 3  # words that are names, for each address
# What the names of arguments for people who are written to end with: `to`, `ccRecipients`, `reply_to`.
PEOPLE = re.compile(
    r"b?cc|senders?|recipients?|receivers?|participants?|attendees?|invitees?|guests?|addressees?"
    r"|(?:e?mail|to)?address(?:es)?|e?mails?",
    re.IGNORECASE,
)
# Whole names.
DIRECTIONS = re.compile(r"(?:e?mail|send|reply|forward|deliver|notify|copy)?to|from", re.IGNORECASE)
# And those for words, programs and places, where nothing is a recipient.
PROSE = re.compile(
    r"subject|body|text|content|message|description|title|summary|comment|html|markdown|query|sql|code|path|file"
    r"|filename|url|uri|link|location",
    re.IGNORECASE,
)
HANDLE = re.compile(r"\s*@\w+\s*")
_ADDRESS = r"\w(?:[\w.+=&'~#-]*+(?<=[\w+=~#-]))?@\w(?:[\w.-]*+(?<=\w))?"
# One of a plain list, with what stands behind it; between two may stand names without an address.
ONE = re.compile(
    rf"\s*+(?:(?:mailto:)?{_ADDRESS}\s*+|(?:\"[^\"\\<>@]*+\"|[^<>@,;:\"\\\[\]=]*+)\s*+<{_ADDRESS}>\s*+"
    r"|[^<>@,;:\"\\=]*+)(?:[,;]|$)",
    re.IGNORECASE,
)
WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
NEEDLESS = re.compile(r"<\s*>|(?<=<)\s*@[^<>:]*:")  # nothing, and by which hosts a mail goes
MARKS = str.maketrans("“”„‟«»‹›", '"' * 8)  # quotation marks, as people write them
# Addresses wherever they stand, and those whose name is in quotation marks: `"ann"@bank.example`.
SIGN, HOST = r'[^\s<>()\[\],;:|"@/]', r"[\w.-]"
PLAIN = re.compile(rf"(?<!{SIGN})(?:{SIGN}++|[/|])@{HOST}+")
QUOTED = re.compile(rf'"((?:[^"\\]|\\.)+)"@({HOST}+)')
# Later versions of Python leave out what they find suspicious.
LENIENT = {"strict": False} if hasattr(email.utils, "supports_strict_parsing") else {}
WORD = re.compile(r"\w+")
NEEDLESSLY_QUOTED = re.compile(r'"([\w.+-]++)"')  # as in "ann".lee@bank.example
ESCAPED = re.compile(r"\\(.)")

WHOLE, EXACT = 2**63, 2**53  # below these a whole number is one to the engine, and to JavaScript

Arguments = Mapping[str, Any]
Addresses = Callable[[str], list[str]]


class Unclear(ValueError):
    """More ways to take the values than are looked at, or two names that are one address."""


def ways(
    arguments: Arguments, said: Arguments, forms: Sequence[Callable[[str], str]] = ()
) -> Iterator[Arguments]:
    """The arguments, and then those that are `said` in a condition, each in each way in which it may be meant
    beside each of the others in each way: as it is, with one recipient in the place of each text that is
    nothing but such, once all of a list's texts' in the list, and in each of the `forms`. Raises Unclear.
    """
    yield arguments
    prose = set(_under(said, _is_of_prose)) - set(_under(said, lambda name: not _is_of_prose(name)))
    # Asked of each text once for each of the recipients.
    addresses = cache(lambda text: [] if text in prose else recipients(text))
    if any(len(text) > LONGEST and ("@" in text or ENCODED in text) for text in texts(said)):
        raise Unclear(f"a text with an @ is longer than {LONGEST} characters")
    if max((len(addresses(text)) for text in texts(said)), default=0) > MOST_RECIPIENTS:
        raise Unclear(f"a text names more than {MOST_RECIPIENTS} recipients")
    others = [list(_with_recipients(value, addresses)) for value in said.values()]
    found = [_in_forms([value, *more], forms) for value, more in zip(said.values(), others, strict=True)]
    if prod(len(more) or 1 for more in others) > MOST_TOGETHER or prod(map(len, found)) > 4 * MOST_TOGETHER:
        raise Unclear(f"its texts name recipients in more than {MOST_TOGETHER} ways")
    mixed = [[] if name == BESIDE else list(_mixed(value, addresses, forms)) for name, value in said.items()]
    together = prod(map(len, found))
    further = sum(len(more) * together // len(uniform) for more, uniform in zip(mixed, found, strict=True))
    if further > 4 * MOST_TOGETHER or further * sum(1 for _ in texts(said)) > 4 * MOST_MIXED:
        raise Unclear("too many of its texts may be taken in several ways")
    one_mixed = (
        product(*found[:place], more, *found[place + 1 :]) for place, more in enumerate(mixed) if more
    )
    each_in_each = chain(product(*found), *one_mixed)
    next(each_in_each)  # all as they are
    for chosen in each_in_each:
        yield dict(zip(said, chosen, strict=True))


def _mixed(value: Any, addresses: Addresses, forms: Sequence[Callable[[str], str]]) -> Iterator[Any]:
    """The value with its texts in other ways than one another: one as it stands beside another's address."""

    @cache
    def others(text: str) -> list[str]:
        written = [form(text) for form in forms]
        return [one for one in dict.fromkeys((*addresses(text), *written)) if one != text]

    every = list(texts(value))
    several = [(text, others(text)) for text in every if others(text)]
    if len(several) < 2:
        return
    yield _in_lists(value, lambda text: found if len(found := addresses(text)) > 1 else [])  # beside names
    for chosen in _choices(several, MOST_MIXED // len(every)):
        left = iter(chosen)
        yield each(value, lambda text, left=left: next(left) if others(text) else text)  # type: ignore[misc]


def _choices(several: Sequence[tuple[str, list[str]]], most: int) -> Iterator[Sequence[str]]:
    """Of each text, itself or another: all ways where they are few, else those in which one is not as the
    others are. Raises Unclear where these are more than `most`.
    """
    if prod(1 + len(found) for _, found in several) <= min(FEW_WAYS, most):
        yield from product(*((text, *found) for text, found in several))
        return
    alone = sum(1 + len(found) for _, found in several)
    if alone + len(several) * sum(len(found) for _, found in several if len(found) > 1) > most:
        raise Unclear("too many of its texts may be taken in several ways")
    said, firsts = [text for text, _ in several], [found[0] for _, found in several]
    later = [(place, one) for place, (_, found) in enumerate(several) for one in found[1:]]
    for place, (text, found) in enumerate(several):
        yield from (_with_one(said, place, one) for one in found)
        rest = _with_one(firsts, place, text)
        yield rest
        yield from (_with_one(rest, beside, one) for beside, one in later if beside != place)


def _with_one(texts: list[str], place: int, text: str) -> list[str]:
    return [*texts[:place], text, *texts[place + 1 :]]


def _with_recipients(value: Any, addresses: Addresses) -> Iterator[Any]:
    """The value with each text's recipients beside each of the others'."""
    in_lists = _in_lists(value, addresses)
    for one in (value, in_lists) if in_lists != value else (value,):
        several = [found for text in texts(one) if (found := addresses(text))]
        if prod(map(len, several)) > MOST_TOGETHER:
            raise Unclear(f"its texts name recipients in more than {MOST_TOGETHER} ways")
        for chosen in product(*several) if several or one is in_lists else ():
            left = iter(chosen)
            yield each(one, lambda text, left=left: next(left) if addresses(text) else text)  # type: ignore[misc]


def _in_forms(values: list[Any], forms: Sequence[Callable[[str], str]]) -> list[Any]:
    written = [each(value, form) for form in forms for value in values]
    return [*values, *(one for one in written if one not in values)]


def check_people(arguments: Arguments) -> None:
    """Raises Unclear where an argument for people is not written plainly."""
    for text in _under(arguments, _is_of_people):
        if not plain(text):
            raise Unclear(f"'{text[:60]}' is not written as addresses plainly are")


def _under(value: Any, which: Callable[[str], bool], named: bool = False) -> Iterator[str]:
    """The texts that stand, alone or in a list, under a name of which that is true."""
    if isinstance(value, str):
        if named:
            yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _under(inner, which, which(name))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _under(inner, which, named)


def _is_of_people(name: str) -> bool:
    words = WORDS.findall(name)
    return bool(PEOPLE.fullmatch("".join(words[-1:])) or DIRECTIONS.fullmatch("".join(words)))


def _is_of_prose(name: str) -> bool:
    return bool(PROSE.fullmatch("".join(WORDS.findall(name)[-1:])))


def _in_lists(value: Any, addresses: Addresses) -> Any:
    """The same with the several recipients of a list's texts each in the list."""
    if isinstance(value, Mapping):
        return {name: _in_lists(inner, addresses) for name, inner in value.items()}
    if not isinstance(value, list | tuple):
        return value
    found: list[Any] = []
    for inner in value:
        several = addresses(inner) if isinstance(inner, str) else []
        found += several or _objects(_in_lists(inner, addresses), addresses)
    return found


def _objects(value: Any, addresses: Addresses) -> list[Any]:
    """An object of a list once for each of the recipients that its texts, or those of its objects, name."""
    if not isinstance(value, Mapping):
        return [value]
    several = [found for text in _own_texts(value) if (found := addresses(text))]
    if prod(map(len, several)) > MOST_TOGETHER:
        raise Unclear(f"an object's texts name recipients in more than {MOST_TOGETHER} ways")
    return [_with_own(value, iter(chosen), addresses) for chosen in product(*several)]


def _own_texts(value: Any) -> Iterator[str]:
    """The texts that stand in it, or in its objects, but in no list."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _own_texts(inner)


def _with_own(value: Any, chosen: Iterator[str], addresses: Addresses) -> Any:
    """The same with the next of those `chosen` in place of each of these texts that names recipients."""
    if isinstance(value, str):
        return next(chosen) if addresses(value) else value
    if isinstance(value, Mapping):
        return {name: _with_own(inner, chosen, addresses) for name, inner in value.items()}
    return value


def plain(text: str) -> bool:
    """Whether everybody reads the same addresses in it, or there are none: `ann@bank.example`, or
    `Ann Lee <ann@bank.example>`, and several of these with commas or semicolons between them, and perhaps
    line breaks beside those.
    """
    if _is_json(text):
        return False
    lines, at = ENDS.sub(" ", text), 0
    text = in_one_form(lines)
    if ("@" not in text and ENCODED not in text) or HANDLE.fullmatch(text):
        return True
    if CONTROLS.search(lines):
        return False
    if not text.isascii():  # vowel signs, as in Hindi, are no letters to Python
        text = "".join(sign for sign in text if unicodedata.category(sign)[0] != "M")
    while found := ONE.match(text, at):
        at = found.end()
        if at == len(text):
            return True
    return False


def recipients(text: str) -> list[str]:
    """The addresses of a text that is nothing but recipients, unless it is one as it stands. In whichever way
    it may be read: those of all ways, and whatever else looks like one.
    """
    if LINK_ALONE.fullmatch(text) or (NO_RECIPIENT.search(text) and not plain(text)):
        return []
    several = list(dict.fromkeys(address for said in sorted(_readings(text)) for address in _read(said)))
    return [] if several == [text] else several


def _readings(text: str) -> set[str]:
    """As it stands, with the signs that addresses are usually written with, and as a mail's header may have
    it: in encoded words (RFC 2047), with comments in an address or blanks beside its @ and dots (RFC 5322).
    """
    found = {said for said in (text, ENCODED_WORD.sub(_decoded, text)) if "@" in in_one_form(said)}
    found |= {_without_comments(said) for said in found}
    found |= {NEEDLESSLY_QUOTED.sub(r"\1", said) for said in found}
    found |= {in_one_form(said).translate(MARKS) for said in found if not said.isascii()}
    found = {NEEDLESS.sub(" ", said) for said in found if "@" in said}
    return found | {NEAR.sub(r"\1", said) for said in found}


def _is_json(text: str) -> bool:
    """Whether it is a list or an object, as the libraries of some servers take such a text."""
    if text.lstrip()[:1] not in ("[", "{"):
        return False
    try:
        json.loads(text, parse_int=str)
    except ValueError:
        return False
    except RecursionError:
        return True
    return True


def _without_comments(text: str) -> str:
    for _ in range(COMMENTS_DEEP):
        text = INNERMOST.sub("", text)
    return text


def _decoded(word: re.Match[str]) -> str:
    """Without its language (RFC 2231); in a charset there is not, or that it is not in, as Latin-1."""
    for charset in (word[1], "latin-1"):
        with suppress(ValueError, LookupError, HeaderParseError):
            return str(make_header(decode_header(f"=?{charset}{word[2]}")))
    return word[0]


def _read(text: str) -> list[str]:
    quoted = [ESCAPED.sub(r"\1", name) + "@" + host.rstrip(".") for name, host in QUOTED.findall(text)]
    others = QUOTED.sub(" ", text)
    if not (quoted or plain(text) or _is_list(others)):
        return []
    found = [*_apart(text), *_of_headers(text), *ANGLED.findall(text), *quoted]
    addresses = PLAIN.findall(others)
    return found + [address.strip(signs) for signs in (AROUND, MARKED) for address in addresses]


def _is_list(text: str) -> bool:
    """Whether there is not more beside its addresses than names, as in `ann@… and Bob Lee bob@…`, or among
    them, as in `ann@…, Bob Lee, Carl`.
    """
    split = [PLAIN.subn(" ", part) for part in BETWEEN.split(text)]
    parts = [(len(WORD.findall(rest)), plain) for rest, plain in split]
    words, plain = map(sum, zip(*parts, strict=True))
    return words <= FEW * plain or all(words <= (plain or FEW) for words, plain in parts)


def _of_headers(text: str) -> list[str]:
    """As in the header of a mail (RFC 5322): names in quotation marks, comments in comments, groups."""
    try:
        found = [address for _, address in email.utils.getaddresses([text], **LENIENT)]
    except RecursionError:  # a group in a group for each colon, as no header is
        return []
    whole = all(address.count("@") == 1 and not re.search(r"\s", address) for address in found)
    return found if whole else []


def _apart(text: str) -> list[str]:
    """As people write them: between commas, semicolons and line breaks, names or other signs around them."""
    found: list[str] = []
    for part in BETWEEN.split(text):
        if ("<" in text or not part.strip()) and "@" not in part:
            continue  # `Doe, Jane <jane@bank.example>`
        part = _after_prefix(part)
        named = NAMED.fullmatch(part)
        if SEVERAL_NAMED.fullmatch(part):
            words = re.findall(r"<([^<>]*)>", part)
        else:
            words = (named[1] if named else COMMENT.sub(" ", part)).split()
        addresses = [_after_prefix(word.strip(AROUND)) for word in words]
        if any(address.count("@") != 1 for address in addresses):
            return []
        found += addresses
    return found


def _after_prefix(text: str) -> str:
    found = BEFORE.match(text)
    return text[found.end() :] if found else text


def each(value: Any, spelled: Callable[[str], str]) -> Any:
    """The same with each text and name `spelled`, in the order of `texts`. Raises Unclear where two names
    become one.
    """
    if isinstance(value, str):
        return spelled(value)
    if isinstance(value, Mapping):
        found = {spelled(name): each(inner, spelled) for name, inner in value.items()}
        if len(found) < len(value):
            raise Unclear("two names in a value are the same address")
        return found
    return [each(inner, spelled) for inner in value] if isinstance(value, list | tuple) else value


def is_place(text: str) -> bool:
    """Whether it holds an address or a link."""
    return "@" in text or "://" in text


def texts(value: Any) -> Iterator[str]:
    """All texts and names in it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield name
            yield from texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts(inner)


def numbers(values: Any) -> Iterator[Any]:
    """The values as they are, with whole numbers as such however they are written, and as those have them who
    read each number as one with a fraction.
    """
    yield values
    found = [value for value in _leaves(values) if isinstance(value, int | float)]
    for way in (_as_whole, _as_read):
        if any(type(way(number)) is not type(number) or way(number) != number for number in found):
            yield each_leaf(values, way)


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


def each_leaf(value: Any, spelled: Callable[[Any], Any]) -> Any:
    """The same with everything in it that is no list or object `spelled`."""
    if isinstance(value, Mapping):
        return {name: each_leaf(inner, spelled) for name, inner in value.items()}
    return (
        [each_leaf(inner, spelled) for inner in value] if isinstance(value, list | tuple) else spelled(value)
    )
