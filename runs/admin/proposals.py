"""What somebody proposed and a second person has to confirm."""

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.decorators import method_decorator
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from groups import changes, members
from groups.actors import Actor
from groups.admin.changes import written
from groups.admin.tenancy import History, Related, TenantAdmin
from groups.models import ProposedChange
from policy.authority import NotAllowed
from runs.actions import second
from runs.actions.second import SecondRefused


@admin.register(ProposedChange)
class ProposedChangeAdmin(History, TenantAdmin):
    """Looked at, confirmed and rejected, one by one."""

    fixed = ()
    list_display = ("created_at", "label", "action", "weakens", "by", "state")
    list_display_links = ("label",)
    list_filter = ("state", ("organization", Related))
    list_select_related = ("organization",)
    search_fields = ("label", "by", "object_id__exact", "model")
    ordering = ("-id",)
    fields = readonly_fields = (
        *("created_at", "label", "model", "object_id", "action", "weakens", "by", "via", "was", "now"),
        *("state", "decided_by", "decided_at", "organization"),
    )
    change_form_outer_before_template = "admin/groups/proposedchange/decide.html"
    empty_message = gettext_lazy(
        "Nothing has been proposed. Where an organization asks for a second person, it waits here."
    )

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(super().has_view_permission(request, obj)) and members.whole(request.user)

    def get_urls(self) -> list[Any]:
        decide = self.admin_site.admin_view(self.decide_view)
        return [
            path("<path:object_id>/decide/", decide, name="groups_proposedchange_decide"),
            *super().get_urls(),
        ]

    @method_decorator(require_POST)
    def decide_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Confirm it, or reject it."""
        proposal = self.visible_or_404(request, object_id)
        actor = Actor.of_request(request, proposal.organization_id)
        try:
            if request.POST.get("decision") == "confirm":
                second.confirm(actor, proposal.pk)
                self.message_user(request, _("Confirmed: the change is made."), messages.SUCCESS)
            else:
                second.reject(actor, proposal.pk)
                self.message_user(request, _("Rejected: nothing has changed."), messages.SUCCESS)
        except NotAllowed as refused:
            if refused.code == "CONFIRM_FIRST":
                there = reverse("admin:groups_proposedchange_change", args=[proposal.pk])
                return redirect(f"{reverse('web:confirm')}?next={there}")
            self.message_user(request, _(refused.message), messages.ERROR)
        except ProposedChange.DoesNotExist:
            self.message_user(request, _("Choose its organization first."), messages.ERROR)
        except SecondRefused as refused:
            self.message_user(request, _(refused.message), messages.ERROR)
        return redirect("admin:groups_proposedchange_change", proposal.pk)

    @admin.display(description=gettext_lazy("What it weakens"), ordering="why")
    def weakens(self, proposal: ProposedChange) -> str:
        return _(proposal.why)

    @admin.display(description=gettext_lazy("Before"))
    def was(self, proposal: ProposedChange) -> SafeString:
        return written(changes.shown(proposal.before))

    @admin.display(description=gettext_lazy("After"))
    def now(self, proposal: ProposedChange) -> SafeString:
        return written(changes.shown(proposal.after))
