"""What a page's forms would send as they stand there: read from the HTML, as a browser does."""

from html.parser import HTMLParser
from typing import Any

Fields = dict[str, list[str]]


def forms(page: str) -> list[tuple[str, Fields]]:
    """The id of each POST form, and the values of its fields, without its buttons and files."""
    reader = _Reader()
    reader.feed(page)
    return reader.found


def change_form(page: Any) -> Fields:
    """What a browser sends of an admin page's form for one row, with the rows inside it."""
    return next(fields for _, fields in forms(page.content.decode()) if "opened" in fields)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, Fields]] = []
        self.form: Fields | None = None
        self.area: str | None = None
        self.select: tuple[str, bool] | None = None  # its name, and whether it takes several
        self.options: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = {name: value if value is not None else "" for name, value in attrs}
        name = given.get("name", "")
        if tag == "form":
            self.form = {} if given.get("method", "").lower() == "post" else None
            if self.form is not None:
                self.found.append((given.get("id", ""), self.form))
        if self.form is None or "disabled" in given:
            return
        if tag == "input" and name:
            kind = given.get("type", "text").lower()
            ticked = kind not in ("checkbox", "radio") or "checked" in given
            if ticked and kind not in ("submit", "button", "image", "reset", "file"):
                self._send(name, given.get("value", "on" if kind in ("checkbox", "radio") else ""))
        elif tag == "textarea" and name:
            self._send(name, "")
            self.area = name
        elif tag == "select" and name:
            self.select, self.options = (name, "multiple" in given), []
        elif tag == "option" and self.select:
            self.options.append((given.get("value", ""), "selected" in given))

    def handle_data(self, data: str) -> None:
        if self.form is not None and self.area:
            self.form[self.area][-1] += data

    def handle_endtag(self, tag: str) -> None:
        if self.form is None:
            return
        if tag == "textarea" and self.area:
            # a browser drops one line break at the start, and sends every other as two characters
            text = self.form[self.area][-1].removeprefix("\n")
            self.form[self.area][-1] = text.replace("\r\n", "\n").replace("\n", "\r\n")
            self.area = None
        elif tag == "select" and self.select:
            name, several = self.select
            chosen = [value for value, selected in self.options if selected]
            if not chosen and not several:
                chosen = [value for value, _ in self.options[:1]]
            for value in chosen if several else chosen[-1:]:
                self._send(name, value)
            self.select = None
        elif tag == "form":
            self.form = None

    def _send(self, name: str, value: str) -> None:
        assert self.form is not None
        self.form.setdefault(name, []).append(value)
