"""Schedules: a person's own, arranged by them and by programs with their token."""

from typing import Any

from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from django.db import transaction
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.response import Response
from rest_framework.reverse import reverse

from common import cron
from common.api.arranging import note
from common.api.idempotency import KEYED, REUSED, once
from common.api.pagination import NewestFirst
from common.api.schema import documented
from common.api.views import ApiView, accepted
from groups.api.views import NO_PROJECT, project_named
from runs.actions import schedule as schedules
from runs.api import access
from runs.api.refusals import as_problems
from runs.api.schedule_serializers import (
    ScheduledRunSerializer,
    ScheduleInput,
    ScheduleSerializer,
    TimesInput,
    UpcomingSerializer,
)
from runs.models import Schedule

EXAMPLE = {
    "project": "atlas",
    "goal": "What did our competitors change since yesterday?",
    "cron": "0 9 * * 1-5",
    "time_zone": "Europe/Berlin",
    "ends_at": "2027-12-31T22:59:00Z",
    "budgets": {"steps": 10},
}
NOT_ALLOWED = {
    403: {
        "NOT_ENTITLED": "You may not start runs in this project.",
        "NOT_THE_PERSON": "The schedule says the person's own words; this token does not speak as them.",
    }
}
NO_GROUP = {"UNKNOWN_GROUP": "No such group is in this project.", "GROUP_EMPTY": "It has no members."}
CANNOT = {**NO_GROUP, "TOO_MANY_SCHEDULES": "You have a hundred schedules."}
WORDS = (
    "Only the person in a browser session, or a token with the scope `speak_as_person`, makes the goal their "
    "own words; what another token writes is text from outside, whoever changes it. A schedule that says the "
    "person's own words is changed and resumed only by who speaks as them; any token of theirs may pause and "
    "delete it."
)


class ScheduleView(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiView):
    area = "runs"
    serializer_class = ScheduleSerializer
    queryset = Schedule.objects.none()
    filter_backends = ()
    lookup_value_regex = "sch_[0-9a-z]{26}"

    def get_queryset(self) -> QuerySet[Schedule]:
        return access.schedules(self.request.actor)

    @documented("Your schedules, the newest first")
    def list(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().list(request)

    @documented("A schedule")
    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return super().retrieve(request)

    @documented(
        "Schedule a goal",
        ScheduleSerializer,
        status=201,
        request=ScheduleInput,
        parameters=[KEYED],
        refusals={**REUSED, **NO_PROJECT, **NOT_ALLOWED, 409: CANNOT},
        description=f"Once, `at` a time, or again and again by a `cron` expression. {WORDS}",
        examples=[OpenApiExample("Every working day at nine", value=EXAMPLE, request_only=True)],
    )
    def create(self, request: Any) -> Response:
        asked = self._named(accepted(ScheduleInput, request))

        def act() -> Response:
            with as_problems(), transaction.atomic():
                schedule = schedules.create(request.actor, asked)
                note(request, schedule, ADDITION)
            location = reverse("api-schedule-detail", [schedule.pk], request=request)
            return Response(self._shown(schedule.pk), status=201, headers={"Location": location})

        return once(request, act)

    @documented(
        "Change a schedule",
        ScheduleSerializer,
        request=ScheduleInput,
        refusals={**NO_PROJECT, **NOT_ALLOWED, 409: NO_GROUP},
        description=f"`at` takes the place of `cron`, and `cron` of `at`. {WORDS}",
        examples=[OpenApiExample("Later", value={"cron": "30 10 * * 1-5"}, request_only=True)],
    )
    def partial_update(self, request: Any, pk: str) -> Response:
        asked = self._named(accepted(ScheduleInput, request, partial=True))
        self._found(pk)
        with as_problems(), transaction.atomic():
            schedule = schedules.change(pk, request.actor, asked)
            note(request, schedule, CHANGE, sorted(asked))
        return Response(self._shown(pk))

    @documented("Delete a schedule; the runs it started stay", {204: None}, refusals=NOT_ALLOWED)
    def destroy(self, request: Any, pk: str) -> Response:
        schedule = self._found(pk)
        with as_problems(), transaction.atomic():
            note(request, schedule, DELETION)
            schedules.remove(pk, request.actor)
        return Response(status=204)

    @documented(
        "Pause a schedule",
        request=None,
        refusals=NOT_ALLOWED,
        description="What would be due meanwhile is left out, and not made up for.",
    )
    @action(detail=True, methods=["post"])
    def pause(self, request: Any, pk: str) -> Response:
        self._found(pk)
        with as_problems(), transaction.atomic():
            note(request, schedules.pause(pk, request.actor), CHANGE, ["paused"])
        return Response(self._shown(pk))

    @documented(
        "Resume a schedule",
        request=None,
        refusals={**NOT_ALLOWED, 409: {"SCHEDULE_OVER": "Its time is over: change when it is due."}},
        description="It goes on with its next time, also where Deputy had stopped it.",
    )
    @action(detail=True, methods=["post"])
    def resume(self, request: Any, pk: str) -> Response:
        self._found(pk)
        with as_problems(), transaction.atomic():
            note(request, schedules.resume(pk, request.actor), CHANGE, ["paused"])
        return Response(self._shown(pk))

    @documented("What became of a schedule's times, the newest first", ScheduledRunSerializer(many=True))
    @action(detail=True, pagination_class=NewestFirst)
    def history(self, request: Any, pk: str) -> Response:
        page = self.paginate_queryset(access.history(self._found(pk)))
        return self.get_paginated_response(ScheduledRunSerializer(page, many=True).data)

    @documented(
        "When something would be due",
        UpcomingSerializer,
        request=TimesInput,
        description="Nothing is kept.",
        examples=[
            OpenApiExample(
                "Half past two at night",
                value={"cron": "30 2 * * *", "time_zone": "Europe/Berlin"},
                request_only=True,
            )
        ],
    )
    @action(detail=False, methods=["post"], scope="runs:read", pagination_class=None)
    def times(self, request: Any) -> Response:
        asked = accepted(TimesInput, request)
        with as_problems():
            timing, upcoming, now = schedules.preview(asked, 5)
        shifts = cron.shifts(timing.zone, now)
        by_the_wall = not timing.cron or cron.by_the_wall(timing.cron)
        rule = "none" if not shifts else "by_the_wall" if by_the_wall else "as_it_passes"
        told = [{"at": s.at, "before": s.before.isoformat(), "after": s.after.isoformat()} for s in shifts]
        return Response(
            UpcomingSerializer({"upcoming": upcoming, "daylight_saving": rule, "shifts": told}).data
        )

    def _named(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The action's fields, with rows where the body names them. Raises Problem."""
        if "project" in asked:
            asked["project"] = project_named(self.request, asked["project"])
        if "group" in asked:
            asked["group_id"] = asked.pop("group")
        if "budgets" in asked:
            asked["budgets"] = dict(asked["budgets"])
        return asked

    def _found(self, pk: str) -> Schedule:
        schedule: Schedule = self.get_object_or_404(self.get_queryset(), pk=pk)
        return schedule

    def _shown(self, pk: str) -> Any:
        return ScheduleSerializer(self._found(pk)).data
