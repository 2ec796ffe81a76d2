"""Models: by whose key each provider is asked, which roles use which model, and whether it answers."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST
from unfold.widgets import UnfoldAdminPasswordWidget

from groups import known
from groups.actors import Actor
from groups.admin.tenancy import OneOrganizationForm, Related, TenantAdmin, sight
from groups.models import Organization, Role
from policy.authority import NotAllowed
from runs.actions import models
from runs.models import ModelKey, ModelPrice, TriedModel
from runs.models.mcp import origin
from runs.models.model_keys import MAX_KEY
from runs.providers import registry

LOOK = "runs.view_modelkey"


class ModelKeyForm(OneOrganizationForm):
    """The key goes in and never comes out."""

    key = forms.CharField(
        label=gettext_lazy("Key"),
        required=False,
        max_length=MAX_KEY,
        widget=UnfoldAdminPasswordWidget({"autocomplete": "off", "spellcheck": "false"}),
        help_text=gettext_lazy(
            "Kept encrypted and never shown again. Nothing leaves it as it is, a - removes it."
        ),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        said = (cleaned.get("key") or "").strip()
        try:
            if said:
                self.instance.keep_key("" if said == "-" else said)
        except ValidationError as error:
            self.add_error("key", error)
        address = cleaned.get("base_url", "")
        moved = origin(str(self.initial.get("base_url") or "")) != origin(address)  # which drops the old key
        kept = bool(self.instance.sealed_key) and (bool(said) or not moved or self.instance._state.adding)
        if not (kept or address) and not self.errors:
            self.add_error("key", _("Enter a key or an address; to go by the environment, delete this."))
        return cleaned


@admin.register(ModelKey)
class ModelKeyAdmin(TenantAdmin):
    """Reached from the page of models, which is the one in the sidebar."""

    form = ModelKeyForm
    fixed = ("organization", "provider")
    list_display = ("provider", "organization", "base_url", "has_key")
    list_filter = (("organization", Related),)
    list_select_related = ("organization",)
    search_fields = ("provider",)
    ordering = ("provider",)
    autocomplete_fields = ("organization",)
    fields = ("organization", "provider", "base_url", "key")
    empty_message = gettext_lazy("No key is set here. Providers are asked as the environment says.")

    def get_urls(self) -> list[Any]:
        wrap = self.admin_site.admin_view
        return [
            path("models/", wrap(self.models_view), name="runs_models"),
            path("models/try/", wrap(require_POST(self.try_view)), name="runs_models_try"),
            *super().get_urls(),
        ]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj and not self.has_change_permission(request, obj):
            return (*(name for name in self.fields if name != "key"), "has_key")
        return self.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*super().get_readonly_fields(request, obj), "has_key")

    @admin.display(description=gettext_lazy("Key"), boolean=True)
    def has_key(self, row: ModelKey) -> bool:
        return bool(row.sealed_key)

    def save_model(self, request: HttpRequest, obj: ModelKey, form: Any, change: bool) -> None:
        had = bool(change and obj.sealed_key)
        super().save_model(request, obj, form, change)
        if had and not obj.sealed_key and obj.base_url:
            said = _("The address is another one, so its key is gone: enter the one for this address.")
            self.message_user(request, said, messages.WARNING)

    def response_post_save_add(self, request: HttpRequest, obj: ModelKey) -> HttpResponse:
        return _to(obj.organization)

    response_post_save_change = response_post_save_add

    def models_view(self, request: HttpRequest) -> HttpResponse:
        """Providers, the models of roles, and what is known of each."""
        if not request.user.has_perm(LOOK):
            raise PermissionDenied
        organization = _organization(request, request.GET.get("organization", ""))
        context = {**self.admin_site.each_context(request), "title": _("Models")}
        if organization is not None:
            context |= {
                "organization": organization,
                "organizations": _organizations(request),
                "providers": [Provider.of(one) for one in models.sources(organization.pk)],
                "others": registry.others(),
                "used": used(organization.pk),
                "offered": known.models_of(organization.pk),
                "may_set": self.has_add_permission(request),
                "may_try": self.may_try(request),
                "may_price": request.user.has_perm("runs.add_modelprice") and self.arranges(request),
                "default_model": settings.DEPUTY_MODEL,
                "seconds": int(models.TRY_SECONDS),
                "example": "openai:gpt-5",
            }
        return TemplateResponse(request, "admin/runs/models.html", context)

    def may_try(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("runs.try_modelkey")) and self.arranges(request)

    def try_view(self, request: HttpRequest) -> HttpResponse:
        """Ask one model one small question; the page says what came of it."""
        if not self.may_try(request):
            raise PermissionDenied
        organization = _organization(request, request.POST.get("organization", ""))
        model = request.POST.get("model", "").strip()
        if organization is None:
            raise PermissionDenied
        if not model:
            self.message_user(request, _("Name the model to try."), messages.ERROR)
            return _to(organization)
        try:
            tried = models.try_model(Actor.of_request(request, organization.pk), organization.pk, model)
        except NotAllowed:
            raise PermissionDenied from None
        except models.TooMany as refused:
            said = _("Too many tries: wait {seconds} seconds.").format(seconds=int(refused.seconds) + 1)
            self.message_user(request, said, messages.ERROR)
            return _to(organization)
        if tried.error:
            said = _("{model} did not answer: {problem} {advice}")
            found = said.format(model=model, problem=tried.said, advice=advice(tried.error))
            self.message_user(request, found, messages.ERROR)
        else:
            said = _("{model} answered within {seconds} seconds: “{words}”")
            seconds = f"{tried.milliseconds / 1000:.1f}"
            found = said.format(model=model, seconds=seconds, words=tried.said)
            self.message_user(request, found, messages.SUCCESS)
        return _to(organization)


@dataclass(frozen=True)
class Provider:
    """A provider as the page shows it."""

    source: models.Source
    name: str
    key: str
    tone: str

    @classmethod
    def of(cls, source: models.Source) -> "Provider":
        words, tone = {
            "here": (_("set here"), "good"),
            "environment": (_("from the environment"), "good"),
            "missing": (_("missing"), "warn"),
            "none": (_("needs none"), ""),
        }[source.key]
        if source.set_here and source.in_environment:
            words = _("set here; wins over the environment")
        elif source.set_here and source.key == "none":
            words = _("none, at the address set here")
        name = dict(ModelKey._meta.get_field("provider").flatchoices)[source.provider]
        return cls(source, str(name), words, "warn" if source.problem else tone)

    @property
    def link(self) -> str:
        """Where its key is set."""
        if self.source.set_here is not None:
            return reverse("admin:runs_modelkey_change", args=[self.source.set_here.pk])
        return f"{reverse('admin:runs_modelkey_add')}?provider={self.source.provider}"


@dataclass(frozen=True)
class Used:
    """A model and the roles that use it. `problem`: what is known against it without asking."""

    model: str
    roles: list[Role]
    problem: str
    tried: TriedModel | None
    is_default: bool
    price: ModelPrice | None

    @property
    def price_words(self) -> str:
        if self.price is None:
            return ""
        given, written = (f"{one.normalize():f}" for one in (self.price.input_price, self.price.output_price))
        said = _("{given} in, {written} out, {currency}")
        return said.format(given=given, written=written, currency=self.price.currency)

    @property
    def price_link(self) -> str:
        """Where its price is set."""
        if self.price is not None:
            return reverse("admin:runs_modelprice_change", args=[self.price.pk])
        return f"{reverse('admin:runs_modelprice_add')}?{urlencode({'model': self.model})}"


def used(organization_id: str) -> list[Used]:
    """The models of the organization's roles, and whatever else was tried or has a price, by name."""
    roles: dict[str, list[Role]] = {settings.DEPUTY_MODEL: []}
    for role in Role.objects.filter(organization_id=organization_id).order_by("name"):
        roles.setdefault(role.model or settings.DEPUTY_MODEL, []).append(role)
    tried = {row.model: row for row in TriedModel.objects.filter(organization_id=organization_id)}
    prices = {row.model: row for row in ModelPrice.objects.filter(organization_id=organization_id)}
    return [
        Used(
            model,
            roles.get(model, []),
            models.problem(organization_id, model),
            tried.get(model),
            model == settings.DEPUTY_MODEL,
            prices.get(model),
        )
        for model in sorted({*roles, *tried, *prices})
    ]


def advice(code: str) -> str:
    """What to change where a model did not answer so."""
    found = {
        "MODEL_UNKNOWN": _("Write its name as provider:NAME."),
        "MODEL_REFUSED": _("Look at the key, at the model's name and at the account's limits."),
        "MODEL_CONNECTION": _("Look at the address, and whether the server runs."),
        "MODEL_TIMEOUT": _("Try again: a server that loads a model first needs longer."),
        "MODEL_RATE_LIMITED": _("Wait, or raise the limits of the account."),
        "MODEL_UNAVAILABLE": _("The server has trouble: try again later."),
        "MODEL_EMPTY_REPLY": _("Choose a model that writes text."),
    }
    return found.get(code, "")


def _organizations(request: HttpRequest) -> list[Organization]:
    seen, found = sight(request), Organization.objects.order_by("name")
    return list(found if seen.everything else found.filter(pk__in=seen.organizations))


def _organization(request: HttpRequest, wanted: str) -> Organization | None:
    """The one that is asked for, of those the person sees; or the first."""
    found = _organizations(request)
    return next((one for one in found if one.pk == wanted), found[0] if found and not wanted else None)


def _to(organization: Organization) -> HttpResponse:
    return redirect(f"{reverse('admin:runs_models')}?organization={organization.pk}")
