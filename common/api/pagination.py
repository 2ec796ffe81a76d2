"""Pages: cursors over ids, which sort by time, so that a page never shifts while rows are added."""

import re
from typing import Any

from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination

from common.api.errors import bad_query

ORDERINGS = {"created_at": "id", "-created_at": "-id"}
NO_CURSOR = "is what a page's next or previous names, and nothing else."
POSITION = re.compile(r"[a-z]{3}_[0-9a-z]{26}")


class NewestFirst(CursorPagination):
    """`{"results": […], "next": url or null, "previous": url or null}`; `?limit=` rows, at most 100."""

    ordering = "-id"
    page_size = 25
    max_page_size = 100
    page_size_query_param = "limit"

    def get_ordering(self, request: Any, queryset: Any, view: Any) -> tuple[str, ...]:
        asked = request.query_params.get("ordering")
        if asked is None:
            return (self.ordering,)
        if asked not in ORDERINGS:
            raise bad_query("ordering", f"is one of {', '.join(ORDERINGS)}.")
        return (ORDERINGS[asked],)

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        default = next(name for name, column in ORDERINGS.items() if column == self.ordering)
        ordering = {
            "name": "ordering",
            "in": "query",
            "required": False,
            "description": f"By when they were made; `{default}` where left out.",
            "schema": {"type": "string", "enum": list(ORDERINGS)},
        }
        return [*super().get_schema_operation_parameters(view), ordering]

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        paginated: dict[str, Any] = super().get_paginated_response_schema(schema)
        for name in ("next", "previous"):
            paginated["properties"][name]["example"] = f"https://deputy.example/api/{name}/?cursor=cD00ODY"
        return paginated

    def get_page_size(self, request: Any) -> int:
        return whole_number(request, "limit", self.page_size, least=1, most=self.max_page_size)

    def decode_cursor(self, request: Any) -> Any:
        try:
            cursor = super().decode_cursor(request)
        except NotFound:
            raise bad_query("cursor", NO_CURSOR) from None
        if cursor and cursor.position is not None and not POSITION.fullmatch(cursor.position):
            raise bad_query("cursor", NO_CURSOR)
        return cursor


class OldestFirst(NewestFirst):
    """The same, in order of creation."""

    ordering = "id"


def whole_number(request: Any, name: str, default: int, *, least: int, most: int) -> int:
    """A number of the query, or the default. Raises Problem."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 12 and least <= int(text) <= most):
        raise bad_query(name, f"takes a whole number from {least} to {most}.")
    return int(text)
