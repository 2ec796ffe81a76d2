"""What an organization takes of the database."""

from django.db import models
from django.db.models.functions import Now

from .organizations import Organization


class StorageUse(models.Model):
    """Bytes of an organization's rows with their share of the indexes, as runs/observe/storage.py finds."""

    organization = models.OneToOneField(
        Organization, on_delete=models.CASCADE, primary_key=True, related_name="storage"
    )
    size = models.BigIntegerField()
    measured_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.organization_id}: {self.size}"
