"""Standing approvals and their uses."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.db.models.functions import Now
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from groups import changes
from groups.actors import Actor, actors_of
from groups.admin.tenancy import History, Related, TenantAdmin
from policy import grants
from policy.authority import VERBS, NotAllowed, Verb, holds, may
from policy.models import Grant, GrantUse
from policy.weakening import more


def check(request: HttpRequest, verb: Verb, grant: Grant) -> None:
    """Raises PermissionDenied unless whoever is signed in may do this to it."""
    try:
        may(Actor.of_request(request, grant.organization_id), verb, grant)
    except NotAllowed as refused:
        raise PermissionDenied(refused.message) from None


def _lengthened(before: dict[str, Any], grant: Grant) -> bool:
    """Whether it has a later end or more uses than before."""
    return any(more(before.get(name), getattr(grant, name)) for name in ("expires_at", "max_uses"))


@admin.register(Grant)
class GrantAdmin(TenantAdmin):
    """Who gives one takes part in deciding, so the right to decide approvals is asked too."""

    form = ModelForm  # the model says what is wrong
    project_lookup = "project_id"
    list_display = ("tool", "project", "granted_by", "use_count", "max_uses", "expires_at", "state")
    list_filter = (("project", Related), ("granted_by", Related))
    list_select_related = ("project", "granted_by")
    search_fields = ("tool", "reason")
    ordering = ("-created_at",)
    autocomplete_fields = ("organization", "project")
    fields = (
        "organization", "project", "tool", "arguments", "any_arguments", "reason", "expires_at", "max_uses"
    )  # fmt: skip
    actions = ("revoke",)
    empty_message = gettext_lazy(
        "No standing approval yet. One spares people the same decision for the same arguments."
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).annotate(uses_total=Count("uses"))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        shown = ("free", "granted_by", "revoked_at", "state")
        fixed = ("organization", "project", "tool", "arguments", "any_arguments", *shown)
        return fixed if obj else ()

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*self.fields, "free", "granted_by", "revoked_at", "state") if obj else self.fields

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Whether they count is asked once for all that are shown."""
        found = super().get_changelist_instance(request)
        void = grants.void(found.result_list)
        for grant in found.result_list:
            grant.why_void = void.get(grant.pk, "")
        return found

    def has_add_permission(self, request: HttpRequest) -> bool:
        needed = VERBS[Verb.GRANT].permissions
        entitled = (all(holds(actor, each) for each in needed) for actor in actors_of(request))
        return super().has_add_permission(request) and any(entitled)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and request.user.has_perm("runs.decide_approval")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        check(request, Verb.GRANT, obj)  # also who gives it a later end, or more uses
        if not change or _lengthened(form.initial, obj):
            obj.made_by(Actor.of_request(request, obj.organization_id))
        super().save_model(request, obj, form, change)

    @admin.action(description=gettext_lazy("Revoke"), permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: Any) -> None:
        for grant in queryset:
            check(request, Verb.REVOKE, grant)
        live = Grant.objects.filter(pk__in=queryset.values("pk"), revoked_at=None)
        count = changes.update(live, revoked_at=Now())
        self.message_user(
            request,
            _("Revoked: {count}. The next call is asked about again.").format(count=count),
            messages.SUCCESS,
        )

    @admin.display(description=gettext_lazy("Used"), ordering="uses_total")
    def use_count(self, grant: Any) -> int:
        return int(grant.uses_total)

    @admin.display(description=gettext_lazy("State"))
    def state(self, grant: Any) -> str:
        if grant.revoked_at:
            return _("Revoked")
        if grant.expires_at and grant.expires_at <= timezone.now():
            return _("Expired")
        spent = grant.max_uses is not None and grant.uses_total >= grant.max_uses
        if spent:
            return _("Used up")
        known = vars(grant).get("why_void")
        why = grants.void([grant]).get(grant.pk, "") if known is None else known
        return _("Does not count now: {why}").format(why=_(why)) if why else _("Live")


@admin.register(GrantUse)
class GrantUseAdmin(History, TenantAdmin):
    fixed = ()
    project_lookup = "grant__project_id"
    list_display = ("grant", "idempotency_key", "created_at")
    list_filter = (("grant", Related),)
    list_select_related = ("grant__project",)
    empty_message = gettext_lazy("No standing approval has been used yet.")
