"""The queue's table, and its lanes."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class ErrandKind(models.TextChoices):
    """Errands are tasks that wait for the network. Carriers take those of each kind from a lane of its own,
    so that no kind keeps another waiting.
    """

    WEBHOOKS = "webhooks", "Webhooks"
    MAIL = "mail", "E-mail"
    CALLS = "calls", "Calls of outside agents"
    OTHER = "other", "Embeddings, tools of MCP servers"


def lane(kind: ErrandKind) -> str:
    """The queue that holds the errands of this kind."""
    return f"{settings.Q_CLUSTER['name']}.{kind.value}"


def lanes() -> list[str]:
    """All queues of errands."""
    return [lane(kind) for kind in ErrandKind]


class QueueMessage(models.Model):
    """One message for a worker, or, in a lane of errands, for a carrier. It only says that there may be
    work; it decides nothing.

    `due_at` is when it may be taken, and while somebody has it, when it may be taken again. `holder` is
    the group of workers or the carrier that has it, empty while it waits. `run_id` and `organization_id` name
    rows without a constraint: a message may outlive them. `organization_id`, `-` for the installation's own,
    and `priority` say whose turn it is (runs/queue/turns.py). `later`: it was put to be taken after a while.
    `deaths` counts the workers or carriers that died at it.
    """

    queue = models.CharField(max_length=100)
    payload = models.TextField()
    run_id = models.CharField(max_length=31, null=True)
    organization_id = models.CharField(max_length=31, db_default="-")
    priority = models.PositiveSmallIntegerField(db_default=1)
    later = models.BooleanField(db_default=False)
    deaths = models.PositiveSmallIntegerField(db_default=0)
    due_at = models.DateTimeField(db_default=Now())
    holder = models.CharField(max_length=40, db_default="")

    class Meta:
        indexes = [
            models.Index(
                fields=["queue", "priority", "organization_id", "due_at", "id"], name="queue_in_turn"
            ),
            models.Index(fields=["queue", "due_at"], name="queue_later", condition=models.Q(later=True)),
        ]

    def __str__(self) -> str:
        return self.run_id or f"message {self.pk}"
