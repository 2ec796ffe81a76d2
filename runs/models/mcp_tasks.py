"""Tasks that MCP servers have made of calls, while Deputy waits for them."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from common import ids
from common.models import Created
from runs.models.mcp import McpServer


class TaskState(models.TextChoices):
    WORKING = "working", "Working"  # the call waits, and the server is asked how far it is
    ASKING = "asking", "Asking"  # its run has something to do first: a form, an account
    ENDED = "ended", "Ended"  # the server has nothing more to say of it


class McpTask(Created):
    """One call that a server answered with a task (extension io.modelcontextprotocol/tasks, SEP-2663).

    As long as the row is there, the call is not made again: the task goes on. `task_id` is the server's name
    for it, which Deputy shows to nobody. `url` is the address that gave it, and the
    only one that hears it. `correlation_key` is that of the wait. `generation` says which of the queue's
    messages asks; `answered` holds the keys of forms that the server has the answers of. `answer` is what the
    run is to take next, as runs/outbound/packing.py writes it; nothing where nobody knows what became of it.
    """

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.mcp_task_id, editable=False)
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    server = models.ForeignKey(McpServer, on_delete=models.SET_NULL, null=True, related_name="tasks")
    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="+", db_index=False)
    call_id = models.CharField(max_length=64)
    url = models.CharField(max_length=2000)
    task_id = models.TextField()
    state = models.CharField(max_length=10, choices=TaskState.choices, default=TaskState.WORKING)
    correlation_key = models.CharField(max_length=200)
    generation = models.PositiveIntegerField(default=0)
    seconds = models.FloatField()  # between two questions, as the server wishes and within limits
    failures = models.PositiveIntegerField(default=0)  # in a row
    answered = ArrayField(models.CharField(max_length=200), default=list)
    answer = models.TextField(null=True)
    due_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["run", "call_id"], name="mcp_task_of_call"),
            models.CheckConstraint(condition=Q(state__in=TaskState.values), name="mcp_task_state"),
        ]
        indexes = [models.Index(fields=["due_at"], name="mcp_task_due")]

    def __str__(self) -> str:
        return self.pk
