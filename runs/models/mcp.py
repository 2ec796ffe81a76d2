"""MCP servers an organization has registered, and the tools they list."""

from typing import Any
from urllib.parse import urlsplit

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models, transaction
from django.db.models import Q
from django.db.models.functions import Now

from common import ids
from common.models import Created, store_also
from common.outbound import OutboundError, check
from groups import changes

from .accounts import ENDPOINTS, NOT_RESOLVED, AsPerson
from .headers import WithHeaders

FOUND = (*ENDPOINTS, "revocation_endpoint", "resource")  # what a server says of where people authorize Deputy
WHOM = ("name", "url", "sealed_headers", "as_person")  # of a server: whom calls reach
MAX_TOOL_NAME = 64  # of `server.tool`, as calls, rules and lists keep it


class McpServer(AsPerson, WithHeaders, Created):
    """An MCP server (streamable HTTP) whose tools, once accepted, agents may be allowed to call.

    The headers' values are secrets: encrypted, never shown again. One that acts as the person is sent none.
    """

    id = models.CharField(
        primary_key=True, max_length=ids.ID_LENGTH, default=ids.mcp_server_id, editable=False
    )
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    name = models.CharField(
        max_length=30,
        validators=[RegexValidator(r"^[a-z][a-z0-9_-]*\Z", "Small letters, digits, _ and -.")],
        help_text="The first part of its tools' names: crm in crm.find_customer.",
    )
    url = models.CharField(max_length=2000, help_text="The address of its streamable HTTP endpoint.")
    timeout_seconds = models.PositiveSmallIntegerField(
        default=30, validators=[MinValueValidator(1), MaxValueValidator(300)]
    )
    enabled = models.BooleanField(default=True)
    checked_at = models.DateTimeField(null=True, editable=False)
    problem = models.TextField(blank=True, editable=False)
    listed_by = models.ForeignKey(  # in whose name its tools are listed, where it tells them to people only
        settings.AUTH_USER_MODEL,
        null=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
    )

    class Meta:
        verbose_name = "MCP server"
        permissions = [("refresh_mcpserver", "Can list an MCP server's tools again")]
        constraints = [models.UniqueConstraint(fields=["organization", "name"], name="mcp_server_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def headers(self) -> dict[str, str]:
        """What goes with every request; nothing where a person's own authorization does. Raises
        sealed.Unreadable.
        """
        return {} if self.as_person else super().headers

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store the server. At another origin (scheme, host, port) it is another server: the headers that
        were meant for the old one go, and its tools have to be accepted anew, in the same transaction.
        People's authorizations go with every change of what they were made for.
        """
        with transaction.atomic():
            before = None
            if not self._state.adding:
                before = McpServer.objects.select_for_update(no_key=True).filter(pk=self.pk).first()
            if before is not None and origin(before.url) != origin(self.url):
                if self.sealed_headers == before.sealed_headers:  # none were given for the new address
                    self.keep_headers({})
                self._forget_acceptance()
                self._forget_endpoints(before)
                store_also(kwargs, "sealed_headers", "header_names", "sealed_secret", *FOUND)
            elif before is not None and before.issuer and _asked(before) != _asked(self):
                self._forget_secret(before)
                store_also(kwargs, "sealed_secret")
            super().save(*args, **kwargs)
            if before is not None and McpServer.objects.get(pk=self.pk).bound_to() != before.bound_to():
                self.accounts.filter(declined=False).delete()  # what people do not want stays so

    def _forget_endpoints(self, before: "McpServer") -> None:
        """Where the server before said people authorize Deputy is not asked about this one."""
        if all(getattr(self, name) == getattr(before, name) for name in FOUND):
            for name in FOUND:
                setattr(self, name, "")
        self._forget_secret(before)

    def _forget_secret(self, before: "McpServer") -> None:
        if self.sealed_secret == before.sealed_secret:  # none was given for the new one
            self.sealed_secret = ""

    def _forget_acceptance(self) -> None:
        none = {"accepted": None, "accepted_digest": "", "accepted_at": None, "accepted_by": None}
        for tool in self.tools.exclude(accepted_digest="").select_for_update(no_key=True):
            state = ToolState.NEW if tool.state in ACCEPTED_ONCE else ToolState(tool.state)
            changes.update(self.tools.filter(pk=tool.pk), **none, state=state, changed_at=Now())

    def clean(self) -> None:
        """Raises ValidationError for an address Deputy will not ask, and a name that a remote agent has."""
        remote_agents = apps.get_model("runs", "RemoteAgent").objects
        if remote_agents.filter(organization_id=self.organization_id, name=self.name).exists():
            raise ValidationError(
                {"name": "A remote agent has this name: their tools would be called alike."}
            )
        try:
            check(self.url, allow_private=frozenset(settings.MCP_ALLOW))
        except OutboundError as error:
            if error.code != NOT_RESOLVED:
                raise ValidationError({"url": f"This address is refused: {error.message}."}) from None
        self.clean_as_person()


def _asked(server: McpServer) -> tuple[str, str, str]:
    """Whom the client secret is told."""
    return server.issuer, server.token_endpoint, server.revocation_endpoint


def origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of an address; whatever cannot be read is an origin of its own."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        return parts.scheme, (parts.hostname or "").rstrip("."), port
    except ValueError:
        return "", url, None


class ToolState(models.TextChoices):
    NEW = "new", "New: to be looked at"
    ACCEPTED = "accepted", "Accepted"
    CHANGED = "changed", "Changed: suspended until somebody looks"
    GONE = "gone", "No longer listed"
    UNUSABLE = "unusable", "Cannot be used"


ACCEPTED_ONCE = (ToolState.ACCEPTED, ToolState.CHANGED)


class McpTool(Created):
    """A tool as its server last listed it, beside what somebody accepted.

    `definition` and `accepted` hold title, description, input_schema and annotations. Only what was accepted
    is ever shown to a model or called.
    """

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.mcp_tool_id, editable=False)
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    server = models.ForeignKey(McpServer, on_delete=models.CASCADE, related_name="tools", db_index=False)
    name = models.CharField(max_length=128)
    state = models.CharField(max_length=10, choices=ToolState.choices, default=ToolState.NEW)
    definition = models.JSONField(default=dict)
    digest = models.CharField(max_length=64)
    problem = models.TextField(blank=True)
    accepted = models.JSONField(null=True)
    accepted_digest = models.CharField(max_length=64, blank=True)
    accepted_at = models.DateTimeField(null=True)
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    changed_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "MCP tool"
        permissions = [("accept_mcptool", "Can accept an MCP server's tools")]
        constraints = [
            models.UniqueConstraint(fields=["server", "name"], name="mcp_tool_name"),
            models.CheckConstraint(condition=Q(state__in=ToolState.values), name="mcp_tool_state"),
        ]
        indexes = [models.Index(fields=["organization", "server"], name="mcp_tool_by_organization")]

    def __str__(self) -> str:
        return self.call_name

    @property
    def call_name(self) -> str:
        """`server.tool`: what calls, lists and rules say."""
        return f"{self.server.name}.{self.name}"

    def looked_at_with(self) -> dict[str, Any]:
        """What it stands for, when somebody accepts it: what is listed now, and by which server."""
        of_server = [f"server__{name}" for name in WHOM]
        return dict(McpTool.objects.values("digest", *of_server).get(pk=self.pk))

    def offered(self) -> dict[str, Any]:
        """What agents are told of it: the accepted words, or while there are none the listed ones."""
        offered: dict[str, Any] = self.accepted or self.definition
        return offered
