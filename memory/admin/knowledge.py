"""Knowledge in the admin: what was deposited, from which run, and what people do with it."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from django.apps import apps
from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import BadRequest, FieldError, ValidationError
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from import_export.admin import ImportExportMixin
from unfold.admin import ModelAdmin, TabularInline
from unfold.contrib.filters.admin import ChoicesDropdownFilter, DropdownFilter
from unfold.contrib.import_export.forms import ImportForm, SelectableFieldsExportForm

from common import redact
from groups.actors import Actor
from groups.admin.addresses import Addressed
from groups.admin.locked import Locked
from groups.admin.moments import Moments
from groups.models import Group, Project
from memory import curate
from memory.admin.acting import Acting, run_link
from memory.errors import MemoryRefused
from memory.exchange import JSONL, KnowledgeResource
from memory.models import DepositedKnowledge, Memory, MemoryRevision
from memory.write import checked_content
from policy.authority import NotAllowed, Verb, can


class OfProject(DropdownFilter):
    title, parameter_name = gettext_lazy("project"), "project"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        seen = model_admin.get_queryset(request).order_by().values("project_id").distinct()
        return [("-", _("Whole organization"))] + [
            (project.id, f"{project.organization.slug} / {project.name}")
            for project in Project.objects.filter(id__in=seen).select_related("organization")
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> QuerySet[Memory]:
        if not self.value():
            return queryset
        return queryset.filter(project_id=None if self.value() == "-" else self.value())


class OfGroup(DropdownFilter):
    """Knowledge has no group of its own: its lineage says which group's run left it."""

    title, parameter_name = gettext_lazy("group"), "group"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        seen = model_admin.get_queryset(request).order_by().values("project_id").distinct()
        groups = Group.objects.filter(project_id__in=seen).select_related("project")
        return [(group.id, f"{group.project.name} / {group.name}") for group in groups]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> QuerySet[Memory]:
        if not self.value():
            return queryset
        runs = apps.get_model("runs", "Run").objects.filter(group_id=self.value())
        return queryset.filter(source_run_id__in=runs.values("pk"))


LOOKED_AT = "deputy_import"  # the session's key: the form that confirms what was looked at


class Revisions(TabularInline):
    model = MemoryRevision
    fields = readonly_fields = ("created_at", "action", "by", "was")
    extra = 0
    can_delete = False
    verbose_name_plural = gettext_lazy("History")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True  # whoever sees the memory sees its history

    @admin.display(description=gettext_lazy("before"))
    def was(self, revision: MemoryRevision) -> str:
        return json.dumps(redact.masked(revision.before), ensure_ascii=False)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class KnowledgeForm(ModelForm):
    def clean_content(self) -> str:
        """As it comes back where it was shown, or anew; what is hidden in it is kept in its place alone."""
        written: str = self.cleaned_data["content"]
        stored = Memory.objects.values_list("content", flat=True).get(pk=self.instance.pk)
        try:
            checked_content(redact.kept(written, stored))
        except redact.Hidden:
            told = _("Write what stands hidden as {mask} anew, or leave it out.")
            raise ValidationError(told.format(mask=redact.MASK)) from None
        except MemoryRefused as refused:
            raise ValidationError(str(refused)) from None
        return written


@admin.register(DepositedKnowledge)
class DepositedKnowledgeAdmin(Locked, Acting, ImportExportMixin, Moments, Addressed, ModelAdmin):
    """Nothing is deleted here: what is wrong is retracted, and can be restored."""

    form = KnowledgeForm
    list_display = ("text", "place", "state", "came_from", "run", "created_at")
    list_filter = (("status", ChoicesDropdownFilter), OfProject, OfGroup)
    search_fields = ("content",)
    search_help_text = gettext_lazy("Words of the text, or a run's id: run_…")
    list_select_related = ("project", "organization")
    ordering = ("-id",)
    list_per_page = 50
    show_full_result_count = False
    warn_unsaved_form = True
    empty_message = gettext_lazy(
        "Nothing is known yet. What groups conclude is kept here, and what is imported."
    )
    fields = ("content", "importance", "expires_at", "place", "status", "replaced_by", "run", "lineage")
    readonly_fields = ("place", "status", "replaced_by", "run", "lineage")
    inlines = (Revisions,)
    actions = ("approve", "retract", "restore", "promote", "merge")
    resource_classes = (KnowledgeResource,)
    import_form_class, export_form_class = ImportForm, SelectableFieldsExportForm
    import_formats = export_formats = (JSONL,)

    # Who may

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What holds for the whole organization, members of some projects look at."""
        permitted = self.has_curate_permission(request)
        return permitted and (obj is None or can(self.actor_at(request, obj.pk), Verb.CURATE, obj))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_curate_permission(request) or request.user.has_perm("memory.view_memory")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_import_permission(self, request: HttpRequest) -> bool:
        return self.has_curate_permission(request)

    def has_export_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def get_queryset(self, request: HttpRequest) -> Any:
        return DepositedKnowledge.objects.visible_to(request.user)

    def export_action(self, request: HttpRequest) -> Any:
        """The export page, for the filters of the list. Raises BadRequest for one that is none."""
        try:
            return super().export_action(request)
        except (FieldError, IncorrectLookupParameters) as error:
            raise BadRequest(str(error)) from None

    def get_import_resource_kwargs(self, request: HttpRequest, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {"user": request.user, "actor_at": partial(Actor.of_request, request)}

    def get_export_resource_kwargs(self, request: HttpRequest, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {"user": request.user, "actor_at": partial(Actor.of_request, request)}

    def get_confirm_form_initial(self, request: HttpRequest, import_form: Any) -> dict[str, Any]:
        """What is confirmed next; the session keeps which file it is."""
        found: dict[str, Any] = super().get_confirm_form_initial(request, import_form)
        request.session[LOOKED_AT] = found
        return found

    def process_import(self, request: HttpRequest, **kwargs: Any) -> Any:
        """Import the file that this person has looked at. The form names a file of the machine's temporary
        folder, where others lie as well, and which is removed afterwards.
        """
        looked_at = request.session.pop(LOOKED_AT, None) or {"import_file_name": None}
        same = all(request.POST.get(name) == value for name, value in looked_at.items())
        try:
            if not self.has_import_permission(request) or same:
                return super().process_import(request, **kwargs)
        except FileNotFoundError:
            pass  # on another machine, or removed since
        self.message_user(request, _("Choose the file once more, and look at it."), messages.ERROR)
        return redirect("admin:memory_depositedknowledge_import")

    def add_data_read_fail_error_to_form(self, form: Any, e: Exception) -> None:
        form.add_error("import_file", str(e))

    # What is shown

    @admin.display(description=gettext_lazy("belongs to"), ordering="project")
    def place(self, memory: Memory) -> str:
        return f"{memory.organization.name} / {memory.project.name if memory.project else _('everyone')}"

    @admin.display(description=gettext_lazy("source"))
    def came_from(self, memory: Memory) -> str:
        more = len(memory.sources)
        source = str(memory.metadata.get("file") or memory.metadata.get("source") or "")
        return _("{source} and {count} more").format(source=source, count=more) if more else source

    @admin.display(description=gettext_lazy("replaced by"))
    def replaced_by(self, memory: Memory) -> SafeString | str:
        if memory.superseded_by_id is None:
            return "-"
        address = reverse("admin:memory_depositedknowledge_change", args=[memory.superseded_by_id])
        return format_html('<a class="dp-link" href="{}">{}</a>', address, memory.superseded_by_id)

    @admin.display(description=gettext_lazy("lineage"))
    def lineage(self, memory: Memory) -> SafeString | str:
        lines = (
            (run_link(entry.get("source_run_id")), entry.get("source", ""), entry.get("deposited_at", ""))
            for entry in curate.lineage(memory)
        )
        return format_html_join("", "<div>{} {} {}</div>", lines)

    # What is done

    def save_model(self, request: HttpRequest, obj: Memory, form: Any, change: bool) -> None:
        changes = {name: form.cleaned_data[name] for name in form.changed_data}
        if changes:
            curate.edit(obj.id, self.actor_at(request, obj.id), **changes)

    @admin.action(description=gettext_lazy("Approve pending"), permissions=["curate"])
    def approve(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        self.each(request, queryset, curate.approve, _("{count} approved."))

    @admin.action(description=gettext_lazy("Promote to the organization"), permissions=["curate"])
    def promote(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        self.each(request, queryset, curate.promote, _("{count} promoted."))

    @admin.action(description=gettext_lazy("Merge into the oldest"), permissions=["curate"])
    def merge(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        ids = list(queryset.order_by("id").values_list("id", flat=True))
        kept = ids[0] if ids else ""  # of what was chosen, the list may hold nothing
        self._tell(
            request,
            lambda: curate.merge(kept, ids[1:], self.actor_at(request, kept)),
            _("{count} merged into one.").format(count=len(ids)),
        )

    def _tell(self, request: HttpRequest, verb: Callable[[], Memory], done: str) -> None:
        try:
            verb()
        except (MemoryRefused, NotAllowed) as refused:
            self.message_user(request, str(refused), messages.ERROR)
        else:
            self.message_user(request, done, messages.SUCCESS)
