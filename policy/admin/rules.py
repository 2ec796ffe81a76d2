"""Rules, and the number that tells caches they have changed."""

from typing import Any

from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from groups.admin.tenancy import History, Related, TenantAdmin
from policy.models import CapabilityRule, PolicyVersion
from policy.models.rules import Effect


@admin.register(CapabilityRule)
class CapabilityRuleAdmin(TenantAdmin):
    """A rule without a project, group or role holds for the whole organization."""

    form = ModelForm  # the model says what is wrong
    project_lookup = "project_id"
    shared_without_project = True
    list_display = ("label", "about", "effect", "scope", "condition", "shadow", "active")
    list_filter = ("effect", "active", "shadow", ("capability", Related), ("project", Related))
    list_select_related = ("organization", "project", "group", "role", "capability")
    search_fields = ("name", "tool", "capability__name", "condition")
    ordering = ("-created_at",)
    autocomplete_fields = ("organization", "project", "group", "role", "capability")
    empty_message = gettext_lazy(
        "No rule yet: what the roles allow, runs. Add one to ask for an approval, or to deny."
    )
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "organization",
                    "name",
                    ("capability", "tool"),
                    "effect",
                    "condition",
                )
            },
        ),
        ("Where it holds", {"fields": ("project", "group", "role")}),
        ("When somebody is asked", {"fields": ("timeout_seconds", "on_expiry", "deciders_needed")}),
        ("State", {"fields": ("active", "shadow", "not_known_yet")}),
    )

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"effect": Effect.REQUIRE_APPROVAL, **super().get_changeform_initial_data(request)}

    @admin.display(description=gettext_lazy("Rule"), ordering="name")
    def label(self, rule: CapabilityRule) -> str:
        return rule.name or f"{rule.capability or rule.tool}: {Effect(rule.effect).label}"

    @admin.display(description=gettext_lazy("About"))
    def about(self, rule: CapabilityRule) -> str:
        return f"capability {rule.capability}" if rule.capability else f"tool {rule.tool}"

    @admin.display(description=gettext_lazy("Holds in"))
    def scope(self, rule: CapabilityRule) -> str:
        named = (("project", rule.project), ("group", rule.group), ("role", rule.role))
        return ", ".join(f"{kind} {thing}" for kind, thing in named if thing) or "the whole organization"


@admin.register(PolicyVersion)
class PolicyVersionAdmin(History, TenantAdmin):
    fixed = ()
    list_display = ("organization", "version")
    list_select_related = ("organization",)
    empty_message = gettext_lazy("No policy has been changed yet.")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("organization", "version")
