"""Rows of forms: nobody else changes one between its being shown and being written."""

from collections.abc import Iterator
from typing import Any

from django.contrib import messages
from django.db import connection
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from common.canonical import digest

OPENED = "opened"  # by which a form says what stood in it


class ChangedMeanwhile(Exception):
    """The row is not any more as the form has shown it."""


class Locked:
    """For a ModelAdmin. A form writes the whole row, so that it is locked before it is read: what somebody
    else is taking back meanwhile, in columns that the form does not have too, is not written back as it was.
    Nor is what they have taken back since the form was opened: it is shown once more, and nothing is saved.
    """

    model: Any
    change_form_before_template = "admin/opened.html"

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        found = super().get_object(request, object_id, from_field)  # type: ignore[misc]
        if found is None or request.method != "POST" or not connection.in_atomic_block:
            return found
        row = self.model._base_manager.filter(pk=found.pk)
        list(row.select_for_update(no_key=True, of=("self",)).values_list("pk"))
        for formset, _inline in self.get_formsets_with_inlines(request, found):  # type: ignore[attr-defined]
            list(_rows(formset, found).select_for_update(no_key=True, of=("self",)).values_list("pk"))
        found = super().get_object(request, object_id, from_field)  # type: ignore[misc]
        opened = getattr(request, "_deputy_opened", None)  # of a form, and not of another page about the row
        if found is not None and opened not in (None, self._mark(request, found)):
            raise ChangedMeanwhile
        return found

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        request._deputy_opened = request.POST.get(OPENED)  # type: ignore[attr-defined]
        try:
            answer: HttpResponse = super().changeform_view(request, *args, **kwargs)  # type: ignore[misc]
        except ChangedMeanwhile:
            said = _("Somebody has changed this meanwhile: nothing was saved. This is how it stands now.")
            self.message_user(request, said, messages.ERROR)  # type: ignore[attr-defined]
            return redirect(request.get_full_path())
        return answer

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, obj: Any = None, **kwargs: Any
    ) -> HttpResponse:
        if obj is not None:  # of a form that comes back with errors, what it was opened with
            context[OPENED] = request.POST.get(OPENED) or self._mark(request, obj)
        answer: HttpResponse = super().render_change_form(  # type: ignore[misc]
            request, context, *args, obj=obj, **kwargs
        )
        return answer

    def _mark(self, request: HttpRequest, obj: Any) -> str:
        return digest(*map(repr, self._shown(request, obj)))

    def _shown(self, request: HttpRequest, obj: Any) -> Iterator[tuple[Any, ...]]:
        """What the form may change: of the row, and of those inside its page."""
        form = self.get_form(request, obj)  # type: ignore[attr-defined]
        yield _values(obj, {*form.base_fields, *getattr(form, "written_by_others", ())})
        for formset, _inline in self.get_formsets_with_inlines(request, obj):  # type: ignore[attr-defined]
            for row in _rows(formset, obj):
                yield _values(row, formset.form.base_fields)


def _rows(formset: Any, obj: Any) -> QuerySet[Any]:
    """The rows inside its page."""
    found: QuerySet[Any] = formset.model._base_manager.filter(**{formset.fk.name: obj}).order_by("pk")
    return found


def _values(row: Any, names: Any) -> tuple[Any, ...]:
    stored = [field for field in row._meta.concrete_fields if field.name in names]
    return (row.pk, *(field.value_from_object(row) for field in stored))
