"""Groups, their members, and where goals would go."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.forms.models import BaseInlineFormSet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from common import redact
from groups import routing
from groups.models import Group, GroupMember, Project, RoutingExample
from groups.models.groups import ExampleKind

from .searching import SearchesWhatIsShown
from .tenancy import Related, TenantAdmin, TenantInline, sight


class MembersFormSet(BaseInlineFormSet):
    """One lead at most, said in words; members are of the group's organization and play their own role."""

    def clean(self) -> None:
        rows = [form for form in self.forms if form.cleaned_data and not form.cleaned_data.get("DELETE")]
        agents = [agent for form in rows if (agent := form.cleaned_data.get("agent_instance"))]
        if len(set(agents)) < len(agents):
            raise forms.ValidationError(_("An agent sits in a group once: each seat has its own."))
        super().clean()
        if sum(bool(form.cleaned_data.get("is_lead")) for form in rows) > 1:
            raise forms.ValidationError(_("Only one member can lead the group."))
        organization = self.instance.organization_id
        for form in rows:
            for name in ("role", "agent_instance"):
                chosen = form.cleaned_data.get(name)
                theirs = getattr(chosen, "organization_id", organization)  # text, for who changes no seats
                if chosen and organization and theirs != organization:
                    form.add_error(name, _("This belongs to another organization than the group."))

    def save_new(self, form: Any, commit: bool = True) -> Any:
        form.instance.organization_id = self.instance.organization_id
        return super().save_new(form, commit)


class MemberInline(TenantInline):
    model = GroupMember
    formset = MembersFormSet
    fields = ("ordinal", "role", "agent_instance", "is_lead")
    autocomplete_fields = ("role", "agent_instance")
    ordering = ("ordinal",)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("role", "agent_instance__role")


@admin.register(Group)
class GroupAdmin(TenantAdmin):
    project_lookup = "project_id"
    fixed = ("organization", "project")
    list_display = ("name", "project", "capability_names", "member_count", "max_rounds", "active")
    list_filter = ("active", ("project", Related))
    list_select_related = ("project",)
    search_fields = ("name", "description")
    ordering = ("name",)
    autocomplete_fields = ("organization", "project")
    inlines = (MemberInline,)
    fields = (
        "organization",
        "project",
        "name",
        "description",
        "capabilities",
        "max_rounds",
        "active",
        "published",
    )
    change_form_outer_after_template = "admin/groups/group/where_form.html"
    list_before_template = "admin/groups/group/where_link.html"
    empty_message = gettext_lazy(
        "No group yet. Add one: experts to whom a personal agent hands what is beyond it."
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).annotate(members_total=Count("members"))

    @admin.display(description=gettext_lazy("Members"), ordering="members_total")
    def member_count(self, group: Any) -> int:
        return int(group.members_total)

    @admin.display(description=gettext_lazy("Capabilities"))
    def capability_names(self, group: Group) -> str:
        return ", ".join(group.capabilities)

    def get_urls(self) -> list[Any]:
        wrap = self.admin_site.admin_view
        return [
            path("where/", wrap(self.where_view), name="groups_group_where"),
            path("learn/", wrap(require_POST(self.learn_view)), name="groups_group_learn"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        context = dict(extra_context or {})
        group = self.get_object(request, object_id)
        if group is not None and self.has_view_permission(request, group):
            context["where"] = self._where(request, group.project)
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
        return response

    def where_view(self, request: HttpRequest) -> HttpResponse:
        """Each group's score for a goal. Reads only."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        rooms = self._rooms(request)
        chosen = request.GET.get("project")
        room = next((r for r in rooms if r.pk == chosen), rooms[0] if rooms and not chosen else None)
        if room is None and chosen:
            raise Http404
        context = {
            **self.admin_site.each_context(request),
            "title": _("Where would this goal go?"),
            "rooms": rooms,
            "where": self._where(request, room) if room else None,
        }
        return TemplateResponse(request, "admin/groups/group/where.html", context)

    def learn_view(self, request: HttpRequest) -> HttpResponse:
        """Keep a goal as an example for, or against, a group."""
        if not request.user.has_perm("groups.add_routingexample"):
            raise PermissionDenied
        group = self.visible_or_404(request, request.POST.get("group", ""))
        goal = request.POST.get("goal", "").strip()
        fits = request.POST.get("fits") == "yes"
        if goal:
            routing.learn(group.organization_id, group.pk, goal, fits=fits, by=request.user)
            said = _("Learnt: this goal belongs to {group}.")
            if not fits:
                said = _("Learnt: this goal does not belong to {group}.")
            self.message_user(request, said.format(group=group), messages.SUCCESS)
        query = urlencode({"project": group.project_id, "goal": goal})
        return redirect(f"{reverse('admin:groups_group_where')}?{query}")

    def _rooms(self, request: HttpRequest) -> list[Project]:
        rooms = Project.objects.select_related("organization").order_by("name")
        seen = sight(request)
        return list(rooms if seen.everything else rooms.filter(seen.condition("organization_id", "pk")))

    def _where(self, request: HttpRequest, project: Project) -> dict[str, Any]:
        goal = request.GET.get("goal", "").strip()[: routing.MAX_LEARNED]
        return {
            "project": project,
            "goal": goal,
            "ranked": [_shown(found) for found in routing.rank(goal, project.pk)] if goal else [],
            "may_teach": request.user.has_perm("groups.add_routingexample"),
        }


def _shown(found: routing.Ranked) -> dict[str, Any]:
    return {
        "id": found.group.id,
        "name": found.group.name,
        "percent": round(found.score * 100),
        "fits": found.fits,
        "matched": found.matched,
    }


@admin.register(GroupMember)
class GroupMemberAdmin(TenantAdmin):
    """Every seat, across groups; usually edited on the group's page."""

    project_lookup = "group__project_id"
    fixed = ("organization", "group")
    list_display = ("group", "ordinal", "role", "agent_instance", "is_lead")
    list_filter = ("is_lead", ("group", Related), ("role", Related))
    list_select_related = ("group", "role", "agent_instance__role")
    search_fields = ("group__name", "role__name")
    autocomplete_fields = ("organization", "group", "role", "agent_instance")
    empty_message = gettext_lazy("No members yet. Add them on a group's page.")


@admin.register(RoutingExample)
class RoutingExampleAdmin(SearchesWhatIsShown, TenantAdmin):
    project_lookup = "group__project_id"
    list_display = ("goal_start", "group", "kind", "corrected_by", "created_at")
    list_filter = ("kind", ("group", Related))
    list_select_related = ("group", "corrected_by")
    search_fields = ("goal",)
    masked_text = "goal"
    fields = ("group", "goal", "kind", "corrected_by", "source_run_id", "created_at")
    ordering = ("-created_at",)
    autocomplete_fields = ("group",)
    empty_message = gettext_lazy(
        "Nothing learnt yet. Groups learn from what they complete, and from your word on a goal."
    )

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """To be shown, without keys; `save_model` below saves no row of it."""
        found = super().get_object(request, object_id, from_field)
        if found is not None:
            found.goal = redact.shown(found.goal)
        return found

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields if obj else ("group", "goal", "kind")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        made = ("corrected_by", "source_run_id", "created_at")
        return ("group", "goal", *made) if obj else made

    def save_model(self, request: HttpRequest, obj: RoutingExample, form: Any, change: bool) -> None:
        fits = obj.kind == ExampleKind.FITS
        group = obj.group
        goal = RoutingExample.objects.values_list("goal", flat=True).get(pk=obj.pk) if change else obj.goal
        routing.learn(group.organization_id, group.pk, goal, fits=fits, by=request.user)
        obj.pk = RoutingExample.objects.filter(
            group=group, goal=goal.strip()[: routing.MAX_LEARNED]
        ).values_list("pk", flat=True)[0]

    @admin.display(description=gettext_lazy("Goal"))
    def goal_start(self, example: RoutingExample) -> str:
        return str(example)
