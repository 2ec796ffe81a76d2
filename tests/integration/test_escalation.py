"""The main path: a personal agent escalates, waits, and goes on with the group's result."""

import pytest

from runs.models import Run, RunEvent, ToolCall, Wait
from tests.scripted import by_role, call, in_order, say

pytestmark = pytest.mark.django_db


def types(run):
    return list(RunEvent.objects.filter(run=run).order_by("seq").values_list("type", flat=True))


def escalated(ask):
    return ask(
        by_role(
            Personal_agent=[call(("escalate_to_group", {"goal": "Compare prices"})), say("They charge 5.")],
            researcher=[say("EVIDENCE: Rival A charges 5.")],
            analyst=[say("PROPOSAL: Match it.")],
            lead=[say("DECISION: Charge 5.")],
        )
    )


def test_a_personal_agent_answers_alone(ask):
    run = ask(in_order(say("Nothing to escalate.")))

    assert (run.status, run.output) == ("completed", "Nothing to escalate.")
    assert types(run) == ["run.created", "message.created", "run.started", "message.created", "run.completed"]


def test_it_escalates_and_answers_with_the_groups_result(ask, world):
    run = escalated(ask)

    child = Run.objects.get(parent_run=run)
    assert (run.status, run.output) == ("completed", "They charge 5.")
    assert (child.status, child.output, child.group, child.depth) == (
        "completed",
        "DECISION: Charge 5.",
        world.group,
        1,
    )
    result = ToolCall.objects.get(run=run).result
    assert result == {"success": True, "result": "DECISION: Charge 5."}
    assert Wait.objects.get(run=run).outcome == "completed"
    assert types(run)[-8:] == [
        "tool.called",
        "child.created",
        "run.waiting",
        "wait.completed",
        "run.resumed",
        "tool.completed",
        "message.created",
        "run.completed",
    ]


def test_by_time_the_group_has_ended_before_its_parent_hears_of_it(ask):
    run = escalated(ask)

    child = Run.objects.get(parent_run=run)
    in_time = RunEvent.objects.filter(run__root=run).order_by("created_at", "run_id", "seq")
    told = list(in_time.values_list("run", "type"))
    first, last = told.index((child.pk, "run.created")), told.index((child.pk, "run.completed"))
    assert told[first - 1] == (run.pk, "run.waiting")
    assert {who for who, _ in told[first : last + 1]} == {child.pk}
    assert told[last + 1] == (run.pk, "wait.completed")
