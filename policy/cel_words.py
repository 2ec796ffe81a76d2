"""What the CEL engine finds wrong with a condition, in plain words. Pure.

The engine's messages are those of its parser (ANTLR) and type checker; the place is given with them.
"""

import re
from collections.abc import Callable, Collection
from difflib import get_close_matches

OVERLOAD = re.compile(r"found no matching overload for '([^']+)' applied to '\((.*)\)'")
UNDECLARED = re.compile(r"undeclared reference to '([^']+)'")
UNREAD = re.compile(r"Syntax error: token recognition error at: '(.*?)\s*'$")
UNEXPECTED = re.compile(r"Syntax error: (?:mismatched|extraneous) input '(.+?)' expecting")
MISSING = re.compile(r"Syntax error: missing (.+) at '(.+?)'")
NO_INPUT = re.compile(r"Syntax error: no viable alternative at input '(.*)'")

KINDS = {
    "int": "a whole number",
    "uint": "a whole number",
    "double": "a number",
    "string": "a text",
    "bool": "true or false",
    "bytes": "bytes",
    "null": "null",
    "timestamp": "a time",
    "duration": "a duration",
    "dyn": "a value",
    "*error*": "a value",
}
INSTEAD = {
    "=": "to compare, write ==",
    "and": "write && for “and”",
    "or": "write || for “or”",
    "not": "write ! for “not”",
    "AND": "write && for “and”",
    "OR": "write || for “or”",
    "<": "to compare, write < or <=",
    ">": "to compare for a difference, write !=",
}
FUNCTIONS = (
    *("size", "has", "contains", "startsWith", "endsWith", "matches", "all", "exists", "exists_one"),
    *("map", "filter", "int", "double", "string", "bool", "timestamp", "duration", "type"),
)
END = "<EOF>"


def plain(message: str, names: Collection[str] = ()) -> str:
    """The message in words; `names` are the arguments there are. What is not known stays as it is."""
    for pattern, worded in WORDED:
        if found := pattern.match(message):
            return worded(found, names)
    return message


def _overload(found: re.Match[str], names: Collection[str]) -> str:
    kinds = [_kind(each) for each in _parts(found[2])]
    operator = found[1].replace("@", "").replace("_", " ").strip()
    if operator == "? :":
        return "“? :” chooses by true or false between two values of the same kind"
    if len(kinds) == 1:
        return f"“{operator}” does not take {kinds[0]}"
    if found[1].startswith(("_", "@")):
        return f"“{operator}” does not go with {kinds[0]} and {kinds[1]}"
    return f"“{operator}” of {kinds[0]} does not take {', '.join(kinds[1:])}"


def _undeclared(found: re.Match[str], names: Collection[str]) -> str:
    name = found[1]
    near = get_close_matches(name, [*names, *FUNCTIONS], 2)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"there is no argument or function “{name}”{hint}"


def _unread(found: re.Match[str], names: Collection[str]) -> str:
    said = found[1]
    if said[:1] in ('"', "'"):
        return "this text has no closing quote, or holds a \\ that means nothing"
    return _cannot_stand(said)


def _unexpected(found: re.Match[str], names: Collection[str]) -> str:
    return "something is missing at the end" if found[1] == END else _cannot_stand(found[1])


def _missing(found: re.Match[str], names: Collection[str]) -> str:
    where = "at the end" if found[2] == END else f"before “{found[2]}”"
    return f"{found[1].strip(chr(39))} is missing {where}"


def _cannot_read(found: re.Match[str], names: Collection[str]) -> str:
    return f"“{found[1][-20:]}” cannot be read as a condition"


def _cannot_stand(said: str) -> str:
    hint = INSTEAD.get(said, "")
    return f"“{said}” cannot stand here" + (f"; {hint}" if hint else "")


def _kind(name: str) -> str:
    if name.startswith("list("):
        return "a list"
    return "an object" if name.startswith("map(") else KINDS.get(name, name)


def _parts(types: str) -> list[str]:
    """The types of a call's values, which may hold commas themselves."""
    found, depth = [""], 0
    for character in types:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return [each.strip() for each in found]


WORDED: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Collection[str]], str]], ...] = (
    (OVERLOAD, _overload),
    (UNDECLARED, _undeclared),
    (UNREAD, _unread),
    (UNEXPECTED, _unexpected),
    (MISSING, _missing),
    (NO_INPUT, _cannot_read),
)
