"""What the installation knows of itself. These rows belong to no organization."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

# What workers and carriers of this release understand of what others hand them (docs/operating.md, Upgrades):
# 0 nothing that came after the first release; 1 tasks that MCP servers make of calls.
TASKS_OF_SERVERS = 1
LEVEL = TASKS_OF_SERVERS


class WorkerGroup(models.Model):
    """A group of workers, which says every few seconds that it lives. Gone when it stops in order."""

    name = models.CharField(primary_key=True, max_length=40)
    host = models.CharField(max_length=200)
    workers = models.PositiveSmallIntegerField()
    busy = models.PositiveSmallIntegerField()
    started_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())
    level = models.PositiveSmallIntegerField(db_default=0)

    def __str__(self) -> str:
        return f"{self.workers} on {self.host}"


class EventCount(models.Model):
    """A count of events, by name and labels, that only grows. `manage.py prune` does not lessen it."""

    name = models.CharField(max_length=40)
    labels = ArrayField(models.TextField(), default=list)
    value = models.FloatField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "labels"], name="event_count_unique")]

    def __str__(self) -> str:
        return f"{self.name} {self.labels}"


class EventCountCursor(models.Model):
    """How far the log has been counted: up to `done`. Up to `next` it is known to be whole as soon as
    no transaction is open that began before `next_at`.
    """

    done = models.BigIntegerField()
    next = models.BigIntegerField()
    next_at = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.done)


class GoneMonth(models.Model):
    """A month of the log that was removed (runs/actions/prune_months.py): the events of all runs whose ids
    are at least `since` and below `until`. `detached`: its table, `name`, was left in the database.
    """

    name = models.CharField(primary_key=True, max_length=63)
    since = models.CharField(max_length=31, blank=True)
    until = models.CharField(max_length=31)
    gone_at = models.DateTimeField()
    runs = models.PositiveIntegerField()
    detached = models.BooleanField()

    def __str__(self) -> str:
        return self.name


class DatabaseLine(models.Model):
    """Which PostgreSQL this is: the server's system identifier and its timeline (common/postgres/lineage.py).

    One row. Where the server says otherwise, the database has been restored or a standby has taken over.
    """

    id = models.SmallIntegerField(primary_key=True)
    system = models.CharField(max_length=20)
    timeline = models.CharField(max_length=8)
    noted_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.system} {self.timeline}"
