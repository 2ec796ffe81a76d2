"""Schedules and what became of their times as JSON, and the bodies that are accepted."""

from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from common import cron, redact
from common.api.views import StrictSerializer, TextField
from runs.actions import schedule as schedules
from runs.actions.start import MAX_GOAL
from runs.models import OnMissed, Outcome, Schedule, ScheduledRun, ScheduleState

ON_THE_WALL = "RFC 3339; without an offset, the time the clock shows in `time_zone`."
BUDGETS = "What one of its runs may use, where that is less than runs have here."


@extend_schema_field(OpenApiTypes.DATETIME)
class MomentField(TextField):
    """A date and time, with or without an offset."""

    def to_internal_value(self, data: Any) -> datetime:  # type: ignore[override]
        try:
            found = parse_datetime(super().to_internal_value(data))
        except ValueError:
            found = None
        if found is None:
            raise serializers.ValidationError("This is no date and time: 2027-03-01T09:00.", code="invalid")
        return found


class LimitsSerializer(StrictSerializer):
    steps = serializers.IntegerField(required=False, min_value=1)
    tokens = serializers.IntegerField(required=False, min_value=1)
    depth = serializers.IntegerField(required=False, min_value=0)
    children = serializers.IntegerField(required=False, min_value=0)
    seconds = serializers.IntegerField(required=False, min_value=1)


class ScheduleSerializer(serializers.ModelSerializer):
    goal = serializers.SerializerMethodField(help_text="What is to be done, without keys.")
    project = serializers.CharField(source="project_id")
    group = serializers.CharField(source="group_id", help_text="Empty: the agent chooses.")
    outside = serializers.BooleanField(help_text="Whether the goal is not the person's own words.")
    budgets = LimitsSerializer(help_text=BUDGETS)
    state = serializers.ChoiceField(ScheduleState.choices, help_text="`stopped`: by Deputy.")
    stopped_because = serializers.CharField(help_text="Why Deputy stopped it; empty where it did not.")
    started = serializers.IntegerField(help_text="How many runs it has started.")
    upcoming = serializers.SerializerMethodField(help_text="Its next five times.")

    class Meta:
        model = Schedule
        fields = [
            *("id", "title", "goal", "outside", "project", "group", "at", "cron", "time_zone", "ends_at"),
            *("most_runs", "on_missed", "budgets", "state", "stopped_because", "started", "next_at"),
            *("upcoming", "created_at"),
        ]
        read_only_fields = fields

    def get_goal(self, schedule: Schedule) -> str:
        return redact.shown(schedule.goal)

    @extend_schema_field(serializers.ListField(child=serializers.DateTimeField()))
    def get_upcoming(self, schedule: Schedule) -> list[str]:
        return [moment.isoformat() for moment in upcoming(schedule)]


def upcoming(schedule: Schedule, count: int = 5) -> list[datetime]:
    """The next times of a schedule that is on, the very next included."""
    if schedule.next_at is None:
        return []
    left = count if schedule.most_runs is None else min(count, schedule.most_runs - schedule.started)
    try:
        return [schedule.next_at, *schedules.timing_of(schedule).several(schedule.next_at, left - 1)]
    except cron.BadZone:
        return [schedule.next_at]


class TimesInput(StrictSerializer):
    at = MomentField(required=False, allow_null=True, help_text=f"Once, then. {ON_THE_WALL}")
    cron = TextField(
        max_length=cron.LONGEST,
        required=False,
        allow_blank=True,
        help_text="Again and again: minute, hour, day of the month, month, day of the week.",
    )
    time_zone = TextField(max_length=64, help_text="Its IANA name, such as `Europe/Berlin`.")
    ends_at = MomentField(
        required=False, allow_null=True, help_text=f"Nothing is due after this. {ON_THE_WALL}"
    )


class ScheduleInput(TimesInput):
    project = TextField(max_length=63, help_text="Id or slug.")
    goal = TextField(max_length=MAX_GOAL, help_text="What is to be done each time.")
    title = TextField(max_length=schedules.MAX_TITLE, required=False, allow_blank=True)
    group = TextField(
        max_length=64,
        required=False,
        allow_null=True,
        help_text="The id of the group that is wanted for it; the agent is told to escalate to it.",
    )
    most_runs = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=2**31 - 1, help_text="How many it may start."
    )
    on_missed = serializers.ChoiceField(
        OnMissed.choices, required=False, help_text="Of a time at which Deputy was not running."
    )
    budgets = LimitsSerializer(required=False, help_text=BUDGETS)


class ShiftSerializer(serializers.Serializer):
    """The clock is changed: it goes from one time on the wall to another."""

    at = serializers.DateTimeField()
    before = serializers.CharField()
    after = serializers.CharField()


class UpcomingSerializer(serializers.Serializer):
    upcoming = serializers.ListField(child=serializers.DateTimeField(), help_text="The next five times.")
    daylight_saving = serializers.ChoiceField(
        ["by_the_wall", "as_it_passes", "none"],
        help_text="by_the_wall: what does not exist is due right after the gap, what comes twice once. "
        "as_it_passes: what does not exist is left out, what comes twice is due twice. none: the clock there "
        "is not changed in the coming year.",
    )
    shifts = ShiftSerializer(many=True, help_text="When the clock is changed in the coming year.")


class ScheduledRunSerializer(serializers.ModelSerializer):
    outcome = serializers.ChoiceField(Outcome.choices)
    run = serializers.CharField(
        source="run_id", allow_null=True, help_text="What it started, or what was still going."
    )
    run_status = serializers.CharField(source="run.status", default=None, allow_null=True)
    times = serializers.IntegerField(help_text="How many due times were missed, of which this is the first.")
    code = serializers.CharField(help_text="Why it was refused; empty where it was not.")

    class Meta:
        model = ScheduledRun
        fields = ["id", "due_at", "outcome", "run", "run_status", "times", "code", "reason", "created_at"]
        read_only_fields = fields
