"""Which arguments a condition asks for, by which names."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, combinations
from typing import Any

from policy import meanings
from policy.cel_text import (
    ARGS,
    ARGS_FIELD,
    CACHED,
    KEY_OF,
    KEYWORDS,
    TYPE_NAMES,
    code_of,
    content,
    in_brackets,
    quotations,
    with_variables,
)

MOST_FILLED = 4  # arguments
SIGNS = re.compile(r"[\W_]+")
ROOT = re.compile(r"(?<![\w.])[A-Za-z_][A-Za-z0-9_]*\b(?!\s*\()")
VARIABLE = re.compile(r"\b(?:all|exists|exists_one|map|filter)\s*\(\s*([A-Za-z_][A-Za-z0-9_]*)\s*,")
BACK_QUOTED = re.compile(r"\.\s*`([^`]+)`")
FIELD = re.compile(r"\.\s*([A-Za-z_][A-Za-z0-9_]*)\b(?!\s*\()")
CHAIN = re.compile(
    r"(?<![\w.)\]])(?<![)\]]\s)[A-Za-z_][A-Za-z0-9_]*\b(?!\s*\()(?:\s*\.\s*[A-Za-z_][A-Za-z0-9_]*\b(?!\s*\())*"
)
IN_OBJECT = re.compile(
    r"\s+in\s*(?:\s|(?=\())(args\b(?:\s*\.\s*)?)?((?:[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*)?)(\s*\[)?"
)
KEY_IN_ARGS = re.compile(r"(\"[^\"\\]*\"|'[^'\\]*')(?=\s+in\s+args\b(?!\s*[.\[]))")


def alike(name: str) -> str:
    """What names that some library takes for one have in common: `bcc`, `Bcc:`; `reply_to`, `replyTo`."""
    return SIGNS.sub("", name).casefold() or name


def with_some(
    text: str, names: Collection[str], arguments: Mapping[str, Any], filled: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """The arguments with what is `filled` in: of those that the condition names each beside the others filled
    in and not, as long as these are few.
    """
    mine, theirs = _named(text, names, arguments), _named(text, names, filled)
    differ = [name for name, value in theirs.items() if name not in mine or mine[name] != value]
    counts = range(1, len(differ) + 1) if len(differ) <= MOST_FILLED else (len(differ),)
    chosen = chain.from_iterable(combinations(differ, count) for count in counts)
    return [{**arguments, **{name: filled[name] for name in some}} for some in chosen]


def said(text: str, names: Collection[str], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments that the condition names; all of them where it asks of `args` as a whole. Raises Unclear
    where it names one in other letters, which its tool may take for the same.
    """
    found = _named(text, names, arguments)
    places = [(arguments, _asks_for(text)), (_within(found), _asks_within(text))]
    steps = [(path[at], path[:at]) for path in _paths(text) for at in range(1, len(path))]
    for name, path in (*steps, *_asked_in(text)):
        places.append((_at(arguments, path), {alike(name): {name}}))
    for names_in, asks_for in places:
        for name in names_in:
            meant = asks_for.get(alike(name), {name})
            if name not in meant and not meanings.is_place(name):
                raise meanings.Unclear(f"it asks for '{min(meant)}', and the call has '{name}'")
    return found


def _named(text: str, names: Collection[str], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    through_args = named_through_args(text)
    if through_args is None:
        return arguments
    return {name: value for name, value in arguments.items() if name in names or name in through_args}


@lru_cache(maxsize=CACHED)
def named_through_args(text: str) -> frozenset[str] | None:
    """The names in `args.name` and `args["name"]`; None where it asks of `args` as a whole, or writes a
    name in another way.
    """
    code = code_of(text)
    literals = in_brackets(text, code)
    fields = [field[1] for field in ARGS_FIELD.finditer(code)]
    plainly = all("\\" not in literal[0] and literal[0][:3] not in ('"""', "'''") for literal in literals)
    if not plainly or len(ARGS.findall(code)) > len(fields) + len(literals):
        return None
    return frozenset((*fields, *(literal[0][1:-1] for literal in literals)))


@lru_cache(maxsize=CACHED)
def _asks_for(text: str) -> dict[str, set[str]]:
    """The names of arguments in it, by the same without regard to capitals."""
    code = code_of(with_variables(text))
    roots = set(ROOT.findall(code)) - TYPE_NAMES - KEYWORDS - set(VARIABLE.findall(code))
    literals = (*in_brackets(text, code_of(text)), *KEY_IN_ARGS.finditer(text))
    keys = {content(literal[0]) for literal in literals}
    return _by_letters((*roots, *keys, *(field[1] for field in ARGS_FIELD.finditer(code))))


@lru_cache(maxsize=CACHED)
def _asks_within(text: str) -> dict[str, set[str]]:
    """The same of the names in objects, wherever these stand: those that are asked for by no plain path, as
    `r.name` in a macro, `args["rows"].name` or `"name" in r`.
    """
    code = code_of(with_variables(text))
    fields = FIELD.findall(CHAIN.sub(lambda chain: "" if _is_path(chain[0], code) else chain[0], code))
    keys = {words for literal, words in quotations(text) if _is_key_within(text, literal)}
    quoted = BACK_QUOTED.findall(code)
    return _by_letters((*fields, *keys, *quoted, *(name for name, path in _names_in(text) if path is None)))


@lru_cache(maxsize=CACHED)
def _paths(text: str) -> list[tuple[str, ...]]:
    """From the arguments, to each name in an object that the condition asks for by a plain path."""
    code = code_of(with_variables(text))
    chains = [chain[0] for chain in CHAIN.finditer(code) if _is_path(chain[0], code)]
    names = (re.split(r"\s*\.\s*", chain.removeprefix("args").lstrip(" .\n\t")) for chain in chains)
    return [tuple(path) for path in names if len(path) > 1]


def _is_path(chain: str, code: str) -> bool:
    return re.split(r"\W", chain, maxsplit=1)[0] not in VARIABLE.findall(code)


def _is_key_within(text: str, literal: re.Match[str]) -> bool:
    key = KEY_OF.search(text[: literal.start()])
    return bool(key and key[1] not in ("args", "in"))


@lru_cache(maxsize=CACHED)
def _asked_in(text: str) -> list[tuple[str, list[str]]]:
    """The texts in `"name" in args.headers`, with the path of what they may be names in."""
    return [(name, path) for name, path in _names_in(text) if path is not None]


def _names_in(text: str) -> list[tuple[str, list[str] | None]]:
    """The same; None in the place of what is no plain path from the arguments, as `r` in a macro."""
    variables = set(VARIABLE.findall(code_of(text)))
    found: list[tuple[str, list[str] | None]] = []
    for literal, words in quotations(text):
        if path := IN_OBJECT.match(text, literal.end()):
            through_args, names = path[1], [name for name in re.split(r"\s*\.\s*", path[2]) if name]
            if through_args and not names and not path[3]:
                continue  # in `args` as a whole are arguments
            plainly = names and not path[3] and (through_args or names[0] not in variables)
            found.append((words, names if plainly else None))
    return found


def _at(value: Any, path: Iterable[str]) -> Iterable[str]:
    """The names of the object at that path; none where there is no object."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else ()


def _by_letters(names: Iterable[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name in names:
        found.setdefault(alike(name), set()).add(name)
    return found


def _within(value: Any) -> Iterator[str]:
    """All names in its objects but its own."""
    for inner in value.values() if isinstance(value, Mapping) else value:
        if isinstance(inner, Mapping):
            yield from inner
        if isinstance(inner, Mapping | list | tuple):
            yield from _within(inner)
