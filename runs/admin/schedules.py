"""Schedules and what became of their times, to be looked at: each person arranges their own."""

from typing import Any

from django.contrib import admin
from django.utils.translation import gettext_lazy
from unfold.contrib.filters.admin import ChoicesDropdownFilter
from unfold.paginator import InfinitePaginator

from groups.admin.tenancy import History, Related, TenantAdmin
from runs.admin.masking import WithoutSecrets
from runs.models import Schedule, ScheduledRun


@admin.register(Schedule)
class ScheduleAdmin(WithoutSecrets, History, TenantAdmin):
    project_lookup = "project_id"
    fixed = ()
    list_display = ("__str__", "user", "project", "state_said", "cron", "time_zone", "next_at", "started")
    list_filter = ("paused", ("project", Related), ("user", Related))
    list_select_related = ("project", "user")
    search_fields = ("title", "id__exact")
    ordering = ("-pk",)
    empty_message = gettext_lazy("No schedule yet. Everybody makes their own, on their own page.")

    @admin.display(description=gettext_lazy("State"), ordering="paused")
    def state_said(self, schedule: Schedule) -> Any:
        return schedule.state.label


@admin.register(ScheduledRun)
class ScheduledRunAdmin(WithoutSecrets, History, TenantAdmin):
    project_lookup = "schedule__project_id"
    fixed = ()
    paginator = InfinitePaginator
    list_display = ("schedule", "due_at", "outcome", "times", "run", "reason")
    list_filter = (("outcome", ChoicesDropdownFilter), ("schedule", Related))
    list_select_related = ("schedule", "run")
    search_fields = ("id__exact", "schedule__title")
    ordering = ("-pk",)
    raw_id_fields = ("schedule", "run")
    empty_message = gettext_lazy("Nothing has been due yet.")
