"""Remote agents: their cards are read before anything is sent to them, and again whenever a word changes."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from groups.admin.tenancy import Related
from runs.actions import remote_agents
from runs.admin.mcp import RefreshedAdmin, WithHeadersForm
from runs.models import CardState, RemoteAgent
from runs.tools.a2a import cards

ACCEPTABLE = (CardState.NEW, CardState.CHANGED)


@admin.register(RemoteAgent)
class RemoteAgentAdmin(RefreshedAdmin):
    """Its card is read when it is added, with the action Refresh, and every hour."""

    form = WithHeadersForm
    fixed = ("organization", "name")
    list_display = ("name", "organization", "url", "enabled", "state_shown", "checked_at", "problem")
    list_filter = ("enabled", ("state", ChoicesDropdownFilter), ("organization", Related))
    list_select_related = ("organization", "accepted_by")
    search_fields = ("name", "url")
    ordering = ("name",)
    autocomplete_fields = ("organization",)
    fields = ("organization", "name", "url", "headers", "timeout_seconds", "enabled")
    kept = ("header_names", "state_shown", "card_shown", "checked_at", "problem")
    actions = ("refresh", "accept_selected")
    empty_message = gettext_lazy(
        "No remote agent yet. Add one, accept its card, and a role's model or a call may name it."
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        found = super().get_readonly_fields(request, obj)
        return (*found, *self.kept) if obj else found

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj and not self.has_change_permission(request, obj):
            return (*(name for name in self.fields if name != "headers"), *self.kept)
        return (*self.fields, *self.kept) if obj else self.fields

    @admin.display(description=gettext_lazy("Card"), ordering="state")
    def state_shown(self, agent: RemoteAgent) -> str:
        return str(agent.get_state_display())

    @admin.display(description=gettext_lazy("What its card says"))
    def card_shown(self, agent: RemoteAgent) -> str:
        return "\n".join(cards.written(agent.card)) if agent.card else "–"

    @admin.action(description=gettext_lazy("Refresh: read the card again"), permissions=["refresh"])
    def refresh(self, request: HttpRequest, queryset: Any) -> None:
        for agent in queryset:
            self._refresh(request, agent)

    def _refresh(self, request: HttpRequest, agent: RemoteAgent) -> None:
        problem = remote_agents.refresh(agent)
        waits = RemoteAgent.objects.filter(pk=agent.pk, state__in=ACCEPTABLE).exists()
        if problem:
            self.message_user(request, problem, messages.ERROR)
        elif waits:
            said = _("{agent}: its card waits until somebody accepts it, with the action “Look and accept”.")
            self.message_user(request, said.format(agent=agent), messages.WARNING)
        else:
            said = _("{agent}: its card is as it was accepted.")
            self.message_user(request, said.format(agent=agent), messages.SUCCESS)

    @admin.action(description=gettext_lazy("Look and accept…"), permissions=["accept"])
    def accept_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        """Show what would be accepted; accept what is confirmed, as it was shown."""
        if not self.has_accept_permission(request):
            raise PermissionDenied
        found = list(queryset.select_related("accepted_by").order_by("name"))
        if not request.POST.get("confirmed"):
            return self._look(request, found)
        for agent in found:
            agent.digest = request.POST.get(f"digest-{agent.pk}", "")
        accepted = remote_agents.accept(found, request.user)
        level = messages.SUCCESS if len(accepted) == len(found) else messages.WARNING
        said = _("Accepted: {count} of {all}.").format(count=len(accepted), all=len(found))
        self.message_user(request, said, level)
        return None

    def has_accept_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("runs.accept_remoteagent")) and self.arranges(request)

    def _look(self, request: HttpRequest, agents: list[RemoteAgent]) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": _("Accept these cards?"),
            "subtitle": None,
            "opts": self.opts,
            "shown": [shown(agent) for agent in agents],
            "acceptable": [agent for agent in agents if agent.state in ACCEPTABLE and agent.digest],
            "action_name": "accept_selected",
        }
        return TemplateResponse(request, "admin/runs/remoteagent/look.html", context)


def shown(agent: RemoteAgent) -> dict[str, Any]:
    """An agent as the page shows it: its card now, and what has changed since it was accepted."""
    changed = agent.state == CardState.CHANGED
    return {
        "agent": agent,
        "written": "\n".join(cards.written(agent.card)) if agent.card else "",
        "difference": cards.difference(agent.accepted, agent.card) if changed else "",
    }
