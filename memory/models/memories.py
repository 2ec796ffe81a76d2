"""Memories: what a person's agent, a group or a project remembers."""

from typing import Any

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from common import ids, redact
from common.models import Created
from groups.current import membership_of
from groups.models import Project
from memory.models.columns import LengthField, ScopeKey, TermVectorField
from memory.scope import Scope
from memory.substance import title


class MemoryType(models.TextChoices):
    CORE = "core", "Core"  # preferences, and what a group's blackboard concludes
    EPISODIC = "episodic", "Episodic"  # what happened
    ARCHIVAL = "archival", "Archival"  # knowledge of the project or the organization


class MemoryStatus(models.TextChoices):
    ACTIVE = "active", "Active"
    PENDING_REVIEW = "pending_review", "Waits for review"  # a deposit where the project asks for review
    RETRACTED = "retracted", "Retracted"  # a person took it back; may be restored
    SUPERSEDED = "superseded", "Superseded"  # superseded_by says by which memory; may be restored


IN_GROUP = Q(project__isnull=False, user=None, agent_instance=None)
PREFERENCE = Q(metadata__contains={"pa_preference": True})


class MemoryQuerySet(models.QuerySet["Memory"]):
    def from_run(self, run_id: str) -> "MemoryQuerySet":
        """What the run left behind, and what its duplicates joined."""
        joined = Q(metadata__has_key="sources") & Q(
            metadata__contains={"sources": [{"source_run_id": run_id}]}
        )
        return self.filter(Q(source_run_id=run_id) | joined)

    def visible_to(self, user: Any) -> "MemoryQuerySet":
        """The shared memories of the user's current organization and projects there, and the user's own."""
        if user.is_superuser:
            return self
        membership = membership_of(user)
        if membership is None:
            return self.none()
        where = Q(organization=membership.organization_id)
        if membership.projects is not None:
            where &= Q(project=None) | Q(project__in=membership.projects)
        return self.filter(where & (Q(user=None) | Q(user=user.pk)))

    def may_see(self, user: Any, project: Project) -> bool:
        """Whether the user's boundary includes a project."""
        if user.is_superuser:
            return True
        membership = membership_of(user)
        if membership is None or membership.organization_id != project.organization_id:
            return False
        return membership.sees_project(project.id)


class Memory(Created):
    """One thing known, in exactly one scope; the columns that do not apply are null.

    Only active memories are found. `source_run_id` and `original` say where a memory came from: for a
    deposit the group run, and the memory (or `output`) in it.
    """

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.memory_id, editable=False)
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
    )
    project = models.ForeignKey(
        "groups.Project",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        db_constraint=False,  # migration 0002 has a stricter one: (organization, project)
    )
    group = models.ForeignKey(
        "groups.Group", on_delete=models.CASCADE, null=True, blank=True, related_name="+", db_index=False
    )
    agent_instance = models.ForeignKey(
        "groups.AgentInstance",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
    )
    type = models.CharField(max_length=10, choices=MemoryType.choices)
    content = models.TextField()
    metadata = models.JSONField(default=dict, blank=True)
    importance = models.FloatField(
        default=0.5,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
        help_text="0 to 1; decides between memories that match equally well.",
    )
    status = models.CharField(max_length=15, choices=MemoryStatus.choices, default=MemoryStatus.ACTIVE)
    superseded_by = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="supersedes", editable=False
    )
    source_run_id = models.CharField(max_length=ids.ID_LENGTH, null=True, blank=True, editable=False)
    original = models.CharField(max_length=64, null=True, blank=True, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    scope_key = models.GeneratedField(expression=ScopeKey(), output_field=models.UUIDField(), db_persist=True)
    search_vector = TermVectorField(editable=False)
    length = LengthField(default=0, editable=False)

    objects = MemoryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "memories"
        permissions = [("curate_memory", "Can approve, retract, merge and promote knowledge")]
        indexes = [
            # and memory_search, migration 0002: the terms, each in its scope
            models.Index(fields=["organization", "project", "-id"], name="memory_by_project"),
            # not of the active ones alone: planned for an empty table, searches would read it from end to end
            models.Index(fields=["scope_key", "id"], include=["status"], name="memory_beside"),
            models.Index(
                fields=["source_run_id"], name="memory_by_run", condition=Q(source_run_id__isnull=False)
            ),
            models.Index(
                fields=["expires_at"], name="memory_expiring", condition=Q(expires_at__isnull=False)
            ),
            GinIndex(fields=["metadata"], name="memory_by_source", condition=Q(metadata__has_key="sources")),
            models.Index(fields=["user"], name="memory_of_user", condition=Q(user__isnull=False)),
            models.Index(fields=["group"], name="memory_of_group", condition=Q(group__isnull=False)),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(type__in=MemoryType.values), name="memory_type"),
            models.CheckConstraint(condition=Q(status__in=MemoryStatus.values), name="memory_status"),
            models.CheckConstraint(
                condition=Q(importance__gte=0, importance__lte=1), name="memory_importance"
            ),
            models.CheckConstraint(condition=~Q(content=""), name="memory_content"),
            models.CheckConstraint(
                condition=~Q(type=MemoryType.ARCHIVAL) | Q(user=None, group=None, agent_instance=None),
                name="memory_archival_is_shared",
            ),
            models.CheckConstraint(condition=Q(group=None) | IN_GROUP, name="memory_group_scope"),
            models.CheckConstraint(
                condition=~PREFERENCE
                | Q(
                    type=MemoryType.CORE,
                    user__isnull=False,
                    agent_instance__isnull=False,
                    project=None,
                    group=None,
                ),
                name="memory_preference_scope",
            ),
            models.UniqueConstraint(
                fields=["source_run_id", "original"],
                condition=Q(original__isnull=False),
                name="memory_deposited_once",
            ),
        ]

    def __str__(self) -> str:
        return self.title[:80]

    @property
    def title(self) -> str:
        """What a list of memories shows: the first sentence, without the deposit's labels and keys."""
        return title(redact.shown(self.content))

    @property
    def scope(self) -> Scope:
        return Scope(
            self.organization_id, self.user_id, self.project_id, self.group_id, self.agent_instance_id
        )

    @property
    def sources(self) -> list[dict[str, Any]]:
        """The lineage of the duplicates that joined this memory."""
        return list(self.metadata.get("sources", []))


class KnowledgeManager(models.Manager.from_queryset(MemoryQuerySet)):  # type: ignore[misc]
    def get_queryset(self) -> MemoryQuerySet:
        found: MemoryQuerySet = super().get_queryset().filter(type=MemoryType.ARCHIVAL)
        return found


class DepositedKnowledge(Memory):
    """What projects and organizations know, for its own page in the admin."""

    objects = KnowledgeManager()  # type: ignore[misc]

    class Meta:
        proxy = True
        verbose_name = verbose_name_plural = "Deposited knowledge"


class RememberedManager(models.Manager.from_queryset(MemoryQuerySet)):  # type: ignore[misc]
    def get_queryset(self) -> MemoryQuerySet:
        found: MemoryQuerySet = super().get_queryset().exclude(type=MemoryType.ARCHIVAL)
        return found


class Remembered(Memory):
    """What agents keep of people and their work: preferences, tasks, blackboards. Not knowledge."""

    objects = RememberedManager()  # type: ignore[misc]

    class Meta:
        proxy = True
        verbose_name = "memory"
        verbose_name_plural = "What agents remember"


class MemoryRevision(Created):
    """What a memory was before a person changed it."""

    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="revisions")
    action = models.CharField(max_length=20)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    before = models.JSONField(help_text="The fields that changed, as they were.")

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.action} {self.memory_id}"
