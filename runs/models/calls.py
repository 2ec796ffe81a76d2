"""What became of each tool call."""

from django.db import models
from django.db.models import Q

from common import ids, trace_context
from common.models import Created
from runs.models.choices import CallStatus


class ToolCall(Created):
    """One call a model, or an outside agent, asked for, and what became of it.

    `call_id` is `{message seq}.{ordinal}` for runs that Deputy drives. `request_digest` is of the
    original arguments and never changes; `idempotency_key` is of the effective ones.

    A call of an outside agent is claimed by itself: `attempt` counts the claims and fences,
    `lease_expires_at` is set while a worker has it, `queued_at` while it waits for one. `traceparent` names
    the span of the request that brought it, where spans are exported; nothing is decided by it.
    """

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.call_id, editable=False)
    organization = models.ForeignKey(  # the run's, whose own is checked
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="calls", db_index=False)
    call_id = models.CharField(max_length=64)
    agent = models.CharField(max_length=ids.ID_LENGTH, default="", blank=True)
    seat = models.CharField(max_length=ids.ID_LENGTH, db_default="", blank=True)  # in its group
    role_id = models.CharField(max_length=ids.ID_LENGTH, db_default="", blank=True)  # whose rights it used
    tool = models.CharField(max_length=64)
    arguments = models.JSONField(default=dict)
    effective_arguments = models.JSONField(default=dict)
    request_digest = models.CharField(max_length=64)
    idempotency_key = models.CharField(max_length=64)  # a digest of the run, the call and its arguments
    status = models.CharField(max_length=10, choices=CallStatus.choices, default=CallStatus.REQUESTED)
    attempt = models.PositiveIntegerField(default=0)
    result = models.JSONField(null=True)
    error = models.JSONField(null=True)
    evidence = models.JSONField(null=True)
    ended_at = models.DateTimeField(null=True)
    lease_expires_at = models.DateTimeField(null=True)
    queued_at = models.DateTimeField(null=True)
    traceparent = models.CharField(max_length=trace_context.LENGTH, db_default="", blank=True)
    told_at = models.DateTimeField(null=True)  # when an MCP client was first told how it ended

    class Meta:
        indexes = [
            models.Index(
                fields=["lease_expires_at"], name="call_leased", condition=Q(lease_expires_at__isnull=False)
            ),
            models.Index(fields=["queued_at"], name="call_queued", condition=Q(queued_at__isnull=False)),
        ]
        constraints = [
            models.UniqueConstraint(fields=["run", "call_id"], name="tool_call_unique"),
            models.CheckConstraint(condition=Q(status__in=CallStatus.values), name="tool_call_status"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} ({self.call_id})"
