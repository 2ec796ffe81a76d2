"""Times in lists: how long ago, or how long still, with the exact time on hover."""

from collections.abc import Callable
from functools import cache
from typing import Any

from django.contrib import admin
from django.core.exceptions import FieldDoesNotExist
from django.db.models import DateTimeField
from django.http import HttpRequest

from common import times

AHEAD = ("expires_at", "due_at")  # what is to come


class Moments:
    """Gives every column that is a time the words for it."""

    model: Any

    def get_list_display(self, request: HttpRequest) -> Any:
        return [self._said(name) for name in super().get_list_display(request)]  # type: ignore[misc]

    def _said(self, name: Any) -> Any:
        try:
            field = self.model._meta.get_field(name)
        except (FieldDoesNotExist, TypeError):
            return name
        return column(field) if isinstance(field, DateTimeField) else name


@cache  # the same column each time: the theme looks for it by identity
def column(field: Any) -> Callable[[Any], str]:
    """The column of a time, sorted as the field is."""
    words = times.left if field.name in AHEAD else times.ago

    @admin.display(description=field.verbose_name, ordering=field.name)
    def moment(row: Any) -> str:
        return words(getattr(row, field.name))

    moment.__name__ = field.name
    return moment
