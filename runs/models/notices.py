"""Who was told of which approval."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from common.models import Created


class NoticeStatus(models.TextChoices):
    PENDING = "pending", "Pending"  # sending --mail server away, or whoever sent it died--> pending
    SENDING = "sending", "Sending"  # pending --claim--> sending
    SENT = "sent", "Sent"  # sending --> sent
    OBSOLETE = "obsolete", "Not needed any more"  # sending --approval decided, or not theirs--> obsolete


OPEN = (NoticeStatus.PENDING, NoticeStatus.SENDING)


class ApprovalNotice(Created):
    """Somebody is to hear that an approval waits for them.

    `due_at` is when it may be sent; while somebody sends it, when it may be sent by another: `holder` has it
    until then. `sent_at` is empty until they were written to.
    """

    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    approval = models.ForeignKey("runs.Approval", on_delete=models.CASCADE, related_name="notices")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    status = models.CharField(
        max_length=10, choices=NoticeStatus.choices, default=NoticeStatus.PENDING, db_default="pending"
    )
    due_at = models.DateTimeField(db_default=Now())
    holder = models.CharField(max_length=60, db_default="")
    sent_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["approval", "user"], name="one_notice_a_person"),
            models.CheckConstraint(
                condition=models.Q(status__in=NoticeStatus.values), name="runs_notice_status_check"
            ),
        ]
        indexes = [
            models.Index(fields=["user", "organization", "sent_at"], name="notice_by_person"),
            models.Index(fields=["due_at"], name="notice_open", condition=models.Q(status__in=OPEN)),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.approval}"
