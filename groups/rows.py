"""The rows of the admin's lists, in the HTML that unfold gives them.

unfold makes all headers anew for each row, and finds out for each cell what holds for its whole column: most
of the time of a list. Here a column is prepared once; a cell is its value and little else.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import date, time
from typing import Any

from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.contrib.admin.utils import label_for_field, lookup_field
from django.core.exceptions import ObjectDoesNotExist
from django.db import models
from django.urls import NoReverseMatch
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from unfold.templatetags.unfold_list import CHECKBOX_CLASSES, LINK_CLASSES, ROW_CLASSES
from unfold.utils import (
    display_for_dropdown,
    display_for_field,
    display_for_header,
    display_for_label,
    display_for_value,
)

Header = dict[str, Any]  # of unfold's result_headers

CHECKBOX = "action_checkbox"
ONE_LINE_FIELDS = (models.DateField, models.TimeField, models.ForeignKey)


def plain(cl: Any) -> bool:
    """Whether these rows can be made here: none is edited in place, sorted by hand, opened or chosen."""
    unfolds = (getattr(cl.model_admin, name, None) for name in ("list_sections", "ordering_field"))
    return not any((cl.formset, cl.is_popup, cl.to_field, *unfolds))


def rows(cl: Any, headers: Sequence[Header]) -> Iterator[SafeString]:
    """The cells of each row of a change list."""
    links = linked(cl)
    columns = [
        Column(cl, index, header, index in links, index == min(links, default=None))
        for index, header in enumerate(headers)
    ]
    address = Address(cl)
    for row in cl.result_list:
        url = address.of(row) if links else None
        yield mark_safe("".join(column.cell(row, url) for column in columns))  # noqa: S308  (cells are escaped)


def linked(cl: Any) -> list[int]:
    """Which columns lead to the row's own page."""
    if cl.list_display_links is None:
        return []
    named = [index for index, name in enumerate(cl.list_display) if name in cl.list_display_links]
    return named if cl.list_display_links else [0]


class Address:
    """Where the rows' own pages are, the filters of the list kept."""

    def __init__(self, cl: Any) -> None:
        self.cl = cl
        self.kept: str | None = None  # behind every address; the same for all rows

    def of(self, row: Any) -> str | None:
        try:
            url: str = self.cl.url_for_result(row)
        except NoReverseMatch:
            return None
        if self.kept is None:
            context = {"preserved_filters": self.cl.preserved_filters, "opts": self.cl.opts}
            self.kept = str(add_preserved_filters(context, url)).removeprefix(url)
        return url + self.kept


class Column:
    """What the cells of a column share, and each cell."""

    def __init__(self, cl: Any, index: int, header: Header, linked: bool, heads: bool) -> None:
        self.admin, self.name, self.linked = cl.model_admin, cl.list_display[index], linked
        _label, self.attr = label_for_field(self.name, cl.model, model_admin=self.admin, return_attr=True)
        self.field = cl.lookup_opts.get_field(self.name) if self.attr is None else None
        self.empty = getattr(self.attr, "empty_value_display", self.admin.get_empty_value_display())
        self.read = self._reader()
        self.tag = "th" if heads else "td"
        label = header["text"] if index or linked else _("Select record")
        self.opening = self._opening(index, label)
        self.opening_one_line = self._opening(index, label, "nowrap")

    def cell(self, row: Any, url: str | None) -> str:
        try:
            value = self.read(row)
        except ObjectDoesNotExist:
            one_line, shown = False, self.empty
        else:
            one_line, shown = self._one_line(value), self._shown(row, value)
        if self.linked and url is not None:
            shown = format_html('<a href="{}" class="{}">{}</a>', url, " ".join(LINK_CLASSES), shown)
        opening = self.opening_one_line if one_line else self.opening
        return f"{opening}{conditional_escape(shown)}</{self.tag}>"

    def _reader(self) -> Callable[[Any], Any]:
        """From a row to the value of this column."""
        if self.field is not None:
            return lambda row: getattr(row, self.name)
        if isinstance(self.name, str) and self.name != "__str__" and hasattr(self.admin, self.name):
            method: Callable[[Any], Any] = getattr(self.admin, self.name)
            return method
        return lambda row: lookup_field(self.name, row, self.admin)[2]

    def _one_line(self, value: Any) -> bool:
        if self.field is not None:
            return isinstance(self.field, ONE_LINE_FIELDS)
        return isinstance(value, date | time)

    def _shown(self, row: Any, value: Any) -> Any:
        attr, empty = self.attr, self.empty
        if self.field is not None:
            if isinstance(self.field.remote_field, models.ManyToOneRel):
                return empty if value is None else value
            return display_for_field(value, self.field, empty)
        if isinstance(value, SafeString) and value:
            return value
        if label := getattr(attr, "label", False):
            return display_for_label(value, empty, label)
        if getattr(attr, "dropdown", False):
            return display_for_dropdown(row, self.name, value, empty)
        if getattr(attr, "header", False):
            return display_for_header(value, empty)
        return display_for_value(value, empty, getattr(attr, "boolean", False))

    def _opening(self, index: int, label: Any, *further: str) -> SafeString:
        if self.name == CHECKBOX:
            classes = CHECKBOX_CLASSES
        else:
            name = self.name if isinstance(self.name, str) else self.name.__name__
            classes = [f"field-{name}", *ROW_CLASSES]
        return format_html('<{} class="{}" data-label="{}">', self.tag, " ".join((*classes, *further)), label)
