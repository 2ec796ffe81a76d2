"""The box by which a row of a list is chosen."""

from functools import cache
from typing import Any

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language
from unfold.admin import ModelAdmin, checkbox
from unfold.decorators import display

KEY = "the-key-of-a-row"


class Choosing:
    """Gives each row unfold's box, which is the same in all but its value: it is rendered once."""

    @display(description=ModelAdmin.action_checkbox.short_description)  # type: ignore[untyped-decorator]
    def action_checkbox(self, row: Any) -> SafeString:
        before, after = _around_key(get_language())
        return format_html("{}{}{}", before, row.pk, after)


@cache
def _around_key(language: str | None) -> tuple[SafeString, SafeString]:
    """What stands before and after the value, in the language that is active."""
    before, _key, after = str(checkbox.render(ACTION_CHECKBOX_NAME, KEY)).partition(KEY)
    return mark_safe(before), mark_safe(after)  # noqa: S308  (the widget has escaped it)
