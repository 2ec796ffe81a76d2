"""Which runs and approvals somebody sees."""

from django.db.models import Prefetch, QuerySet

from common.columns import Columns
from common.db import rows
from groups.actors import Actor
from groups.api.access import visible
from groups.models import Membership
from policy.authority import holds
from runs.models import Approval, ApprovalDecision, Run, Schedule, ScheduledRun, ToolCall, Wait
from runs.models.choices import ApprovalStatus

DECIDE = "runs.decide_approval"

WAIT, CALL = Columns(Wait, "w"), Columns(ToolCall, "c", ("id", "tool", "call_id"))
APPROVAL = Columns(Approval, "a", ("id", "run_id", "correlation_key"))
OPEN_WAITS = f"""
SELECT {WAIT.sql}, {CALL.sql}, {APPROVAL.sql}
FROM runs_wait w LEFT JOIN runs_toolcall c ON c.id = w.tool_call_id
LEFT JOIN runs_approval a
    ON a.run_id = w.run_id AND a.correlation_key = w.correlation_key AND a.status = 'pending'
WHERE w.run_id = %s AND w.resolved_at IS NULL ORDER BY w.id
"""  # noqa: S608 - the names of our own columns


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


def read_waits(run: Run) -> None:
    """The same for one run, in one query."""
    run.open_waits, run.pending_approvals = [], []  # type: ignore[attr-defined]
    for found in rows(OPEN_WAITS, [run.pk]):
        values = iter(found)
        wait, call, approval = WAIT.take(values), CALL.take(values), APPROVAL.take(values)
        assert wait is not None  # noqa: S101 - the statement begins with it
        wait.tool_call = call
        run.open_waits.append(wait)  # type: ignore[attr-defined]
        run.pending_approvals += [approval] if approval else []  # type: ignore[attr-defined]


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
