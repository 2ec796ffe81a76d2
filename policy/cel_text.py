"""A condition as a text: what in it is code and what is quoted, and what it asks of origins. Pure."""

import re
from collections.abc import Callable, Iterator

CACHED = 4096  # conditions, about each of which something is kept

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
STRING = re.compile(
    r'[rR]?(?:"{3}(?:\\.|[^\\])*?"{3}|\'{3}(?:\\.|[^\\])*?\'{3}'
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')',
    re.DOTALL,
)
LITERAL = re.compile(rf"{STRING.pattern}|//[^\n]*", re.DOTALL)
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
BARE_TYPE = re.compile(rf"(?<![\w.])(?:{TYPES})\b(?!\s*\()")
ARGS = re.compile(r"(?<![\w.])args\b")
ARGS_FIELD = re.compile(r"(?<![\w.])args\s*\.\s*([A-Za-z_][A-Za-z0-9_]*)")
ARGS_INDEX = re.compile(r"(?<![\w.])args\s*\[\s*(?=[\"'])")
ESCAPE = re.compile(r"(\\.)", re.DOTALL)
QUOTED = re.compile(r"([rR]?)(\"{3}|'{3}|[\"'])(.*)\2", re.DOTALL)
PATTERN_OF = re.compile(r"\bmatches\s*\([^()]*$")
KEY_OF = re.compile(r"([\w\])]+)\s*\[\s*$")


def quotations(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Each string literal, and what stands between its quotation marks."""
    for literal in STRING.finditer(text):
        yield literal, content(literal[0])


def content(literal: str) -> str:
    quoted = QUOTED.fullmatch(literal)
    assert quoted  # noqa: S101 - every literal has quotation marks
    return quoted[3]


def in_brackets(text: str, code: str) -> list[re.Match[str]]:
    """The literals in `args["name"]`."""
    indexes = [index for index in ARGS_INDEX.finditer(text) if code[index.start()] != " "]
    literals = [literal for index in indexes if (literal := STRING.match(text, index.end()))]
    return [literal for literal in literals if code[literal.end() :].lstrip().startswith("]")]


def with_variables(text: str) -> str:
    """The condition with what it asks of origins as variables: `args.to.source` is `sources["to"]`."""
    code = code_of(text)
    for found in (*SOURCE.finditer(code), *FACT.finditer(code)):
        said = f'{SOURCES}["{found[1]}"] ' if found.re is SOURCE else FACTS[found[0]]
        text = text[: found.start()] + said + text[found.end() :]
    return text


def asks_origin(plain: str) -> bool:
    return any(word in plain for word in (f'{SOURCES}["', *FACTS.values()))


def code_of(text: str) -> str:
    """The text with string literals and comments blanked out, every character where it was."""
    blank: Callable[[re.Match[str]], str] = lambda literal: " " * len(literal[0])  # noqa: E731
    return LITERAL.sub(blank, text)
