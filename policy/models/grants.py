"""Standing approvals."""

from django.conf import settings
from django.db import models

from common import ids
from common.models import Created


class Grant(Created):
    """Approves calls of a tool whose arguments match, until a time or for a number of uses."""

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.grant_id, editable=False)
    organization = models.ForeignKey("groups.Organization", on_delete=models.CASCADE, related_name="+")
    project = models.ForeignKey("groups.Project", on_delete=models.CASCADE, related_name="+")
    tool = models.CharField(max_length=64)
    arguments = models.JSONField(default=dict, help_text="Values these arguments must have, exactly.")
    reason = models.TextField(blank=True)
    granted_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    expires_at = models.DateTimeField(null=True, blank=True)
    max_uses = models.PositiveIntegerField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.tool} in {self.project}"


class GrantUse(Created):
    """One call a grant let through."""

    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    grant = models.ForeignKey(Grant, on_delete=models.CASCADE, related_name="uses")
    idempotency_key = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["grant", "idempotency_key"], name="grant_used_once_a_call")
        ]

    def __str__(self) -> str:
        return self.idempotency_key[:12]
