"""Webhooks and what they were told: made here, tried here, sent again from here."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.postgres.forms import SimpleArrayField
from django.http import HttpRequest, HttpResponse
from unfold.contrib.filters.admin import ChoicesDropdownFilter
from unfold.paginator import InfinitePaginator

from groups.admin.tenancy import History, OneOrganizationForm, Related, TenantAdmin
from runs.actions import webhooks
from runs.models import WebhookDelivery, WebhookEndpoint, WebhookEvent
from runs.webhooks import sending

TOLD_ONCE = "The secret is {secret} – copy it now: it is not shown again."


class WebhookForm(OneOrganizationForm):
    events = forms.MultipleChoiceField(
        choices=WebhookEvent.choices, widget=forms.CheckboxSelectMultiple, help_text="What it is told of."
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
    empty_message = "No webhook yet. Add one, and a program of yours is told what happens here."

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        found = super().get_readonly_fields(request, obj)
        return (*found, "failing_since", "disabled_because") if obj else found

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*self.fields, "failing_since", "disabled_because") if obj else self.fields

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "events":  # as the form has it
            return SimpleArrayField(forms.CharField())
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    @admin.display(description="Events")
    def events_short(self, endpoint: WebhookEndpoint) -> str:
        return ", ".join(endpoint.events)

    @admin.display(description="State", ordering="enabled")
    def state(self, endpoint: WebhookEndpoint) -> str:
        if endpoint.enabled:
            return "Failing" if endpoint.failing_since else "On"
        return f"Off: {endpoint.disabled_because}" if endpoint.disabled_because else "Off"

    def save_model(self, request: HttpRequest, obj: WebhookEndpoint, form: Any, change: bool) -> None:
        if change:
            if obj.enabled and "enabled" in form.changed_data:
                obj.disabled_because, obj.failing_since = "", None
            super().save_model(request, obj, form, change)
            return
        secret = webhooks.give_secret(obj)
        super().save_model(request, obj, form, change)
        self.message_user(request, TOLD_ONCE.format(secret=secret), messages.WARNING)

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: Any = None) -> HttpResponse:
        response: HttpResponse = super().response_add(request, obj, post_url_continue)
        response["Cache-Control"] = "no-store"
        return response

    @admin.action(description="Send a ping", permissions=["change"])
    def ping(self, request: HttpRequest, queryset: Any) -> None:
        for endpoint in queryset:
            delivery = sending.ping(endpoint)
            said = f"{endpoint}: a ping is on its way as {delivery.pk}; see Webhook deliveries."
            self.message_user(request, said, messages.SUCCESS)

    @admin.action(description="Give a new secret (the old one signs too for a day)", permissions=["change"])
    def rotate(self, request: HttpRequest, queryset: Any) -> None:
        for endpoint in queryset:
            said = TOLD_ONCE.format(secret=webhooks.rotate(endpoint))
            self.message_user(request, f"{endpoint}: {said}", messages.WARNING)


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(History, TenantAdmin):
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
    empty_message = "Nothing has been told yet."

    @admin.action(description="Send again", permissions=["redeliver"])
    def redeliver(self, request: HttpRequest, queryset: Any) -> None:
        again = sum(sending.send_again(delivery) for delivery in queryset)
        self.message_user(request, f"On their way again: {again}.", messages.SUCCESS)

    def has_redeliver_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("runs.change_webhookendpoint"))
