"""Who is told what, by which channel, and what watches an approval until somebody has decided it."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from common import ids, sealed
from common.models import Created


class ChannelKind(models.TextChoices):
    """What Deputy brings. Packages may add others, each under a name of its own (docs/extending.md)."""

    EMAIL = "email", "E-mail"
    CHAT = "chat", "Chat or phone, by an address of the apprise library"
    SLACK = "slack", "Slack, with buttons"
    PUSH = "push", "A browser"


class Topic(models.TextChoices):
    APPROVALS = "approvals", "Approvals that wait for a decision"
    ALARMS = "alarms", "Approvals that nobody hears of"
    OWN = "own", "What becomes of one's own runs"


def usual_topics() -> list[str]:
    return [Topic.APPROVALS.value, Topic.ALARMS.value]


class Channel(Created):
    """A way to reach one person, or with an empty `user` a place where an organization is told.

    `sealed_address` is encrypted: addresses of chats are secrets. `shown` is what may be seen of it, and
    `kept_by` who entered an organization's, and so knows it. An
    e-mail channel without an address writes to its user's own. `failing_since`: empty while messages arrive.
    `language` is for an organization's places: people are written to in the language they read in.
    """

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.channel_id, editable=False)
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    project = models.ForeignKey(
        "groups.Project",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text="Only what happens there; empty: in the whole organization.",
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, editable=False, related_name="+"
    )
    kind = models.CharField(max_length=40)
    name = models.CharField(max_length=100, blank=True)
    sealed_address = models.TextField(blank=True, editable=False)
    shown = models.CharField(max_length=200, blank=True, editable=False)
    kept_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
        db_index=False,
    )
    language = models.CharField(
        max_length=10,
        choices=settings.LANGUAGES,
        blank=True,
        default="",
        db_default="",
        help_text="Of its messages; empty: the installation's.",
    )
    topics = ArrayField(models.CharField(max_length=20, choices=Topic.choices), default=usual_topics)
    enabled = models.BooleanField(default=True)
    failing_since = models.DateTimeField(null=True, editable=False)
    problem = models.CharField(max_length=300, blank=True, editable=False)
    told_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "user"],
                condition=Q(kind="email") & ~Q(user=None),
                name="one_email_channel_a_person",
            )
        ]
        indexes = [models.Index(fields=["organization", "user"], name="channel_of_person")]

    def __str__(self) -> str:
        return self.name or self.shown or self.kind

    @property
    def address(self) -> str:
        """Where it leads. Raises sealed.Unreadable."""
        return sealed.unseal(self.sealed_address) if self.sealed_address else ""

    def keep_address(self, address: str, shown: str) -> None:
        """Encrypt the address; `shown` names no secret."""
        self.sealed_address, self.shown = sealed.seal(address), shown[:200]


class NoticeStatus(models.TextChoices):
    PENDING = "pending", "Pending"  # sending --channel away, or whoever sent it died--> pending
    SENDING = "sending", "Sending"  # pending --claim--> sending
    SENT = "sent", "Sent"  # sending --> sent
    OBSOLETE = "obsolete", "Not needed any more"  # sending --approval decided, or not theirs--> obsolete


class NoticeKind(models.TextChoices):
    ASKED = "asked", "A decision is wanted"
    REMINDER = "reminder", "Still undecided, after a quarter of the time"
    LAST_CALL = "last_call", "Still undecided, after three quarters of the time"
    ESCALATED = "escalated", "Nobody has decided it: to administrators"
    ALARM = "alarm", "Nobody hears of it"
    WAITING = "waiting", "One's own run waits for a decision"
    DECIDED = "decided", "A call of one's own run was decided"
    ENDED = "ended", "One's own run has ended"


TO_DECIDERS = (NoticeKind.ASKED, NoticeKind.REMINDER, NoticeKind.LAST_CALL)

OPEN = (NoticeStatus.PENDING, NoticeStatus.SENDING)


class ApprovalNotice(Created):
    """One channel is to tell of one thing: once, however often it is asked for.

    `due_at` is when it may be sent; while somebody sends it, when it may be sent by another: `holder` has it
    until then. `sent_at` is empty until it was told. `link_used_at`: when a link in it was opened.
    """

    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    approval = models.ForeignKey("runs.Approval", on_delete=models.CASCADE, null=True, related_name="notices")
    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, null=True, related_name="+", db_index=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+", db_index=False
    )
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, null=True, related_name="notices")
    kind = models.CharField(max_length=10, choices=NoticeKind.choices, default="asked", db_default="asked")
    status = models.CharField(
        max_length=10, choices=NoticeStatus.choices, default=NoticeStatus.PENDING, db_default="pending"
    )
    due_at = models.DateTimeField(db_default=Now())
    holder = models.CharField(max_length=60, db_default="")
    attempts = models.PositiveIntegerField(db_default=0)
    sent_at = models.DateTimeField(null=True)
    link_used_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["channel", "kind", "approval"],
                condition=~Q(approval=None),
                name="one_notice_a_channel",
            ),
            models.UniqueConstraint(
                fields=["channel", "kind", "run"], condition=Q(approval=None), name="one_notice_of_a_run"
            ),
            models.CheckConstraint(
                condition=models.Q(status__in=NoticeStatus.values), name="runs_notice_status_check"
            ),
            models.CheckConstraint(condition=Q(kind__in=NoticeKind.values), name="notice_kind"),
        ]
        indexes = [
            models.Index(fields=["channel", "sent_at"], name="notice_by_channel"),
            models.Index(fields=["due_at"], name="notice_open", condition=models.Q(status__in=OPEN)),
        ]

    def __str__(self) -> str:
        return f"{self.channel or self.user}: {self.approval or self.run}"


class Alarm(models.TextChoices):
    """Why nobody may come to decide an approval."""

    NOBODY = "nobody", "Nobody may decide it"
    NO_CHANNEL = "no_channel", "Nobody who may decide it can be reached"
    UNHEARD = "unheard", "No message about it has arrived"
    OVERDUE = "overdue", "It has been waiting too long"


class ApprovalWatch(models.Model):
    """Written with the approval, so that whoever asks is heard also when everything stops right after.

    `look_at`: when somebody has to see to it again. `stage`: how many of the named, in order, were told.
    `reminded`: how many reminders. Gone once the approval is decided.
    """

    approval = models.OneToOneField(
        "runs.Approval", on_delete=models.CASCADE, primary_key=True, related_name="watch"
    )
    organization = models.ForeignKey("groups.Organization", on_delete=models.CASCADE, related_name="+")
    look_at = models.DateTimeField(db_default=Now())
    stage = models.PositiveSmallIntegerField(db_default=0)
    reminded = models.PositiveSmallIntegerField(db_default=0)
    alarm = models.CharField(max_length=10, choices=Alarm.choices, blank=True, default="", db_default="")
    alarm_since = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(alarm__in=["", *Alarm.values]), name="watch_alarm")]
        indexes = [
            models.Index(F("look_at"), name="watch_due"),
            models.Index(fields=["organization"], name="watch_alarms", condition=~Q(alarm="")),
        ]

    def __str__(self) -> str:
        return f"{self.approval_id} {self.alarm}"


class InstallationKey(models.Model):
    """A key that the installation made for itself and keeps, encrypted."""

    name = models.CharField(primary_key=True, max_length=40)
    sealed = models.TextField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.name


class ChatAccount(Created):
    """Whose account of a chat is whose here: linked by the person, who typed a code of their page there."""

    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="accounts")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    account = models.CharField(max_length=100)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["channel", "account"], name="one_person_a_chat_account"),
            models.UniqueConstraint(fields=["channel", "user"], name="one_chat_account_a_person"),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.account}"
