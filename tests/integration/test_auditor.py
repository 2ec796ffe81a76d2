"""The auditor of the proofs finds what it is there to find."""

import pytest

from common.db import execute
from runs.models import Run
from runs.tools.base import ToolContext
from tests import auditor
from tests.scripted import by_role, call, say

pytestmark = pytest.mark.django_db

DOWN = call(("escalate_to_group", {"goal": "Compare prices"}))
QUESTION = call(("ask_user", {"question": "?"}))
SEND = call(("send_email", {"to": ["a@example.com"], "subject": "Hello", "body": "Text"}))


END = "UPDATE runs_run SET status = 'failed', waiting_reason = NULL, ended_at = now() WHERE id = "
TURN = "UPDATE runs_runevent SET type = '{}' WHERE run_id = {{child}} AND {}"


@pytest.fixture
def tree(ask):
    """A parent that waits for its child, which waits for an answer and for an approval."""
    both = call(*((c.name, c.arguments) for c in (*QUESTION.tool_calls, *SEND.tool_calls)))
    parent = ask(by_role(Personal_agent=[DOWN], researcher=[both]))
    return parent, Run.objects.get(parent_run=parent)


def test_what_happened_is_in_order(tree, world):
    assert auditor.audit(world.organization.pk) == auditor.unrest(world.organization.pk) == []
    assert auditor.counts(world.organization.pk)["waiting"] == 2


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (END + "{child}", "an ended run waits for nothing"),
        (END + "{child}", "an ended run has no pending approval"),
        (
            END + "{child}",
            "an ended run has no call that is under way",
        ),
        (
            END + "{child}",
            "no parent waits for a child that has ended",
        ),
        ("DELETE FROM runs_wait WHERE run_id = {child}", "a waiting run has something to wait for"),
        ("DELETE FROM runs_wait WHERE run_id = {parent}", "a living child is waited for"),
        (
            END + "{parent}",
            "nothing lives below what has ended",
        ),
        (
            "UPDATE runs_run SET parent_run_id = id WHERE id = {parent}",
            "each child stands in its parent's log, once",
        ),
        (
            "DELETE FROM runs_wait WHERE run_id = {child} AND kind = 'approval'",
            "a pending approval and its open wait are together",
        ),
        (
            "UPDATE runs_approval SET consumed_at = now() WHERE run_id = {child}",
            "only what was approved is used",
        ),
        (
            TURN.format("tool.called", "type LIKE 'tool.req%%'"),
            "a call that was not approved has not begun",
        ),
        (
            "UPDATE runs_wait SET resolved_at = now(), outcome = 'completed' WHERE run_id = {child}",
            "what a wait brought stands in the log once",
        ),
        (
            TURN.format("wait.completed", "type LIKE 'tool.req%%'"),
            "nothing is told twice, or without a wait",
        ),
        ("UPDATE runs_run SET attempt = 7 WHERE id = {child}", "each claim is an attempt of its own"),
        (
            "UPDATE runs_run SET lease_expires_at = now() WHERE id = {child}",
            "who is at work has a lease, and nobody else",
        ),
        (
            "INSERT INTO runs_outboundcall (organization_id, run_id, root_id, attempt, kind, call_id, target,"
            " host, rank, threaded, most, host_most, request, receipt, wake, seconds)"
            " SELECT organization_id, id, root_id, attempt, 'model', '', 'm',"
            " '', 0, false, 1, 1, '', '', '', 1 FROM runs_run WHERE id = {child}",
            "a run with outbound calls is at work, as their attempt, and in nobody's hands",
        ),
        (
            TURN.format("run.failed", "seq < 3"),
            "a run ends once",
        ),
        (
            TURN.format("memory.deposited", "seq < 3"),
            "a group's knowledge is left once",
        ),
        (
            TURN.format("wait.completed", "seq = (SELECT last_seq FROM runs_run WHERE id = {child})"),
            "whatever is resolved wakes the run",
        ),
    ],
)
def test_each_rule_finds_what_breaks_it(tree, world, change, rule):
    parent, child = tree
    if rule == "whatever is resolved wakes the run":
        execute(
            "UPDATE runs_runevent SET type = 'run.waiting' WHERE run_id = %s AND type = 'tool.waits'",
            [child.pk],
        )
    assert execute(change.format(parent=f"'{parent.pk}'", child=f"'{child.pk}'"))

    assert rule in {words for words, _ in auditor.broken(world.organization.pk)}


def test_every_rule_has_its_test():
    marks = test_each_rule_finds_what_breaks_it.pytestmark
    assert {rule for mark in marks for _, rule in mark.args[1]} == auditor.RULES.keys()


def test_a_log_that_was_changed_and_tool_calls_that_say_otherwise_are_found(tree, world):
    _, child = tree
    execute("UPDATE runs_toolcall SET status = 'succeeded' WHERE run_id = %s", [child.pk])
    assert sum("its row succeeded" in words for words in auditor.audit(world.organization.pk)) == 2

    execute("UPDATE runs_runevent SET agent = 'other' WHERE run_id = %s AND seq = 4", [child.pk])
    assert any("not what its digest says" in words for words in auditor.audit(world.organization.pk))


def test_a_run_that_ought_to_go_on_is_found(tree, world):
    _, child = tree
    Run.objects.filter(pk=child.pk).update(status="pending", waiting_reason=None)
    assert len(auditor.unrest(world.organization.pk)) == 2  # and its parent with it


@pytest.mark.parametrize(
    ("tool", "status", "times", "found"),
    [
        ("effect", "succeeded", 1, ""),
        ("effect", "succeeded", 2, "effect happened 2 times"),
        ("keyed_effect", "succeeded", 2, ""),
        ("effect", "succeeded", 0, "effect succeeded and never happened"),
        ("effect", "unknown", 1, ""),
        ("effect", "cancelled", 1, "effect happened, its row says cancelled"),
    ],
)
def test_effects_are_held_against_the_log(ask, world, add_tool, tool, status, times, found):
    @add_tool(name=tool)
    def told(run: ToolContext) -> None:
        return None

    run = ask(lambda messages, facts: say("ok") if len(messages) > 2 else call((tool, {})))
    call_made = run.calls.get()
    run.calls.update(status=status)
    effects = [("it", run.pk, call_made.idempotency_key)] * times

    said = auditor.audit_effects(world.organization.pk, effects, {"keyed_effect"})
    assert said == ([f"{run.pk} {call_made.call_id}: {found}"] if found else [])
    assert auditor.audit_effects(world.organization.pk, [*effects, ("it", run.pk, "x")], {"keyed_effect"})
