"""Mail to those who may decide: that an approval waits, never what the call would say.

The list of approvals is on people's own pages, in the admin and the API. Nobody gets two mails about an
organization within NOTIFY_SECONDS; what comes meanwhile is gathered in the next. Mail goes out between two
transactions, and whoever sends it holds the notices for SENDING_SECONDS. What a sender that died had is given
back at once and sent by another: in doubt a person is told twice rather than never.
"""

import logging
import os
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models.functions import Now

from common.db import execute, let_go, row, rows
from common.links import link
from runs.gate import deciders
from runs.models import Approval, ApprovalNotice
from runs.models.choices import ApprovalStatus
from runs.models.queue import ErrandKind
from runs.queue import broker, put

logger = logging.getLogger(__name__)

ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('deputy.notices ' || %s, %s))"
# Of this person's notices: whether any may be sent; how long until they may be written to again. Somebody who
# is sending counts as having written now.
LAST_TOLD = """
SELECT bool_or(status = 'pending' OR (status = 'sending' AND due_at <= clock_timestamp())),
       EXTRACT(epoch FROM max(CASE WHEN status = 'sent' THEN sent_at
                                   WHEN status = 'sending' AND due_at > clock_timestamp()
                                   THEN clock_timestamp() END) - clock_timestamp())::float8 + %s
FROM runs_approvalnotice WHERE organization_id = %s AND user_id = %s
"""
PUT_OFF = """
UPDATE runs_approvalnotice SET due_at = clock_timestamp() + %s * interval '1 second'
WHERE organization_id = %s AND user_id = %s AND status = 'pending'
"""
CLAIM = """
UPDATE runs_approvalnotice SET status = 'sending', holder = %s,
       due_at = clock_timestamp() + %s * interval '1 second'
WHERE organization_id = %s AND user_id = %s AND status IN ('pending', 'sending')
  AND (status = 'pending' OR due_at <= clock_timestamp())
RETURNING approval_id
"""
DONE = """
UPDATE runs_approvalnotice SET status = %s, holder = '',
       due_at = clock_timestamp() + %s * interval '1 second',
       sent_at = CASE %s WHEN 'sent' THEN clock_timestamp() END
WHERE user_id = %s AND approval_id = ANY(%s) AND status = 'sending' AND holder = %s
"""
GIVE_BACK = """
UPDATE runs_approvalnotice SET status = 'pending', holder = '', due_at = clock_timestamp()
WHERE status = 'sending' AND starts_with(holder, %s)
"""
DUE = """
SELECT DISTINCT organization_id, user_id FROM runs_approvalnotice
WHERE status IN ('pending', 'sending') AND due_at < clock_timestamp() - %s * interval '1 second' LIMIT %s
"""
# Whoever is asked for them takes them whatever `due_at` says: it only keeps the same from being asked again.
ASKED = """
UPDATE runs_approvalnotice SET status = 'pending', holder = '',
       due_at = clock_timestamp() + %s * interval '1 second'
WHERE organization_id = %s AND user_id = %s AND status IN ('pending', 'sending')
  AND due_at < clock_timestamp()
"""
SENDING_SECONDS = 60  # after which another may send what somebody holds: a mail server may take its time
RETRY_SECONDS = 300  # after which mail that could not be sent is tried again
OVERLOOKED_SECONDS = 5  # after which a notice that is due has lost its message of the queue
PATIENCE_SECONDS = 60  # with the message that was sent for it then
BATCH = 500
MOST_SHOWN = 20  # approvals in one mail


def announce(approval_id: str) -> None:
    """Note who is to hear of a pending approval, and have each of them written to."""
    approval = pending([approval_id]).first()
    if approval is None:
        return
    people = addressees(approval)
    notices = [
        ApprovalNotice(organization_id=approval.organization_id, approval=approval, user=person)
        for person in people
    ]
    with transaction.atomic():
        ApprovalNotice.objects.bulk_create(notices, ignore_conflicts=True)
        for person in people:
            if not gathered(approval, person.pk):
                soon(approval.organization_id, person.pk)


def gathered(approval: Approval, user_id: int) -> bool:
    """Whether a delivery is queued that will take this notice along: one message a person, however many
    approvals are asked for meanwhile.
    """
    place = {"organization_id": approval.organization_id, "user_id": user_id}
    others = ApprovalNotice.objects.filter(status="pending", **place).exclude(approval=approval)
    left = row(LAST_TOLD, [settings.NOTIFY_SECONDS, *place.values()])[1]
    if left is None or left <= 0 or not others.exists():
        return False
    execute(PUT_OFF, [left, *place.values()])
    return True


def soon(organization_id: str, user_id: int, delay: float = 0) -> None:
    """Have what waits for this person sent, if need be after `delay` seconds."""
    turn = put.for_people(organization_id)
    put.enqueue_task("deliver", organization_id, str(user_id), delay=delay, turn=turn)


def addressees(approval: Approval) -> list[Any]:
    """The people with an address for whom it waits."""
    return [person for person in deciders.addressed(approval) if person.email]


def deliver(organization_id: str, user_id: int) -> None:
    """Send the notices that wait for this person in one mail, now or when NOTIFY_SECONDS are over."""
    claimed = claim(organization_id, user_id)
    if isinstance(claimed, float):
        soon(organization_id, user_id, delay=claimed)
        return
    person = get_user_model().objects.get(pk=user_id)
    approvals = [approval for approval in pending(claimed) if person in addressees(approval)]
    wanted = [approval.pk for approval in approvals]
    done(user_id, sorted({*claimed} - {*wanted}), "obsolete")
    if not approvals:
        return
    mail = mail_about(approvals, person.email)
    let_go()
    try:
        mail.send()
    except OSError as error:  # of the mail server, or the way to it
        logger.warning("could not write to %s about approvals: %s", person.pk, type(error).__name__)
        done(user_id, wanted, "pending", RETRY_SECONDS)
        soon(organization_id, user_id, delay=RETRY_SECONDS)
        return
    done(user_id, wanted, "sent")


def claim(organization_id: str, user_id: int) -> list[str] | float:
    """The approvals to write about now; or the seconds until this person may be written to again."""
    place = [organization_id, user_id]
    with transaction.atomic():
        execute(ONE_AT_A_TIME, place)
        wanted, left = row(LAST_TOLD, [settings.NOTIFY_SECONDS, *place])
        if not wanted:
            return []
        if left is not None and left > 0:
            execute(PUT_OFF, [left, *place])
            return float(left)
        return [approval_id for (approval_id,) in rows(CLAIM, [holder(), SENDING_SECONDS, *place])]


def done(user_id: int, approval_ids: Sequence[str], status: str, due_in: float = 0) -> None:
    """What became of notices that this process holds."""
    if approval_ids:
        execute(DONE, [status, due_in, status, user_id, list(approval_ids), holder()])


def holder() -> str:
    """Who holds what this process sends: its group of workers, and the process."""
    return f"{broker.holder}:{os.getpid()};"


def give_back(group: str, pid: int | None = None) -> int:
    """Let what a process that died was sending, or all of a group's, be sent by another; how many."""
    return execute(GIVE_BACK, [f"{group}:" if pid is None else f"{group}:{pid};"])


def send_due() -> int:
    """Ask carriers for what should have been sent by now: its message was lost. Returns to how many."""
    if put.has_backlog(ErrandKind.MAIL):
        return 0
    found = rows(DUE, [OVERLOOKED_SECONDS, BATCH])
    with transaction.atomic():
        for organization_id, user_id in found:
            execute(ASKED, [PATIENCE_SECONDS, organization_id, user_id])
            soon(organization_id, user_id)
    return len(found)


def pending(ids: Sequence[str]) -> Any:
    """Those of the approvals that still wait, the oldest first."""
    open_ones = Approval.objects.filter(pk__in=ids, status=ApprovalStatus.PENDING, expires_at__gt=Now())
    return open_ones.select_related("run__project", "run__user", "tool_call").order_by("id")


def mail_about(approvals: Sequence[Approval], address: str) -> EmailMessage:
    """One mail: each call's tool and capability, for whom, why, and where to decide it."""
    count = len(approvals)
    subject = f"Deputy: {approvals[0].tool_call.tool} waits for your decision"
    if count > 1:
        subject = f"Deputy: {count} calls wait for your decision"
    shown = [about(approval) for approval in approvals[:MOST_SHOWN]]
    if count > MOST_SHOWN:
        shown.append(f"… and {count - MOST_SHOWN} more: {link('web:waiting')}")
    return EmailMessage(subject, "\n\n".join(shown) + "\n", to=[address])


def about(approval: Approval) -> str:
    tool, capability = approval.tool_call.tool, approval.capability
    named = tool if capability in ("", tool) else f"{tool} ({capability})"
    run = approval.run
    lines = [
        f"{named}, for {run.user.get_username()} in {run.project}",
        approval.explanation,
        f"Open until {approval.expires_at:%Y-%m-%d %H:%M} UTC" if approval.expires_at else "",
        link("web:approval", approval.pk),
    ]
    return "\n".join(line for line in lines if line)
