"""A signal from outside: to a decision when the key is an approval's, to a wait otherwise (seed 004)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rest_framework.exceptions import ValidationError

from common.api.errors import Problem, invalid
from common.api.permissions import require_scope
from policy.terms import APPROVAL_PREFIX
from runs.actions import decide
from runs.actions.signal import signal
from runs.api import access
from runs.api.refusals import as_problems
from runs.api.serializers import AnswerSerializer
from runs.models import Approval, Run, Wait
from runs.models.choices import ApprovalStatus

NO_REASON = "no reason given"


@dataclass(frozen=True)
class Resolved:
    """What became of the wait; the same signal again reads the same."""

    run: str
    correlation_key: str
    outcome: str
    resolved_at: datetime | None


def deliver(request: Any, run: Run, correlation_key: str, payload: Any) -> Resolved:
    """Give the signal to whom it is for. Raises Problem."""
    if correlation_key.startswith(APPROVAL_PREFIX):
        require_scope(request, "approvals:decide")
        approval = _approval(request, run, correlation_key)
        decided = _decide(approval, payload, request.user)
        return Resolved(run.pk, correlation_key, decided.status, decided.decided_at)
    access.check_may_steer(run, request.user)
    with as_problems():
        signal(run.pk, correlation_key, payload)
    wait = Wait.objects.get(run=run, correlation_key=correlation_key)
    return Resolved(run.pk, correlation_key, wait.outcome or "", wait.resolved_at)


def _approval(request: Any, run: Run, correlation_key: str) -> Approval:
    """The approval of this key. Raises Problem 404 naming the open ones the asker may see."""
    seen = access.approvals(request.membership, request.user).filter(run=run)
    found = seen.filter(correlation_key=correlation_key).first()
    if found:
        return found
    keys = list(seen.filter(status=ApprovalStatus.PENDING).values_list("correlation_key", flat=True))
    listed = ", ".join(keys) or "none"
    raise Problem(404, "NO_SUCH_WAIT", f"No approval of this run has this key; open: {listed}.", open=keys)


def _decide(approval: Approval, payload: Any, by: Any) -> Approval:
    said = _read(payload)
    with as_problems(arguments="/payload/arguments"):
        if said["approved"]:
            return decide.approve(approval.pk, by, said["reason"], said.get("arguments"))
        return decide.reject(approval.pk, by, said["reason"] or NO_REASON)


def _read(payload: Any) -> dict[str, Any]:
    """`{"approved": true | false, "reason"?, "arguments"?}` and nothing else: nothing unread is waved on."""
    if not isinstance(payload, dict):
        raise invalid("/payload/approved", "required", "An approval's signal says approved: true or false.")
    said = AnswerSerializer(data=payload)
    if not said.is_valid():
        raise ValidationError({"payload": said.errors})
    return dict(said.validated_data)
