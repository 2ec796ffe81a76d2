"""Files of one JSON object a line."""

import json
from pathlib import Path
from typing import Any


class BadFile(ValueError):
    """The file cannot be used; the message names it, the line and what is wrong."""


def read(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Each row with its place (`FILE, line N`), empty lines left out. Raises BadFile."""
    # not splitlines(): U+2028 and its like may stand inside a JSON string
    numbered = enumerate(text_of(path).split("\n"), 1)
    return [_row(line, f"{path}, line {number}") for number, line in numbered if line.strip()]


def text_of(path: Path) -> str:
    """The file's text. Raises BadFile."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"{path}: {error}") from error


def _row(line: str, place: str) -> tuple[str, dict[str, Any]]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{place}: {error}") from error
    if not isinstance(row, dict):
        raise BadFile(f"{place}: not an object")
    return place, row
