"""Who was told of which approval."""

from django.conf import settings
from django.db import models

from common.models import Created


class ApprovalNotice(Created):
    """Somebody is to hear that an approval waits for them; `sent_at` is empty until they were written to."""

    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    approval = models.ForeignKey("runs.Approval", on_delete=models.CASCADE, related_name="notices")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    sent_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["approval", "user"], name="one_notice_a_person")]
        indexes = [models.Index(fields=["user", "organization", "sent_at"], name="notice_by_person")]

    def __str__(self) -> str:
        return f"{self.user}: {self.approval}"
