"""Rules, and the number that tells caches they have changed."""

from typing import Any, ClassVar

from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from groups import members
from groups.admin.tenancy import History, Related, TenantAdmin
from policy.loosening import loosened
from policy.models import CapabilityRule, PolicyVersion
from policy.models.rules import Effect

LOOSER = gettext_lazy("The rule “{rule}” of the whole organization asks for more.")


class RuleForm(ModelForm):
    """The model says what is wrong, but for what only members of the whole organization may."""

    limited: ClassVar[bool] = False

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if self.limited and not self.errors and (wider := loosened(self.instance)):
            self.add_error("effect", str(LOOSER).format(rule=wider))


@admin.register(CapabilityRule)
class CapabilityRuleAdmin(TenantAdmin):
    """A rule without a project, group or role holds for the whole organization."""

    form = RuleForm
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
        (gettext_lazy("Where it holds"), {"fields": ("project", "group", "role")}),
        (
            gettext_lazy("When somebody is asked"),
            {"fields": ("timeout_seconds", "on_expiry", "deciders_needed", "deciders", "in_order")},
        ),
        (gettext_lazy("State"), {"fields": ("active", "shadow", "not_known_yet")}),
    )

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> type[ModelForm]:
        limited = not members.whole(request.user)
        kwargs["form"] = type("ThisRuleForm", (RuleForm,), {"limited": limited})
        form: type[ModelForm] = super().get_form(request, obj, **kwargs)
        return form

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """`limited` is shown where it holds: who only corrects a name frees no rule."""
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None or not obj.limited:
            return fieldsets
        *others, (title, state) = fieldsets
        return [*others, (title, {**state, "fields": (*state["fields"], "limited")})]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return fields if members.whole(request.user) else (*fields, "limited")

    def save_model(self, request: HttpRequest, obj: CapabilityRule, form: Any, change: bool) -> None:
        obj.limited = obj.limited or not members.whole(request.user)
        super().save_model(request, obj, form, change)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"effect": Effect.REQUIRE_APPROVAL, **super().get_changeform_initial_data(request)}

    @admin.display(description=gettext_lazy("Rule"), ordering="name")
    def label(self, rule: CapabilityRule) -> str:
        return rule.name or f"{rule.capability or rule.tool}: {Effect(rule.effect).label}"

    @admin.display(description=gettext_lazy("About"))
    def about(self, rule: CapabilityRule) -> str:
        if rule.capability:
            return _("capability {name}").format(name=rule.capability)
        return _("tool {name}").format(name=rule.tool)

    @admin.display(description=gettext_lazy("Holds in"))
    def scope(self, rule: CapabilityRule) -> str:
        named = (
            (_("project {name}"), rule.project),
            (_("group {name}"), rule.group),
            (_("role {name}"), rule.role),
        )
        return ", ".join(said.format(name=it) for said, it in named if it) or _("the whole organization")


@admin.register(PolicyVersion)
class PolicyVersionAdmin(History, TenantAdmin):
    fixed = ()
    list_display = ("organization", "version")
    list_select_related = ("organization",)
    empty_message = gettext_lazy("No policy has been changed yet.")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("organization", "version")
