"""What agents remember of people and their work, in the admin: to look at, and to take away."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import ChoicesDropdownFilter, DropdownFilter

from groups.admin.addresses import Addressed
from groups.admin.moments import Moments
from memory.admin.acting import Acting
from memory.models import Memory, Remembered

ENTRIES = {  # of a blackboard
    "PROPOSAL": gettext_lazy("Proposal"),
    "EVIDENCE": gettext_lazy("Evidence"),
    "TODO": gettext_lazy("To do"),
    "DECISION": gettext_lazy("Decision"),
}
PREFERENCE = {"pa_preference": True}
MARKED = Q(metadata__contains=PREFERENCE)


class Kind(DropdownFilter):
    title, parameter_name = gettext_lazy("kind"), "kind"
    conditions = {
        "preference": MARKED,
        "person": Q(user__isnull=False) & ~MARKED,
        "group": Q(group__isnull=False),
        "agent": Q(user=None, agent_instance__isnull=False),
        "project": Q(user=None, group=None, agent_instance=None),
    }

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("preference", _("Preferences")),
            ("person", _("A person's tasks and facts")),
            ("group", _("Blackboards of groups")),
            ("agent", _("Notes of experts")),
            ("project", _("The project's own")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> QuerySet[Memory]:
        return queryset.filter(self.conditions.get(str(self.value()), Q()))


@admin.register(Remembered)
class RememberedAdmin(Acting, Moments, Addressed, ModelAdmin):
    """Everybody finds what is remembered of themselves, and deletes it for good. What agents share is for
    those who may look at memories; curators retract it. Another person's own is for that person alone."""

    list_display = ("text", "kind", "belongs_to", "state", "run", "created_at")
    list_filter = (Kind, ("status", ChoicesDropdownFilter))
    search_fields = ("content",)
    search_help_text = gettext_lazy("Words of the text, or a run's id: run_…")
    list_select_related = ("project", "organization", "group", "user", "agent_instance__role")
    ordering = ("-id",)
    list_per_page = 50
    show_full_result_count = False
    empty_message = gettext_lazy(
        "Nothing is remembered yet. Agents keep preferences, past tasks and notes here."
    )
    fields = readonly_fields = (
        "content",
        "kind",
        "belongs_to",
        "status",
        "importance",
        "expires_at",
        "run",
        "metadata",
        "created_at",
    )
    actions = ("retract", "restore")

    # Who may

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_staff)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """One's own; a list's rows are asked about one by one."""
        if obj is None or request.user.is_superuser:
            return self.has_module_permission(request)
        return bool(obj.user_id == request.user.pk)

    def get_queryset(self, request: HttpRequest) -> Any:
        found = Remembered.objects.visible_to(request.user)
        if self.has_curate_permission(request) or request.user.has_perm("memory.view_memory"):
            return found
        return found.filter(user=request.user.pk)

    # What is shown

    @admin.display(description=gettext_lazy("kind"))
    def kind(self, memory: Memory) -> str:
        if memory.metadata.get("pa_preference") is True:
            return _("Preference")
        said = str(memory.metadata.get("memory_type") or "")
        return str(ENTRIES.get(said, said.capitalize() or memory.get_type_display()))

    @admin.display(description=gettext_lazy("belongs to"))
    def belongs_to(self, memory: Memory) -> str:
        owners = (memory.user, memory.group, memory.agent_instance if memory.user is None else None)
        names = [memory.organization.name, memory.project.name if memory.project else None]
        return " / ".join(str(part) for part in (*names, *owners) if part)
