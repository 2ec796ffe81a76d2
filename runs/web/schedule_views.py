"""A person's schedules: what their agent does at a time, or again and again, and what became of it."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from django.core.paginator import Paginator
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from common import cron, redact
from groups.models import Group
from policy.authority import NotAllowed
from runs.actions import schedule as acting
from runs.actions.schedule import Timing
from runs.actions.start import CannotStart
from runs.models import Schedule, ScheduledRun, ScheduleState
from runs.web import access, doing, pages
from runs.web.access import MemberRequest, member
from runs.web.forms import WALL, ScheduleForm

UPCOMING = 5
SHOWN = 25  # entries of a history's page
START = "runs.start_run"


@dataclass(frozen=True)
class Explained:
    """When something is due, in words, and what a change of the clock does to it."""

    times: list[str]
    rule: str
    shifts: list[str]
    shown: str  # what these times are of: what is saved is what was seen


def when(moment: datetime, zone: Any) -> str:
    """A moment by the clock there: `Monday, Nov. 23, 2026, 09:00 CET`."""
    local = moment.astimezone(zone)
    return _("{weekday}, {date}, {time}").format(
        weekday=date_format(local, "l"), date=date_format(local, "DATE_FORMAT"), time=f"{local:%H:%M %Z}"
    )


def explained(said: Mapping[str, Any]) -> Explained:
    """Raises CannotStart where it cannot be read."""
    timing, upcoming, now = acting.preview(said, UPCOMING)
    shifts = cron.shifts(timing.zone, now)
    return Explained(
        [when(moment, timing.zone) for moment in upcoming],
        _rule(timing, bool(shifts)),
        [_shift(shift, timing) for shift in shifts],
        _mark(timing),
    )


def _rule(timing: Timing, changed: bool) -> str:
    if not changed:
        return _("No daylight saving: the clock in {zone} is not changed in the coming year.").format(
            zone=timing.zone
        )
    if timing.cron and not cron.by_the_wall(timing.cron):
        return _(
            "Daylight saving: it goes by the time that passes. In an hour that the clock skips nothing is "
            "due; in an hour that comes twice it is due both times."
        )
    return _(
        "Daylight saving: it goes by the clock on the wall. A time in an hour that the clock skips is due at "
        "the first minute after it; a time in an hour that comes twice is due the first time only."
    )


def _shift(shift: cron.Shift, timing: Timing) -> str:
    said = _("{day}: the clock in {zone} goes from {before} to {after}.")
    day = date_format(shift.before, "DATE_FORMAT")
    return said.format(
        day=day, zone=timing.zone, before=f"{shift.before:%H:%M}", after=f"{shift.after:%H:%M}"
    )


def _mark(timing: Timing) -> str:
    told = [str(part) for part in timing]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


@require_safe
@member
def schedules(request: MemberRequest) -> HttpResponse:
    found = list(access.schedules(request).order_by("-id"))
    last = ScheduledRun.objects.filter(schedule__in=found).order_by("schedule", "-id").distinct("schedule")
    latest = {entry.schedule_id: entry for entry in last.select_related("run")}
    context = {
        "schedules": [_card(schedule, latest.get(schedule.pk)) for schedule in found],
        "may_start": request.user.has_perm(START),
        "here": "schedules",
    }
    return pages.page(request, "web/schedules.html", context)


def _card(schedule: Schedule, last: ScheduledRun | None) -> dict[str, Any]:
    zone = _zone(schedule)
    return {
        "schedule": schedule,
        "state": ScheduleState(schedule.state),
        "next": when(schedule.next_at, zone) if schedule.next_at else "",
        "at": when(schedule.at, zone) if schedule.at else "",
        "last": _entry(last, zone) if last else None,
    }


def _zone(schedule: Schedule) -> Any:
    try:
        return cron.zone(schedule.time_zone)
    except cron.BadZone:
        return timezone.get_current_timezone()


def _entry(entry: ScheduledRun, zone: Any) -> dict[str, Any]:
    return {"entry": entry, "due": when(entry.due_at, zone), "reason": entry.reason and _(entry.reason)}


def _own(request: MemberRequest, schedule_id: str) -> Schedule:
    found = access.schedules(request).filter(pk=schedule_id).first()
    if found is None:
        raise Http404
    return found


@require_safe
@member
def schedule(request: MemberRequest, schedule_id: str) -> HttpResponse:
    """One schedule: what, when, until when, and what became of each time."""
    found = _own(request, schedule_id)
    zone = _zone(found)
    entries = found.history.select_related("run").order_by("-due_at", "-id")
    shown = Paginator(entries, SHOWN).get_page(request.GET.get("page"))
    said = {name: getattr(found, name) for name in ("at", "cron", "time_zone", "ends_at")}
    try:
        about = explained(said) if found.next_at else None
    except CannotStart:
        about = None
    group = Group.objects.filter(pk=found.group_id).first() if found.group_id else None
    context = {
        **_card(found, None),
        "about": about,
        "ends": when(found.ends_at, zone) if found.ends_at else "",
        "group": group.name if group else found.group_id,
        "history": [_entry(entry, zone) for entry in shown],
        "shown": shown,
        "stopped_because": found.stopped_because and _(found.stopped_because),
        "here": "schedules",
    }
    return pages.page(request, "web/schedule.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@member
def new(request: MemberRequest) -> HttpResponse:
    zone = access.time_zone(request) or timezone.get_default_timezone()
    first = {
        "time_zone": str(zone),
        "repeat": "once",
        "on_missed": "skip",
    }
    if request.method != "POST":
        return _form(request, ScheduleForm(request, initial=first))
    return _saved(request, ScheduleForm(request, request.POST), None)


@require_http_methods(["GET", "HEAD", "POST"])
@member
def edit(request: MemberRequest, schedule_id: str) -> HttpResponse:
    found = _own(request, schedule_id)
    if request.method != "POST":
        return _form(request, ScheduleForm(request, initial=_initial(found)), found)
    return _saved(request, ScheduleForm(request, request.POST), found)


def _initial(schedule: Schedule) -> dict[str, Any]:
    zone, budgets = _zone(schedule), schedule.budgets
    local = {
        name: value.astimezone(zone).strftime(WALL) if value else None
        for name, value in (("at", schedule.at), ("ends_at", schedule.ends_at))
    }
    plain = ("title", "goal", "cron", "time_zone", "most_runs", "on_missed")
    return {
        **{name: redact.masked(getattr(schedule, name)) for name in plain},
        **local,
        "seen": acting.mark(schedule.goal),
        "project": schedule.project_id,
        "group": schedule.group_id or None,
        "repeat": "cron" if schedule.cron else "once",
        "steps": budgets.get("steps"),
        "tokens": budgets.get("tokens"),
        "minutes": _minutes(budgets),
    }


def _minutes(budgets: Mapping[str, int]) -> int | None:
    seconds = budgets.get("seconds")
    return None if seconds is None else -(-seconds // 60)


@require_POST
@member
def times(request: MemberRequest) -> HttpResponse:
    """The next times of what a form says, for the form's page."""
    form = ScheduleForm(request, request.POST)
    form.is_valid()
    return render(request, "web/schedule_times.html", _explanation(form))


def _explanation(form: ScheduleForm) -> dict[str, Any]:
    if any(name in form.errors for name in ("repeat", "at", "cron", "time_zone", "ends_at")):
        return {"cannot": _("Say when: a date and time, or a cron expression, and a time zone.")}
    try:
        return {"about": explained(form.times())}
    except CannotStart as refused:
        return {"cannot": _(refused.message)}


def _form(
    request: MemberRequest,
    form: ScheduleForm,
    schedule: Schedule | None = None,
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    context = {"form": form, "schedule": schedule, "here": "schedules", **more}
    return pages.page(request, "web/schedule_form.html", context, status)


def _saved(request: MemberRequest, form: ScheduleForm, schedule: Schedule | None) -> HttpResponse:
    """Saved once the person has seen the very times that it means; until then they are shown."""
    if not form.is_valid():
        for problem in form.problems():
            messages.error(request, problem)
        return _form(request, form, schedule, 422)
    told = _explanation(form)
    about = told.get("about")
    if about is None or request.POST.get("shown") != about.shown:
        if about is None:
            messages.error(request, told["cannot"])
        return _form(request, form, schedule, 200 if about else 422, **told)
    said = {**_said(form, schedule), **form.times()}
    try:
        with transaction.atomic():
            if schedule is None:
                kept = acting.create(request.actor, said)
            else:
                kept = acting.change(schedule.pk, request.actor, said, form.cleaned_data["seen"])
            doing.record(request, kept, CHANGE if schedule else ADDITION)
    except (NotAllowed, CannotStart) as refused:
        messages.error(request, _(refused.message))
        if refused.code == "CHANGED" and schedule is not None:
            form = _with_todays_goal(request, schedule)
        return _form(request, form, schedule, 422, **told)
    except Schedule.DoesNotExist:
        raise Http404 from None
    messages.success(request, _("Saved."))
    return redirect("web:schedule", kept.pk)


def _with_todays_goal(request: MemberRequest, schedule: Schedule) -> ScheduleForm:
    """What was posted, with the goal as it stands now to be looked at."""
    schedule.refresh_from_db()
    data, now = request.POST.copy(), _initial(schedule)
    data.update({name: now[name] for name in ("goal", "seen")})
    return ScheduleForm(request, data)


def _said(form: ScheduleForm, schedule: Schedule | None) -> dict[str, Any]:
    """What the form says beside when. Budgets that it has no field for stay."""
    said = form.cleaned_data
    before = schedule.budgets if schedule else {}
    budgets = {name: value for name, value in before.items() if name in ("depth", "children")}
    budgets |= {name: said[name] for name in ("steps", "tokens") if said[name] is not None}
    if said["minutes"] is not None:
        kept = said["minutes"] == _minutes(before)
        budgets["seconds"] = before["seconds"] if kept else said["minutes"] * 60
    return {
        **{name: said[name] for name in ("title", "goal", "project", "most_runs", "on_missed")},
        "group_id": said["group"].pk if said["group"] else "",
        "budgets": budgets,
    }


@require_POST
@member
def pause(request: MemberRequest, schedule_id: str) -> HttpResponse:
    found = _own(request, schedule_id)
    _try(request, lambda: doing.record(request, acting.pause(found.pk, request.actor), CHANGE))
    return redirect("web:schedule", schedule_id)


@require_POST
@member
def resume(request: MemberRequest, schedule_id: str) -> HttpResponse:
    found = _own(request, schedule_id)
    _try(request, lambda: doing.record(request, acting.resume(found.pk, request.actor), CHANGE))
    return redirect("web:schedule", schedule_id)


@require_POST
@member
def delete(request: MemberRequest, schedule_id: str) -> HttpResponse:
    found = _own(request, schedule_id)
    if request.POST.get("sure") != "yes":
        messages.error(request, _("Nothing was deleted: tick that you are sure."))
        return redirect("web:schedule", schedule_id)

    def gone() -> None:
        doing.record(request, found, DELETION)
        acting.remove(found.pk, request.actor)

    _try(request, gone)
    return redirect("web:schedules")


def _try(request: MemberRequest, act: Callable[[], None]) -> None:
    try:
        with transaction.atomic():
            act()
    except (NotAllowed, CannotStart) as refused:
        messages.error(request, _(refused.message))
    except Schedule.DoesNotExist:
        raise Http404 from None
