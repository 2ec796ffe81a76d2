"""What runs wait for."""

from django.db import models
from django.db.models import Q

from common import ids
from common.models import Created
from runs.models.choices import WaitKind, WaitOutcome


class Wait(Created):
    """One thing a run waits for, found by its correlation key. Resolved once, for good."""

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.wait_id, editable=False)
    organization = models.ForeignKey(  # the run's, whose own is checked
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="waits", db_index=False)
    kind = models.CharField(max_length=10, choices=WaitKind.choices)
    correlation_key = models.CharField(max_length=200)
    child_run = models.ForeignKey(
        "runs.Run", on_delete=models.CASCADE, null=True, related_name="waited_by", db_index=False
    )
    tool_call = models.ForeignKey(
        "runs.ToolCall", on_delete=models.CASCADE, null=True, related_name="waits", db_index=False
    )
    expires_at = models.DateTimeField(null=True)
    resolved_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=10, choices=WaitOutcome.choices, null=True)
    payload = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "correlation_key"], name="wait_correlation_key"),
            models.CheckConstraint(condition=Q(kind__in=WaitKind.values), name="wait_kind"),
            models.CheckConstraint(
                condition=Q(resolved_at=None, outcome=None)
                | Q(resolved_at__isnull=False, outcome__in=WaitOutcome.values),
                name="wait_outcome",
            ),
        ]
        indexes = [
            models.Index(fields=["expires_at"], name="wait_open_expiry", condition=Q(resolved_at=None)),
            models.Index(fields=["child_run"], name="wait_open_child", condition=Q(resolved_at=None)),
        ]

    def __str__(self) -> str:
        return self.correlation_key
