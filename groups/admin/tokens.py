"""API tokens: issued here, shown once, revoked here."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db.models import Q
from django.db.models.functions import Now
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from groups import changes, members, tokens
from groups.models import Token
from groups.scopes import DEFAULT, SCOPES

from .tenancy import OneOrganizationForm, Related, TenantAdmin


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


class TokenForm(OneOrganizationForm):
    """A new token is for oneself or a service account: groups/tokens.py says so."""

    by: ClassVar[Any] = None  # whoever fills the form in

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        organization, user = cleaned.get("organization"), cleaned.get("user")
        refused = organization and user and tokens.refuses(self.by, organization, user)
        if refused:
            self.add_error("user", refused)
        return cleaned


@admin.register(Token)
class TokenAdmin(TenantAdmin):
    """A token acts as its user; so everybody issues them for themselves and for service accounts only.

    A token is revoked, not deleted: its use stays on record.
    """

    one_s_own = True

    list_display = ("prefix", "name", "user", "organization", "state", "last_used_at", "expires_at")
    list_filter = (LiveFilter, ("organization", Related), ("user", Related))
    list_select_related = ("user", "organization")
    search_fields = ("prefix", "name", "user__username")
    ordering = ("-created_at",)
    autocomplete_fields = ("organization", "user")
    fields = ("organization", "user", "name", "scopes", "expires_at")
    actions = ("revoke",)
    empty_message = gettext_lazy("No token yet. Add one to let a program use the API in somebody's name.")

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> type[ModelForm]:
        kwargs["form"] = type("ThisTokenForm", (TokenForm,), {"by": request.user})
        form: type[ModelForm] = super().get_form(request, obj, **kwargs)
        return form

    def get_queryset(self, request: HttpRequest) -> Any:
        rows = super().get_queryset(request)
        return rows if members.whole(request.user) else rows.filter(user=request.user)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Others' tokens are revoked, by the list's action, and else left to their user."""
        may = super().has_change_permission(request, obj)
        return may and (obj is None or not tokens.refuses(request.user, obj.organization, obj.user))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("organization", "user", "prefix", "last_used_at", "revoked_at") if obj else ()

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*self.fields, "prefix", "last_used_at", "revoked_at") if obj else self.fields

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name != "scopes":
            return super().formfield_for_dbfield(db_field, request, **kwargs)
        return forms.MultipleChoiceField(
            label=_("Scopes"),
            choices=[(name, f"{name} – {_(words)}") for name, words in SCOPES.items()],
            widget=UnfoldAdminCheckboxSelectMultipleWidget,
            initial=list(DEFAULT),
            help_text=_("How far the token reaches, within what its user may do. Without a change it reads."),
        )

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "user":
            kwargs["queryset"] = db_field.remote_field.model.objects.filter(
                pk__in=tokens.issued_by(request.user).values("user_id")
            )
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
        count = changes.update(queryset.filter(revoked_at=None), revoked_at=Now())
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
