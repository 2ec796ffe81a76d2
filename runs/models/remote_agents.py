"""Agents of others that an organization works with over A2A, and the tasks it has given them."""

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models, transaction
from django.db.models import Q

from common import ids
from common.models import Created, store_also
from common.outbound import OutboundError, check

from .accounts import NOT_RESOLVED
from .headers import WithHeaders
from .mcp import McpServer, origin

SEND = "send_message"  # `name.send_message` is the tool that asks the agent
NEVER_ACCEPTED: dict[str, Any] = {
    "accepted": None,
    "accepted_digest": "",
    "accepted_at": None,
    "accepted_by": None,
}


class CardState(models.TextChoices):
    NEW = "new", "New: to be looked at"
    ACCEPTED = "accepted", "Accepted"
    CHANGED = "changed", "Changed: suspended until somebody looks"
    UNUSABLE = "unusable", "Cannot be used"


class RemoteAgent(WithHeaders, Created):
    """Somebody else's agent, asked over A2A 1.0 at the interface that its accepted card names.

    `card` is what Deputy keeps of the card as it was last read, `accepted` the same as somebody accepted it
    (runs/tools/a2a/cards.py). The headers' values are secrets: encrypted, never shown again.
    """

    id = models.CharField(
        primary_key=True, max_length=ids.ID_LENGTH, default=ids.remote_agent_id, editable=False
    )
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    name = models.CharField(
        max_length=30,
        validators=[RegexValidator(r"^[a-z][a-z0-9_-]*\Z", "Small letters, digits, _ and -.")],
        help_text="As in the model a2a:partner of a role, and in the tool partner.send_message.",
    )
    url = models.CharField(
        "address of its card",
        max_length=2000,
        help_text="Such as https://partner.example/.well-known/agent-card.json.",
    )
    timeout_seconds = models.PositiveSmallIntegerField(
        default=30, validators=[MinValueValidator(1), MaxValueValidator(300)]
    )
    enabled = models.BooleanField(default=True)
    state = models.CharField(max_length=10, choices=CardState.choices, default=CardState.NEW, editable=False)
    card = models.JSONField(default=dict, editable=False)
    digest = models.CharField(max_length=64, blank=True, editable=False)
    accepted = models.JSONField(null=True, editable=False)
    accepted_digest = models.CharField(max_length=64, blank=True, editable=False)
    accepted_at = models.DateTimeField(null=True, editable=False)
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
    )
    checked_at = models.DateTimeField(null=True, editable=False)
    problem = models.TextField(blank=True, editable=False)

    class Meta:
        verbose_name = "remote agent"
        permissions = [
            ("refresh_remoteagent", "Can read a remote agent's card again"),
            ("accept_remoteagent", "Can accept a remote agent's card"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["organization", "name"], name="remote_agent_name"),
            models.CheckConstraint(condition=Q(state__in=CardState.values), name="remote_agent_state"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def call_name(self) -> str:
        """The name of the tool that asks it."""
        return f"{self.name}.{SEND}"

    @property
    def endpoint(self) -> str:
        """The interface that its accepted card names; empty without one."""
        return str(self.accepted["url"]) if self.accepted else ""

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store the agent. At another address it is another agent: its card has to be read and accepted
        anew; at another origin (scheme, host, port) the headers that were meant for the old one go, too.
        """
        with transaction.atomic():
            before = None
            if not self._state.adding:
                before = RemoteAgent.objects.select_for_update(no_key=True).filter(pk=self.pk).first()
            if before is not None and before.url != self.url:
                if origin(before.url) != origin(self.url) and self.sealed_headers == before.sealed_headers:
                    self.keep_headers({})  # none were given for the new address
                forgotten = {
                    **NEVER_ACCEPTED,
                    "state": CardState.NEW,
                    "card": {},
                    "digest": "",
                    "problem": "",
                }
                for name, value in forgotten.items():
                    setattr(self, name, value)
                store_also(kwargs, *forgotten, "sealed_headers", "header_names")
            super().save(*args, **kwargs)

    def looked_at_with(self) -> dict[str, Any]:
        """What is accepted, when somebody accepts it: the card that was read last."""
        return dict(RemoteAgent.objects.values("digest").get(pk=self.pk))

    def clean(self) -> None:
        """Raises ValidationError for an address Deputy will not ask, and a name that an MCP server has."""
        if McpServer.objects.filter(organization_id=self.organization_id, name=self.name).exists():
            raise ValidationError({"name": "An MCP server has this name: their tools would be called alike."})
        try:
            check(self.url, allow_private=frozenset(settings.A2A_ALLOW))
        except OutboundError as error:
            if error.code != NOT_RESOLVED:
                raise ValidationError({"url": f"This address is refused: {error.message}."}) from None


class RemoteTask(Created):
    """A task that a call has given to a remote agent and that was not over with the answer.

    `url`: the interface it was given at; `polls`: how often it was asked about, `failures`: how often in
    vain since the last answer. `ended_at`: nothing is to be done about it any more. `cancels`: how often
    Deputy has begun to cancel it, since its call is over.
    """

    id = models.CharField(
        primary_key=True, max_length=ids.ID_LENGTH, default=ids.remote_task_id, editable=False
    )
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    agent = models.ForeignKey(RemoteAgent, on_delete=models.CASCADE, related_name="tasks", db_index=False)
    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="+", db_index=False)
    call_id = models.CharField(max_length=200)
    url = models.CharField(max_length=2000)
    task_id = models.CharField(max_length=200)
    context_id = models.CharField(max_length=200, blank=True)
    state = models.CharField(max_length=40)
    polls = models.PositiveIntegerField(default=0)
    failures = models.PositiveSmallIntegerField(default=0)
    cancels = models.PositiveSmallIntegerField(default=0)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "remote task"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["run", "call_id", "task_id"], name="remote_task_of_call")
        ]
        indexes = [
            models.Index(fields=["run"], condition=Q(ended_at=None), name="remote_task_open"),
            models.Index(fields=["agent"], name="remote_task_by_agent"),
        ]

    def __str__(self) -> str:
        return self.task_id
