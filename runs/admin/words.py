"""Values in words: arguments line by line, what changed in them, the tone of a status."""

import difflib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from common import redact
from common.canonical import canonical
from runs.models import Run

MAX_DEPTH = 6  # of nesting that is spelled out; deeper values are shown as JSON
LONG = 160  # characters; longer values get lines of their own
FOLDED = 1_200  # characters; longer values are folded until somebody opens them
COMPARED = 3_000  # characters of a text whose words are compared; longer ones are shown as changed

WORDS = re.compile(r"\s+|[A-Za-z0-9À-ɏ]+|.", re.DOTALL)
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
    mark: str = ""  # new, changed or gone, against what it was compared with
    pieces: tuple[tuple[str, str], ...] = ()  # of a changed one: (same | added | removed, words)

    @property
    def long(self) -> bool:
        return len(self.text) > LONG or "\n" in self.text

    @property
    def folded(self) -> bool:
        return len(self.text) > FOLDED


def readable(value: Any) -> list[Line]:
    """A JSON value, whole, as lines: nothing is left out, invisible characters are shown."""
    return [Line(name, text) for name, text in _lines(value, "", 0)]


def shown(value: Any) -> list[Line]:
    """The same, with what fields named like secrets hold masked: for those who look, not for who decides."""
    return readable(redact.masked(value))


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


def marked(lines: Sequence[Line], before: Sequence[Line]) -> list[Line]:
    """The lines, each marked where it differs from the one of the same name before; then what is gone."""
    known = {line.name: line.text for line in before}
    names = {line.name for line in lines}
    gone = [replace(line, mark="gone") for line in before if line.name not in names]
    return [*(_marked(line, known.get(line.name)) for line in lines), *gone]


def _marked(line: Line, was: str | None) -> Line:
    if was is None:
        return replace(line, mark="new")
    return line if was == line.text else replace(line, mark="changed", pieces=_pieces(was, line.text))


def _pieces(was: str, now: str) -> tuple[tuple[str, str], ...]:
    """Word by word what stayed, what was added and what was removed; nothing for very long texts."""
    if len(was) + len(now) > COMPARED:
        return ()
    old, new = WORDS.findall(was), WORDS.findall(now)
    found: list[tuple[str, str]] = []
    for kind, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            found.append(("same", "".join(new[k:m])))
            continue
        found += [("removed", "".join(old[i:j]))] if j > i else []
        found += [("added", "".join(new[k:m]))] if m > k else []
    return tuple(found)


def _plain(items: list[Any]) -> bool:
    """Whether the items can stand side by side without ambiguity."""
    return all(
        isinstance(item, int | float) or (isinstance(item, str) and len(item) <= 60 and "," not in item)
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


def visible(text: str) -> str:
    """The text with characters that hide or reorder others spelled out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf"):
        return character
    return f"⟨U+{ord(character):04X}⟩"


def tone(status: str) -> str:
    """Which colour a status has: info, warn, good, bad, or none."""
    return TONES.get(status, "")


def badge(text: str, tone: str) -> SafeString:
    """A word or two in the colour of their tone."""
    return format_html('<span class="dp-badge dp-{}">{}</span>', tone, text)


def run_badge(run: Run) -> SafeString:
    """A run's status, and what it waits for."""
    status = run.get_status_display()
    reason = f": {run.get_waiting_reason_display().lower()}" if run.waiting_reason else ""
    return badge(f"{status}{reason}", tone(run.status))


def tokens(usage: dict[str, Any] | None) -> int:
    """The tokens a run has used, its ended children's included."""
    return int((usage or {}).get("tokens", 0))


FOLLOWED_UP = {
    "reminded": gettext_lazy("Reminded: {people}"),
    "escalated": gettext_lazy("Nobody has decided yet; told now: {people}"),
    "alarm_over": gettext_lazy("Somebody hears of it again"),
}
ALARMS = {
    "nobody": gettext_lazy("Nobody may decide this. An administrator has to name somebody."),
    "no_channel": gettext_lazy("Nobody who may decide this can be reached by any channel."),
    "unheard": gettext_lazy("No message about this has arrived anywhere."),
    "overdue": gettext_lazy("This has been waiting for a decision too long."),
}


def followed_up(payload: dict[str, Any]) -> str:
    """What was done about an approval that nobody had decided, in words."""
    if payload.get("what") == "alarm":
        return str(ALARMS.get(str(payload.get("alarm")), ""))
    said = FOLLOWED_UP.get(str(payload.get("what")))
    return str(said).format(people=", ".join(map(str, payload.get("people") or ()))) if said else ""
