"""What a person has of their conversations beside the runs: a title, when they looked, what they thought."""

from django.conf import settings
from django.db import models

from common.models import Created


class Conversation(Created):
    """A person's conversation with their agent. Its turns are the runs of `key`.

    `key` is the runs' session key, or the id of a single run that has none.
    """

    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    project = models.ForeignKey("groups.Project", on_delete=models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    key = models.CharField(max_length=200)
    title = models.CharField(max_length=200, default="", blank=True)
    seen_at = models.DateTimeField(null=True, help_text="When its person last looked at it.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "user", "project", "key"], name="conversation_unique"
            )
        ]

    def __str__(self) -> str:
        return self.title or self.key


class Rating(Created):
    """What the person a run worked for thought of its answer."""

    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    run = models.OneToOneField("runs.Run", on_delete=models.CASCADE, related_name="rating")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    good = models.BooleanField()
    note = models.TextField(default="", blank=True)

    def __str__(self) -> str:
        return f"{self.run_id}: {'good' if self.good else 'not good'}"
