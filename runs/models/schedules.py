"""A schedule: a goal at a time, or again and again, in a person's name; and what became of each time."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy

from common import ids, redact
from common.models import Created


class OnMissed(models.TextChoices):
    SKIP = "skip", gettext_lazy("Leave it out")
    ONCE = "once", gettext_lazy("Run once, late")


class ScheduleState(models.TextChoices):
    ON = "on", gettext_lazy("On")
    PAUSED = "paused", gettext_lazy("Paused")
    STOPPED = "stopped", gettext_lazy("Stopped")
    OVER = "over", gettext_lazy("Over")


class Outcome(models.TextChoices):
    STARTED = "started", gettext_lazy("Started")
    MISSED = "missed", gettext_lazy("Missed")
    OVERLAPPED = "overlapped", gettext_lazy("Left out: the last run was still going")
    REFUSED = "refused", gettext_lazy("Refused")


class Schedule(Created):
    """Due once, at `at`, or by `cron` in `time_zone`; what comes after `ends_at` or `most_runs` is not due.

    `next_at` None: paused, stopped by Deputy (`stopped_because`), or over. `token`: the program that wrote it
    last, with which it ends. `outside`: the goal is not the person's own words. `budgets` says only what it
    narrows, with `seconds` for the time a run may take.
    """

    id = models.CharField(primary_key=True, max_length=ids.ID_LENGTH, default=ids.schedule_id, editable=False)
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    project = models.ForeignKey("groups.Project", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    title = models.CharField(max_length=200)
    goal = models.TextField()
    # No reference: where the group has gone, the schedule stops and does not run without it.
    group_id = models.CharField(max_length=ids.ID_LENGTH, default="", blank=True)
    at = models.DateTimeField(null=True, blank=True)
    cron = models.CharField(max_length=100, default="", blank=True)
    time_zone = models.CharField(max_length=64, default="UTC")
    ends_at = models.DateTimeField(null=True, blank=True)
    most_runs = models.PositiveIntegerField(null=True, blank=True)
    on_missed = models.CharField(max_length=10, choices=OnMissed.choices, default=OnMissed.SKIP)
    budgets = models.JSONField(default=dict, blank=True)
    outside = models.BooleanField(default=False)
    token = models.CharField(max_length=ids.ID_LENGTH, default="", blank=True)
    paused = models.BooleanField(default=False)
    stopped_because = models.CharField(max_length=500, default="", blank=True)
    started = models.PositiveIntegerField(default=0, help_text="How many runs it has started.")
    next_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["next_at"], name="schedule_due", condition=Q(next_at__isnull=False)),
            models.Index(fields=["organization", "user", "-id"], name="schedule_of_person"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=(Q(at=None) & ~Q(cron="")) | Q(at__isnull=False, cron=""),
                name="schedule_at_or_cron",
            ),
            models.CheckConstraint(condition=Q(paused=False) | Q(next_at=None), name="schedule_paused_check"),
        ]

    def __str__(self) -> str:
        return redact.shown(self.title)[:80]

    @property
    def state(self) -> ScheduleState:
        if self.paused:
            return ScheduleState.STOPPED if self.stopped_because else ScheduleState.PAUSED
        return ScheduleState.OVER if self.next_at is None else ScheduleState.ON


class ScheduledRun(Created):
    """What became of a due time. There is one row for it, so that it starts no second run.

    `times`: how many due times a row stands for that says they were missed; `due_at` is the first of them.
    """

    id = models.CharField(
        primary_key=True, max_length=ids.ID_LENGTH, default=ids.scheduled_run_id, editable=False
    )
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="history", db_index=False)
    due_at = models.DateTimeField()
    outcome = models.CharField(max_length=10, choices=Outcome.choices)
    times = models.PositiveIntegerField(default=1)
    run = models.ForeignKey("runs.Run", on_delete=models.SET_NULL, null=True, related_name="+")
    code = models.CharField(max_length=40, default="", blank=True)
    reason = models.CharField(max_length=500, default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["schedule", "due_at"], name="scheduled_run_once"),
            models.CheckConstraint(condition=Q(outcome__in=Outcome.values), name="scheduled_run_outcome"),
        ]

    def __str__(self) -> str:
        return f"{self.due_at:%Y-%m-%d %H:%M} · {self.get_outcome_display()}"
