"""Changes that weaken what protects an organization, and wait for a second person."""

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models

from common import ids
from common.models import Created

from .changes import ChangeAction, Door
from .organizations import Organization


class ProposalState(models.TextChoices):
    OPEN = "open", "Waits for a second person"
    CONFIRMED = "confirmed", "Confirmed"
    REJECTED = "rejected", "Rejected"
    REPLACED = "replaced", "Proposed anew"


class ProposedChange(Created):
    """A change that somebody asked for and that nothing of has happened yet.

    `before` and `after` hold the columns that differ as JSON has them; of what is to be added or removed all
    of them. What is secret in them is encrypted, and shown nowhere. `row_digest`: of all columns as they
    were, so that what was looked at is what is changed. `why`: what it would weaken. Outlives what it is
    about.
    """

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.proposal_id, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+", db_index=False
    )
    by = models.CharField(max_length=150)
    via = models.CharField(max_length=10, choices=Door.choices)
    token = models.CharField(max_length=ids.ID_LENGTH, blank=True)
    action = models.CharField(max_length=10, choices=ChangeAction.choices)
    model = models.CharField(max_length=100)
    object_id = models.CharField(max_length=64)
    label = models.CharField(max_length=200)
    why = models.CharField(max_length=300)
    before = models.JSONField(default=dict, encoder=DjangoJSONEncoder)
    after = models.JSONField(default=dict, encoder=DjangoJSONEncoder)
    row_digest = models.CharField(max_length=64, blank=True, default="", db_default="")
    state = models.CharField(max_length=10, choices=ProposalState.choices, default=ProposalState.OPEN)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+", db_index=False
    )
    decided_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ("view",)
        verbose_name = "proposed change"
        indexes = [models.Index(fields=["organization", "state", "-id"], name="proposal_by_organization")]

    def __str__(self) -> str:
        return f"{self.label} {self.action}"
