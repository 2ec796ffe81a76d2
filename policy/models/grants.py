"""Standing approvals."""

from django.conf import settings
from django.db import models

from common import ids
from common.models import Created


class Grant(Created):
    """Approves calls of a tool whose arguments match, until a time or for a number of uses.

    Which arguments matter is said, never implied: an empty pattern does not mean any arguments.
    """

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.grant_id, editable=False)
    organization = models.ForeignKey("groups.Organization", on_delete=models.CASCADE, related_name="+")
    project = models.ForeignKey("groups.Project", on_delete=models.CASCADE, related_name="+")
    tool = models.CharField(max_length=64)
    arguments = models.JSONField(
        default=dict, blank=True, help_text="The values these arguments must have, exactly; others are free."
    )
    any_arguments = models.BooleanField(default=False, help_text="Whatever the arguments are.")
    reason = models.TextField(blank=True)
    granted_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    expires_at = models.DateTimeField(null=True, blank=True)
    max_uses = models.PositiveIntegerField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(any_arguments=True, arguments={})
                | (models.Q(any_arguments=False) & ~models.Q(arguments={})),
                name="grant_names_arguments",
            ),
            models.CheckConstraint(
                condition=models.Q(expires_at__isnull=False) | models.Q(max_uses__isnull=False),
                name="grant_ends",
            ),
        ]

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
