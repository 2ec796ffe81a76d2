"""Mail to those who may decide: that an approval waits, never what the call would say.

A hint, no more: what waits is on people's own pages, in the admin and the API. Nobody gets two mails about an
organization within NOTIFY_SECONDS; what comes meanwhile is gathered in the next. Mail goes out between two
transactions: a worker that dies right then leaves its mail unsent rather than sending it twice.
"""

import logging
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models.functions import Now
from django.urls import reverse

from common.db import execute, row, rows
from runs.gate.deciders import who_may_decide
from runs.models import Approval, ApprovalNotice
from runs.models.choices import ApprovalStatus
from runs.queue import put

logger = logging.getLogger(__name__)

ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('deputy.notices ' || %s, %s))"
SECONDS_LEFT = """
SELECT EXTRACT(epoch FROM max(sent_at) - clock_timestamp())::float8 + %s FROM runs_approvalnotice
WHERE organization_id = %s AND user_id = %s
"""
CLAIM = """
UPDATE runs_approvalnotice SET sent_at = clock_timestamp()
WHERE organization_id = %s AND user_id = %s AND sent_at IS NULL
RETURNING approval_id
"""
RETRY_SECONDS = 300  # after which mail that could not be sent is tried again
MOST_SHOWN = 20  # approvals in one mail


def announce(approval_id: str) -> None:
    """Note who is to hear of a pending approval, and write to those who have not been written to lately."""
    approval = pending([approval_id]).first()
    if approval is None:
        return
    people = addressees(approval)
    notices = [
        ApprovalNotice(organization_id=approval.organization_id, approval=approval, user=person)
        for person in people
    ]
    ApprovalNotice.objects.bulk_create(notices, ignore_conflicts=True)
    for person in people:
        deliver(approval.organization_id, person.pk)


def addressees(approval: Approval) -> list[Any]:
    """The people with an address who may decide it."""
    run = approval.run
    people = who_may_decide(
        run.project, run.user_id, approval.effect, approval.deciders_needed, people_only=True
    )
    return [person for person in people if person.email]


def deliver(organization_id: str, user_id: int) -> None:
    """Send the notices that wait for this person in one mail, now or when NOTIFY_SECONDS are over."""
    claimed = claim(organization_id, user_id)
    if isinstance(claimed, float):
        put.enqueue_task("deliver", organization_id, str(user_id), delay=claimed)
        return
    person = get_user_model().objects.get(pk=user_id)
    approvals = [approval for approval in pending(claimed) if person in addressees(approval)]
    if not approvals:
        return
    try:
        mail_about(approvals, person.email).send()
    except OSError as error:  # of the mail server, or the way to it
        logger.warning("could not write to %s about approvals: %s", person.pk, type(error).__name__)
        ApprovalNotice.objects.filter(approval__in=approvals, user_id=user_id).update(sent_at=None)
        put.enqueue_task("deliver", organization_id, str(user_id), delay=RETRY_SECONDS)


def claim(organization_id: str, user_id: int) -> list[str] | float:
    """The approvals to write about now; or the seconds until this person may be written to again."""
    place = [organization_id, user_id]
    with transaction.atomic():
        execute(ONE_AT_A_TIME, place)
        unsent = ApprovalNotice.objects.filter(sent_at=None)
        if not unsent.filter(organization_id=organization_id, user_id=user_id).exists():
            return []
        left = row(SECONDS_LEFT, [settings.NOTIFY_SECONDS, *place])[0]
        if left is not None and left > 0:
            return float(left)
        return [approval_id for (approval_id,) in rows(CLAIM, place)]


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


def link(name: str, *arguments: str) -> str:
    """The page on which anybody decides, staff or not."""
    return f"{settings.PUBLIC_URL}{reverse(name, args=arguments)}"
