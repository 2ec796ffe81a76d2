"""Memberships, and the roles an organization defines beside the standard ones."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from groups import member_permissions, members
from groups.models import CustomRole, Membership, Project

from .lists import OpenChoiceField
from .tenancy import OneOrganizationForm, Related, TenantAdmin, sight


class PlaceForm(OneOrganizationForm):
    """Asks groups/members.py whether the person may make what the form says."""

    refused: ClassVar[Callable[[Any], str]]  # why whoever fills the form in may not save this

    def _post_clean(self) -> None:
        super()._post_clean()
        refused = "" if self.errors else type(self).refused(self.instance)
        if refused:
            self.add_error(None, ValidationError(refused))


class Refuses:
    """For an admin whose form says why the person may not save it as it is filled in."""

    form_base: type[PlaceForm] = PlaceForm

    def refuses(self, user: Any, target: Any) -> str:
        """Why the user may not save, change or remove this; empty where they may."""
        raise NotImplementedError

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> type[ModelForm]:
        refused = staticmethod(partial(self.refuses, request.user))
        kwargs["form"] = type("ThisPlaceForm", (self.form_base,), {"refused": refused})
        form: type[ModelForm] = super().get_form(request, obj, **kwargs)  # type: ignore[misc]
        return form


class PlaceAdmin(Refuses, TenantAdmin):
    """What is there is opened for a change only where it could be changed."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may = super().has_change_permission(request, obj)
        return may and (obj is None or not self.refuses(request.user, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may = super().has_delete_permission(request, obj)
        return may and (obj is None or not self.refuses(request.user, obj))


@admin.register(Membership)
class MembershipAdmin(PlaceAdmin):
    """A person's place in an organization, and the boundary of what runs in their name may do."""

    list_display = ("user", "organization", "role_shown", "kind", "active", "boundary")
    list_filter = (("organization", Related), "role", ("custom_role", Related), "kind", "active")
    list_select_related = ("user", "organization", "custom_role")
    search_fields = ("user__username", "user__email")
    autocomplete_fields = ("organization", "user", "custom_role")
    fixed = ("organization", "user", "kind")
    empty_message = gettext_lazy("Nobody belongs to an organization yet. Add a membership for each person.")
    fieldsets = (
        (None, {"fields": ("organization", "user", "kind", "role", "custom_role", "active")}),
        (
            gettext_lazy("What runs in their name may do"),
            {"fields": ("projects", "allowed_tools", "denied_tools", "not_known_yet")},
        ),
    )

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name != "projects":
            return super().formfield_for_dbfield(db_field, request, **kwargs)
        rooms = Project.objects.select_related("organization").order_by("organization__name", "name")
        seen = sight(request)
        if not seen.everything:
            rooms = rooms.filter(seen.condition("organization_id", "pk"))
        choices = [(room.pk, f"{room.organization} / {room}") for room in rooms]
        return OpenChoiceField(choices=choices, label=_("Projects"))

    def refuses(self, user: Any, target: Membership) -> str:
        return members.refuses_membership(user, target)

    @admin.display(description=gettext_lazy("Role"))
    def role_shown(self, membership: Membership) -> str:
        return shown_role(membership)

    @admin.display(description=gettext_lazy("Boundary"))
    def boundary(self, membership: Membership) -> str:
        rooms, tools = membership.projects, membership.allowed_tools
        parts = [
            _("all projects")
            if rooms is None
            else ngettext("{count} project", "{count} projects", len(rooms)).format(count=len(rooms)),
            _("all tools")
            if tools is None
            else ngettext("{count} tool", "{count} tools", len(tools)).format(count=len(tools)),
        ]
        if membership.denied_tools:
            parts.append(_("without {tools}").format(tools=", ".join(membership.denied_tools)))
        return ", ".join(parts)


def shown_role(membership: Membership) -> str:
    """How the member's role is called: by the organization, or in the reader's language."""
    return str(membership.custom_role or membership.get_role_display())


@admin.register(CustomRole)
class CustomRoleAdmin(PlaceAdmin):
    """Beside viewer, member, decider, curator and administrator, which every organization has."""

    list_display = ("name", "organization", "carries")
    list_filter = (("organization", Related),)
    list_select_related = ("organization",)
    search_fields = ("name",)
    ordering = ("name",)
    autocomplete_fields = ("organization",)
    fields = ("organization", "name", "permissions")
    empty_message = gettext_lazy(
        "No role of your own yet. Members are viewers, members, deciders, curators or administrators."
    )

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name != "permissions":
            return super().formfield_for_dbfield(db_field, request, **kwargs)
        return forms.MultipleChoiceField(
            choices=[(name, name) for name in sorted(member_permissions.every())],
            widget=UnfoldAdminCheckboxSelectMultipleWidget,
            required=False,
            label=_("Permissions"),
        )

    def refuses(self, user: Any, target: CustomRole) -> str:
        return members.refuses_role(user, target)

    @admin.display(description=gettext_lazy("Permissions"))
    def carries(self, role: CustomRole) -> str:
        return ", ".join(role.permissions[:5]) + (" …" if len(role.permissions) > 5 else "")
