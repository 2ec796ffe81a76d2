"""Tasks that other agents gave over A2A."""

from django.db import models

from common.models import Created


class A2ATask(Created):
    """A run that an A2A client started, at the address of a project or of a group.

    `context_id` as the client knows it; `message_id` of the message that began it. `hops`: how many Deputies
    its task came through before this one, as the client says.
    """

    run = models.OneToOneField(
        "runs.Run", on_delete=models.CASCADE, primary_key=True, related_name="a2a_task"
    )
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    project = models.ForeignKey("groups.Project", on_delete=models.CASCADE, related_name="+", db_index=False)
    group = models.ForeignKey(
        "groups.Group", on_delete=models.CASCADE, null=True, related_name="+", db_index=False
    )
    context_id = models.CharField(max_length=200)
    message_id = models.CharField(max_length=200)
    hops = models.PositiveSmallIntegerField(default=0, db_default=0)

    class Meta:
        verbose_name = "A2A task"
        indexes = [models.Index(fields=["project", "-run"], name="a2a_task_by_project")]

    def __str__(self) -> str:
        return str(self.run_id)
