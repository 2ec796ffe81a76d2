"""Which runs and approvals somebody sees."""

from django.db.models import Prefetch, QuerySet

from common.columns import Columns
from common.db import rows
from groups.actors import Actor
from groups.api.access import visible
from groups.models import Membership
from policy.authority import holds
from runs.models import Approval, ApprovalDecision, Run, Schedule, ScheduledRun, ToolCall, Wait

DECIDE = "runs.decide_approval"

WAIT, CALL = Columns(Wait, "w"), Columns(ToolCall, "c", ("id", "tool", "call_id"))
APPROVAL = Columns(Approval, "a", ("id", "run_id", "correlation_key"))
OPEN_WAITS = f"""
SELECT {WAIT.sql}, {CALL.sql}, {APPROVAL.sql}
FROM runs_wait w LEFT JOIN runs_toolcall c ON c.id = w.tool_call_id
LEFT JOIN runs_approval a
    ON a.run_id = w.run_id AND a.correlation_key = w.correlation_key AND a.status = 'pending'
WHERE w.run_id = ANY(%s) AND w.resolved_at IS NULL ORDER BY w.id
"""  # noqa: S608 - the names of our own columns


def runs(membership: Membership) -> QuerySet[Run]:
    """The runs of the member's projects, whoever started them."""
    return visible(Run.objects.select_related("user"), membership)


def read_waits(*runs: Run) -> None:
    """Give the runs what they wait for now (`open_waits`, `pending_approvals`), in one query for all."""
    for run in runs:
        run.open_waits, run.pending_approvals = [], []  # type: ignore[attr-defined]
    by_id = {run.pk: run for run in runs}
    for found in rows(OPEN_WAITS, [list(by_id)]):
        values = iter(found)
        wait, call, approval = WAIT.take(values), CALL.take(values), APPROVAL.take(values)
        assert wait is not None  # noqa: S101 - the statement begins with it
        wait.tool_call = call
        run = by_id[wait.run_id]
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
