"""The event log: what a run is."""

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q

from common import ids
from runs.models.choices import EventType

# The events that carry a decision of policy.
DECISIONS = (EventType.TOOL_CALLED, EventType.TOOL_BLOCKED, EventType.TOOL_REQUIRES_APPROVAL)


class RunEvent(models.Model):
    """One thing that happened, in the order of `seq`; never changed, chained by `digest`.

    (run, seq) is the key. `id` gives the admin one column to name an event by, and is found through a
    BRIN index, which costs an append next to nothing. The table is partitioned by the month in which the
    run began (common/months.py): ask by `run`, so that one partition is looked at. No foreign key is
    checked: whoever appends holds the run's row locked (runs/log/log.py).
    """

    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    run = models.ForeignKey(
        "runs.Run", on_delete=models.CASCADE, related_name="events", db_index=False, db_constraint=False
    )
    seq = models.PositiveIntegerField()
    type = models.CharField(max_length=30, choices=EventType.choices)
    agent = models.CharField(max_length=ids.ID_LENGTH, default="", blank=True)
    payload = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    digest = models.CharField(max_length=64)

    class Meta:
        ordering = ["run_id", "seq"]
        constraints = [
            models.UniqueConstraint(fields=["run", "seq"], name="run_event_seq"),
            models.CheckConstraint(condition=Q(type__in=EventType.values), name="run_event_type"),
        ]
        indexes = [
            BrinIndex(fields=["id"], name="run_event_id", pages_per_range=16, autosummarize=True),
            models.Index(
                fields=["organization", "created_at"],
                name="run_event_decisions",
                condition=Q(type__in=DECISIONS),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.type}"
