"""Requests for a person's decision."""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from common import ids
from common.models import Created
from runs.models.choices import ApprovalEffect, ApprovalStatus


class Approval(models.Model):
    """A call that stopped at the gate. Bound to the digest of exactly these arguments."""

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.approval_id, editable=False)
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="approvals")
    tool_call = models.ForeignKey("runs.ToolCall", on_delete=models.CASCADE, related_name="approvals")
    capability = models.CharField(max_length=64, blank=True)
    effect = models.CharField(max_length=20, choices=ApprovalEffect.choices)
    rule = models.CharField(max_length=200, blank=True)
    explanation = models.TextField(blank=True)
    arguments_digest = models.CharField(max_length=64)
    correlation_key = models.CharField(max_length=200)
    status = models.CharField(max_length=10, choices=ApprovalStatus.choices, default=ApprovalStatus.PENDING)
    requested_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    decided_at = models.DateTimeField(null=True)
    consumed_at = models.DateTimeField(null=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="decisions"
    )
    decided_as_human = models.BooleanField(default=False)
    reason = models.TextField(blank=True)
    edited_arguments = models.JSONField(null=True)
    replaced_arguments = models.JSONField(
        null=True,
        help_text="What would have run, where a decider changed it.",
    )
    replaces = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, related_name="replaced_by", db_index=False
    )
    deciders_needed = models.PositiveSmallIntegerField(default=1)
    deciders = models.JSONField(default=list, help_text="Lists of names, each of which deciders must be on.")
    on_expiry = models.CharField(max_length=10, default="fail_call")

    class Meta:
        indexes = [
            models.Index(fields=["organization", "status", "-id"], name="approval_by_status"),
            models.Index(fields=["expires_at"], name="approval_open_expiry", condition=Q(status="pending")),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["tool_call"], condition=Q(status="pending"), name="one_pending_approval_a_call"
            ),
            models.CheckConstraint(condition=Q(status__in=ApprovalStatus.values), name="approval_status"),
            models.CheckConstraint(condition=Q(effect__in=ApprovalEffect.values), name="approval_effect"),
        ]

    def __str__(self) -> str:
        return f"{self.tool_call} for {self.run}"

    @property
    def arguments(self) -> Any:
        """What it is about, by name: the call's arguments, or those that a decider put in their place. Of an
        approval that was replaced: those that it was about.
        """
        for arguments in (self.replaced_arguments, self.edited_arguments):
            if arguments is not None:
                return arguments
        return self.tool_call.effective_arguments


class ApprovalDecision(Created):
    """One decider's word; an approval that needs several counts those about the same arguments.

    `as_human`: a person, in a browser session that was lately confirmed.
    """

    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    approval = models.ForeignKey(Approval, on_delete=models.CASCADE, related_name="decisions")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    approved = models.BooleanField()
    as_human = models.BooleanField()
    reason = models.TextField(blank=True)
    arguments_digest = models.CharField(max_length=64)
    via = models.CharField(max_length=10, default="", db_default="", help_text="By which door it came.")
    token_id = models.CharField(max_length=ids.ID_LENGTH, null=True)
    chat = models.CharField(max_length=64, null=True)  # where it was pressed (runs/gate/chats.py)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["approval", "user", "arguments_digest"], name="one_decision_a_decider"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user}: {'approved' if self.approved else 'rejected'}"
