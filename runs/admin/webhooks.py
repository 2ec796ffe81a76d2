"""Webhooks and what they were told: made here, tried here, sent again from here."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.postgres.forms import SimpleArrayField
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.contrib.filters.admin import ChoicesDropdownFilter
from unfold.paginator import InfinitePaginator

from groups.admin.tenancy import History, ListedFromReplica, OneOrganizationForm, Related, TenantAdmin
from runs.actions import webhooks
from runs.models import WebhookDelivery, WebhookEndpoint, WebhookEvent
from runs.webhooks import sending

TOLD_ONCE = gettext_lazy("The secret is {secret} – copy it now: it is not shown again.")


class WebhookForm(OneOrganizationForm):
    events = forms.MultipleChoiceField(
        label=gettext_lazy("Events"),
        choices=[(value, gettext_lazy(words)) for value, words in WebhookEvent.choices],
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("What it is told of."),
    )


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(TenantAdmin):
    form = WebhookForm
    project_lookup = "project_id"
    list_display = ("__str__", "organization", "project", "events_short", "state", "failing_since")
    list_filter = ("enabled", ("organization", Related), ("project", Related))
    list_select_related = ("organization", "project")
    search_fields = ("url", "description", "id__exact")
    ordering = ("-pk",)
    autocomplete_fields = ("organization", "project")
    fields = ("organization", "project", "url", "description", "events", "enabled")
    actions = ("ping", "rotate")
    empty_message = gettext_lazy("No webhook yet. Add one, and a program of yours is told what happens here.")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).filter(run=None)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        found = super().get_readonly_fields(request, obj)
        return (*found, "failing_since", "disabled_because") if obj else found

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*self.fields, "failing_since", "disabled_because") if obj else self.fields

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "events":  # as the form has it
            return SimpleArrayField(forms.CharField())
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    @admin.display(description=gettext_lazy("Events"))
    def events_short(self, endpoint: WebhookEndpoint) -> str:
        return ", ".join(endpoint.events)

    @admin.display(description=gettext_lazy("State"), ordering="enabled")
    def state(self, endpoint: WebhookEndpoint) -> str:
        if endpoint.enabled:
            return _("Failing") if endpoint.failing_since else _("On")
        return f"{_('Off')}: {endpoint.disabled_because}" if endpoint.disabled_because else _("Off")

    def save_model(self, request: HttpRequest, obj: WebhookEndpoint, form: Any, change: bool) -> None:
        if change:
            if obj.enabled and "enabled" in form.changed_data:
                obj.disabled_because, obj.failing_since = "", None
            super().save_model(request, obj, form, change)
            return
        secret = webhooks.give_secret(obj)
        super().save_model(request, obj, form, change)
        self.message_user(request, str(TOLD_ONCE).format(secret=secret), messages.WARNING)

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: Any = None) -> HttpResponse:
        response: HttpResponse = super().response_add(request, obj, post_url_continue)
        response["Cache-Control"] = "no-store"
        return response

    @admin.action(description=gettext_lazy("Send a ping"), permissions=["change"])
    def ping(self, request: HttpRequest, queryset: Any) -> None:
        for endpoint in queryset:
            delivery = sending.ping(endpoint)
            said = _("{webhook}: a ping is on its way as {delivery}; see Webhook deliveries.")
            self.message_user(request, said.format(webhook=endpoint, delivery=delivery.pk), messages.SUCCESS)

    @admin.action(
        description=gettext_lazy("Give a new secret (the old one signs too for a day)"),
        permissions=["change"],
    )
    def rotate(self, request: HttpRequest, queryset: Any) -> None:
        for endpoint in queryset:
            said = str(TOLD_ONCE).format(secret=webhooks.rotate(endpoint))
            self.message_user(request, f"{endpoint}: {said}", messages.WARNING)


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ListedFromReplica, History, TenantAdmin):
    project_lookup = "endpoint__project_id"
    fixed = ()
    paginator = InfinitePaginator
    list_display = ("event", "endpoint", "status", "attempts", "response_status", "problem", "created_at")
    list_filter = (
        ("status", ChoicesDropdownFilter),
        ("endpoint", Related),
    )
    list_select_related = ("endpoint",)
    search_fields = ("id__exact", "event")
    ordering = ("-pk",)
    raw_id_fields = ("endpoint",)
    actions = ("redeliver",)
    empty_message = gettext_lazy("Nothing has been told yet.")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).filter(endpoint__run=None)

    @admin.action(description=gettext_lazy("Send again"), permissions=["redeliver"])
    def redeliver(self, request: HttpRequest, queryset: Any) -> None:
        again = sum(sending.send_again(delivery) for delivery in queryset)
        said = _("On their way again: {count}.")
        self.message_user(request, said.format(count=again), messages.SUCCESS)

    def has_redeliver_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("runs.change_webhookendpoint"))
