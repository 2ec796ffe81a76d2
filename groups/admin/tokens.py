"""API tokens: issued here, shown once, revoked here."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Q
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from groups.models import Membership, Token
from groups.models.organizations import MembershipKind
from groups.scopes import SCOPES

from .tenancy import Related, TenantAdmin, sight


class LiveFilter(admin.SimpleListFilter):
    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [("live", _("Live")), ("expired", _("Expired")), ("revoked", _("Revoked"))]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if self.value() == "revoked":
            return queryset.exclude(revoked_at=None)
        if self.value() == "expired":
            return queryset.filter(revoked_at=None, expires_at__lte=Now())
        if self.value() == "live":
            return queryset.filter(revoked_at=None).filter(Q(expires_at=None) | Q(expires_at__gt=Now()))
        return queryset


@admin.register(Token)
class TokenAdmin(TenantAdmin):
    """A token acts as its user; so people issue them for themselves and for service accounts only.

    Superusers issue them for everyone. A token is revoked, not deleted: its use stays on record.
    """

    list_display = ("prefix", "name", "user", "organization", "state", "last_used_at", "expires_at")
    list_filter = (LiveFilter, ("organization", Related), ("user", Related))
    list_select_related = ("user", "organization")
    search_fields = ("prefix", "name", "user__username")
    ordering = ("-created_at",)
    autocomplete_fields = ("organization", "user")
    fields = ("organization", "user", "name", "scopes", "expires_at")
    actions = ("revoke",)
    empty_message = gettext_lazy("No token yet. Add one to let a program use the API in somebody's name.")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("organization", "user", "prefix", "last_used_at", "revoked_at") if obj else ()

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*self.fields, "prefix", "last_used_at", "revoked_at") if obj else self.fields

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name != "scopes":
            return super().formfield_for_dbfield(db_field, request, **kwargs)
        return forms.MultipleChoiceField(
            choices=[(name, f"{name} – {words}") for name, words in SCOPES.items()],
            widget=UnfoldAdminCheckboxSelectMultipleWidget,
            required=False,
            help_text=_("How far the token reaches. None ticked means everything its user may do."),
        )

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        seen = sight(request)
        if db_field.name == "user" and not seen.everything:
            services = Membership.objects.filter(
                organization_id__in=seen.organizations, kind=MembershipKind.SERVICE, active=True
            )
            users = db_field.remote_field.model.objects.filter(
                Q(pk=request.user.pk) | Q(pk__in=services.values("user_id"), is_superuser=False)
            )
            kwargs["queryset"] = users
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Token, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        token, secret = Token.objects.issue(
            obj.organization, obj.user, obj.name, scopes=obj.scopes, expires_at=obj.expires_at
        )
        obj.pk, obj.prefix, obj.secret_hash = token.pk, token.prefix, token.secret_hash
        self.message_user(
            request,
            _("The secret is {secret} – copy it now: it is not kept and cannot be shown again.").format(
                secret=secret
            ),
            messages.WARNING,
        )

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: Any = None) -> HttpResponse:
        response: HttpResponse = super().response_add(request, obj, post_url_continue)
        response["Cache-Control"] = "no-store"
        return response

    @admin.action(description=gettext_lazy("Revoke"), permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: Any) -> None:
        count = queryset.filter(revoked_at=None).update(revoked_at=Now())
        self.message_user(
            request, _("Revoked: {count}. They stop working at once.").format(count=count), messages.SUCCESS
        )

    @admin.display(description=gettext_lazy("State"))
    def state(self, token: Token) -> str:
        if token.revoked_at:
            return _("Revoked")
        return _("Expired") if token.expires_at and token.expires_at <= timezone.now() else _("Live")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
