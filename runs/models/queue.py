"""The queue's table."""

from django.db import models
from django.db.models.functions import Now


class QueueMessage(models.Model):
    """One message for a worker. It only says that there may be work; it decides nothing.

    `due_at` is when it may be taken, and while somebody has it, when it may be taken again. `holder` is
    the group of processes that has it, empty while it waits. `run_id` names a run without a constraint:
    a message may outlive it. Messages belong to the installation, not to an organization.
    """

    queue = models.CharField(max_length=100)
    payload = models.TextField()
    run_id = models.CharField(max_length=31, null=True)
    due_at = models.DateTimeField(db_default=Now())
    holder = models.CharField(max_length=40, db_default="")

    class Meta:
        indexes = [models.Index(fields=["queue", "due_at", "id"], name="queue_in_order")]

    def __str__(self) -> str:
        return self.run_id or f"message {self.pk}"
