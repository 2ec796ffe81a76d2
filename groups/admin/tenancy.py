"""Who sees what in the admin: every queryset starts from the membership of the person who looks."""

from dataclasses import dataclass
from itertools import chain
from typing import Any, cast

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model, Q, QuerySet
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.admin import ModelAdmin, TabularInline
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.contrib.filters.forms import AutocompleteDropdownForm

from common import replica
from groups import members
from groups.current import membership_of
from groups.models import Organization

from .addresses import Addressed
from .choosing import Choosing
from .lists import ListFields
from .locked import Locked
from .moments import Moments


@dataclass(frozen=True)
class Sight:
    """What somebody sees: everything, or the current organization, whole (None) or as a list of projects."""

    everything: bool
    organizations: dict[str, list[str] | None]

    def condition(self, organization: str, project: str = "", optional: bool = False) -> Q:
        """The filter for rows with these lookups; `optional`: a row without a project is everyone's."""
        whole = [key for key, projects in self.organizations.items() if projects is None or not project]
        found = Q(**{f"{organization}__in": whole})
        for key, projects in self.organizations.items():
            if projects is not None and project:
                inside = Q(**{f"{project}__in": projects})
                if optional:
                    inside |= Q(**{f"{project}__isnull": True})
                found |= Q(**{organization: key}) & inside
        return found


def sight(request: HttpRequest) -> Sight:
    """The sight of the request's user; one query a request."""
    kept = getattr(request, "_deputy_sight", None)
    if kept is None:
        kept = _sight(request.user)
        request._deputy_sight = kept  # type: ignore[attr-defined]
    return cast(Sight, kept)


def _sight(user: Any) -> Sight:
    if not user.is_active:
        return Sight(False, {})
    if user.is_superuser:
        return Sight(True, {})
    membership = membership_of(user)
    return Sight(False, {membership.organization_id: membership.projects} if membership else {})


class Visible:
    """Rows of the organizations, and projects, that the request's user is an active member of.

    `organization_lookup` and `project_lookup` say where a row carries them; `shared_without_project`:
    a row without a project belongs to the whole organization.
    """

    organization_lookup = "organization_id"
    project_lookup = ""
    shared_without_project = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)  # type: ignore[misc]
        seen = sight(request)
        if seen.everything:
            return cast(QuerySet[Any], rows)
        lookups = (self.organization_lookup, self.project_lookup, self.shared_without_project)
        return cast(QuerySet[Any], rows.filter(seen.condition(*lookups)))

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Only what the person sees may be chosen, however the choice reaches the server."""
        related = self.admin_site._registry.get(db_field.remote_field.model)  # type: ignore[attr-defined]
        if related is not None and "queryset" not in kwargs:
            kwargs["queryset"] = related.get_queryset(request)
        if f"{db_field.name}_id" == self.project_lookup and not members.whole(request.user):
            kwargs["required"] = True  # without a project it would hold for the whole organization
        return super().formfield_for_foreignkey(db_field, request, **kwargs)  # type: ignore[misc]


class NothingTakenForm(ModelForm):
    """Refuses a name or a place that another row has, in words."""

    def _post_clean(self) -> None:
        """Django leaves out what the page shows and lets nobody change, such as the organization: a name that
        is taken there would be refused by the database.
        """
        super()._post_clean()  # type: ignore[misc]
        if self.instance._state.adding or self.errors:
            return
        left_out = self._get_validation_exclusions()  # type: ignore[attr-defined]
        try:
            self.instance.validate_constraints(exclude={name for name in left_out if name in self.fields})
        except ValidationError as refused:
            self._update_errors(refused)  # type: ignore[attr-defined]


class OneOrganizationForm(NothingTakenForm):
    """Refuses to tie together what belongs to different organizations, or projects."""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        organization = cleaned.get("organization") or getattr(self.instance, "organization", None)
        project = cleaned.get("project") or getattr(self.instance, "project", None)
        for name, value in list(cleaned.items()):
            theirs = getattr(value, "organization_id", None) if isinstance(value, Model) else None
            if organization and theirs and theirs != organization.pk:
                self.add_error(
                    name,
                    ValidationError(
                        _("This belongs to another organization than {name}.").format(name=organization)
                    ),
                )
            room = getattr(value, "project_id", None) if isinstance(value, Model) else None
            if project and room and room != project.pk:
                self.add_error(
                    name,
                    ValidationError(_("This belongs to another project than {name}.").format(name=project)),
                )
        return dict(cleaned)


class TenantAdmin(Visible, ListFields, Moments, Choosing, Locked, Addressed, ModelAdmin):
    """The base of every admin page about a tenant's things.

    The organization is chosen when a thing is made and stays. Another tenant's object is a 404.
    """

    form: type[ModelForm] = OneOrganizationForm
    list_per_page = 50
    show_full_result_count = False
    warn_unsaved_form = True
    empty_message = gettext_lazy("There is nothing here yet.")
    fixed: tuple[str, ...] = ("organization",)  # fields that stay as they were made
    one_s_own = False  # whether everybody has their own of these, such as tokens

    # What holds for the whole organization is arranged by members of all of it.

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(super().has_add_permission(request)) and self.arranges(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(super().has_change_permission(request, obj)) and self.arranges(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(super().has_delete_permission(request, obj)) and self.arranges(request, obj)

    def arranges(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the person's projects let them arrange this, or without `obj` some of these."""
        if self.one_s_own or members.whole(request.user):
            return True
        if not self.project_lookup:
            return False
        return obj is None or _at(obj, self.project_lookup) is not None

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = tuple(super().get_readonly_fields(request, obj))
        return (*fields, *self.fixed) if obj else fields

    def get_prepopulated_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Not those that are shown alone: Django looks for each in the form."""
        shown = self.get_readonly_fields(request, obj)
        filled = super().get_prepopulated_fields(request, obj)
        return {name: of for name, of in filled.items() if name not in shown}

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        initial: dict[str, Any] = super().get_changeform_initial_data(request)
        seen = sight(request)
        if "organization" not in initial and "organization" in self.fixed:
            choices = Organization.objects.all()
            if not seen.everything:
                choices = choices.filter(pk__in=seen.organizations)
            only = list(choices[:2])
            if len(only) == 1:
                initial["organization"] = only[0].pk
        return initial

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, *args: Any, **kwargs: Any
    ) -> Any:
        """The page of one thing; names in it that Deputy does not know are told above it."""
        if request.method == "GET" and object_id and hasattr(self.model, "unknown_names"):
            found = self.get_object(request, unquote(object_id))
            if found is not None and self.has_view_or_change_permission(request, found):
                for problem in chain.from_iterable(found.unknown_names().values()):
                    self.message_user(request, problem, messages.WARNING)
        return super().changeform_view(request, object_id, *args, **kwargs)

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: Any, object_id: str) -> Any:
        raise Http404(f"No {opts.verbose_name} {object_id}.")

    def visible_or_404(self, request: HttpRequest, object_id: str) -> Any:
        """The object, or 404 when the person does not see it; 403 without the right to look."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        found = self.get_object(request, unquote(object_id))  # the admin's own links quote the _ of an id
        if found is None:
            raise Http404
        return found


def _at(obj: Any, lookup: str) -> Any:
    """What the row has there: `group__project_id` is its group's project."""
    for name in lookup.split("__"):
        obj = getattr(obj, name, None)
    return obj


class History:
    """Nobody adds, changes or deletes what has happened; not even a superuser."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ListedFromReplica:
    """A change list by which nobody decides anything: it may be read from a replica, and is rendered while it
    is. Its actions, and the pages of single rows, go to the primary.
    """

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return self._listed(request, DEFAULT_DB_ALIAS, *args, **kwargs)
        return replica.reading(lambda alias: self._listed(request, alias, *args, **kwargs))

    def _listed(self, request: HttpRequest, alias: str, *args: Any, **kwargs: Any) -> HttpResponse:
        request._deputy_reads_from = alias  # type: ignore[attr-defined]
        try:
            found: HttpResponse = super().changelist_view(request, *args, **kwargs)  # type: ignore[misc]
            return found.render() if isinstance(found, TemplateResponse) else found
        finally:
            del request._deputy_reads_from  # type: ignore[attr-defined]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)  # type: ignore[misc]
        return cast(QuerySet[Any], rows.using(getattr(request, "_deputy_reads_from", DEFAULT_DB_ALIAS)))


class TenantInline(Visible, ListFields, Addressed, TabularInline):
    """Rows inside the page of the thing they belong to."""

    extra = 0


class _VisibleForm(AutocompleteDropdownForm):
    def __init__(self, request: HttpRequest, name: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, name, *args, **kwargs)
        model = kwargs["field"].remote_field.model
        admin = kwargs["model_admin"].admin_site._registry[model]
        self.fields[name].queryset = admin.get_queryset(request)


class Related(AutocompleteSelectFilter):
    """Filter by a related object, found by typing; offers only what the person sees."""

    form_class = _VisibleForm
