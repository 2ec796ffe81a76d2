"""Values in words: arguments line by line, spans of time, labels of statuses."""

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from common.canonical import canonical

MAX_DEPTH = 6  # of nesting that is spelled out; deeper values are shown as JSON
LONG = 160  # characters; longer values get lines of their own

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


@dataclass(frozen=True)
class Line:
    """One value and where it stands; `long` ones want room."""

    name: str
    text: str

    @property
    def long(self) -> bool:
        return len(self.text) > LONG or "\n" in self.text


def readable(value: Any) -> list[Line]:
    """A JSON value, whole, as lines: nothing is left out, invisible characters are shown."""
    return [Line(name, text) for name, text in _lines(value, "", 0)]


def _lines(value: Any, name: str, depth: int) -> list[tuple[str, str]]:
    if isinstance(value, dict) and value and depth < MAX_DEPTH:
        return [
            line
            for key, item in value.items()
            for line in _lines(item, f"{name} › {visible(key)}" if name else visible(key), depth + 1)
        ]
    if isinstance(value, list) and value and depth < MAX_DEPTH and not _plain(value):
        return [
            line for i, item in enumerate(value, 1) for line in _lines(item, f"{name} {i}".strip(), depth + 1)
        ]
    return [(name, scalar(value))]


def _plain(items: list[Any]) -> bool:
    """Whether the items can stand side by side without ambiguity."""
    return all(
        isinstance(item, int | float) or (isinstance(item, str) and len(item) <= 60 and "," not in item)
        for item in items
    )


def scalar(value: Any) -> str:
    """One value as text."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return visible(value) if value else "(empty text)"
    if isinstance(value, list) and _plain(value):
        return ", ".join(visible(str(item)) for item in value) or "(empty list)"
    if value == {}:
        return "(nothing inside)"
    return str(value) if isinstance(value, int | float) else visible(canonical(value))


def visible(text: str) -> str:
    """The text with characters that hide or reorder others spelled out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf"):
        return character
    return f"⟨U+{ord(character):04X}⟩"


def span(seconds: float | None) -> str:
    """A span of time as people say it: 0.4 s, 12 s, 3 min, 5 h, 2 d."""
    if seconds is None:
        return ""
    seconds = max(seconds, 0)
    if seconds < 10:
        return f"{seconds:.1f}\u00a0s"
    for size, unit, least in ((1, "s", 0), (60, "min", 120), (3600, "h", 7200), (86400, "d", 172_800)):
        if seconds >= least:
            said = f"{int(seconds // size)}\u00a0{unit}"
    return said


def between(start: datetime | None, end: datetime | None) -> str:
    """The span from `start` to `end`; empty when one is missing."""
    return span((end - start).total_seconds()) if start and end else ""


def tone(status: str) -> str:
    """Which colour a status has: info, warn, good, bad, or none."""
    return TONES.get(status, "")


def tokens(usage: dict[str, Any] | None) -> int:
    """The tokens a run has used, its ended children's included."""
    return int((usage or {}).get("tokens", 0))
