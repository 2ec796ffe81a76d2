"""Working memory as stored: a view, its segments, and the pages of each (seed 002)."""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from common import ids
from common.models import Created


class SegmentType(models.TextChoices):
    SYSTEM = "system", "System"  # its root is always expanded, its pages are never folded for space
    USER = "user", "User"
    TOOL = "tool", "Tool"
    CUSTOM = "custom", "Custom"


class SegmentPermission(models.TextChoices):
    READ_ONLY = "read_only", "Read only"
    READ_WRITE = "read_write", "Read and write"
    SYSTEM_MANAGED = "system_managed", "Managed by the system"


class PageKind(models.TextChoices):
    CONTENTS = "contents", "Contents"
    DETAIL = "detail", "Detail"


class Visibility(models.TextChoices):
    EXPANDED = "expanded", "Expanded"
    HIDDEN = "hidden", "Hidden"


def view_id() -> str:
    return ids.new_id("ctx")


def row_id() -> uuid.UUID:
    """A key known before the row is written, so that a whole tree is one INSERT."""
    return uuid.UUID(int=ids.uuid7())


class ContextView(Created):
    """What one agent sees. `owner` is a run, or an agent that keeps its view through a session.

    Runs are above memory, so `owner` is an unconstrained id. `version` counts the changes; its row is
    the lock every change takes first. `retired` are the segments removed: their indexes never return.
    """

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=view_id, editable=False)
    organization = models.ForeignKey("groups.Organization", on_delete=models.CASCADE, related_name="+")
    project = models.ForeignKey("groups.Project", on_delete=models.CASCADE, related_name="+", db_index=False)
    owner = models.CharField(max_length=ids.ID_LENGTH)
    session_key = models.CharField(max_length=200, default="", blank=True)
    version = models.PositiveIntegerField(default=0)
    retired = ArrayField(models.CharField(max_length=32), default=list, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "project", "session_key"], name="context_view_unique")
        ]

    def __str__(self) -> str:
        return f"{self.owner} {self.session_key}".strip()


class Segment(models.Model):
    """A tree with one permission. `next_index` only grows: an index is never given twice."""

    id = models.UUIDField(primary_key=True, default=row_id, editable=False)
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    view = models.ForeignKey(ContextView, on_delete=models.CASCADE, related_name="segments", db_index=False)
    segment_id = models.CharField(max_length=32)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    type = models.CharField(max_length=10, choices=SegmentType.choices)
    permission = models.CharField(max_length=20, choices=SegmentPermission.choices)
    position = models.PositiveIntegerField(default=0)
    next_index = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["view", "segment_id"], name="context_segment_unique"),
            models.CheckConstraint(condition=Q(type__in=SegmentType.values), name="context_segment_type"),
            models.CheckConstraint(
                condition=Q(permission__in=SegmentPermission.values), name="context_segment_permission"
            ),
        ]

    def __str__(self) -> str:
        return self.segment_id

    @property
    def root_index(self) -> str:
        return f"{self.segment_id}-0"


class Page(models.Model):
    """A leaf with a text, or a list of pages. `index` is `{segment}-{n}`, the root's n is 0.

    `position` is not indexed: moving a page among its siblings then rewrites no index. `child_count`
    says what a folded page holds without looking. `source` is what Deputy finds its own pages by
    (a run's goal, a call's result), wherever the agent has moved them.
    """

    id = models.UUIDField(primary_key=True, default=row_id, editable=False)
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    view = models.ForeignKey(ContextView, on_delete=models.CASCADE, related_name="pages", db_index=False)
    segment = models.ForeignKey(Segment, on_delete=models.CASCADE, related_name="pages", db_index=False)
    index = models.CharField(max_length=44)
    kind = models.CharField(max_length=10, choices=PageKind.choices)
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="children")
    position = models.PositiveIntegerField(default=0)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    detail = models.TextField(blank=True)
    visibility = models.CharField(max_length=10, choices=Visibility.choices, default=Visibility.EXPANDED)
    opened_at = models.PositiveIntegerField(default=0, help_text="The view's version when last opened.")
    child_count = models.PositiveIntegerField(default=0)
    source = models.CharField(max_length=200, default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["view", "index"], name="context_page_index"),
            models.UniqueConstraint(
                fields=["segment"], condition=Q(parent=None), name="context_page_one_root"
            ),
            models.UniqueConstraint(
                fields=["view", "source"], condition=~Q(source=""), name="context_page_source"
            ),
            models.CheckConstraint(condition=Q(kind__in=PageKind.values), name="context_page_kind"),
            models.CheckConstraint(
                condition=Q(visibility__in=Visibility.values), name="context_page_visibility"
            ),
            models.CheckConstraint(
                condition=Q(kind=PageKind.DETAIL, parent__isnull=False, child_count=0)
                | Q(kind=PageKind.CONTENTS, detail=""),
                name="context_page_shape",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.index} {self.name}"
