"""A run: one agent's, or one group's, work on one goal."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from common import ids, redact, trace_context
from common.models import Created
from runs.models.choices import ACTIVE, Driver, RunKind, RunStatus, WaitKind


def in_conversation(key: str) -> Q:
    """The runs of the conversation with this key. Where it is a run's id, that run had none and began it."""
    runs = Q(session_key=key)
    return runs | Q(pk=key, session_key="") if key.startswith("run_") else runs


class Run(Created):
    """The row that is claimed and shown. The truth is its events; this repeats their sum.

    `budgets` {"steps", "tokens", "depth", "children"} and `usage` {"steps", "tokens", "children"} count;
    `attempt` is the fencing token. `roles_above` and `groups_above`: the ids of the roles and the groups that
    passed on its rights, from the root on; null for a person's own agent, and in runs of before they were
    recorded. `traceparent` names the span of the request from outside that began a tree of runs, where spans
    are exported; nothing is decided by it.
    """

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.run_id, editable=False)
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    project = models.ForeignKey(
        "groups.Project", on_delete=models.CASCADE, related_name="runs", db_index=False
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="runs", db_index=False
    )
    parent_run = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, related_name="children", db_index=False
    )
    root = models.ForeignKey("self", on_delete=models.CASCADE, related_name="+")
    depth = models.PositiveSmallIntegerField(default=0)
    kind = models.CharField(max_length=10, choices=RunKind.choices)
    driver = models.CharField(max_length=10, choices=Driver.choices, default=Driver.INTERNAL)
    group = models.ForeignKey(
        "groups.Group", on_delete=models.SET_NULL, null=True, related_name="runs", db_index=False
    )
    agent_instance = models.ForeignKey(
        "groups.AgentInstance", on_delete=models.SET_NULL, null=True, related_name="runs", db_index=False
    )
    role = models.ForeignKey(
        "groups.Role", on_delete=models.SET_NULL, null=True, related_name="+", db_index=False
    )
    session_key = models.CharField(max_length=200, default="", blank=True)
    goal = models.TextField()
    context = models.TextField(default="", blank=True)
    status = models.CharField(max_length=10, choices=RunStatus.choices, default=RunStatus.PENDING)
    waiting_reason = models.CharField(max_length=10, choices=WaitKind.choices, null=True)
    output = models.TextField(null=True)
    error = models.JSONField(null=True)
    delegated_permissions = models.JSONField(null=True)
    roles_above = models.JSONField(null=True)
    groups_above = models.JSONField(null=True)
    budgets = models.JSONField(default=dict)
    usage = models.JSONField(default=dict)
    deadline = models.DateTimeField(null=True)
    attempt = models.PositiveIntegerField(default=0)
    crashes = models.PositiveSmallIntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True)
    last_seq = models.PositiveIntegerField(default=0)
    last_digest = models.CharField(max_length=64, default="")
    queued_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    traceparent = models.CharField(max_length=trace_context.LENGTH, db_default="", blank=True)
    pruned_at = models.DateTimeField(null=True, help_text="When what it said was removed for its age.")

    class Meta:
        permissions = [
            ("start_run", "Can ask an agent"),
            ("cancel_run", "Can cancel a run"),
            ("decide_approval", "Can decide approvals"),
            ("resolve_review", "Can say what became of an interrupted call"),
        ]
        indexes = [
            models.Index(fields=["parent_run"], name="run_children", condition=Q(parent_run__isnull=False)),
            models.Index(fields=["organization", "project", "-id"], name="run_by_project"),
            models.Index(
                fields=["organization", "user", "project", "session_key", "id"],
                name="run_by_session",
                condition=~Q(session_key=""),
            ),
            models.Index(fields=["organization", "user", "-id"], name="run_of_person", condition=Q(depth=0)),
            models.Index(
                fields=["status", "lease_expires_at"],
                name="run_open",
                condition=Q(status__in=[RunStatus.PENDING, RunStatus.RUNNING]),
            ),
            models.Index(fields=["organization"], name="run_queued", condition=Q(status=RunStatus.PENDING)),
            models.Index(
                fields=["deadline"],
                name="run_external_deadline",
                condition=Q(driver=Driver.EXTERNAL, status__in=[RunStatus.RUNNING, RunStatus.WAITING]),
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(status__in=RunStatus.values), name="runs_status_check"),
            models.CheckConstraint(condition=Q(kind__in=RunKind.values), name="runs_kind_check"),
            models.CheckConstraint(condition=Q(driver__in=Driver.values), name="runs_driver_check"),
            models.CheckConstraint(
                condition=Q(status=RunStatus.WAITING, waiting_reason__in=WaitKind.values)
                | (~Q(status=RunStatus.WAITING) & Q(waiting_reason=None)),
                name="runs_waiting_reason_check",
            ),
            models.CheckConstraint(
                condition=Q(status__in=sorted(ACTIVE), ended_at=None)
                | (~Q(status__in=sorted(ACTIVE)) & Q(ended_at__isnull=False)),
                name="runs_ended_check",
            ),
        ]

    def __str__(self) -> str:
        return redact.shown(self.goal)[:80]

    @property
    def is_active(self) -> bool:
        return self.status in ACTIVE
