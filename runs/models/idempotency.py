"""Answers kept for those who have to ask twice."""

from django.conf import settings
from django.db import models

from common.models import Created


class IdempotencyRecord(Created):
    """What a request with this Idempotency-Key was answered. Written in the transaction that acted."""

    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    key = models.CharField(max_length=255)
    request_digest = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.JSONField(null=True)
    location = models.CharField(max_length=500, default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "user", "key"], name="idempotency_key_unique")
        ]
        indexes = [models.Index(fields=["created_at"], name="idempotency_by_time")]

    def __str__(self) -> str:
        return self.key
