"""An approval is watched until it is decided: who is told first and who next, reminders, and alarms.

`attend` may be called at any time, and again: it does what is due by the database's clock and says when it
has to be called next. The row it works from is written with the approval.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction

from common.db import execute, row, rows
from common.failures import FAILURES
from groups.cells import AWAY
from groups.member_permissions import holding
from groups.models import Membership
from groups.models.organizations import MembershipKind
from policy.models import CapabilityRule
from runs.gate import deciders
from runs.log.log import RunGone, RunLog
from runs.models import Approval, Channel, NoticeKind
from runs.models.choices import EventType
from runs.models.notices import Alarm, Topic
from runs.notices import delivery

logger = logging.getLogger(__name__)

UNHEARD_SECONDS = 30  # after which an approval that no message about has left is an alarm
LOOK_SECONDS = 10.0  # between two looks while there is an alarm, or may be one soon
CALM_SECONDS = 120.0  # the same, where all is well: somebody may have lost a right meanwhile
BATCH = 100
TURN_SECONDS = 3.0  # that one round may take, of a process that has other duties
ARRANGES = "policy.change_capabilityrule"  # who can do something about it: administrators

TAKE = """
SELECT w.stage, w.reminded, w.alarm,
       EXTRACT(epoch FROM clock_timestamp() - a.requested_at)::float8,
       COALESCE(EXTRACT(epoch FROM a.expires_at - a.requested_at)::float8, 0), o.alarm_seconds
FROM runs_approvalwatch w JOIN runs_approval a ON a.id = w.approval_id
JOIN groups_organization o ON o.id = w.organization_id
WHERE w.approval_id = %s FOR NO KEY UPDATE OF w SKIP LOCKED
"""
KEEP = """
UPDATE runs_approvalwatch SET stage = %s, reminded = %s, alarm = %s,
       alarm_since = CASE WHEN %s = '' THEN NULL WHEN alarm = %s THEN alarm_since ELSE clock_timestamp() END,
       look_at = clock_timestamp() + %s * interval '1 second'
WHERE approval_id = %s
"""
DUE = f"""
SELECT approval_id FROM runs_approvalwatch w
WHERE look_at <= clock_timestamp() AND NOT {AWAY.format("w")} ORDER BY look_at LIMIT %s
"""  # noqa: S608 - our own text
OVER = """
DELETE FROM runs_approvalwatch w USING runs_approval a
WHERE a.id = w.approval_id AND a.status <> 'pending' AND w.approval_id = %s
"""
LATER = """
UPDATE runs_approvalwatch SET look_at = clock_timestamp() + interval '60 seconds' WHERE approval_id = %s
"""
HEARD = """
SELECT EXISTS (SELECT FROM runs_approvalnotice
               WHERE approval_id = %s AND sent_at IS NOT NULL AND kind IN ('asked', 'reminder', 'last_call'))
"""


@dataclass
class Watched:
    """Where an approval stands. Times in seconds; `total` is 0 where it has no end."""

    approval: Approval
    stage: int
    reminded: int
    alarm: str
    age: float
    total: float
    overdue_after: float

    @property
    def share(self) -> float:
        return self.age / self.total if self.total else 0.0


def attend(approval_id: str) -> None:
    """Do what is due for this approval. Nothing where it is decided, or another process is at it."""
    with transaction.atomic():
        found = row(TAKE, [approval_id])
        if found is None:
            return
        approval = delivery.pending([approval_id]).first()
        if approval is None:
            execute(OVER, [approval_id])
            execute(LATER, [approval_id])
            return
        stage, reminded, alarm, age, total, limit = found
        overdue_after = float(limit or settings.APPROVAL_ALARM_SECONDS)
        _attend(Watched(approval, stage, reminded, alarm, age, total, overdue_after))


def _attend(watched: Watched) -> None:
    approval = watched.approval
    people = deciders.addressed(approval)
    present = _present(people, approval)
    ranks = _ranks(approval, present)
    ways = channels_of(approval, [person for rank in ranks for person in rank], Topic.APPROVALS)
    said = _tell(watched, ranks, ways)
    alarm = _alarm_of(watched, people, ways)
    if alarm != watched.alarm:
        said.append(_raise(watched, people, alarm))
    _log(approval, said)
    look_in = next_look(watched, alarm, len(ranks))
    kept = [watched.stage, watched.reminded, alarm, alarm, alarm]
    execute(KEEP, [*kept, look_in, approval.pk])
    if alarm:
        _tell_alarm(watched)


def _tell(watched: Watched, ranks: list[list[Any]], ways: Sequence[Channel]) -> list[dict[str, Any]]:
    """Those whose turn it is, then reminders and the escalation; returns what the log is to say."""
    said: list[dict[str, Any]] = []
    stage = max(1, watched.stage)
    while stage < len(ranks) and (
        watched.age >= _turn_after(watched, stage, len(ranks)) or not _reached(ranks[:stage], ways)
    ):
        stage += 1
        if watched.stage:
            said.append(_said("escalated", _names(ranks[stage - 1])))
    told = {person.pk for rank in ranks[:stage] for person in rank}
    now = [one for one in ways if one.user_id is None or one.user_id in told]
    delivery.note(NoticeKind.ASKED, now, watched.approval)
    if watched.stage == 0:
        _tell_own(watched.approval)
    watched.stage = stage
    for number, (share, kind) in enumerate(REMINDERS, 1):
        if watched.reminded < number and watched.share >= share:
            watched.reminded = number
            delivery.note(kind, now, watched.approval)
            said.append(_said("reminded", _names([person for rank in ranks[:stage] for person in rank])))
            if kind == NoticeKind.LAST_CALL:
                said += _escalate(watched)
    return said


REMINDERS = ((0.25, NoticeKind.REMINDER), (0.75, NoticeKind.LAST_CALL))


def _turn_after(watched: Watched, stage: int, ranks: int) -> float:
    """Seconds after which the next named is told: all are within the first half of the time."""
    return stage * watched.total / (2 * ranks)


def _reached(ranks: Sequence[Sequence[Any]], ways: Sequence[Channel]) -> bool:
    people = {person.pk for rank in ranks for person in rank}
    return any(one.user_id in people for one in ways)


def _escalate(watched: Watched) -> list[dict[str, Any]]:
    """Administrators hear that nobody has decided it."""
    people = administrators(watched.approval)
    ways = [one for one in channels_of(watched.approval, people, Topic.APPROVALS) if one.user_id is not None]
    delivery.note(NoticeKind.ESCALATED, ways, watched.approval)
    return [_said("escalated", _names(people))] if people else []


def _tell_own(approval: Approval) -> None:
    """The run's person, where they want to hear by a channel; their pages say it anyway."""
    delivery.note(NoticeKind.WAITING, own_channels(approval.organization_id, approval.run.user_id), approval)


def own_channels(organization_id: str, user_id: int) -> list[Channel]:
    mine = Channel.objects.filter(organization_id=organization_id, user_id=user_id, enabled=True)
    return list(mine.filter(topics__contains=[Topic.OWN.value]))


def _present(people: Sequence[Any], approval: Approval) -> list[Any]:
    """Those who are not away; all of them where everybody is."""
    away = deciders.away(approval.organization_id)
    return [person for person in people if person.pk not in away] or list(people)


def _ranks(approval: Approval, people: Sequence[Any]) -> list[list[Any]]:
    """Who is told first, and who next: by the order of a rule that names them one after the other, else all
    at once.
    """
    if not people:
        return []
    ordered = CapabilityRule.objects.filter(pk=approval.rule, in_order=True).exists()
    if not ordered or not approval.deciders:
        return [list(people)]
    return deciders.in_order(approval, people)


def channels_of(approval: Approval, people: Sequence[Any], topic: Topic) -> list[Channel]:
    """By which to reach these people, and the organization's own places. A person who has arranged nothing
    gets e-mail, where they have an address.
    """
    keys = [person.pk for person in people]
    _give_email([person for person in people if person.email], approval.organization_id)
    found = Channel.objects.filter(
        organization_id=approval.organization_id, enabled=True, topics__contains=[topic.value]
    ).select_related("user")
    mine = [
        one for one in found.filter(user__in=keys) if one.kind != "email" or (one.user and one.user.email)
    ]
    there = [
        one for one in found.filter(user=None) if one.project_id in (None, approval.run.project_id)
    ]  # fmt: skip
    return mine + there


def _give_email(people: Sequence[Any], organization_id: str) -> None:
    has = Channel.objects.filter(organization_id=organization_id, kind="email", user__in=people)
    known = set(has.values_list("user_id", flat=True))
    Channel.objects.bulk_create(
        [
            Channel(organization_id=organization_id, user=person, kind="email")
            for person in people
            if person.pk not in known
        ],
        ignore_conflicts=True,
    )


def administrators(approval: Approval) -> list[Any]:
    """The people who can change rules and members of all projects."""
    members = Membership.objects.filter(
        holding(ARRANGES),
        organization_id=approval.organization_id,
        projects=None,
        active=True,
        kind=MembershipKind.HUMAN,
        user__is_active=True,
    )
    return [one.user for one in members.select_related("user").order_by("user__username")]


# Alarms


def _alarm_of(watched: Watched, people: Sequence[Any], ways: Sequence[Channel]) -> str:
    approval = watched.approval
    missing = approval.deciders_needed - _approved(approval)
    programs = len(deciders.addressed(approval, people_only=False)) - len(people)
    if len(people) + programs < max(1, missing):
        return Alarm.NOBODY
    if not programs:  # which are told by webhooks, or look for themselves
        if not ways:
            return Alarm.NO_CHANNEL
        if watched.age >= UNHEARD_SECONDS and not row(HEARD, [approval.pk])[0]:
            return Alarm.UNHEARD
    return Alarm.OVERDUE if watched.age >= watched.overdue_after else ""


def _approved(approval: Approval) -> int:
    said = approval.decisions.filter(approved=True, arguments_digest=approval.arguments_digest)
    return int(said.count())


def _raise(watched: Watched, people: Sequence[Any], alarm: str) -> dict[str, Any]:
    """The alarm, another one, or its end, as the log says it."""
    before, watched.alarm = watched.alarm, alarm
    if not alarm:
        return {**_said("alarm_over", _names(people)), "alarm": before}
    logger.warning("%s: %s", watched.approval.pk, Alarm(alarm).label)
    return {**_said("alarm", _names(people)), "alarm": alarm, "message": f"{Alarm(alarm).label}."}


def _tell_alarm(watched: Watched) -> None:
    approval = watched.approval
    ways = channels_of(approval, administrators(approval), Topic.ALARMS)
    delivery.note(NoticeKind.ALARM, [*ways, *_own_alarm(approval, ways)], approval)


def _own_alarm(approval: Approval, ways: Sequence[Channel]) -> list[Channel]:
    known = {one.pk for one in ways}
    mine = channels_of(approval, [approval.run.user], Topic.ALARMS)
    return [one for one in mine if one.pk not in known and one.user_id is not None]


def next_look(watched: Watched, alarm: str, ranks: int) -> float:
    """Seconds until something may be due."""
    if alarm:
        return LOOK_SECONDS
    if watched.age < UNHEARD_SECONDS:
        return UNHEARD_SECONDS - watched.age
    ahead = [watched.overdue_after, *(share * watched.total for share, _ in REMINDERS)]
    if watched.stage < ranks:
        ahead.append(_turn_after(watched, watched.stage, ranks))
    left = min((at - watched.age for at in ahead if at > watched.age), default=CALM_SECONDS)
    return min(CALM_SECONDS, max(LOOK_SECONDS, left))


def _said(what: str, people: list[str]) -> dict[str, Any]:
    return {"what": what, "people": people}


def _names(people: Sequence[Any]) -> list[str]:
    return [str(person.get_username()) for person in people][:20]


def _log(approval: Approval, said: Sequence[dict[str, Any]]) -> None:
    """In the run's log, whoever reads it; the run itself goes on as it was."""
    if not said:
        return
    log = RunLog.lock(approval.run_id)
    if log.ended:
        return
    about = {"approval": approval.pk, "call_id": approval.tool_call.call_id, "tool": approval.tool_call.tool}
    for one in said:
        log.append(EventType.APPROVAL_FOLLOWED_UP, {**about, **one})
    log.flush()


def attend_due() -> int:
    """See to every approval that is due; returns how many. What goes wrong with one keeps no other."""
    count = 0
    until = time.monotonic() + TURN_SECONDS
    for approval_id in _due():
        if time.monotonic() > until:
            break
        try:
            attend(approval_id)
            count += 1
        except RunGone:
            execute(OVER, [approval_id])
        except FAILURES as error:
            logger.warning("could not see to %s: %s", approval_id, type(error).__name__)
    return count


def _due() -> Iterator[str]:
    for (approval_id,) in rows(DUE, [BATCH]):
        yield approval_id
