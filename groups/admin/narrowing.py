"""By what a list may be narrowed: by its own filters, and by nothing that it does not show."""

from collections.abc import Iterator
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db.models.constants import LOOKUP_SEP
from django.http import HttpRequest


class Narrowed:
    """Refuses to narrow a list by another column than its filters'.

    Django takes every column of the model in the address. Whoever sees a list could then find out, letter by
    letter, what none of its pages shows them: `?preferences__contains=a`.
    """

    model: Any

    def lookup_allowed(self, lookup: str, value: Any, request: Any = None) -> bool:
        known = super().lookup_allowed(lookup, value, request)  # type: ignore[misc]
        return bool(known) and self._is_filtered_by(lookup.partition(LOOKUP_SEP)[0], request)

    def _is_filtered_by(self, name: str, request: HttpRequest) -> bool:
        try:
            column = self.model._meta.get_field(name)
        except FieldDoesNotExist:
            return True  # `pk`, the filters that are no columns; of others Django says that they are none
        return bool(getattr(column, "primary_key", False)) or name in self._filters(request)

    def _filters(self, request: HttpRequest) -> Iterator[str]:
        for one in self.get_list_filter(request):  # type: ignore[attr-defined]
            named = one[0] if isinstance(one, list | tuple) else one
            yield named if isinstance(named, str) else getattr(named, "parameter_name", "")
