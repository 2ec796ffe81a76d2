"""A call's arguments as a form: a field for each that people can write, JSON for the others."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from common.api import parsers
from common.api.errors import Problem
from common.canonical import same
from runs.deciding import words

ROWS = 12  # at most, of a text
FIELDS, AS_JSON = "approve_fields", "approve_edited"  # buttons that approve what the form holds


class NotReadable(Exception):
    """A field holds nothing that its argument can be; the words say which."""


@dataclass(frozen=True)
class Field:
    """One argument. `kind`: text, lines (a list of texts), number, choice (yes or no) or json."""

    name: str
    label: str
    kind: str
    value: str
    rows: int
    hint: str = ""


def fields(arguments: Mapping[str, Any], schema: Mapping[str, Any] | None = None) -> list[Field]:
    """The form of these arguments, with what the tool's schema says of each."""
    described = (schema or {}).get("properties", {})
    found = []
    for number, (name, value) in enumerate(arguments.items()):
        kind, text = _kind(value), _text(value)
        rows = min(max(text.count("\n") + 1 + len(text) // 90, 1), ROWS)
        said = str(described.get(name, {}).get("description", ""))
        hint = _(said) if said else ""
        found.append(Field(f"argument-{number}", words.visible(name), kind, text, rows, hint))
    return found


def read(arguments: Mapping[str, Any], posted: Mapping[str, str]) -> dict[str, Any]:
    """The arguments as the form has them now; what was left alone stays exactly as it was.

    Raises NotReadable.
    """
    return {
        name: _changed(name, value, posted.get(f"argument-{number}"))
        for number, (name, value) in enumerate(arguments.items())
    }


def check_taken(decision: str, arguments: Mapping[str, Any], posted: Mapping[str, str]) -> None:
    """Raises NotReadable where the form holds changed arguments that this button does not take: whoever has
    put another recipient into a field, and presses what approves the old one, may mean either.
    """
    if not decision.startswith("approve"):
        return
    fields_left = decision == FIELDS or same(read(arguments, posted), arguments)
    written = "" if decision == AS_JSON else posted.get("arguments", "")
    try:
        json_left = not written.strip() or same(parsed(written), arguments)
    except Problem:
        json_left = False
    if not (fields_left and json_left):
        raise NotReadable(_("The form holds other arguments than this button approves; nothing was decided."))


def _changed(name: str, value: Any, said: str | None) -> Any:
    if said is None or _same(said) == _same(_text(value)):
        return value
    text, kind = _same(said), _kind(value)
    if kind == "text":
        return text
    if kind == "lines":
        return [line.strip() for line in text.split("\n") if line.strip()]
    try:
        found = parsed(text)
    except Problem:
        raise NotReadable(_("{name}: this is not a value.").format(name=name)) from None
    if kind == "number" and (isinstance(found, bool) or not isinstance(found, int | float)):
        raise NotReadable(_("{name} takes a number.").format(name=name))
    return found


def parsed(text: str) -> Any:
    """A JSON text that somebody wrote in a form, read as strictly as over REST: a key that comes twice would
    show the decider one value and send the other. Raises Problem.
    """
    return parsers.read(text.encode(errors="surrogatepass"))


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "choice"
    if isinstance(value, str):
        return "text"
    if isinstance(value, int | float):
        return "number"
    lines = isinstance(value, list) and value and all(isinstance(item, str) for item in value)
    return "lines" if lines and all(item.strip() == item != "" for item in _split(value)) else "json"


def _split(items: list[str]) -> list[str]:
    """The items, and an empty one where an item would not stay whole as a line."""
    return [item if "\n" not in item and "\r" not in item else "" for item in items]


def _text(value: Any) -> str:
    kind = _kind(value)
    if kind == "text":
        return str(value)
    return "\n".join(value) if kind == "lines" else json.dumps(value, ensure_ascii=False, indent=2)


def _same(text: str) -> str:
    """A browser sends every line break as two characters."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
