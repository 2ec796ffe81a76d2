"""What a run waits for on the network, and who carries it."""

import re

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from common import ids
from common.models import Created

OPEN_AT = 5  # failures of a model in a row, after which it is asked by one call at a time


def model_of(target: str) -> str:
    """The model of an outbound call's target, without the organization whose key it is asked by."""
    return re.sub(r"^org_[^/:]*/", "", target)


class CallKind(models.TextChoices):
    MODEL = "model", "Model"
    TOOL = "tool", "Tool"


class OutboundCall(Created):
    """One question to a model, or one call of a tool that leaves the database, on its way.

    A step writes it beside its events and lets go of the run, which stays `running`. A carrier takes it
    (`holder`, `begun_at`), asks, and writes the `answer` with the message (`wake`) on which a worker takes
    the run's next step; that step removes the row. `attempt` is the run's: it fences both.

    `target` is the model or the tool, with the organization and a slash before it where the organization asks
    by its own key: what fails for one key tells nothing of another. `host` is whom it asks; `most` and
    `host_most` say how many may be under way there at once. `rank` is 0 where a person waits for it (a
    personal agent's own run) and 1 elsewhere,
    as the priority of a queue message is.
    `request` is what to ask, `receipt` what the step needs to record the answer; like the answer they are
    JSON as text, which PostgreSQL need not read. `threaded` calls need a thread of the carrier, since their
    code is not asynchronous. The call ends after `seconds`, and at `expires_at`, when its run's time is over.
    """

    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    run = models.ForeignKey(
        "runs.Run", on_delete=models.CASCADE, related_name="outbound", db_index=False, db_constraint=False
    )
    root_id = models.CharField(max_length=ids.ID_LENGTH)
    attempt = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, choices=CallKind.choices)
    call_id = models.CharField(max_length=64, default="")
    target = models.CharField(max_length=240)
    host = models.CharField(max_length=260, default="")
    rank = models.PositiveSmallIntegerField(default=1)
    threaded = models.BooleanField(default=False)
    most = models.PositiveIntegerField()
    host_most = models.PositiveIntegerField()
    request = models.TextField()
    receipt = models.TextField(default="{}")
    wake = models.TextField()
    due_at = models.DateTimeField(db_default=Now())
    seconds = models.FloatField()
    expires_at = models.DateTimeField(null=True)
    holder = models.CharField(max_length=40, db_default="")
    begun_at = models.DateTimeField(null=True)
    answer = models.TextField(null=True)
    answered_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["organization", "target", "rank", "id"],
                name="outbound_waiting",
                condition=Q(holder="", answered_at=None),
            ),
            models.Index(
                fields=["holder"], name="outbound_held", condition=~Q(holder="") & Q(answered_at=None)
            ),
            models.Index(
                fields=["answered_at"], name="outbound_answered", condition=Q(answered_at__isnull=False)
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=CallKind.values), name="outbound_kind"),
            models.UniqueConstraint(fields=["run", "attempt", "kind", "call_id"], name="outbound_once"),
        ]

    def __str__(self) -> str:
        return f"{self.target} ({self.run_id})"


class Carrier(models.Model):
    """A process that carries outbound calls. Its lease holds all that it has taken. Of no organization."""

    name = models.CharField(primary_key=True, max_length=40)
    host = models.CharField(max_length=200)
    in_flight = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())
    lease_expires_at = models.DateTimeField()
    level = models.PositiveSmallIntegerField(db_default=0)

    def __str__(self) -> str:
        return f"{self.in_flight} on {self.host}"


class OutboundTarget(models.Model):
    """A model that failed or asked for a pause: nobody is to ask it before `paused_until`. Nobody's own.

    `failures` counts calls in a row that came to nothing; from OPEN_AT on the
    circuit is open: after each pause one call goes out to see whether the model is back.
    """

    target = models.CharField(primary_key=True, max_length=240)
    failures = models.PositiveIntegerField(default=0)
    reason = models.CharField(max_length=300, default="")
    paused_until = models.DateTimeField(null=True)
    changed_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.target


class ShownWords(Created):
    """What a model's followers were shown of its words as it said them, until a message has them.

    The rows of one `reply` are joined in the order of their ids. A question that is taken back, or a carrier
    that dies, leaves words in no message. Whoever repeats an address from there has not named it
    (runs/actions/signal.py).
    """

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH)
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_constraint=False
    )
    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="shown", db_constraint=False)
    reply = models.CharField(max_length=ids.ID_LENGTH)
    text = models.TextField()

    class Meta:
        verbose_name_plural = "shown words"

    def __str__(self) -> str:
        return f"{self.run_id}: {self.text[:60]}"


class Follower(models.Model):
    """Somebody follows this tree of runs until then: its models' words are worth telling as they come."""

    root_id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH)
    until = models.DateTimeField()

    def __str__(self) -> str:
        return self.root_id
