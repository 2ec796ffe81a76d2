"""Roles and agents."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from groups import known, members
from groups.current import membership_of
from groups.models import AgentInstance, Role

from .members import Refuses
from .tenancy import Related, TenantAdmin


def _summary(names: list[str] | None) -> str:
    if names is None:
        return _("no restriction")
    return ", ".join(names) or _("nothing")


class OfferingWidget(UnfoldAdminTextInputWidget):
    """A line of text that offers some, and takes others too."""

    def __init__(self, offers: Iterable[str]) -> None:
        super().__init__({"autocomplete": "off", "spellcheck": "false"})
        self.offers = list(offers)

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        there = f"offered-{name}"
        line = super().render(name, value, {**(attrs or {}), "list": there}, renderer)
        options = format_html_join("", '<option value="{}">', ((offer,) for offer in self.offers))
        return format_html('{}<datalist id="{}">{}</datalist>', line, there, options)


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
        (
            gettext_lazy("Tools"),
            {"fields": ("allowed_tools", "denied_tools", "delegable_tools", "not_known_yet")},
        ),
    )

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        if "model" in form.base_fields:
            membership = membership_of(request.user)
            here = obj.organization_id if obj else membership.organization_id if membership else ""
            form.base_fields["model"].widget = OfferingWidget(known.models_of(here))
        return form

    @admin.display(description=gettext_lazy("May use"))
    def may_use(self, role: Role) -> str:
        return _summary(role.allowed_tools)

    @admin.display(description=gettext_lazy("Must not use"))
    def must_not_use(self, role: Role) -> str:
        return ", ".join(role.denied_tools)


@admin.register(AgentInstance)
class AgentInstanceAdmin(Refuses, TenantAdmin):
    list_display = ("label", "role", "user", "organization", "created_at")
    list_filter = (("organization", Related), ("role", Related))
    list_select_related = ("role", "user", "organization")
    search_fields = ("name", "role__name", "user__username")
    autocomplete_fields = ("organization", "role", "user")
    exclude = ("preferences",)  # of a person, whose agent alone is told them
    empty_message = gettext_lazy(
        "No agent yet. People's own agents appear when they first ask; groups need experts."
    )

    def refuses(self, user: Any, wanted: AgentInstance) -> str:
        """Why the user may not save the agent so; empty where they may."""
        return members.refuses_agent(user, wanted)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Who asks without an agent gets a new one, of the role that people's own agents get."""
        own = obj is not None and obj.user_id == request.user.pk and not request.user.is_superuser
        return super().has_delete_permission(request, obj) and not own

    @admin.display(description=gettext_lazy("Agent"), ordering="name")
    def label(self, agent: Any) -> str:
        return str(agent)
