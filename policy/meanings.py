"""The values that a call may mean beside those it has: one recipient of a text that names several, and what
stands within a list or an object where a condition compares it with something else.

A tool may take `["eve@rival.example"]` for the address in it, and a text of two addresses for two recipients,
while to CEL a list equals no text. Only rules that ask or deny go by what is within.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import product
from math import prod
from typing import Any

MOST_RECIPIENTS = 50  # in one text
MOST_TOGETHER = 400  # ways to take one recipient of each text, or one value of each list
MOST_WITHIN = 2000  # values within one list or object

# What may stand between and around the addresses of a text that is nothing but recipients, as in
# `"Ann" <ann@bank.example>, bob@post.example (home)`.
BETWEEN = re.compile(r"[,;|\n\r]")
NAMED = re.compile(r"[^<>@]*<([^<>]*)>[^<>@]*")
COMMENT = re.compile(r"\([^()@]*\)")
AROUND = "<>()[]\"'."

# Which values a condition (without its literals) compares, and of which it asks what they hold.
PATH = r"[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*"
COMPARED = re.compile(rf"(?<![\w.\])])({PATH})(?=\s*==|\s+in\b)|==\s*({PATH})(?!\s*[\w.(\[])")
HELD = re.compile(rf"(?<![\w.\])])({PATH})\s*\.\s*(?:all|exists|exists_one|filter|map)\s*\(|\bin\s+({PATH})")
NAME = re.compile(r"(?<![\w.])(?!(?:in|true|false|null)\b)[A-Za-z_]\w*\b(?!\s*\()")
OF_ARGS = re.compile(r"(?<![\w.])args\s*\.\s*")
RELATED = re.compile(r"&&|\?|!(?!=)")

READ = "read"  # what the run has read is no value of the call

Values = Mapping[str, Any]


class TooMany(ValueError):
    """More ways to take the values than are looked at."""


def ways(values: Values, said: Values, code: str) -> Iterator[Values]:
    """The values, and then with one recipient in the place of each text that is nothing but such; where the
    condition, of which `code` is all but the literals, relates several of those that are `said` in it, each
    beside each of the others; and with all of a list's. Raises TooMany.
    """
    yield values
    addresses = cache(recipients)  # asked of each text once for each of the recipients
    most = max((len(addresses(text)) for text in texts(values)), default=0)
    if most > MOST_RECIPIENTS:
        raise TooMany(f"a text names more than {MOST_RECIPIENTS} recipients")
    for number in range(most):
        yield each(values, partial(_recipient, addresses, number))
    several = {text: found for text in texts(said) if (found := addresses(text))}
    if not several or not _relates(code):
        return
    listed = _listed(said, addresses)
    if prod(map(len, several.values())) > MOST_TOGETHER:
        raise TooMany(f"its texts name recipients in more than {MOST_TOGETHER} ways")
    for chosen in product(*several.values()):
        taken = dict(zip(several, chosen, strict=True))
        yield each(said, lambda text, taken=taken: taken.get(text, text))  # type: ignore[misc]
        yield each(listed, lambda text, taken=taken: taken.get(text, text))  # type: ignore[misc]


def _relates(code: str) -> bool:
    """Whether the condition may be true of two texts together, and not of one alone."""
    parts = code.split("||")
    whole = all(part.count(sign[0]) == part.count(sign[1]) for part in parts for sign in ("()", "[]", "{}"))
    alone = all(len(set(NAME.findall(OF_ARGS.sub("", part)))) < 2 for part in parts)
    return bool(RELATED.search(code)) and not (whole and alone and len(parts) > 1)


def _recipient(addresses: Callable[[str], list[str]], number: int, text: str) -> str:
    return (addresses(text) or [text])[: number + 1][-1]


def _listed(value: Any, addresses: Callable[[str], list[str]]) -> Any:
    """The same with the several recipients of a list's texts each in the list."""
    if isinstance(value, Mapping):
        return {name: _listed(inner, addresses) for name, inner in value.items()}
    if not isinstance(value, list | tuple):
        return value
    found: list[Any] = []
    for inner in value:
        several = addresses(inner) if isinstance(inner, str) else []
        found += several or [_listed(inner, addresses)]
    return found


def recipients(text: str) -> list[str]:
    """The addresses of a text that is nothing but recipients, unless it is one as it stands."""
    found: list[str] = []
    for part in BETWEEN.split(text) if "@" in text else ():
        named = NAMED.fullmatch(part)
        words = (named[1] if named else COMMENT.sub(" ", part)).split()
        if "<" in text and "@" not in part:
            continue  # `Doe, Jane <jane@bank.example>`
        addresses = [word.strip(AROUND).removeprefix("mailto:") for word in words]
        if any(address.count("@") != 1 for address in addresses):
            return []
        found += addresses
    return [] if found == [text] else found


def within(values: Values, code: str) -> Iterator[Values]:
    """The values with what stands in lists and objects: one of it where the condition compares them, all of
    it in one list where it asks what they hold. Raises TooMany.
    """
    code = OF_ARGS.sub("", code)
    held = {path: found for path in _of(HELD, code) if (found := _inside(values, path, flat=True))}
    compared = {
        path: found for path in _of(COMPARED, code) if path not in held and (found := _inside(values, path))
    }
    if not held and not compared:
        return
    most = MOST_WITHIN if len(compared) == 1 else MOST_TOGETHER
    if prod(map(len, compared.values())) > most:
        raise TooMany(f"its lists hold values in more than {most} ways")
    for chosen in product(*compared.values()):
        inside = values
        for path, value in (*held.items(), *zip(compared, chosen, strict=True)):
            inside = _with(inside, path, value)
        yield inside


def _of(pattern: re.Pattern[str], code: str) -> list[tuple[str, ...]]:
    found = [re.sub(r"\s", "", first or second) for first, second in pattern.findall(code)]
    return [path for each_path in dict.fromkeys(found) if (path := tuple(each_path.split(".")))[0] != READ]


def _inside(values: Values, path: tuple[str, ...], flat: bool = False) -> list[Any]:
    """What stands within the list or object at the path; nothing where it is none, or a plain list and `flat`
    ones are wanted.
    """
    value: Any = values if path[0] in values else values.get("args", {})
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping | list | tuple):
        return []
    found = list(_leaves(value))
    return [] if flat and found == list(value) else found


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, list | tuple):
        yield value
        return
    for inner in value:
        yield from _leaves(inner)


def _with(values: Values, path: tuple[str, ...], value: Any) -> Values:
    """The values with another one at the path, by whichever name the condition reaches it."""
    found = dict(values)
    if path[0] in found:
        found[path[0]] = _put(found[path[0]], path[1:], value)
    if isinstance(found.get("args"), Mapping):
        found["args"] = _put(found["args"], path, value)
    return found


def _put(at: Any, path: tuple[str, ...], value: Any) -> Any:
    if not path:
        return value
    if not isinstance(at, Mapping) or path[0] not in at:
        return at
    return {**at, path[0]: _put(at[path[0]], path[1:], value)}


def each(value: Any, spelled: Callable[[str], str]) -> Any:
    """The same with each text and name `spelled`. Raises TooMany where two names become one."""
    if isinstance(value, str):
        return spelled(value)
    if isinstance(value, Mapping):
        found = {spelled(name): each(inner, spelled) for name, inner in value.items()}
        if len(found) < len(value):
            raise TooMany("two names in a value are the same address")
        return found
    return [each(inner, spelled) for inner in value] if isinstance(value, list | tuple) else value


def texts(value: Any) -> Iterator[str]:
    """All texts and names in it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield name
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
