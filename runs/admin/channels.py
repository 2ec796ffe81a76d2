"""Where an organization is told of approvals: made and tried here. People's own are on their pages."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.postgres.forms import SimpleArrayField
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminPasswordWidget

from groups.actors import Actor
from groups.admin.tenancy import OneOrganizationForm, Related, TenantAdmin
from policy.authority import VERBS, NotAllowed, Verb
from runs.actions import channels
from runs.actions.channels import ChannelRefused
from runs.models import Channel, Topic
from runs.notices.senders import all_of_them, found


def kinds() -> list[tuple[str, str]]:
    """What an organization may have: a browser is a person's."""
    return [(kind, str(one.label)) for kind, one in all_of_them().items() if kind != "push"]


class ChannelForm(OneOrganizationForm):
    """The address goes in and never comes out."""

    kind = forms.ChoiceField(label=gettext_lazy("Kind"), choices=kinds)
    address = forms.CharField(
        label=gettext_lazy("Address"),
        required=False,
        max_length=2000,
        widget=UnfoldAdminPasswordWidget({"autocomplete": "off", "spellcheck": "false"}),
        help_text=gettext_lazy(
            "An e-mail address; a chat's as the Apprise library writes it; for Slack with buttons "
            '{"webhook": "https://hooks.slack.com/…", "signing_secret": "…"}. Kept encrypted and never shown '
            "again; nothing leaves it as it is."
        ),
    )
    topics = forms.MultipleChoiceField(
        label=gettext_lazy("Tells of"),
        choices=[(value, gettext_lazy(label)) for value, label in Topic.choices if value != Topic.OWN],
        widget=forms.CheckboxSelectMultiple,
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        address, kind = (cleaned.get("address") or "").strip(), cleaned.get("kind", "")
        moved = kind != self.initial.get("kind")
        if not address:
            if moved or not self.instance.sealed_address:
                self.add_error("address", _("Enter the address."))
            return cleaned
        self.instance.kind = kind
        try:
            channels.keep_address(self.instance, address)
        except ChannelRefused as refused:
            self.add_error("address", str(refused))
        return cleaned


@admin.register(Channel)
class ChannelAdmin(TenantAdmin):
    form = ChannelForm
    project_lookup = "project_id"
    list_display = ("__str__", "organization", "project", "label", "shown", "state")
    list_filter = ("enabled", ("organization", Related), ("project", Related))
    list_select_related = ("organization", "project")
    search_fields = ("name", "shown")
    ordering = ("-pk",)
    autocomplete_fields = ("organization", "project")
    fields = ("organization", "project", "kind", "name", "address", "language", "topics", "enabled")
    actions = ("send_test",)
    empty_message = gettext_lazy(
        "No channel yet. Add one, and a chat of yours is told what waits for a decision."
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).filter(user=None)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj and not self.has_change_permission(request, obj):
            return (*(name for name in self.fields if name != "address"), "shown")
        return self.fields

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "topics":  # as the form has it
            return SimpleArrayField(forms.CharField())
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*super().get_readonly_fields(request, obj), "shown")

    def save_model(self, request: HttpRequest, obj: Channel, form: Any, change: bool) -> None:
        if (form.cleaned_data.get("address") or "").strip():
            obj.kept_by = request.user  # type: ignore[assignment]
        super().save_model(request, obj, form, change)

    def arranges(self, request: HttpRequest, obj: Any = None) -> bool:
        permitted = all(request.user.has_perm(each) for each in VERBS[Verb.ARRANGE_CHANNELS].permissions)
        return permitted and super().arranges(request, obj)

    @admin.display(description=gettext_lazy("Kind"), ordering="kind")
    def label(self, channel: Channel) -> str:
        sender = found(channel.kind)
        return str(sender.label) if sender else channel.kind

    @admin.display(description=gettext_lazy("State"), ordering="enabled")
    def state(self, channel: Channel) -> str:
        if not channel.enabled:
            return _("Off")
        return f"{_('Failing')}: {channel.problem}" if channel.failing_since else _("On")

    @admin.action(description=gettext_lazy("Send a test"), permissions=["change"])
    def send_test(self, request: HttpRequest, queryset: Any) -> None:
        for channel in queryset:
            try:
                why = channels.try_channel(Actor.of_request(request, channel.organization_id), channel)
            except (NotAllowed, ChannelRefused) as refused:
                why = str(refused)
            if why:
                said = _("{channel}: the test did not arrive: {why}").format(channel=channel, why=why)
                self.message_user(request, said, messages.ERROR)
            else:
                said = _("{channel}: the test has left.").format(channel=channel)
                self.message_user(request, said, messages.SUCCESS)
