"""Which runs and approvals somebody sees, and who may steer a run."""

from typing import Any

from django.db.models import Prefetch, QuerySet

from common.api.errors import Problem
from groups import member_permissions
from groups.api.access import visible
from groups.current import holds
from groups.models import Membership
from runs.models import Approval, ApprovalDecision, Run, Wait
from runs.models.choices import ApprovalStatus

DECIDE = "runs.decide_approval"
CANCEL = "runs.cancel_run"


def runs(membership: Membership) -> QuerySet[Run]:
    """The runs of the member's projects, whoever started them."""
    return visible(Run.objects.select_related("user"), membership)


def with_waits(runs: QuerySet[Run]) -> QuerySet[Run]:
    """The runs with what they wait for now, in two further queries however many they are."""
    waits = Wait.objects.filter(resolved_at=None).select_related("tool_call").order_by("id")
    pending = Approval.objects.filter(status=ApprovalStatus.PENDING).only("id", "run_id", "correlation_key")
    return runs.prefetch_related(
        Prefetch("waits", waits, to_attr="open_waits"),
        Prefetch("approvals", pending, to_attr="pending_approvals"),
    )


def approvals(membership: Membership, user: Any) -> QuerySet[Approval]:
    """All of the member's projects for those who may decide; for others those of their own runs."""
    words = Prefetch("decisions", ApprovalDecision.objects.select_related("user").order_by("id"))
    whole = Approval.objects.select_related("run__user", "tool_call", "decided_by").prefetch_related(words)
    found = visible(whole, membership, "run__project_id")
    return found if DECIDE in member_permissions.of(membership) else found.filter(run__user=user)


def check_drives(run: Run, user: Any) -> None:
    """Calls are made with the rights of the run's user, so nobody else makes them. Raises Problem."""
    if run.user_id != user.pk:
        raise Problem(403, "NOT_ENTITLED", "This is somebody else's run; only their own agent drives it.")


def check_may_steer(run: Run, user: Any) -> None:
    """A run is spoken to and cancelled by whoever it works for, and by those with the permission."""
    if run.user_id != user.pk and not holds(user, run.organization_id, CANCEL):
        raise Problem(403, "NOT_ENTITLED", "This is somebody else's run; you may look, but not steer it.")
