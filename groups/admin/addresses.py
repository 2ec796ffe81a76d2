"""What a page takes from its address: the filters it shows, and values that its fields can have."""

from collections.abc import Iterator
from typing import Any

from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models.constants import LOOKUP_SEP
from django.http import HttpRequest


class Chosen(AutocompleteSelect):
    """Shows nothing as chosen where the value can be no key; Django asks the database for it and fails."""

    def optgroups(self, name: str, value: Any, attr: Any = None) -> Any:
        return super().optgroups(name, [one for one in value if self._may_be_key(one)], attr)

    def _may_be_key(self, value: Any) -> bool:
        try:
            self.field.target_field.to_python(value)
        except ValidationError:
            return False
        return True


class Addressed:
    """Refuses to narrow a list by another column than its filters', and passes over what no field can hold.

    Django takes every column of the model in the address. Whoever sees a list could then find out, letter by
    letter, what none of its pages shows them: `?preferences__contains=a`. And it fails with a 500 at
    `?_to_field=` and at a key that is none, such as `?user=None`, before a form for a new thing.
    """

    model: Any

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        return super().get_object(request, object_id, from_field or None)  # type: ignore[misc]

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name in self.get_autocomplete_fields(request):  # type: ignore[attr-defined]
            offered = Chosen(db_field, self.admin_site)  # type: ignore[attr-defined]
            kwargs.setdefault("widget", offered)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)  # type: ignore[misc]

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
