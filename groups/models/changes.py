"""The record of changes to policy, people, tokens and settings."""

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models

from common import ids
from common.models import Created

from .organizations import Organization


class ChangeAction(models.TextChoices):
    ADDED = "added", "Added"
    CHANGED = "changed", "Changed"
    REMOVED = "removed", "Removed"


class Door(models.TextChoices):
    ADMIN = "admin", "The admin"
    PAGE = "page", "A person's own pages"
    API = "api", "The API"
    SYSTEM = "system", "Deputy itself, or a command on its machine"


class Change(Created):
    """One change of one thing: who made it, by which door, and the values before and after.

    `before` and `after` hold the fields that differ; of what was added or removed all of them. Secrets are
    said to differ, never shown. Written by groups/changes.py alone, and outlives what it is about.
    """

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.change_id, editable=False)
    organization = models.ForeignKey(  # None: an account that belongs to no organization
        Organization, on_delete=models.DO_NOTHING, null=True, related_name="+", db_constraint=False
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    by = models.CharField(max_length=150, blank=True)
    via = models.CharField(max_length=10, choices=Door.choices)
    token = models.CharField(max_length=ids.ID_LENGTH, blank=True)
    action = models.CharField(max_length=10, choices=ChangeAction.choices)
    model = models.CharField(max_length=100)
    object_id = models.CharField(max_length=64)
    label = models.CharField(max_length=200)
    before = models.JSONField(default=dict, encoder=DjangoJSONEncoder)
    after = models.JSONField(default=dict, encoder=DjangoJSONEncoder)

    class Meta:
        indexes = [
            models.Index(fields=["organization", "-id"], name="change_by_organization"),
            models.Index(fields=["model", "object_id"], name="change_of_object"),
        ]

    def __str__(self) -> str:
        return f"{self.label} {self.action}"
