"""Notices leave: gathered by channel, sent between two transactions, and written down.

A channel gets no two messages within NOTIFY_SECONDS; what comes meanwhile is gathered in the next. Whoever
sends holds the notices for SENDING_SECONDS. What a sender that died had is given back at once and sent by
another: in doubt somebody is told twice rather than never.
"""

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now
from django.utils import translation

from common import sealed
from common.db import execute, let_go, row, rows
from groups import readers
from groups.actors import Actor, Via, active_membership
from groups.cells import AWAY
from runs.gate import deciders
from runs.models import Approval, ApprovalNotice, Channel, NoticeKind
from runs.models.choices import ApprovalStatus
from runs.models.notices import TO_DECIDERS
from runs.models.queue import ErrandKind
from runs.notices import message, senders
from runs.notices.base import Message, NotSent
from runs.queue import broker, put

logger = logging.getLogger(__name__)

ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('deputy.notices ' || %s, 0))"
# Of this channel's notices: whether any may be sent; how long until it may be told again. One that is being
# told counts as told now.
LAST_TOLD = """
SELECT bool_or(status = 'pending' OR (status = 'sending' AND due_at <= clock_timestamp())),
       EXTRACT(epoch FROM max(CASE WHEN status = 'sent' THEN sent_at
                                   WHEN status = 'sending' AND due_at > clock_timestamp()
                                   THEN clock_timestamp() END) - clock_timestamp())::float8 + %s
FROM runs_approvalnotice WHERE channel_id = %s
"""
TRIED = """
SELECT max(attempts) FROM runs_approvalnotice
WHERE channel_id = %s AND status IN ('pending', 'sending')
"""
PUT_OFF = """
UPDATE runs_approvalnotice SET due_at = clock_timestamp() + %s * interval '1 second'
WHERE channel_id = %s AND status = 'pending'
"""
CLAIM = """
UPDATE runs_approvalnotice SET status = 'sending', holder = %s, attempts = attempts + 1,
       due_at = clock_timestamp() + %s * interval '1 second'
WHERE channel_id = %s AND status IN ('pending', 'sending')
  AND (status = 'pending' OR due_at <= clock_timestamp())
RETURNING id
"""
DONE = """
UPDATE runs_approvalnotice SET status = %s, holder = '',
       due_at = clock_timestamp() + %s * interval '1 second',
       sent_at = CASE %s WHEN 'sent' THEN clock_timestamp() END
WHERE id = ANY(%s) AND status = 'sending' AND holder = %s
"""
GIVE_BACK = f"""
UPDATE runs_approvalnotice n SET status = 'pending', holder = '', due_at = clock_timestamp()
WHERE status = 'sending' AND starts_with(holder, %s) AND NOT {AWAY.format("n")}
"""  # noqa: S608 - our own text
DUE = f"""
SELECT DISTINCT organization_id, channel_id FROM runs_approvalnotice n
WHERE NOT {AWAY.format("n")} AND status IN ('pending', 'sending')
  AND due_at < clock_timestamp() - %s * interval '1 second' LIMIT %s
"""  # noqa: S608
# Whoever is asked for them takes them whatever `due_at` says: it only keeps the same from being asked again.
ASKED = """
UPDATE runs_approvalnotice SET status = 'pending', holder = '',
       due_at = clock_timestamp() + %s * interval '1 second'
WHERE channel_id = %s AND status IN ('pending', 'sending') AND due_at < clock_timestamp()
"""
SENDING_SECONDS = 60  # after which another may send what somebody holds: a mail server may take its time
RETRY_SECONDS = (5, 10, 20, 60, 300)  # after which a message that did not leave is tried again
LASTING_SECONDS = 300  # the same, where somebody has to change the channel first
OVERLOOKED_SECONDS = 5  # after which a notice that is due has lost its message of the queue
PATIENCE_SECONDS = 60  # with the message that was sent for it then
BATCH = 500


def note(kind: NoticeKind, channels: Sequence[Channel], approval: Approval) -> int:
    """Have these channels told, each once, however often this is called. Joins the caller's transaction;
    returns how many had not been asked to yet.
    """
    before = set(approval.notices.filter(kind=kind).values_list("channel_id", flat=True))
    new = [channel for channel in channels if channel.pk not in before]
    ApprovalNotice.objects.bulk_create(
        [
            ApprovalNotice(
                organization_id=approval.organization_id,
                approval=approval,
                run_id=approval.run_id,
                user_id=channel.user_id,
                channel=channel,
                kind=kind,
            )
            for channel in new
        ],
        ignore_conflicts=True,
    )
    for channel in new:
        if not gathered(channel.pk):
            soon(approval.organization_id, channel.pk)
    return len(new)


def gathered(channel_id: str) -> bool:
    """Whether a delivery is queued that will take new notices along: one message a channel, however many
    approvals are asked for meanwhile.
    """
    others = ApprovalNotice.objects.filter(status="pending", channel_id=channel_id).count()
    left = row(LAST_TOLD, [settings.NOTIFY_SECONDS, channel_id])[1]
    if left is None or left <= 0 or others < 2:
        return False
    execute(PUT_OFF, [left, channel_id])
    return True


def soon(organization_id: str, channel_id: str, delay: float = 0, tried: int = 0) -> None:
    """Have what waits for this channel sent, if need be after `delay` seconds; it was `tried` so often."""
    again = (str(tried),) if tried else ()
    put.enqueue_task("deliver", channel_id, *again, delay=delay, turn=put.for_people(organization_id))


def deliver(channel_id: str, tried: int = 0) -> None:
    """Send the notices that wait for this channel in one message, now or when NOTIFY_SECONDS are over.

    Where it has been `tried` more often since, whoever did that tries again: of the many that a channel which
    fails is asked for, one goes on.
    """
    if tried and row(TRIED, [channel_id])[0] != tried:
        return
    channel = Channel.objects.select_related("organization", "user").filter(pk=channel_id).first()
    if channel is None:
        return
    claimed = claim(channel_id)
    if isinstance(claimed, float):
        soon(channel.organization_id, channel_id, delay=claimed)
        return
    notices = still_wanted(_claimed(claimed), channel)
    wanted = [one.pk for one in notices]
    done(sorted({*claimed} - {*wanted}), "obsolete")
    if not notices:
        return
    try:
        with translation.override(language_of(channel)):
            send(channel, message.digest(_each_once(notices), channel, channel.organization.thin_notices))
    except NotSent as error:
        logger.warning("could not tell %s (%s): %s", channel.pk, channel.kind, error.why)
        tried = max(one.attempts for one in notices)
        pause = pause_after(tried, error)
        failed(channel, error)
        done(wanted, "obsolete" if error.gone else "pending", pause)
        if not error.gone:
            soon(channel.organization_id, channel_id, pause, tried)
        return
    done(wanted, "sent")
    Channel.objects.filter(pk=channel_id).update(failing_since=None, problem="", told_at=Now())


def language_of(channel: Channel) -> str:
    """In which language this channel is written to: its person's, or an organization's place has its own."""
    if channel.user_id is not None:
        return readers.language_of(channel.user_id)
    return channel.language or settings.LANGUAGE_CODE


def try_out(channel: Channel) -> None:
    """Send a test. Raises NotSent."""
    with translation.override(language_of(channel)):
        send(channel, message.trial())


def send(channel: Channel, digest: Message) -> None:
    """Raises NotSent. Holds no connection to the database while the receiver takes its time."""
    sender = senders.found(channel.kind)
    if sender is None:
        raise NotSent(f"There is no notifier {channel.kind!r} any more.", lasting=True)
    try:
        address = channel.address
    except sealed.Unreadable as error:
        raise NotSent(str(error), lasting=True) from None
    if channel.kind == "email" and not address and channel.user is not None:
        address = channel.user.email
    let_go()
    sender.send(address, digest, channel.pk)


def failed(channel: Channel, error: NotSent) -> None:
    """Note the trouble on the channel, for its page. One that is gone for good is switched off."""
    now = {"failing_since": Coalesce(F("failing_since"), Now()), "problem": error.why}
    if error.gone:
        now["enabled"] = False
    Channel.objects.filter(pk=channel.pk).update(**now)


def pause_after(attempts: int, error: NotSent) -> float:
    """Seconds until the next attempt."""
    if error.lasting:
        return LASTING_SECONDS
    return max(RETRY_SECONDS[min(attempts, len(RETRY_SECONDS)) - 1], error.wait)


def _claimed(ids: Sequence[int]) -> list[ApprovalNotice]:
    found = ApprovalNotice.objects.filter(pk__in=ids).order_by("approval_id", "id")
    return list(
        found.select_related(
            *("approval__run__project", "approval__run__user", "approval__tool_call"),
            *("approval__decided_by", "approval__watch", "run__project"),
        )
    )


def _each_once(notices: Sequence[ApprovalNotice]) -> list[ApprovalNotice]:
    """An approval stands once in a digest: with the newest that there is to say of it."""
    newest = {one.approval_id or one.run_id: one for one in sorted(notices, key=lambda one: one.pk)}
    return [one for one in notices if newest[one.approval_id or one.run_id] is one]


def still_wanted(notices: Sequence[ApprovalNotice], channel: Channel) -> list[ApprovalNotice]:
    """Those that are still true, and still theirs: they may have lost the right, or the approval its point.

    A few queries, however many notices there are.
    """
    seen = _seen(channel) if channel.enabled else None
    if seen is None:
        return []
    open_ones = {one.pk for one in pending([one.approval_id for one in notices if one.approval_id])}
    theirs = _theirs(open_ones, channel)
    return [one for one in notices if seen(one) and _holds(one, open_ones, theirs)]


def _holds(notice: ApprovalNotice, open_ones: set[str], theirs: set[str]) -> bool:
    approval = notice.approval
    if notice.kind in (NoticeKind.DECIDED, NoticeKind.ENDED) or approval is None:
        return True
    if notice.kind in TO_DECIDERS:
        return approval.pk in theirs
    if approval.pk not in open_ones:
        return False
    return notice.kind != NoticeKind.ALARM or bool(hasattr(approval, "watch") and approval.watch.alarm)


def _theirs(open_ones: set[str], channel: Channel) -> set[str]:
    """Of the pending approvals, those that wait for the channel's person; all where it is nobody's own."""
    if channel.user is None:
        return open_ones
    mine = active_membership(channel.user, channel.organization_id)
    actor = Actor(channel.user, mine, Via.SESSION, interactive=True)
    found = deciders.decidable(actor, Approval.objects.filter(pk__in=open_ones))
    return set(found.values_list("pk", flat=True))


def _seen(channel: Channel) -> Callable[[ApprovalNotice], bool] | None:
    """Whether what a notice is about is in a project that whoever has the channel sees; None: nobody does."""
    if channel.user is None:
        return lambda notice: channel.project_id in (None, _project(notice))
    mine = active_membership(channel.user, channel.organization_id)
    return None if mine is None else lambda notice: mine.sees_project(_project(notice))


def _project(notice: ApprovalNotice) -> str:
    run: Any = notice.approval.run if notice.approval else notice.run
    return str(run.project_id)


def claim(channel_id: str) -> list[int] | float:
    """The notices to send now; or the seconds until this channel may be told again."""
    with transaction.atomic():
        execute(ONE_AT_A_TIME, [channel_id])
        wanted, left = row(LAST_TOLD, [settings.NOTIFY_SECONDS, channel_id])
        if not wanted:
            return []
        if left is not None and left > 0:
            execute(PUT_OFF, [left, channel_id])
            return float(left)
        return [pk for (pk,) in rows(CLAIM, [holder(), SENDING_SECONDS, channel_id])]


def done(notice_ids: Sequence[int], status: str, due_in: float = 0) -> None:
    """What became of notices that this process holds."""
    if notice_ids:
        execute(DONE, [status, due_in, status, list(notice_ids), holder()])


def holder() -> str:
    """Who holds what this process sends: its group of workers, and the process."""
    return f"{broker.holder}:{os.getpid()};"


def give_back(group: str, pid: int | None = None) -> int:
    """Let others send what a group of workers held that has died, or one process of it; how many notices."""
    return execute(GIVE_BACK, [f"{group}:" + (f"{pid};" if pid is not None else "")])


def send_due() -> int:
    """Ask carriers for what should have been sent by now: its message was lost. Returns to how many."""
    if put.has_backlog(ErrandKind.MAIL):
        return 0
    found = [(where, channel) for where, channel in rows(DUE, [OVERLOOKED_SECONDS, BATCH]) if channel]
    with transaction.atomic():
        for organization_id, channel_id in found:
            execute(ASKED, [PATIENCE_SECONDS, channel_id])
            soon(organization_id, channel_id)
    return len(found)


def pending(ids: Sequence[str]) -> Any:
    """Those of the approvals that still wait, the oldest first."""
    open_ones = Approval.objects.filter(pk__in=ids, status=ApprovalStatus.PENDING, expires_at__gt=Now())
    return open_ones.select_related("run__project", "run__user", "tool_call").order_by("id")
