"""Webhooks: where programs are told what happened, and each thing they are told."""

from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy

from common import ids, limits
from common.models import Created
from common.outbound import OutboundError, check

NOT_RESOLVED = "CONNECTION"  # a name that leads nowhere today may do so tomorrow


class WebhookEvent(models.TextChoices):
    APPROVAL_REQUESTED = "approval.requested", "A call waits for a decision"
    APPROVAL_DECIDED = "approval.decided", "It was approved, rejected, or expired"
    RUN_COMPLETED = "run.completed", "A run completed"
    RUN_FAILED = "run.failed", "A run failed"
    MEMORY_DEPOSITED = "memory.deposited", "A group left knowledge behind"


TASK_UPDATED = "task.updated"  # of A2A's push notifications, which are arranged over A2A alone


class DeliveryStatus(models.TextChoices):
    PENDING = "pending", "To be sent"
    DELIVERED = "delivered", "Delivered"
    FAILED = "failed", "Given up"


class WebhookEndpoint(Created):
    """An address that is told of events, by the Standard Webhooks scheme.

    The secrets are encrypted; while `previous_until` lasts, messages carry a signature of the old one too.
    `sender` alone sends messages there, until it lets go or `sending_until`.

    One with a `run` is a push notification of A2A: it is told of this run alone, in A2A's words, with the
    headers that the client asked for (encrypted), for as long as the `token` that arranged it sees the run.
    """

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.webhook_id, editable=False)
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    project = models.ForeignKey(
        "groups.Project",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text="Only what happens there; empty: in the whole organization.",
    )
    url = models.CharField(max_length=2000)
    description = models.CharField(max_length=200, blank=True)
    events = ArrayField(models.CharField(max_length=40, choices=WebhookEvent.choices))
    enabled = models.BooleanField(default=True)
    sealed_secret = models.TextField(editable=False)
    sealed_previous = models.TextField(blank=True, editable=False)
    previous_until = models.DateTimeField(null=True, editable=False)
    failing_since = models.DateTimeField(null=True, editable=False)
    disabled_because = models.TextField(blank=True, editable=False)
    sender = models.CharField(max_length=60, db_default="", default="", blank=True, editable=False)
    sending_until = models.DateTimeField(null=True, editable=False)
    run = models.ForeignKey(
        "runs.Run", on_delete=models.CASCADE, null=True, editable=False, related_name="+", db_index=False
    )
    token = models.ForeignKey(
        "groups.Token", on_delete=models.CASCADE, null=True, editable=False, related_name="+", db_index=False
    )
    sealed_headers = models.TextField(blank=True, default="", db_default="", editable=False)

    class Meta:
        verbose_name = "webhook"
        indexes = [
            models.Index(fields=["organization"], name="webhook_on", condition=Q(enabled=True)),
            models.Index(fields=["run"], name="webhook_of_run", condition=Q(run__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.description or self.url[:80]

    def clean(self) -> None:
        """Raises ValidationError: events there are not, an address that is refused, a foreign project, one
        too many of what an organization adds.
        """
        errors: dict[str, Any] = {}
        known = {TASK_UPDATED} if self.run_id else set(WebhookEvent.values)
        if not self.events or set(self.events) - known:
            there = ", ".join(WebhookEvent.values)
            errors["events"] = f"Name some of: {there}."
        try:
            check(self.url, allow_private=frozenset(settings.WEBHOOK_ALLOW))
        except OutboundError as error:
            if error.code != NOT_RESOLVED:
                errors["url"] = f"This address is refused: {error.message}."
        if self.project and self.project.organization_id != self.organization_id:
            errors["project"] = "This belongs to another organization."
        if errors:
            raise ValidationError(errors)
        if self._state.adding and not self.run_id:
            others = WebhookEndpoint.objects.filter(organization_id=self.organization_id, run=None)
            said = gettext_lazy("There are %(most)s webhooks already: remove some first.")
            limits.room(others, settings.WEBHOOKS, said)


class WebhookDelivery(Created):
    """One message for one endpoint. Its id is the message's: the same however often it is sent.

    `history` has an entry for each attempt: {at, status, problem}.
    """

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.message_id, editable=False)
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    endpoint = models.ForeignKey(
        WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries", db_index=False
    )
    event = models.CharField(max_length=40)
    payload = models.JSONField()
    status = models.CharField(max_length=10, choices=DeliveryStatus.choices, default=DeliveryStatus.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True)
    delivered_at = models.DateTimeField(null=True)
    response_status = models.PositiveSmallIntegerField(null=True)
    problem = models.CharField(max_length=300, blank=True)
    history = models.JSONField(default=list)

    class Meta:
        verbose_name = "webhook delivery"
        verbose_name_plural = "webhook deliveries"
        constraints = [
            models.CheckConstraint(condition=Q(status__in=DeliveryStatus.values), name="webhook_status")
        ]
        indexes = [
            models.Index(fields=["endpoint", "-id"], name="webhook_delivery_log"),
            models.Index(
                fields=["next_attempt_at"], name="webhook_delivery_due", condition=Q(status="pending")
            ),
            models.Index(fields=["created_at"], name="webhook_delivery_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.id}"
