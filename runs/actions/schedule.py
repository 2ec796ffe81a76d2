"""Schedules: make one, change it, pause it, let it go on, delete it. Each person arranges their own alone.

The goal counts as the person's own words only where they wrote it at a door at which they speak as
themselves. Such a schedule is changed, and put on again, at such a door only: nothing else makes a person say
something else, or at another time. It can be paused and deleted at any.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction

from common import cron, redact
from common.canonical import digest
from common.db import row
from groups.actors import Actor
from groups.models import Project
from policy.authority import About, NotAllowed, Verb, can, may
from runs.actions.start import CannotStart, check_text, default_budgets, wanted_group
from runs.models import OnMissed, Schedule

MOST_SCHEDULES = 100  # of one person in an organization
MAX_TITLE = 200
LATE = timedelta(minutes=5)  # by which a due time may be taken later and is not missed
EARLIEST, LATEST = 2000, 2999  # years, between which every time zone can be computed
ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('deputy.schedules ' || %s, %s))"
NOW = "SELECT clock_timestamp()"
FIELDS = (
    *("title", "goal", "project", "group_id", "at", "cron", "time_zone", "ends_at", "most_runs"),
    *("on_missed", "budgets"),
)
TIMES = {"at", "cron", "time_zone", "ends_at"}


class CannotSchedule(CannotStart):
    """This schedule cannot be; `code` is stable, the message says what to do."""


class Timing(NamedTuple):
    """When something is due: once, or again and again, and until when."""

    at: datetime | None
    cron: str
    zone: ZoneInfo
    ends_at: datetime | None

    def after(self, moment: datetime) -> datetime | None:
        """The first time after the moment, if there is any."""
        return next(self.all_after(moment), None)

    def several(self, moment: datetime, most: int) -> list[datetime]:
        """The first so many times after the moment."""
        return list(islice(self.all_after(moment), most))

    def all_after(self, moment: datetime) -> Iterator[datetime]:
        """Each time after the moment, found as it is asked for: some expressions are due once in years."""
        if self.at is not None:
            times = iter([self.at] if self.at > moment else [])
        else:
            times = cron.upcoming(self.cron, self.zone, moment)
        return takewhile(lambda found: self.ends_at is None or found <= self.ends_at, times)


def now() -> datetime:
    """By the database's clock."""
    found: datetime = row(NOW)[0]
    return found


def timing(said: Mapping[str, Any], moment: datetime) -> Timing:
    """When the fields `at`, `cron`, `time_zone` and `ends_at` mean it to be due. A time without a zone is one
    on the wall there. Raises CannotSchedule: BAD_ZONE, BAD_CRON, WHEN_MISSING.
    """
    expression, at = str(said.get("cron") or "").strip(), said.get("at")
    try:
        zone = cron.zone(str(said.get("time_zone") or ""))
    except cron.BadZone:
        raise CannotSchedule(
            "BAD_ZONE", "There is no such time zone: take a name such as Europe/Berlin."
        ) from None
    if (at is None) == (not expression):
        raise CannotSchedule("WHEN_MISSING", "Say when: either one time or a cron expression.")
    if expression:
        try:
            expression = cron.checked(expression, zone, moment)
        except cron.BadCron:
            raise CannotSchedule(
                "BAD_CRON",
                "This cron expression cannot be read or is never due: it takes minute, hour, day of the "
                "month, month and day of the week, such as 0 9 * * 1-5.",
            ) from None
    return Timing(_instant(at, zone), expression, zone, _instant(said.get("ends_at"), zone))


def _instant(wall: datetime | None, zone: ZoneInfo) -> datetime | None:
    if wall is None:
        return None
    if not EARLIEST <= wall.year <= LATEST:
        raise CannotSchedule("BAD_TIME", "This time is too far away.")
    return cron.instant(wall, zone)


def timing_of(schedule: Schedule) -> Timing:
    """Raises BadZone where the installation's list of time zones has lost this one."""
    return Timing(schedule.at, schedule.cron, cron.zone(schedule.time_zone), schedule.ends_at)


def next_time(schedule: Schedule, after: datetime) -> datetime | None:
    """When it is due next, unless it is over."""
    if schedule.most_runs is not None and schedule.started >= schedule.most_runs:
        return None
    return timing_of(schedule).after(after)


def create(actor: Actor, said: Mapping[str, Any]) -> Schedule:
    """A new schedule of the actor's, of these FIELDS.

    Raises NotAllowed, and CannotStart: as `start` does about the goal and the group, as `timing` does, and
    AT_IS_PAST, NEVER_DUE, BAD_BUDGET, BAD_NUMBER, TITLE_TOO_LONG, TOO_MANY_SCHEDULES.
    """
    project: Project = said["project"]
    with transaction.atomic():
        row(ONE_AT_A_TIME, [project.organization_id, actor.user_id or 0])
        may(actor, Verb.SCHEDULE, About(project.organization_id, project.pk, actor.user_id))
        mine = Schedule.objects.filter(organization_id=project.organization_id, user=actor.user)
        if mine.count() >= MOST_SCHEDULES:
            raise CannotSchedule("TOO_MANY_SCHEDULES", "You have as many schedules as fit: delete one first.")
        schedule = Schedule(organization_id=project.organization_id, user=actor.user, time_zone="UTC")
        _take(schedule, {"goal": "", "group_id": "", **said}, actor, now())
        schedule.outside = not can(actor, Verb.SPEAK_AS_PERSON, schedule)
        schedule.save()
    return schedule


def change(schedule_id: str, actor: Actor, said: Mapping[str, Any], seen: str | None = None) -> Schedule:
    """The schedule with other values in these FIELDS. `seen`: the mark of the goal that a form has shown.

    Raises Schedule.DoesNotExist, NotAllowed and CannotStart as `create` does, MASKED_GOAL and CHANGED.
    """
    with transaction.atomic():
        schedule = _locked(schedule_id)
        _may_arrange(schedule, actor)
        goal = schedule.goal
        if seen not in (None, mark(goal)):  # else a form that repeats it would count as having said it
            raise CannotSchedule("CHANGED", "The goal was changed meanwhile: look at it once more.")
        if "goal" in said:
            said = {**said, "goal": _kept(said["goal"], goal)}
        _take(schedule, said, actor, now())
        if schedule.goal.split() == goal.split():  # a form merely repeats it, with line ends of its own
            schedule.goal = goal
        else:  # who changes some words of somebody else's goal has not said the others
            schedule.outside = schedule.outside or not can(actor, Verb.SPEAK_AS_PERSON, schedule)
        schedule.save()
    return schedule


def mark(goal: str) -> str:
    """By which a form says which goal it has shown."""
    return digest(goal)


def pause(schedule_id: str, actor: Actor) -> Schedule:
    """It starts nothing until it is resumed. Raises Schedule.DoesNotExist, NotAllowed."""
    with transaction.atomic():
        schedule = _locked(schedule_id)
        may(actor, Verb.UNSCHEDULE, schedule)
        if not schedule.paused:
            schedule.paused, schedule.next_at = True, None
            schedule.save()
    return schedule


def resume(schedule_id: str, actor: Actor) -> Schedule:
    """It goes on with its next time; what would have been due meanwhile is left out.

    Raises Schedule.DoesNotExist, NotAllowed, and CannotSchedule: SCHEDULE_OVER, BAD_ZONE.
    """
    with transaction.atomic():
        schedule = _locked(schedule_id)
        _may_arrange(schedule, actor)
        if not schedule.paused:
            return schedule
        try:
            schedule.next_at = next_time(schedule, now())
        except cron.BadZone:
            raise CannotSchedule(
                "BAD_ZONE", "There is no such time zone: take a name such as Europe/Berlin."
            ) from None
        if schedule.next_at is None:
            raise CannotSchedule("SCHEDULE_OVER", "Its time is over: change when it is due.")
        schedule.paused, schedule.stopped_because, schedule.token = False, "", actor.token_id or ""
        schedule.save()
    return schedule


def remove(schedule_id: str, actor: Actor) -> None:
    """The schedule and its history go; the runs it started stay. Raises Schedule.DoesNotExist, NotAllowed."""
    with transaction.atomic():
        schedule = _locked(schedule_id)
        may(actor, Verb.UNSCHEDULE, schedule)
        schedule.delete()


def _locked(schedule_id: str) -> Schedule:
    return Schedule.objects.select_for_update(no_key=True).get(pk=schedule_id)


def _may_arrange(schedule: Schedule, actor: Actor) -> None:
    may(actor, Verb.SCHEDULE, schedule)
    if not schedule.outside and not can(actor, Verb.SPEAK_AS_PERSON, schedule):
        raise NotAllowed(
            "NOT_THE_PERSON",
            "This schedule says the person's own words: only who speaks as them changes or resumes it.",
        )


def _kept(written: Any, stored: str) -> Any:
    """The goal as it is stored where it comes back as it was shown, with its keys masked."""
    try:
        return redact.kept(written, stored)
    except redact.Hidden:
        raise CannotSchedule(
            "MASKED_GOAL", "Write what stands hidden as [redacted] in the goal anew, or leave it out."
        ) from None


def _take(schedule: Schedule, said: Mapping[str, Any], actor: Actor, moment: datetime) -> None:
    """The fields as they were said, once each fits and the actor may start such runs."""
    if "project" in said:
        schedule.project = said["project"]
        may(actor, Verb.SCHEDULE, schedule)
    if "goal" in said:
        schedule.goal = check_text(said["goal"], "")
    if "title" in said or not schedule.title:
        schedule.title = _title(said.get("title") or "", schedule.goal)
    if "group_id" in said:
        schedule.group_id = said["group_id"] or ""
    if schedule.group_id and {"group_id", "project"} & said.keys():
        wanted_group(schedule.group_id, schedule.project)
    if "budgets" in said:
        schedule.budgets = _budgets(said["budgets"] or {})
    if "on_missed" in said:
        schedule.on_missed = OnMissed(said["on_missed"])
    if "most_runs" in said:
        schedule.most_runs = _number(said["most_runs"])
    _take_times(schedule, said, moment)
    schedule.token = actor.token_id or ""


def _take_times(schedule: Schedule, said: Mapping[str, Any], moment: datetime) -> None:
    before = {name: getattr(schedule, name) for name in TIMES}
    asked = {name: said[name] for name in TIMES if name in said}
    if asked.get("cron") and "at" not in asked:  # one takes the place of the other
        asked["at"] = None
    if asked.get("at") is not None and "cron" not in asked:
        asked["cron"] = ""
    found = timing({**before, **asked}, moment)
    schedule.at, schedule.cron, schedule.ends_at = found.at, found.cron, found.ends_at
    schedule.time_zone = str(found.zone)
    anew = any(before[name] != getattr(schedule, name) for name in TIMES)
    if anew and found.at is not None and found.at <= moment and found.at != before["at"]:
        raise CannotSchedule("AT_IS_PAST", "This time is over: choose one to come.")
    following = next_time(schedule, moment)
    if anew and following is None:
        raise CannotSchedule("NEVER_DUE", "It would never be due: it ends before its first time.")
    if not anew and following is not None and schedule.next_at is not None:
        following = min(schedule.next_at, following)  # what is due just now and not yet taken stays so
    schedule.next_at = None if schedule.paused else following


def _title(title: str, goal: str) -> str:
    title = " ".join(title.split()) or " ".join(goal.split("\n", 1)[0].split())[:80]
    if len(title) > MAX_TITLE:
        raise CannotSchedule("TITLE_TOO_LONG", "The title is too long: at most 200 characters fit.")
    return redact.shown(title)[:MAX_TITLE]


def _number(said: Any) -> int | None:
    if said is not None and not (isinstance(said, int) and 0 < said < 2**31):
        raise CannotSchedule("BAD_NUMBER", "The number of runs is a whole number from 1 on.")
    return said


def most() -> dict[str, int]:
    """The most that each budget of a run may be set to here."""
    return {**default_budgets(), "seconds": settings.RUN_SECONDS}


def _budgets(said: Mapping[str, Any]) -> dict[str, int]:
    limits = most()
    for name, value in said.items():
        least = 0 if name in ("depth", "children") else 1
        if name not in limits or not isinstance(value, int) or not least <= value <= limits[name]:
            raise CannotSchedule(
                "BAD_BUDGET",
                "A budget names steps, tokens, depth, children or seconds, each at most what a run here has.",
            )
    return dict(said)


def preview(said: Mapping[str, Any], count: int) -> tuple[Timing, list[datetime], datetime]:
    """When what was said would be due, the first so many times, seen from now. Raises CannotSchedule."""
    moment = now()
    found = timing(said, moment)
    return found, found.several(moment, count), moment
