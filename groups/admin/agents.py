"""Roles and agents."""

from typing import Any

from django.contrib import admin
from django.utils.translation import gettext_lazy

from groups.models import AgentInstance, Role

from .tenancy import Related, TenantAdmin


def _summary(names: list[str] | None) -> str:
    if names is None:
        return "no restriction"
    return ", ".join(names) or "nothing"


@admin.register(Role)
class RoleAdmin(TenantAdmin):
    list_display = ("name", "organization", "model", "may_use", "must_not_use")
    list_filter = (("organization", Related),)
    list_select_related = ("organization",)
    search_fields = ("name", "description")
    ordering = ("name",)
    autocomplete_fields = ("organization",)
    empty_message = gettext_lazy("No role yet. A role says what an agent is told and which tools it may use.")
    fieldsets = (
        (None, {"fields": ("organization", "name", "description", "model", "system_prompt")}),
        ("Tools", {"fields": ("allowed_tools", "denied_tools", "delegable_tools", "not_known_yet")}),
    )

    @admin.display(description=gettext_lazy("May use"))
    def may_use(self, role: Role) -> str:
        return _summary(role.allowed_tools)

    @admin.display(description=gettext_lazy("Must not use"))
    def must_not_use(self, role: Role) -> str:
        return ", ".join(role.denied_tools)


@admin.register(AgentInstance)
class AgentInstanceAdmin(TenantAdmin):
    list_display = ("label", "role", "user", "organization", "created_at")
    list_filter = (("organization", Related), ("role", Related))
    list_select_related = ("role", "user", "organization")
    search_fields = ("name", "role__name", "user__username")
    autocomplete_fields = ("organization", "role", "user")
    empty_message = gettext_lazy(
        "No agent yet. People's own agents appear when they first ask; groups need experts."
    )

    @admin.display(description=gettext_lazy("Agent"), ordering="name")
    def label(self, agent: Any) -> str:
        return str(agent)
