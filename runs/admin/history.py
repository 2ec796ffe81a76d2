"""Events, calls and waits, for those who look for one among many. The run's page tells the story."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import ChoicesDropdownFilter
from unfold.paginator import InfinitePaginator

from groups.admin.addresses import Addressed
from groups.admin.tenancy import History, ListedFromReplica, Related, TenantAdmin
from policy import unknown
from runs.admin import health
from runs.admin.masking import WithoutSecrets
from runs.admin.policy_pages import PolicyPages
from runs.models import (
    ApprovalDecision,
    ApprovalNotice,
    IdempotencyRecord,
    QueueMessage,
    RunEvent,
    ToolCall,
    Wait,
    WorkerGroup,
)


class RowsOfRuns(WithoutSecrets, ListedFromReplica, History, TenantAdmin):
    """Rows that belong to a run and follow its project."""

    project_lookup = "run__project_id"
    fixed = ()
    paginator = InfinitePaginator  # counting millions of rows says little and costs much
    ordering: tuple[str, ...] = ("-pk",)
    list_select_related: tuple[str, ...] = ("run",)
    raw_id_fields: tuple[str, ...] = ("run",)
    empty_message = gettext_lazy("Nothing has happened yet. Ask an agent, and it shows here.")
    empty_link = ("admin:runs_run_ask", gettext_lazy("Ask"))


@admin.register(RunEvent)
class RunEventAdmin(PolicyPages, RowsOfRuns):
    list_display = ("type", "seq", "run", "agent", "created_at")
    list_filter = (("type", ChoicesDropdownFilter),)
    search_fields = ("run__id__exact",)
    search_help_text = gettext_lazy("A run's id")
    ordering = ("-run_id", "-seq")  # the newest run's last event first, by the table's key

    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).defer("payload")


@admin.register(ToolCall)
class ToolCallAdmin(RowsOfRuns):
    list_display = ("tool", "status", "run", "created_at", "ended_at")
    list_filter = (("status", ChoicesDropdownFilter),)
    search_fields = ("tool", "run__id__exact", "id__exact")
    search_help_text = gettext_lazy("A tool's name, or an id")

    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).defer("arguments", "effective_arguments", "result", "evidence")


@admin.register(Wait)
class WaitAdmin(RowsOfRuns):
    list_display = ("kind", "run", "outcome", "expires_at", "resolved_at", "created_at")
    list_filter = (
        ("kind", ChoicesDropdownFilter),
        ("outcome", ChoicesDropdownFilter),
        ("resolved_at", admin.EmptyFieldListFilter),
    )
    search_fields = ("run__id__exact", "correlation_key")
    search_help_text = gettext_lazy("A run's id, or a correlation key")


@admin.register(ApprovalDecision)
class ApprovalDecisionAdmin(RowsOfRuns):
    project_lookup = "approval__run__project_id"
    raw_id_fields = ("approval",)
    list_display = ("approval", "user", "approved", "as_human", "reason_start", "created_at")
    list_filter = ("approved", ("user", Related))
    list_select_related = ("approval__tool_call", "approval__run", "user")
    search_fields = ("approval__id__exact", "user__username")
    search_help_text = gettext_lazy("An approval's id, or a person")
    empty_message = gettext_lazy("Nobody has decided anything yet.")
    empty_link = ("admin:runs_approval_changelist", gettext_lazy("Approvals"))

    @admin.display(description=gettext_lazy("Reason"))
    def reason_start(self, decision: ApprovalDecision) -> str:
        return decision.reason[:80]


@admin.register(ApprovalNotice)
class ApprovalNoticeAdmin(RowsOfRuns):
    project_lookup = "approval__run__project_id"
    raw_id_fields = ("approval",)
    list_display = ("approval", "user", "status", "sent_at", "created_at")
    list_filter = ("status", ("user", Related))
    list_select_related = ("approval__tool_call", "approval__run", "user")
    search_fields = ("approval__id__exact", "user__username")
    search_help_text = gettext_lazy("An approval's id, or a person")
    empty_message = gettext_lazy("Nobody has been told of an approval yet.")
    empty_link = ("admin:runs_approval_changelist", gettext_lazy("Approvals"))


@admin.register(IdempotencyRecord)
class IdempotencyRecordAdmin(WithoutSecrets, History, TenantAdmin):
    fixed = ()
    list_display = ("key", "user", "status", "location", "created_at")
    list_filter = (("user", Related),)
    list_select_related = ("user",)
    search_fields = ("key",)
    ordering = ("-pk",)
    empty_message = gettext_lazy("No program has sent an Idempotency-Key yet.")


class OfInstallation(History, Addressed, ModelAdmin):
    """What belongs to the installation and to no organization: only superusers look at it."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)


@admin.register(QueueMessage)
class QueueMessageAdmin(OfInstallation):
    list_display = ("queue", "run_id", "due_at", "holder")
    search_fields = ("run_id__exact",)
    search_help_text = gettext_lazy("A run's id")
    ordering = ("-pk",)
    empty_message = gettext_lazy("The queue is empty.")

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.health_view)
        return [path("health/", view, name="runs_health"), *super().get_urls()]

    def health_view(self, request: HttpRequest) -> HttpResponse:
        """Whether the queue is well, and what to do where it is not."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "title": _("Queue"),
            "health": health.look(),
            "unknown": unknown.everywhere(),
        }
        return TemplateResponse(request, "admin/runs/health.html", context)


@admin.register(WorkerGroup)
class WorkerGroupAdmin(OfInstallation):
    """Who works now: each cluster's group of workers and when it last said that it lives."""

    list_display = ("name", "host", "workers", "busy", "started_at", "seen_at")
    ordering = ("host", "name")
    empty_message = gettext_lazy("No workers have started yet.")
