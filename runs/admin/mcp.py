"""MCP servers, and their tools: looked at before any agent may call them."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.contrib.filters.admin import ChoicesDropdownFilter
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from groups import members
from groups.admin.members import PlaceAdmin, PlaceForm
from groups.admin.tenancy import OneOrganizationForm, Related, TenantAdmin, sight
from groups.models import IdentityProvider
from groups.sign_in import providers
from runs.actions import mcp
from runs.models import McpServer, McpTool, ToolState
from runs.models.accounts import MAX_SECRET
from runs.tools.mcp import definitions
from runs.tools.mcp.grants import callback_address

ACCEPTABLE = (ToolState.NEW, ToolState.CHANGED)
HINTS = {
    "readOnlyHint": (gettext_lazy("reads only"), gettext_lazy("writes")),
    "destructiveHint": (gettext_lazy("destructive"), gettext_lazy("not destructive")),
    "idempotentHint": (gettext_lazy("may be repeated"), gettext_lazy("not to be repeated")),
    "openWorldHint": (gettext_lazy("reaches out"), gettext_lazy("stays within")),
}


class HeadersField(forms.CharField):
    """A dict of headers; None where nothing is entered."""

    def __init__(self) -> None:
        super().__init__(
            label=gettext_lazy("Headers"),
            required=False,
            widget=UnfoldAdminTextareaWidget({"rows": 3, "spellcheck": "false", "autocomplete": "off"}),
            help_text=gettext_lazy(
                "One a line, Authorization: Bearer …; kept encrypted and never shown again. "
                "What is entered replaces all of them, nothing leaves them as they are, a - removes them."
            ),
        )

    def clean(self, value: Any) -> dict[str, str] | None:
        text = super().clean(value).strip()
        if not text:
            return None
        if text == "-":
            return {}
        found = {}
        for line in text.splitlines():
            name, colon, value = line.partition(":")
            if not colon:
                raise forms.ValidationError(_("A header is written as Name: value, one a line."))
            found[name.strip()] = value.strip()
        return found


class WithHeadersForm(OneOrganizationForm):
    """Headers go in and never come out."""

    headers = HeadersField()

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        try:
            if cleaned.get("headers") is not None:
                self.instance.keep_headers(cleaned["headers"])
        except ValidationError as error:
            self.add_error("headers", error)
        return cleaned


class RefreshedAdmin(TenantAdmin):
    """What is read at somebody's server when it is added, and again with the action Refresh."""

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if obj.enabled and self.has_refresh_permission(request):
            transaction.on_commit(lambda: self._refresh(request, obj))

    def has_refresh_permission(self, request: HttpRequest) -> bool:
        permission = f"runs.refresh_{self.opts.model_name}"
        return bool(request.user.has_perm(permission)) and self.arranges(request)

    def _refresh(self, request: HttpRequest, obj: Any) -> None:
        """Read it, and tell the person what came of that."""
        raise NotImplementedError


class McpServerForm(WithHeadersForm, PlaceForm):
    """Headers and the client secret go in and never come out."""

    secret = forms.CharField(
        label=gettext_lazy("Client secret"),
        required=False,
        max_length=MAX_SECRET,
        widget=UnfoldAdminPasswordWidget({"autocomplete": "off", "spellcheck": "false"}),
        help_text=gettext_lazy(
            "Kept encrypted and never shown again. Nothing leaves it as it is, a - removes it."
        ),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if said := (cleaned.get("secret") or "").strip():
            self.instance.keep_secret("" if said == "-" else said)
        return cleaned


@admin.register(McpServer)
class McpServerAdmin(RefreshedAdmin, PlaceAdmin):
    """Its tools are listed when it is added, with the action Refresh, and every hour. One for which people's
    sign-ins are exchanged is arranged by who may do everything there.
    """

    form_base = McpServerForm
    fixed = ("organization", "name")
    list_display = ("name", "organization", "url", "enabled", "tools_shown", "checked_at", "problem")
    list_filter = ("enabled", ("organization", Related))
    search_fields = ("name", "url")
    ordering = ("name",)
    autocomplete_fields = ("organization",)
    fields = (
        *("organization", "name", "url", "headers", "timeout_seconds", "enabled"),
        *(
            "as_person",
            "exchange_at",
            "audience",
            "with_actor",
            "client_id",
            "secret",
            "redirect",
            "scopes",
            "issuer",
            "authorization_endpoint",
        ),
        *("token_endpoint", "revocation_endpoint", "resource"),
    )
    actions = ("refresh",)
    empty_message = gettext_lazy(
        "No MCP server yet. Add one, accept its tools, and agents may be allowed to call them."
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        waiting = Count("tools", filter=Q(tools__state__in=ACCEPTABLE))
        accepted = Count("tools", filter=Q(tools__state=ToolState.ACCEPTED))
        return super().get_queryset(request).annotate(accepted_tools=accepted, waiting_tools=waiting)

    def refuses(self, user: Any, target: McpServer) -> str:
        if not (target.as_person and target.exchange_at):
            return ""
        return members.refuses_exchange(user, target.organization_id, target.exchange_at)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name != "exchange_at":
            return super().formfield_for_dbfield(db_field, request, **kwargs)
        return forms.ChoiceField(
            choices=[("", _("nobody's: accounts are connected")), *exchangers(request)],
            required=False,
            label=capfirst(str(db_field.verbose_name)),
            help_text=str(db_field.help_text),
            widget=UnfoldAdminSelectWidget(),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        found = (*super().get_readonly_fields(request, obj), "redirect")
        return (*found, "header_names", "checked_at", "problem") if obj else found

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj and not self.has_change_permission(request, obj):
            shown = (name for name in self.fields if name not in ("headers", "secret"))
            return (*shown, "header_names", "problem")
        return (*self.fields, "header_names", "checked_at", "problem") if obj else self.fields

    @admin.display(description=gettext_lazy("Tools"))
    def tools_shown(self, server: Any) -> str:
        said = _("{count} accepted").format(count=server.accepted_tools)
        if server.waiting_tools:
            said += ", " + _("{count} to be looked at").format(count=server.waiting_tools)
        return said

    @admin.display(description=gettext_lazy("Redirect address, for its authorization server"))
    def redirect(self, server: McpServer) -> str:
        return callback_address(server) if server.created_at else "–"

    @admin.action(description=gettext_lazy("Refresh: list the tools again"), permissions=["refresh"])
    def refresh(self, request: HttpRequest, queryset: Any) -> None:
        for server in queryset:
            self._refresh(request, server)

    def _refresh(self, request: HttpRequest, server: McpServer) -> None:
        problem = mcp.refresh(server, request.user)
        waiting = server.tools.filter(state__in=ACCEPTABLE).count()
        if problem:
            self.message_user(request, problem, messages.ERROR)
        elif waiting:
            said = _("{server}: {count} of its tools wait until somebody accepts them, under MCP tools.")
            self.message_user(request, said.format(server=server, count=waiting), messages.WARNING)
        else:
            said = _("{server}: its tools are as they were accepted.")
            self.message_user(request, said.format(server=server), messages.SUCCESS)


def exchangers(request: HttpRequest) -> list[tuple[str, str]]:
    """The providers, those that the person sees, sign-ins at which may be exchanged."""
    rows = IdentityProvider.objects.select_related("organization").order_by("organization__name", "name")
    if not (seen := sight(request)).everything:
        return [(one.pk, one.name) for one in rows.filter(seen.condition("organization_id"))]
    found = [(one.pk, f"{one.organization} / {one.name}") for one in rows]
    whole = providers.installation()
    return [*found, (whole.pk, whole.name)] if whole else found


@admin.register(McpTool)
class McpToolAdmin(TenantAdmin):
    """A tool is read before it is accepted, and again whenever its server changes a word of it.

    One that was deleted is new when its server lists it once more.
    """

    fixed = ()
    list_display = ("call_name", "state_shown", "risk", "hints", "description", "accepted_by", "changed_at")
    list_display_links = ("call_name",)
    list_filter = (("state", ChoicesDropdownFilter), ("server", Related))
    list_select_related = ("server", "accepted_by")
    search_fields = ("name", "server__name")
    ordering = ("server__name", "name")
    actions = ("accept_selected",)
    empty_message = gettext_lazy("No tools yet. They show here when an MCP server has listed them.")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description=gettext_lazy("Tool"), ordering="name")
    def call_name(self, tool: McpTool) -> str:
        return tool.call_name

    @admin.display(description=gettext_lazy("State"), ordering="state")
    def state_shown(self, tool: McpTool) -> str:
        return tool.problem or tool.get_state_display()

    @admin.display(description=gettext_lazy("Risk"))
    def risk(self, tool: McpTool) -> str:
        return "" if tool.state == ToolState.UNUSABLE else definitions.risk(tool.name, tool.definition)

    @admin.display(description=gettext_lazy("It says"))
    def hints(self, tool: McpTool) -> str:
        return said_of_itself(tool)

    @admin.display(description=gettext_lazy("Description"))
    def description(self, tool: McpTool) -> str:
        return str(tool.definition.get("description", ""))[:120]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        tool = self.visible_or_404(request, object_id)
        return self._look(request, [tool], tool.call_name)

    @admin.action(description=gettext_lazy("Look and accept…"), permissions=["accept"])
    def accept_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        """Show what would be accepted; accept what is confirmed, as it was shown."""
        if not self.has_accept_permission(request):
            raise PermissionDenied
        found = list(queryset.select_related("server").order_by("server__name", "name"))
        if not request.POST.get("confirmed"):
            return self._look(request, found, _("Accept these tools?"))
        for tool in found:
            tool.digest = request.POST.get(f"digest-{tool.pk}", "")
        accepted = mcp.accept(found, request.user)
        level = messages.SUCCESS if len(accepted) == len(found) else messages.WARNING
        said = _("Accepted: {count} of {all}.").format(count=len(accepted), all=len(found))
        self.message_user(request, said, level)
        return None

    def has_accept_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("runs.accept_mcptool")) and self.arranges(request)

    def _look(self, request: HttpRequest, tools: list[McpTool], title: str) -> HttpResponse:
        acceptable = [tool for tool in tools if tool.state in ACCEPTABLE]
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "subtitle": None,
            "opts": self.opts,
            "shown": [shown(tool) for tool in tools],
            "acceptable": acceptable if self.has_accept_permission(request) else [],
            "action_name": "accept_selected",
        }
        return TemplateResponse(request, "admin/runs/mcptool/look.html", context)


def shown(tool: McpTool) -> dict[str, Any]:
    """A tool as its page shows it: what it is now, and what has changed since it was accepted."""
    usable = tool.state != ToolState.UNUSABLE
    changed = tool.state == ToolState.CHANGED
    return {
        "tool": tool,
        "hints": said_of_itself(tool) or _("nothing"),
        "risk": definitions.risk(tool.name, tool.definition) if usable else "",
        "written": "\n".join(definitions.written(tool.definition)),
        "difference": definitions.difference(tool.accepted, tool.definition) if changed else "",
    }


def said_of_itself(tool: McpTool) -> str:
    """The server's hints in words. They are claims: they tighten what Deputy thinks, and never loosen it."""
    hints = tool.definition.get("annotations", {})
    return ", ".join(str(HINTS[name][not value]) for name, value in hints.items() if name in HINTS)
