"""Values in words: arguments line by line in their tool's order, and what changed in them."""

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _

from common import redact
from common.canonical import canonical
from common.lookalikes import findings, visible

MAX_DEPTH = 6  # of nesting that is spelled out; deeper values are shown as JSON
MAX_LINES = 2_000  # of one value; what would take more is shown as JSON
LONG = 160  # characters; longer values get lines of their own
FOLDED = 1_200  # characters; longer values are folded where a page can tell that they were opened
ITEM = 300  # characters of a list's entry; a list with longer ones gets a line for each
COMPARED = 60_000  # characters of two texts that are compared
MOST_PAIRS = 500_000  # places alike of two texts that are compared: some tenths of a second
PIECES = 6_000  # characters of two passages that are compared word by word
ALIKE = 0.5  # of the words of two texts; with fewer in common they are different texts
SHORT = 80  # characters of a value that can be shown beside the one it replaced
DESCRIBED = 200  # characters of what a schema says of a field

TONES = {
    "pending": "info",
    "running": "info",
    "requested": "info",
    "waiting": "warn",
    "completed": "good",
    "succeeded": "good",
    "approved": "good",
    "failed": "bad",
    "denied": "bad",
    "rejected": "bad",
    "unknown": "bad",
}

TOKENS = re.compile(r"[A-Za-z0-9À-ɏ]+\s*|\s+|.", re.DOTALL)

__all__ = ["FOLDED", "Item", "Line", "marked", "readable", "scalar", "shown", "tone", "visible"]


@dataclass(frozen=True)
class Item:
    """An entry of a list; `new`: no call that was approved before had it."""

    text: str
    new: bool = False


@dataclass(frozen=True)
class Line:
    """One value and where it stands; `long` ones want room.

    `title` and `description` are what the tool's schema calls the field; `items` the entries of a list, and
    `summary` what they amount to; `odd` what is to be said of its characters; `part` its place in a preview.
    """

    name: str
    text: str
    mark: str = ""  # new, changed or gone, against what it was compared with
    pieces: tuple[tuple[str, str], ...] = ()  # of a changed one: (same | added | removed, words)
    title: str = ""
    description: str = ""
    items: tuple[Item, ...] = ()
    summary: str = ""
    odd: tuple[str, ...] = ()
    part: str = ""
    was: str = ""  # a short value it replaced
    argument: str = ""  # the argument it belongs to

    @property
    def long(self) -> bool:
        return len(self.text) > LONG or "\n" in self.text or len(self.items) > 1

    @property
    def folded(self) -> bool:
        return len(self.text) > FOLDED

    @property
    def label(self) -> str:
        return self.title or self.name


def readable(value: Any, schema: Mapping[str, Any] | None = None) -> list[Line]:
    """A JSON value, whole, as lines in the order of its schema: nothing is left out, invisible characters are
    shown.
    """
    if not isinstance(value, dict) or not value:
        return _of_one(value, "", schema or {}, schema or {})
    found: list[Line] = []
    for key, item in in_order(value, schema or {}):
        described = _described(schema or {}, key)
        lines = _of_one(item, visible(key), described, schema or {})
        found += [replace(line, argument=key) for line in lines]
    return found


def in_order(value: Mapping[str, Any], schema: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The fields as the schema lists them, then those that it does not know."""
    known = [key for key in schema.get("properties") or {} if key in value]
    return [(key, value[key]) for key in (*known, *(key for key in value if key not in known))]


def shown(value: Any) -> list[Line]:
    """The same, with what fields named like secrets hold masked: for those who look, not for who decides."""
    return readable(redact.masked(value))


def _described(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = (schema.get("properties") or {}).get(key) or {}
    return found if isinstance(found, Mapping) else {}


def _of_one(value: Any, name: str, schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[Line]:
    """The lines of one argument."""
    lines = list(_lines(value, name, _resolved(schema, root), root, 0))
    if len(lines) > MAX_LINES:
        lines = [Line(name, visible(json.dumps(value, ensure_ascii=False, indent=1)))]
    return lines


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        found = (root.get("$defs") or {}).get(reference[8:])
        return {**found, **schema} if isinstance(found, Mapping) else schema
    return schema


def _lines(
    value: Any, name: str, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int
) -> Iterator[Line]:
    if isinstance(value, dict) and value and depth < MAX_DEPTH:
        for key, item in in_order(value, schema):
            inner = _resolved(_described(schema, key), root)
            yield from _lines(
                item, f"{name} › {visible(key)}" if name else visible(key), inner, root, depth + 1
            )
    elif isinstance(value, list) and value and depth < MAX_DEPTH and not _plain(value):
        entry = schema.get("items")
        inner = _resolved(entry, root) if isinstance(entry, Mapping) else {}
        for number, item in enumerate(value, 1):
            yield from _lines(item, f"{name} {number}".strip(), inner, root, depth + 1)
    else:
        yield _line(value, name, schema, depth)


def _line(value: Any, name: str, schema: Mapping[str, Any], depth: int) -> Line:
    items = tuple(Item(scalar(item)) for item in value) if isinstance(value, list) and len(value) > 1 else ()
    title = "" if depth else _said(schema, "title")  # of a nested one the path says where it stands
    odd = tuple(findings(_text_of(value)))
    described = _said(schema, "description")
    return Line(name, scalar(value), title=title, description=described, items=items, odd=odd)


def _said(schema: Mapping[str, Any], key: str) -> str:
    """What the schema says of a field, in the reader's language where it is known."""
    found = visible(str(schema.get(key) or ""))[:DESCRIBED]
    return _(found) if found else ""


def _text_of(value: Any) -> str:
    """What of a value may hold characters that deceive."""
    if isinstance(value, list):
        return "\n".join(map(_text_of, value))
    return value if isinstance(value, str) else canonical(value) if isinstance(value, dict) else ""


def marked(lines: Sequence[Line], before: Sequence[Line]) -> list[Line]:
    """The lines, each marked where it differs from the one of the same name before; then what is gone.

    Long texts with little in common are two texts, and nothing is marked in them.
    """
    known = {line.name: line for line in before}
    names = {line.name for line in lines}
    gone = [replace(line, mark="gone") for line in before if line.name not in names]
    return [*(_marked(line, known.get(line.name)) for line in lines), *gone]


def _marked(line: Line, was: Line | None) -> Line:
    if was is None:
        return replace(line, mark="new")
    if was.text == line.text:
        return line
    if line.items or was.items:
        return replace(line, mark="changed")
    pieces = _pieces(was.text, line.text)
    if pieces:
        return replace(line, mark="changed", pieces=pieces)
    if len(line.text) > SHORT or len(was.text) > SHORT:
        return line
    return replace(line, mark="changed", was=was.text)


def _pieces(was: str, now: str) -> tuple[tuple[str, str], ...]:
    """Word by word what stayed, what was added and what was removed; nothing where little stayed."""
    if len(was) + len(now) > COMPARED:
        return ()
    old, new = TOKENS.findall(was), TOKENS.findall(now)
    if difflib.SequenceMatcher(None, old, new, autojunk=False).quick_ratio() < ALIKE:
        return ()
    found = _compared(was.splitlines(keepends=True), now.splitlines(keepends=True), _words_of)
    return tuple(found) if any(kind == "same" and words.strip() for kind, words in found) else ()


def _words_of(was: str, now: str) -> list[tuple[str, str]]:
    if len(was) + len(now) > PIECES:
        return _whole(was, now)
    return _compared(TOKENS.findall(was), TOKENS.findall(now), _whole)


def _whole(was: str, now: str) -> list[tuple[str, str]]:
    return [(kind, words) for kind, words in (("removed", was), ("added", now)) if words]


def _compared(old: list[str], new: list[str], within: Any) -> list[tuple[str, str]]:
    if _pairs(old, new) > MOST_PAIRS:
        return _whole("".join(old), "".join(new))
    found: list[tuple[str, str]] = []
    for kind, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone, come = "".join(old[i:j]), "".join(new[k:m])
        found += [("same", come)] if kind == "equal" else within(gone, come)
    return found


def _pairs(old: list[str], new: list[str]) -> int:
    """How many places in the two are alike: what comparing them costs. Texts of one word ten thousand times
    would take minutes.
    """
    counts = Counter(new)
    return sum(many * counts[piece] for piece, many in Counter(old).items())


def _plain(items: list[Any]) -> bool:
    """Whether the items can stand in one list."""
    return all(
        isinstance(item, int | float) or (isinstance(item, str) and len(item) <= ITEM and "\n" not in item)
        for item in items
    )


def scalar(value: Any) -> str:
    """One value as text."""
    if value is None:
        return _("nothing")
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, str):
        return visible(value) if value else _("(empty text)")
    if isinstance(value, list) and _plain(value):
        return ", ".join(visible(str(item)) for item in value) or _("(empty list)")
    if value == {}:
        return _("(nothing inside)")
    return str(value) if isinstance(value, int | float) else visible(canonical(value))


def tone(status: str) -> str:
    """Which colour a status has: info, warn, good, bad, or none."""
    return TONES.get(status, "")
