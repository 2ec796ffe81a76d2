"""A signal from outside: to a decision when the key is an approval's, to a wait otherwise (seed 004)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rest_framework.exceptions import ValidationError

from common.api.errors import Problem, invalid
from common.api.permissions import require_scope
from groups.actors import Actor
from policy.terms import APPROVAL_PREFIX
from runs.actions import decide
from runs.actions.signal import signal
from runs.api import access
from runs.api.refusals import as_problems
from runs.api.serializers import AnswerSerializer
from runs.models import Approval, Run, Wait
from runs.models.choices import ApprovalStatus, WaitKind

KEPT = "kept"
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
        decided = _decide(approval, payload, request.actor.signalling())
        return Resolved(run.pk, correlation_key, decided.status, decided.decided_at)
    with as_problems():
        signal(run.pk, correlation_key, request.actor, payload)
    wait = Wait.objects.get(run=run, correlation_key=correlation_key)
    if wait.kind == WaitKind.SIGNAL and wait.tool_call_id is None:  # nobody waits for it yet (ruling 43)
        return Resolved(run.pk, correlation_key, KEPT, None)
    return Resolved(run.pk, correlation_key, wait.outcome or "", wait.resolved_at)


def _approval(request: Any, run: Run, correlation_key: str) -> Approval:
    """The approval of this key. Raises Problem 404 naming the open ones the asker may see."""
    seen = access.approvals(request.actor).filter(run=run)
    found = seen.filter(correlation_key=correlation_key).order_by("-id").first()  # an edit keeps the key
    if found:
        return found
    keys = list(seen.filter(status=ApprovalStatus.PENDING).values_list("correlation_key", flat=True))
    listed = ", ".join(keys) or "none"
    raise Problem(404, "NO_SUCH_WAIT", f"No approval of this run has this key; open: {listed}.", open=keys)


def _decide(approval: Approval, payload: Any, actor: Actor) -> Approval:
    said = _read(payload)
    digest = said.get("arguments_digest")
    with as_problems(arguments="/payload/arguments"):
        if said["approved"]:
            return decide.approve(approval.pk, actor, digest, said["reason"], said.get("arguments"))
        return decide.reject(approval.pk, actor, digest, said["reason"] or NO_REASON)


def _read(payload: Any) -> dict[str, Any]:
    """`{"approved", "arguments_digest", "reason"?, "arguments"?}` and nothing else: nothing unread passes."""
    if not isinstance(payload, dict):
        raise invalid("/payload/approved", "required", "An approval's signal says approved: true or false.")
    said = AnswerSerializer(data=payload)
    if not said.is_valid():
        raise ValidationError({"payload": said.errors})
    return dict(said.validated_data)
