"""Decide an approval: approve, with other arguments if need be, or reject with a reason."""

from typing import Any

from django.db import transaction

from groups.models import Membership
from groups.models.organizations import MembershipKind
from runs.actions import waits
from runs.choices import ApprovalEffect, ApprovalStatus, WaitOutcome
from runs.log import RunLog
from runs.models import Approval


class DecisionRefused(Exception):
    """The decision cannot be taken.

    `code`: NOT_ENTITLED, HUMAN_ONLY, OWN_RUN, ALREADY_DECIDED, EXPIRED, REASON_MISSING.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def approve(approval_id: str, by: Any, reason: str = "") -> Approval:
    """Let the call run as asked for; the same decision again answers alike. Raises DecisionRefused."""
    return _decide(approval_id, by, ApprovalStatus.APPROVED, WaitOutcome.APPROVED, reason)


def reject(approval_id: str, by: Any, reason: str) -> Approval:
    """Refuse the call; the agent is told the reason. Raises DecisionRefused."""
    if not reason.strip():
        raise DecisionRefused("REASON_MISSING", "A rejection needs a reason: the agent is told it.")
    return _decide(approval_id, by, ApprovalStatus.REJECTED, WaitOutcome.REJECTED, reason.strip())


def _decide(approval_id: str, by: Any, status: ApprovalStatus, outcome: WaitOutcome, reason: str) -> Approval:
    with transaction.atomic():
        run_id = Approval.objects.values_list("run_id", flat=True).get(pk=approval_id)
        log = RunLog.lock(run_id)
        approval = (
            Approval.objects.select_for_update(no_key=True).select_related("run__project").get(pk=approval_id)
        )
        human = entitled(approval, by)
        if approval.status != ApprovalStatus.PENDING:
            return _again(approval, status)
        if approval.expires_at and approval.expires_at <= log.now:
            raise DecisionRefused("EXPIRED", "The time to decide is over.")
        approval.status = status
        approval.decided_at = log.now
        approval.decided_by = by
        approval.decided_as_human = human
        approval.reason = reason
        approval.save()
        payload = {"approval": approval.pk, "by": by.get_username(), "reason": reason}
        waits.resolve(log, approval.correlation_key, outcome.value, payload)
        log.flush()
        waits.enqueue_if_pending(log)
    return approval


def _again(approval: Approval, status: ApprovalStatus) -> Approval:
    if approval.status == status:
        return approval
    who = f" by {approval.decided_by}" if approval.decided_by else ""
    raise DecisionRefused("ALREADY_DECIDED", f"The request has already been {approval.status}{who}.")


def entitled(approval: Approval, by: Any) -> bool:
    """Whether `by` decides as a person. Raises DecisionRefused when they may not decide at all (design 5)."""
    membership = Membership.objects.filter(
        organization_id=approval.organization_id, user=by, active=True
    ).first()
    sees = membership is not None and membership.sees_project(approval.run.project_id)
    if not sees or not by.has_perm("runs.decide_approval"):
        raise DecisionRefused("NOT_ENTITLED", "You may not decide approvals of this project.")
    human = membership is not None and membership.kind == MembershipKind.HUMAN
    if approval.effect == ApprovalEffect.REQUIRE_HUMAN:
        if not human:
            raise DecisionRefused("HUMAN_ONLY", "Only a person can decide this; a service account cannot.")
        if approval.run.user_id == by.pk and not approval.run.project.allow_self_approval:
            raise DecisionRefused("OWN_RUN", "You cannot decide this for your own run; somebody else has to.")
    return human
