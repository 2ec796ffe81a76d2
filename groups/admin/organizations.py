"""Organizations, projects and memberships."""

from typing import Any

from django.contrib import admin
from django.db.models import Count
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from groups.models import Membership, Organization, Project

from .lists import OpenChoiceField
from .tenancy import Related, TenantAdmin, sight


@admin.register(Organization)
class OrganizationAdmin(TenantAdmin):
    """Only superusers make and remove organizations: they are the tenants."""

    organization_lookup = "pk"
    fixed = ()
    list_display = ("name", "slug", "project_count", "member_count", "created_at")
    search_fields = ("name", "slug")
    ordering = ("name",)
    prepopulated_fields = {"slug": ("name",)}
    empty_message = gettext_lazy("No organization yet. Add one; projects, people and agents belong to it.")

    def get_queryset(self, request: HttpRequest) -> Any:
        return (
            super()
            .get_queryset(request)
            .annotate(
                projects_total=Count("projects", distinct=True),
                members_total=Count("memberships", distinct=True),
            )
        )

    @admin.display(description=gettext_lazy("Projects"), ordering="projects_total")
    def project_count(self, organization: Any) -> int:
        return int(organization.projects_total)

    @admin.display(description=gettext_lazy("Members"), ordering="members_total")
    def member_count(self, organization: Any) -> int:
        return int(organization.members_total)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)


@admin.register(Project)
class ProjectAdmin(TenantAdmin):
    project_lookup = "pk"
    list_display = (
        "name",
        "slug",
        "organization",
        "review_deposits",
        "allow_self_approval",
        "approval_profile",
    )
    list_filter = (("organization", Related), "review_deposits", "allow_self_approval", "approval_profile")
    list_select_related = ("organization",)
    search_fields = ("name", "slug")
    ordering = ("name",)
    autocomplete_fields = ("organization",)
    prepopulated_fields = {"slug": ("name",)}
    empty_message = gettext_lazy(
        "No project yet. Add one: runs, groups and knowledge each belong to a project."
    )


@admin.register(Membership)
class MembershipAdmin(TenantAdmin):
    """A person's place in an organization, and the boundary of what runs in their name may do."""

    list_display = ("user", "organization", "kind", "active", "boundary")
    list_filter = (("organization", Related), "kind", "active")
    list_select_related = ("user", "organization")
    search_fields = ("user__username", "user__email")
    autocomplete_fields = ("organization", "user")
    fixed = ("organization", "user")
    empty_message = gettext_lazy("Nobody belongs to an organization yet. Add a membership for each person.")
    fieldsets = (
        (None, {"fields": ("organization", "user", "kind", "active")}),
        ("What runs in their name may do", {"fields": ("projects", "allowed_tools", "denied_tools")}),
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

    @admin.display(description=gettext_lazy("Boundary"))
    def boundary(self, membership: Membership) -> str:
        projects = "all projects" if membership.projects is None else f"{len(membership.projects)} projects"
        tools = "all tools" if membership.allowed_tools is None else f"{len(membership.allowed_tools)} tools"
        denied = f", without {', '.join(membership.denied_tools)}" if membership.denied_tools else ""
        return f"{projects}, {tools}{denied}"
