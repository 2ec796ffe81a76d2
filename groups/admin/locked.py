"""Rows of forms: nobody else changes one between its being read and being written."""

from typing import Any

from django.db import connection
from django.http import HttpRequest


class Locked:
    """For a ModelAdmin. A form writes the whole row, so that it is locked before it is read: what somebody
    else is taking back meanwhile, in columns that the form does not have too, is not written back as it was.
    """

    model: Any

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        found = super().get_object(request, object_id, from_field)  # type: ignore[misc]
        if found is None or request.method != "POST" or not connection.in_atomic_block:
            return found
        row = self.model._base_manager.filter(pk=found.pk)
        list(row.select_for_update(no_key=True, of=("self",)).values_list("pk"))
        return super().get_object(request, object_id, from_field)  # type: ignore[misc]
