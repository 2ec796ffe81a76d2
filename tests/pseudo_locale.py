"""An interface whose every marked word stands in brackets, and what a page shows outside of them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from unittest.mock import patch

from django.utils import translation

OPEN, CLOSE = "⟦", "⟧"
SHOWN = ("title", "placeholder", "aria-label", "alt", "label", "data-done", "data-confirm")
SILENT = {"script", "style", "code", "pre", "textarea", "svg", "template", "datalist", "kbd", "samp", "time"}
ICONS = ("material-symbols", "icon")
VOID = {"input", "br", "img", "hr", "meta", "link", "source", "wbr", "col", "area", "base", "embed", "track"}
WORD = re.compile(r"[A-Za-z][A-Za-z'’]+")


@contextmanager
def spoken() -> Iterator[None]:
    """Inside, whatever is looked up comes back in brackets."""

    def mark(words: str) -> str:
        return f"{OPEN}{words}{CLOSE}" if words.strip() else words

    answers = {
        "gettext": mark,
        "pgettext": lambda context, words: mark(words),
        "ngettext": lambda one, many, number: mark(one if number == 1 else many),
        "npgettext": lambda context, one, many, number: mark(one if number == 1 else many),
    }
    with patch.multiple(translation._trans, **answers):
        yield


class Reader(HTMLParser):
    """What a reader of the page meets that nobody looked up: in `found`, as it stands."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open: list[tuple[str, bool]] = []  # elements, and whether what they hold is silent
        self.depth = 0  # of brackets: marked words may hold elements

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        names = (*SHOWN, "value") if given.get("type") in ("submit", "button", "reset") else SHOWN
        if tag != "option" or "label" not in given:
            for name in names:
                if name in given and given.get("translate") != "no":
                    self.found.append(outside(given[name])[0])
        if tag not in VOID:
            classes = given.get("class", "").split()
            icon = any(one.startswith(ICONS) for one in classes)
            self.open.append((tag, tag in SILENT or icon or given.get("translate") == "no"))

    def handle_endtag(self, tag: str) -> None:
        while self.open and tag in [name for name, _ in self.open]:
            if self.open.pop()[0] == tag:
                return

    def handle_data(self, data: str) -> None:
        said, self.depth = outside(data, self.depth)
        if not any(silent for _, silent in self.open):
            self.found.append(said)


def outside(text: str, depth: int = 0) -> tuple[str, int]:
    """What stands outside of brackets, and how many are open at the end."""
    kept = []
    for character in text:
        depth += (character == OPEN) - (character == CLOSE and depth > 0)
        kept.append(character if depth == 0 and character != CLOSE else " ")
    return "".join(kept), depth


def unmarked(html: str, data: re.Pattern[str]) -> set[str]:
    """The pieces of text with words in them that are neither marked nor `data`."""
    reader = Reader()
    reader.feed(html)
    pieces = (" ".join(piece.split()) for piece in reader.found)
    return {piece for piece in pieces if WORD.search(data.sub(" ", piece))}
