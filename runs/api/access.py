"""Which runs and approvals somebody sees."""

from django.db.models import Prefetch, QuerySet

from groups.actors import Actor
from groups.api.access import visible
from groups.models import Membership
from policy.authority import holds
from runs.models import Approval, ApprovalDecision, Run, Schedule, ScheduledRun, Wait
from runs.models.choices import ApprovalStatus

DECIDE = "runs.decide_approval"


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


def approvals(actor: Actor) -> QuerySet[Approval]:
    """All of the member's projects for those who may decide; for others those of their own runs."""
    words = Prefetch("decisions", ApprovalDecision.objects.select_related("user").order_by("id"))
    whole = Approval.objects.select_related("run__user", "tool_call", "decided_by").prefetch_related(words)
    return visible_approvals(actor, whole)


def visible_approvals(actor: Actor, rows: QuerySet[Approval] | None = None) -> QuerySet[Approval]:
    """The same of these rows, or of all, with nothing read beside them."""
    whole = Approval.objects.all() if rows is None else rows
    if actor.membership is None:
        return whole.none()
    found = visible(whole, actor.membership, "run__project_id")
    return found if holds(actor, DECIDE) else found.filter(run__user=actor.user)


def schedules(actor: Actor) -> QuerySet[Schedule]:
    """The actor's own, in the projects they see."""
    if actor.membership is None:
        return Schedule.objects.none()
    return visible(Schedule.objects.select_related("project"), actor.membership).filter(user=actor.user)


def history(schedule: Schedule) -> QuerySet[ScheduledRun]:
    """What became of its due times."""
    return schedule.history.select_related("run")
