"""A result taken apart into its fields, whether it is JSON or a text that lists records line by line."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policy.provenance import lexicon
from policy.provenance.verbs import split

MAX_FIELDS = 20_000  # of one result; the rest is read as one text
MAX_LITERAL = 200_000  # characters of a result that are read as Python's
LONGEST_ENTRY = 100  # characters of a line that may be an entry of a list
HEADED = re.compile(r"(?P<head>[A-Z][\w'-]*(?: [\w'-]+){0,6}):\s(?P<list>.*)", re.DOTALL)
KEYED = re.compile(
    r"(?P<indent> *)(?P<dash>- +)?(?P<key>[A-Za-z_][\w-]{0,40}):(?: +(?P<value>.*))?$", re.MULTILINE
)
NAME = re.compile(r"[a-z][a-zA-Z0-9_]*")
ITEM = re.compile(r"(?P<indent> *)- +(?P<value>.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Field:
    """One text of a result. `record` numbers the entry of the list it stands in; `key` is its name."""

    path: str
    key: str
    text: str
    record: int
    listed: bool = False  # one entry of several under the same name


def fields(value: Any) -> list[Field]:
    """The texts of a result in order."""
    if isinstance(value, str):
        return list(_of_text(value))
    return _of_data(value)


def _of_data(value: Any) -> list[Field]:
    found = []
    for field in _Walk().fields(value, "", "", 0):
        found.append(field)
        if len(found) == MAX_FIELDS:
            return [*found, Field("…", "", str(value), 0)]
    return found


class _Walk:
    """The texts inside lists and objects; each entry of a list of objects, or of a table, is a record."""

    def __init__(self) -> None:
        self.records = 0

    def fields(self, value: Any, path: str, key: str, record: int) -> Iterator[Field]:
        if isinstance(value, dict):
            yield from self._of_dict(value, path, record)
        elif isinstance(value, list | tuple):
            apart = not path or any(isinstance(item, dict) for item in value)
            for number, item in enumerate(value):
                yield from self.fields(item, f"{path}/{number}", key, self._next() if apart else record)
        elif isinstance(value, str):
            yield Field(path, key, value, record)
        elif value is not None and not isinstance(value, bool):
            yield Field(path, key, str(value), record)

    def _of_dict(self, value: dict[Any, Any], path: str, record: int) -> Iterator[Field]:
        table = _is_table(value)
        for name, inner in value.items():
            place = f"{path}/{name}"
            mine = self._next() if table else record
            if table or not NAME.fullmatch(str(name)):  # a table's entry: its name is data
                yield Field(place, "name" if table else "", str(name), mine)
            if isinstance(inner, list) and _is_envelope(value) and not path:
                for number, item in enumerate(inner):
                    yield from self.fields(item, f"{place}/{number}", str(name), self._next())
            else:
                yield from self.fields(inner, place, "" if table else str(name), mine)

    def _next(self) -> int:
        self.records += 1
        return self.records


def _is_table(value: Mapping[Any, Any]) -> bool:
    """Whether an object's names are those of its entries: the entries are records, or the names no words of
    a record.
    """
    if not value or any(NAME.fullmatch(str(name)) for name in value):
        inner = [set(each) for each in value.values() if isinstance(each, dict)]
        return len(inner) == len(value) > 1 and bool(set.intersection(*inner))
    if all(isinstance(each, dict) for each in value.values()):
        return True
    known = lexicon.FREE | lexicon.STEERING | lexicon.OPTION | lexicon.CONTENT | lexicon.IDENTIFIER
    return not any(known.intersection(split(str(name))) for name in value)


def _is_envelope(value: Mapping[Any, Any]) -> bool:
    """Whether an object only holds a list: `{"channels": […], "count": 4}`."""
    lists = [each for each in value.values() if isinstance(each, list)]
    return (
        len(lists) == 1 and not any(isinstance(each, dict) for each in value.values()) and "id" not in value
    )


def _of_text(text: str) -> Iterator[Field]:
    """A text that is JSON, or lists records line by line as YAML does; any other is one field."""
    if text[:1] in ("{", "["):
        try:
            yield from _of_data(_data(text))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            yield Field("", "", text, 0)
        return
    headed = HEADED.match(text)
    if headed and _is_list(headed["list"].strip()):  # "Hotel names: first", and one a line
        key = "_".join(headed["head"].lower().split())
        for number, line in enumerate(headed["list"].strip().splitlines()):
            yield Field(f"/{number}", key, line.strip().removeprefix("- "), number)
        return
    found = list(_Reader(text).fields()) if KEYED.match(text) or ITEM.match(text) else []
    named = [(field.record, field.key) for field in found if field.key and not field.listed]
    if not found or len(named) != len(set(named)):  # a name that comes twice may be somebody's text
        yield Field("", "", text, 0)
    else:
        yield from found


def _is_list(text: str) -> bool:
    """Whether a text has an entry a line."""
    lines = text.splitlines()
    return len(lines) > 1 and all(
        0 < len(line) <= LONGEST_ENTRY and not line[0].isspace() and not KEYED.match(line) for line in lines
    )


def _data(text: str) -> Any:
    """JSON, or what Python prints of the same."""
    try:
        return json.loads(text)
    except ValueError:
        if len(text) > MAX_LITERAL:
            raise
        return ast.literal_eval(text)


class _Reader:
    """Records written as YAML. What is indented deeper, or stands within quotes, belongs to the field above
    it: a text inside a field cannot pose as a field.
    """

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        first = KEYED.match(self.lines[0]) or ITEM.match(self.lines[0])
        self.level = _level(first) if first else 0
        self.record, self.key, self.said, self.open = -1, "", list[str](), False
        self.listed = False

    def fields(self) -> Iterator[Field]:
        for line in self.lines:
            keyed, item = (None, None) if self.open else (KEYED.match(line), ITEM.match(line))
            if keyed and _level(keyed) == self.level:
                yield from self._close()
                self.record += bool(keyed["dash"]) or self.record < 0
                self._begin(keyed["key"], keyed["value"] or "")
            elif item and self._lists(len(item["indent"])):
                yield from self._close()
                self.record += not self.key
                self._begin(self.key, item["value"])
                self.listed = bool(self.key)
            else:
                self._go_on(line.strip())
        yield from self._close()

    def _lists(self, indent: int) -> bool:
        """Whether an entry belongs to the list of the field at hand, or to the list that is the whole."""
        if not self.key:
            return indent == 0
        return indent == self.level and (self.listed or not any(self.said))

    def _begin(self, key: str, value: str) -> None:
        self.key, self.said, self.open, self.listed = key, [], False, False
        self._go_on(value)

    def _go_on(self, line: str) -> None:
        """Another line of the field's text; one in quotes goes on until they are closed."""
        self.said.append(line)
        mark = self.said[0].lstrip()[:1]
        if mark in ("'", '"'):
            escaped = len(re.findall(r"\\.", line)) and line.count('\\"') if mark == '"' else 0
            self.open ^= (line.count(mark) - escaped) % 2 == 1

    def _close(self) -> Iterator[Field]:
        text = _plain("\n".join(self.said))
        if text:
            path = "/".join(filter(None, ("", str(max(self.record, 0)), self.key)))
            yield Field(f"/{path}", self.key, text, max(self.record, 0), self.listed)
        self.said = []


def _level(found: "re.Match[str]") -> int:
    """Where the record's own fields begin: after the dash, if there is one."""
    dash = found.groupdict().get("dash") or ""
    return len(found["indent"]) + len(dash)


def _plain(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1].replace('\\"', '"').replace("\\n", "\n")
    return text
