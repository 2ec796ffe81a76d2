"""A result taken apart into its fields, whether it is JSON or a text that lists records line by line."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MAX_FIELDS = 20_000  # of one result; the rest is read as one text
KEYED = re.compile(r"^(?P<indent> *)(?P<dash>- +)?(?P<key>[A-Za-z_][\w-]{0,40}):(?: +(?P<value>.*))?$")
ITEM = re.compile(r"^(?P<indent> *)- +(?P<value>.*)$")


@dataclass(frozen=True, slots=True)
class Field:
    """One text of a result. `record` numbers the entry of the list it stands in; `key` is its name."""

    path: str
    key: str
    text: str
    record: int


def fields(value: Any) -> list[Field]:
    """The texts of a result in order."""
    if isinstance(value, str):
        return list(_of_text(value))
    found: list[Field] = []
    for field in _walk(value, "", "", 0):
        found.append(field)
        if len(found) == MAX_FIELDS:
            found.append(Field("…", "", str(value), 0))
            break
    return found


def _walk(value: Any, path: str, key: str, record: int) -> Iterator[Field]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _walk(inner, f"{path}/{name}", str(name), record)
            yield Field(f"{path}/{name}", "", str(name), record)
    elif isinstance(value, list):
        apart = not path or any(isinstance(item, dict) for item in value)
        for number, item in enumerate(value):
            yield from _walk(item, f"{path}/{number}", key, number if apart else record)
    elif isinstance(value, str):
        yield Field(path, key, value, record)
    elif value is not None and not isinstance(value, bool):
        yield Field(path, key, str(value), record)


def _of_text(text: str) -> Iterator[Field]:
    """A text that lists records as YAML does. What is indented deeper belongs to the field above it, so
    that a text inside a field cannot pose as a field.
    """
    lines = text.split("\n")
    first = KEYED.match(lines[0]) or ITEM.match(lines[0])
    if not first:
        yield Field("", "", text, 0)
        return
    yield from _records(lines, _level(first))


def _level(found: "re.Match[str]") -> int:
    """Where the record's own fields begin: after the dash, if there is one."""
    dash = found.groupdict().get("dash") or ""
    return len(found["indent"]) + len(dash)


def _records(lines: list[str], level: int) -> Iterator[Field]:
    record, key, said = -1, "", list[str]()
    quote = ""
    for line in lines:
        keyed = None if quote else KEYED.match(line)
        item = None if quote else ITEM.match(line)
        if keyed and _level(keyed) == level:
            yield from _field(record, key, said)
            record += bool(keyed["dash"]) or record < 0
            key, said = keyed["key"], [keyed["value"] or ""]
        elif item and not level and len(item["indent"]) == 0 and not key:
            yield from _field(record, key, said)
            record, said = record + 1, [item["value"]]
        elif (item and key and len(item["indent"]) == level and said in ([""], ["[]"])) or (
            item and key and said == []
        ):
            yield from _field(record, key, said)
            said = []
            yield Field(f"/{record}/{key}", key, _plain(item["value"]), record)
            continue
        else:
            said.append(line.strip())
        quote = _open_quote("\n".join(said))
    yield from _field(record, key, said)


def _field(record: int, key: str, said: list[str]) -> Iterator[Field]:
    text = _plain("\n".join(said))
    if text:
        yield Field(f"/{max(record, 0)}/{key}" if key else f"/{max(record, 0)}", key, text, max(record, 0))


def _open_quote(text: str) -> str:
    """The quote a text begins with and has not closed yet."""
    mark = text.lstrip()[:1]
    if mark == "'":
        return mark if text.lstrip().replace("''", "").count(mark) == 1 else ""
    if mark == '"':
        return mark if len(re.findall(r'(?<!\\)(?:\\\\)*"', text)) == 1 else ""
    return ""


def _plain(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1].replace('\\"', '"').replace("\\n", "\n")
    return text
