"""What is confidential in what a run has read, and whether a call carries it to somebody.

Told by the field it stands in (`passport_number`), by the words before it ("the password is …") or by its
form: card numbers with their check digit, keys and tokens of known services.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import lru_cache
from typing import Any
from unicodedata import decimal

from policy.provenance import forms, words
from policy.provenance.fields import Field, fields
from policy.provenance.infer import Declaration
from policy.provenance.verbs import split

SHORTEST = 3  # characters; a shorter value tells too little to be recognized
WHOLE = 8  # from so many on, a value is found inside others, too
# What it is called → the words of a field's name, all of which must stand in it.
FIELDS: dict[str, tuple[frozenset[str], ...]] = {
    "password": tuple(map(frozenset, (["password"], ["passwd"], ["pwd"], ["passphrase"], ["passcode"]))),
    "key": tuple(
        map(
            frozenset,
            (["api", "key"], ["secret"], ["private", "key"], ["access", "key"], ["token"], ["credentials"]),
        )
    ),
    "code": tuple(map(frozenset, (["otp"], ["pin"], ["security", "code"], ["verification", "code"]))),
    "passport": (frozenset(["passport"]),),
    "identity number": tuple(
        map(
            frozenset,
            (
                ["id", "number"],
                ["ssn"],
                ["social", "security"],
                ["national", "id"],
                ["tax", "id"],
                ["licence"],
            ),
        )
    ),
    "card": tuple(
        map(frozenset, (["card", "number"], ["credit", "card"], ["debit", "card"], ["cvv"], ["cvc"]))
    ),
    "bank account": tuple(map(frozenset, (["bank", "account"], ["account", "number"]))),
    "health": tuple(map(frozenset, (["diagnosis"], ["medical", "record"], ["prescription"]))),
}
SAID = re.compile(
    r"\b(?P<what>password|passcode|passphrase|secret key|secret|api key|access key|private key|token|pin|otp|"
    r"(?:security|verification|access|confirmation) code|one-time (?:password|code)|passport(?: number| no)?|"
    r"(?:credit |debit )?card number|cvv|cvc|ssn|social security number|密码|口令|护照号|验证码|密钥)"
    r"(?:\s+\w+){0,2}?\s*(?:\bis\b|是|为|[:=：])[\s:'\"`]*(?P<value>[^\s'\"`,;，。]{3,200})",
    re.IGNORECASE,
)
# A field of JSON, or of a program's settings, inside a text.
NAMED = re.compile(
    r"(?<![\w-])(?P<name>[A-Za-z][\w-]{1,60})[\"'`*]*[ \t]*[:=：][ \t\"'`*]*"
    r"(?P<value>(?!(?i:null|none|true|false)\b)[^\s'\"`*,;，。]{3,200})"
)
MOST_DATA = 20  # places in a text at which JSON may begin
BRACKET = re.compile(r"[{\[]")
DECODER = json.JSONDecoder()
MOST_STEPS = 3  # encodings of each other that are undone
MOST_DEEPER = 200  # texts that are found in one another, beside those in the value itself
LONG = 20_000  # characters of one that is undone once alone
VALUE = ("value", "secret", "plain", "plaintext", "current", "data", "content", "text")
HEXADECIMAL = re.compile(r"(?:0[xX])?(?P<digits>[0-9a-fA-F]{2}(?:[\s:]*[0-9a-fA-F]{2}){4,})")
CALLED = ("password", "key", "code")  # what such a field is looked for; the other names are usual words
# What a text must hold before a slower search is worth its time.
HINTS = tuple(
    re.findall(
        r"\S+", "passw passc passp secret key token pin otp code card cvv cvc ssn social 密 口令 护照 验证码"
    )
)
DIGITS = re.compile(r"\d[\d -]{11}")
BEGINNINGS = re.compile(r"sk-|gh[pousr]_|github_|glpat|AKIA|xox|AIza|eyJ|-----BEGIN")
KEYS = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|AKIA[A-Z0-9]{16}|"
    r"xox[abprs]-[\w-]{10,}|AIza[\w-]{30,}|eyJ[\w-]{10,200}\.[\w-]{10,}\.[\w-]{5,})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]{20,}"
)
CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])")
# Who asks for one of these to go names it so.
NAMES = {
    "password": "password passcode login credentials access 密码",
    "key": "key token secret credentials 密钥",
    "code": "code otp pin verification 验证码",
    "passport": "passport 护照",
    "identity number": "id identity ssn social security tax licence license 身份证",
    "card": "card cvv 卡号",
    "bank account": "account bank iban 账号 账户",
    "health": "diagnosis medical health prescription 病历",
}
REACHES = frozenset(("send", "share", "invite"))  # deeds by which others get to see what a call says
PEOPLE = re.compile(r"to|b?cc|recipients?|participants?|attendees?|emails?")


def in_result(
    result: Any, declared: Set[str], parts: Iterable[Field] | None = None
) -> Iterator[tuple[str, str]]:
    """(what it is called, value) of the confidential values in a result. `declared`: names of fields.
    `parts`: the result's own, where they are known.
    """
    if isinstance(result, str):  # whole, too: what names a secret may stand on the line before
        yield from in_text(result)
    else:
        yield from _beneath(result)
    for found in fields(result) if parts is None else parts:
        yield from _in_field(found.key, found.text, declared)


def _beneath(data: Any) -> Iterator[tuple[str, str]]:
    """The same of what stands one step below the name that says what it is: `{"password": {"value": …}}`,
    `{"name": "password", "value": …}`.
    """
    parts = [data]
    while parts:
        part = parts.pop()
        if isinstance(part, Mapping):
            parts += part.values()
            named = next((part[name] for name in ("name", "key", "field", "label") if name in part), "")
            beside = [(named, part)] if isinstance(named, str) else []
            for name, inner in (*((n, i) for n, i in part.items() if isinstance(i, Mapping)), *beside):
                held = [inner[each] for each in VALUE if each in inner]
                texts = [str(each) for each in held if isinstance(each, str | int | float)]
                yield from ((label, text) for label in _labels_of(str(name)) for text in texts)
        elif isinstance(part, list | tuple):
            parts += part


def _in_field(key: str, text: str, declared: Set[str]) -> Iterator[tuple[str, str]]:
    """The same of one of its fields."""
    if key in declared:
        yield "confidential field", text
    if " " not in text.strip():
        yield from ((label, text) for label in _labels_of(key))
    yield from in_text(text)


@lru_cache(maxsize=1_000)
def _labels_of(name: str) -> tuple[str, ...]:
    """What stands in a field of that name, as far as it is confidential."""
    named = set(split(name))
    return tuple(label for label, wanted in FIELDS.items() if any(each <= named for each in wanted))


def in_text(text: str) -> Iterator[tuple[str, str]]:
    """The same of a text, by its words and by the form of what stands in it."""
    if _may_say(text):
        for found in SAID.finditer(text):
            yield _label(found["what"]), found["value"].rstrip(".!?)")
        for found in NAMED.finditer(text):
            called = (label for label in _labels_of(found["name"]) if label in CALLED)
            yield from ((label, found["value"].rstrip(".!?)}]")) for label in called)
        for data in _data_in(text):
            yield from _beneath(data)
    for found in KEYS.finditer(text) if BEGINNINGS.search(text) else ():
        yield "key", found[0]
    for found in CARD.finditer(text) if DIGITS.search(text) else ():
        if _has_check_digit(re.sub(r"\D", "", found[0])):
            yield "card", found[0]


def _data_in(text: str) -> Iterator[Any]:
    """The JSON in a text: the whole of it, or what stands between its words."""
    at = 0
    for _ in range(MOST_DATA):
        begins = BRACKET.search(text, at)
        if begins is None:
            return
        try:
            data, at = DECODER.raw_decode(text, begins.start())
        except (ValueError, RecursionError):
            at = begins.end()
            continue
        yield data


def _may_say(text: str) -> bool:
    small = text.lower()
    return any(hint in small for hint in HINTS)


def carried(
    declared: Declaration, values: Iterable[tuple[str, str]], known: Mapping[str, str], asked: Iterable[str]
) -> tuple[str, ...]:
    """What confidential values a call takes to others that the person neither wrote nor asked to be sent.

    `values`: (argument, text) of the call. `known`: compact value → what it is called. `asked`: the words of
    the person's request.
    """
    values = list(values)
    if not known or not _reaches_others(declared, values):
        return ()
    said = set(asked)
    wanted = {label for label, names in NAMES.items() if said & set(names.split())}
    together = "".join(value for _, value in values)  # what stands in pieces, as a list has it
    texts = {text for value in (*(value for _, value in values), together) for text in _spelled(value)}
    found = {label for text in texts for label in _labels_in(text, known)}
    return tuple(sorted(found - wanted))


def _spelled(value: str) -> Iterator[str]:
    """A text, and what it says in other letters, also where these say it in others again."""
    seen, left, deeper = {value}, [(value, 0)], 0
    while left:
        text, steps = left.pop()
        yield text
        if text.endswith(".0"):  # a number
            yield text[:-2]
        said = {said for _, said in words.decodings(text)} | {words.unescaped(text)}
        if digits := HEXADECIMAL.fullmatch(text.strip()):
            said |= {said for _, said in words.decodings(re.sub(r"[\s:]+", "", digits["digits"]))}
        if steps < MOST_STEPS and (not steps or (len(text) <= LONG and deeper < MOST_DEEPER)):
            others = said - seen
            deeper += len(others) if steps else 0
            seen |= others
            left += [(other, steps + 1) for other in others]


def _reaches_others(declared: Declaration, values: Iterable[tuple[str, str]]) -> bool:
    """Whether somebody else gets to see what the call says: it is sent, or says to whom it goes."""
    if not declared.effect and not declared.network:
        return False
    if declared.deeds & REACHES or declared.network:
        return True
    return "login" not in declared.deeds and any(
        any(PEOPLE.fullmatch(word) for word in split(argument)) or forms.is_mailbox(value)
        for argument, value in values
    )


def compact(value: str) -> str:
    """Letters and digits alone: the spelling is no disguise."""
    plain = re.sub(r"[\W_]+", "", words.normalise(value))
    return plain if plain.isascii() else re.sub(r"\d", lambda digit: str(decimal(digit[0])), plain)


def _labels_in(text: str, known: Mapping[str, str]) -> Iterator[str]:
    tokens = {compact(token) for token in re.split(r"[\s,;:'\"()<>=|]+", text)}
    whole = compact(text)
    for value, label in known.items():
        if value in tokens or value == whole or (len(value) >= WHOLE and value in whole):
            yield label


def _label(what: str) -> str:
    found = words.normalise(what)
    for label, names in NAMES.items():
        if any(name in found for name in names.split()):
            return label
    return "key"


def _has_check_digit(digits: str) -> bool:
    """Luhn's formula, as payment cards use it (ISO/IEC 7812-1)."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (1 + place % 2)
        total += doubled - 9 * (doubled > 9)
    return total % 10 == 0 and len(set(digits)) > 1
