"""Due schedules start their runs: each due time once, in its person's name as they stand at that moment.

A time that is taken more than LATE after it was due is missed: nobody was there, or the queue was full. What
the person no longer may, stops the schedule, and it goes on only when they put it on again themselves.
"""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from common import cron, ids
from common.db import execute
from groups.actors import Actor
from groups.cells import AWAY
from groups.models import Token
from policy.authority import SPEAK, NotAllowed
from runs.actions import schedule as schedules
from runs.actions.start import CannotStart, start
from runs.models import Conversation, OnMissed, Outcome, Run, Schedule, ScheduledRun

logger = logging.getLogger(__name__)

MOST_MISSED = 5_000  # due times that are counted one by one
# In turn for each organization: one whose queue is full does not hold up the others.
DUE = f"""
SELECT id FROM runs_schedule s WHERE next_at <= clock_timestamp() AND NOT {AWAY.format("s")}
ORDER BY row_number() OVER (PARTITION BY organization_id ORDER BY next_at), next_at LIMIT %s
"""  # noqa: S608 - our own text
ANYTHING_DUE = f"EXISTS (SELECT FROM runs_schedule s WHERE next_at <= now() AND NOT {AWAY.format('s')})"
FORGET = """
DELETE FROM runs_scheduledrun WHERE id IN (
    SELECT id FROM runs_scheduledrun WHERE id < %s ORDER BY id LIMIT %s)
"""
KEPT_DAYS = 400  # of history
FORGOTTEN_AT_ONCE = 5_000
RESTORED = "Deputy was restored from a backup: whether it ran at that time is not known."
FOR_GOOD = ("NOT_A_MEMBER", "UNKNOWN_GROUP", "TOKEN_ENDED", "BAD_ZONE")  # refusals after which it stops


def forget() -> int:
    """Remove what is old of the histories; how much that was."""
    before = ids.first_of("sru", schedules.now() - timedelta(days=KEPT_DAYS))
    return execute(FORGET, [before, FORGOTTEN_AT_ONCE])


@dataclass(frozen=True)
class Due:
    """The times that are due by now: the first, the last and how many."""

    first: datetime
    last: datetime
    count: int


def take(schedule_id: str) -> bool:
    """Do what the schedule is due for, unless another process is at it. Whether anything was done."""
    with transaction.atomic():
        due = Schedule.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
        schedule = due.select_related("project", "user").filter(pk=schedule_id, next_at__lte=Now()).first()
        if schedule is None:
            return False
        moment = schedules.now()
        try:
            times = _due(schedule, moment)
        except cron.BadZone:
            return _stop(schedule, schedule.next_at or moment, "BAD_ZONE", "Its time zone is not known here.")
        if schedule.history.filter(due_at__in=(times.first, times.last)).exists():
            return _go_on(schedule, moment)  # the database's clock was put back
        late = moment - times.last > schedules.LATE
        if late and schedule.on_missed == OnMissed.SKIP:
            _note(schedule, times.first, Outcome.MISSED, times=times.count)
            return _go_on(schedule, moment)
        return _start(schedule, times, moment)


def leave_out(schedule_id: str, until: datetime) -> bool:
    """Start nothing for the due times up to `until`: something may have. Whether there were any."""
    with transaction.atomic():
        schedule = Schedule.objects.select_for_update(no_key=True).filter(pk=schedule_id).first()
        if schedule is None or schedule.next_at is None or schedule.next_at > until:
            return False
        try:
            times = _due(schedule, until)
        except cron.BadZone:
            return _stop(schedule, schedule.next_at, "BAD_ZONE", "Its time zone is not known here.")
        if not schedule.history.filter(due_at=times.first).exists():
            _note(schedule, times.first, Outcome.MISSED, "RESTORED", RESTORED, times=times.count)
        return _go_on(schedule, until)


def _due(schedule: Schedule, moment: datetime) -> Due:
    first = schedule.next_at or moment
    if schedule.at is not None:
        return Due(first, first, 1)
    last, count = first, 1
    for found in islice(schedules.timing_of(schedule).all_after(first), MOST_MISSED):
        if found > moment:
            break
        last, count = found, count + 1
    return Due(first, last, count)


def _start(schedule: Schedule, times: Due, moment: datetime) -> bool:
    """Start the run of the last due time; those before it were missed."""
    busy = _still_going(schedule)
    if busy is not None:
        _note(schedule, times.last, Outcome.OVERLAPPED, run=busy)
    else:
        try:
            with transaction.atomic():
                run_id = _started(schedule, times.last)
        except NotAllowed as refused:
            return _stop(schedule, times.last, refused.code, refused.message)
        except CannotStart as refused:
            if refused.code == "QUEUE_FULL":
                return False  # the next sweep comes back to it
            if refused.code in FOR_GOOD:
                return _stop(schedule, times.last, refused.code, refused.message)
            _note(schedule, times.last, Outcome.REFUSED, refused.code, refused.message)
        else:
            schedule.started += 1
            _note(schedule, times.last, Outcome.STARTED, run=Run(pk=run_id))
    if times.count > 1:
        _note(schedule, times.first, Outcome.MISSED, times=times.count - 1)
    return _go_on(schedule, moment)


def _started(schedule: Schedule, due_at: datetime) -> str:
    """The run's id. A conversation of its own, which the person can go on with."""
    key = f"{schedule.pk}-{due_at:%Y%m%dT%H%MZ}"
    run_id = start(
        actor=_actor(schedule),
        project=schedule.project,
        goal=schedule.goal,
        session_key=key,
        group_id=schedule.group_id or None,
        outside=schedule.outside,
        budgets=schedule.budgets,
        told={"schedule": schedule.pk, "due_at": due_at.isoformat()},
    )
    Conversation.objects.get_or_create(
        organization_id=schedule.organization_id,
        project_id=schedule.project_id,
        user_id=schedule.user_id,
        key=key,
        defaults={"title": schedule.title},
    )
    return run_id


def _actor(schedule: Schedule) -> Actor:
    """The schedule's person, as far as the program reaches that wrote it, if one did. Raises CannotStart."""
    scopes = frozenset({"runs:write", SPEAK})
    if schedule.token:
        live = Token.objects.filter(pk=schedule.token, user_id=schedule.user_id, revoked_at=None)
        token = live.filter(Q(expires_at=None) | Q(expires_at__gt=Now())).first()
        if token is None or token.organization_id != schedule.organization_id:
            raise schedules.CannotSchedule(
                "TOKEN_ENDED", "The token it was made with has ended: put it on again on your own page."
            )
        scopes &= frozenset(token.scopes)
    return Actor.of_schedule(schedule.user, schedule.organization_id, scopes)


def _still_going(schedule: Schedule) -> Run | None:
    """The run that an earlier time started and that has not ended."""
    earlier = schedule.history.filter(outcome=Outcome.STARTED, run__ended_at=None, run__isnull=False)
    last = earlier.select_related("run").order_by("-id").first()
    return last.run if last else None


def _note(
    schedule: Schedule,
    due_at: datetime,
    outcome: Outcome,
    code: str = "",
    reason: str = "",
    run: Run | None = None,
    times: int = 1,
) -> None:
    ScheduledRun.objects.create(
        organization_id=schedule.organization_id,
        schedule=schedule,
        due_at=due_at,
        outcome=outcome,
        times=times,
        run_id=run.pk if run else None,
        code=code,
        reason=reason[:500],
    )


def _go_on(schedule: Schedule, moment: datetime) -> bool:
    following = schedules.next_time(schedule, moment)
    Schedule.objects.filter(pk=schedule.pk).update(next_at=following, started=schedule.started)
    return True


def _stop(schedule: Schedule, due_at: datetime, code: str, reason: str) -> bool:
    """Refused for good: it does not come back by itself, not even when its reason goes away."""
    _note(schedule, due_at, Outcome.REFUSED, code, reason)
    schedule.paused, schedule.next_at, schedule.stopped_because = True, None, reason[:500]
    schedule.save()  # recorded as a change
    logger.info("schedule %s has stopped: %s", schedule.pk, code)
    return True
