"""An organization's providers of identities (OpenID Connect)."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextareaWidget

from groups import members
from groups.models import CustomRole, IdentityProvider, MemberRole, Project
from groups.models.providers import MAX_SECRET
from groups.sign_in.openid import callback_address

from .lists import lines
from .members import PlaceAdmin, PlaceForm
from .tenancy import Related

RULE = gettext_lazy("Each line: group = role, or group = role: project, project (their slugs).")


class ProviderForm(PlaceForm):
    """The secret goes in and never comes out."""

    written_by_others = ("rules",)  # columns that fields of another name write
    secret = forms.CharField(
        label=gettext_lazy("Client secret"),
        required=False,
        max_length=MAX_SECRET,
        widget=UnfoldAdminPasswordWidget({"autocomplete": "off", "spellcheck": "false"}),
        help_text=gettext_lazy(
            "Kept encrypted and never shown again. Nothing leaves it as it is, a - removes it."
        ),
    )
    who = forms.CharField(
        label=gettext_lazy("Groups and roles"),
        required=False,
        widget=UnfoldAdminTextareaWidget({"rows": 5}),
        help_text=format_lazy("{} {}", gettext_lazy("The first that fits holds, at every sign-in."), RULE),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial.setdefault("who", "\n".join(_written(rule) for rule in self.instance.rules))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if said := (cleaned.get("secret") or "").strip():
            self.instance.keep_secret("" if said == "-" else said)
        organization = cleaned.get("organization") or getattr(self.instance, "organization", None)
        if organization is not None and "who" in self.fields:
            try:
                self.instance.rules = [
                    _rule(line, organization.pk) for line in lines(cleaned.get("who") or "")
                ]
            except ValidationError as error:
                self.add_error("who", error)
        return cleaned


def _written(rule: dict[str, Any]) -> str:
    projects = rule.get("projects")
    return f"{rule['group']} = {rule['role']}" + (f": {', '.join(projects)}" if projects is not None else "")


def _rule(line: str, organization_id: str) -> dict[str, Any]:
    """Raises ValidationError for a line that is no rule, and for a role or project there is not."""
    group, equals, rest = (part.strip() for part in line.rpartition("="))
    role, colon, listed = (part.strip() for part in rest.partition(":"))
    if not (group and equals and role):
        raise ValidationError(_("“{line}” is no rule.").format(line=line[:100]) + " " + str(RULE))
    own = CustomRole.objects.filter(organization_id=organization_id, name=role)
    if role not in MemberRole.values and not own.exists():
        raise ValidationError(_("There is no role “{name}”.").format(name=role[:100]))
    slugs = [one.strip() for one in listed.split(",") if one.strip()] if colon else None
    for slug in slugs or ():
        if not Project.objects.filter(organization_id=organization_id, slug=slug).exists():
            raise ValidationError(_("There is no project “{name}”.").format(name=slug[:100]))
    return {"group": group, "role": role, "projects": slugs}


@admin.register(IdentityProvider)
class IdentityProviderAdmin(PlaceAdmin):
    """Changed by who may do everything there: whom it vouches for is whatever the rules name."""

    form_base = ProviderForm
    list_display = ("name", "organization", "issuer", "only", "active")
    list_filter = (("organization", Related), "active")
    list_select_related = ("organization",)
    search_fields = ("name", "issuer")
    ordering = ("name",)
    autocomplete_fields = ("organization",)
    fields = (
        *("organization", "name", "issuer", "client_id", "secret", "redirect", "door", "scopes"),
        *("groups_claim", "who"),
        *("default_role", "domains", "makes_accounts", "only", "active"),
    )
    empty_message = gettext_lazy("No provider yet. People sign in with a password, a code or a passkey.")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj and not self.has_change_permission(request, obj):
            return tuple(name for name in self.fields if name not in ("secret", "who"))
        return self.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Which domains are the organization's is found out by somebody who runs the installation."""
        found = (*super().get_readonly_fields(request, obj), "redirect", "door")
        return found if request.user.is_superuser else (*found, "domains")

    def refuses(self, user: Any, target: IdentityProvider) -> str:
        return members.refuses_provider(user, target.organization_id)

    @admin.display(description=gettext_lazy("Redirect address, for the provider"))
    def redirect(self, row: IdentityProvider) -> str:
        return callback_address(row) if row.created_at else "–"

    @admin.display(description=gettext_lazy("People sign in at"))
    def door(self, row: IdentityProvider) -> str:
        try:
            return reverse("organization_door", args=[row.organization.slug])
        except NoReverseMatch:  # a slug that no address can have
            return "–"
