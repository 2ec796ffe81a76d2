"""Organizations and projects, and the choice of the organization one acts in."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from groups import current, members
from groups.models import Organization, Project

from .members import Refuses
from .tenancy import Related, TenantAdmin

LIMITS = ("queue_limit", "calls_limit", "storage_limit")


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

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """The limits keep an organization from taking what others need: none raises its own."""
        fields = tuple(super().get_readonly_fields(request, obj))
        named = fields if members.settles(request.user) else (*fields, "slug")
        return named if request.user.is_superuser else (*named, *LIMITS)

    def get_urls(self) -> list[Any]:
        choose = self.admin_site.admin_view(self.choose_view)
        return [path("choose/", choose, name="groups_organization_choose"), *super().get_urls()]

    def choose_view(self, request: HttpRequest) -> HttpResponse:
        """The organizations somebody belongs to; what is chosen holds for their session."""
        if request.method == "POST":
            if current.choose(request, request.POST.get("organization", "")) is None:
                raise PermissionDenied
            return redirect("admin:index")
        context = {
            **self.admin_site.each_context(request),
            "title": _("Which organization?"),
            "memberships": current.memberships_of(request.user),
            "current": current.membership_of(request.user),
        }
        return TemplateResponse(request, "admin/groups/organization/choose.html", context)

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
class ProjectAdmin(Refuses, TenantAdmin):
    """Who may not change rules of the whole organization is shown who approves what there, no more."""

    project_lookup = "pk"
    list_display = (
        "name",
        "slug",
        "organization",
        "review_deposits",
        "published",
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

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        if members.settles(request.user):
            return fields
        return (*fields, *(members.SETTINGS if obj is not None else members.OF_NEW))

    def refuses(self, user: Any, wanted: Project) -> str:
        """Why the user may not save the project so; empty where they may."""
        before = Project.objects.filter(pk=wanted.pk).first()
        return members.refuses_project(user, before, wanted)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if self.refuses(request.user, obj):
            raise PermissionDenied
        super().save_model(request, obj, form, change)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and members.whole(request.user)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and members.whole(request.user)
