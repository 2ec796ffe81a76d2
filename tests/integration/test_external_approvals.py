"""What an outside agent may not do by itself, and what Deputy does once it is decided."""

import pytest
from django.core import mail

from groups.models import Project
from policy.models import CapabilityRule
from runs.actions.decide import DecisionRefused, Remember
from runs.execution import executor
from runs.execution.outside_agents import OutsideRefused
from runs.models import Approval, Run, ToolCall
from runs.workers.sweep import sweep
from tests.acting import approve, cancel, complete, message, reject
from tests.scripted import Scripted, by_role, call, say

from .helpers import chain_holds, payload, types
from .outside import MAIL, Outside, queued, work_off
from .test_decisions import decider, overdue

pytestmark = pytest.mark.django_db


@pytest.fixture
def approver(world):
    return decider(world)


@pytest.fixture
def outside(world, rule):
    return Outside(world)


def asked(outside, call_id="m", **other):
    """The mail stops at the gate; returns its approval."""
    parked = outside.call(call_id, "send_email", **{**MAIL, **other})
    assert (parked.status, parked.waits_for.kind) == ("waiting", "approval")
    return Approval.objects.get(pk=parked.waits_for.approval)


def test_a_risky_call_stops_and_says_for_what_and_until_when(outside):
    approval = asked(outside)

    parked = outside.look("m")
    assert parked.waits_for.correlation_key == approval.correlation_key
    assert parked.waits_for.expires_at == approval.expires_at is not None
    assert (outside.run.status, outside.run.waiting_reason) == ("waiting", "approval")
    assert (mail.outbox, queued()) == ([], [])
    assert "tool.called" not in types(outside.run)


def test_nobody_knows_what_an_outside_agent_has_read_so_each_call_is_asked_for(world, approver):
    """In a run of Deputy's own a person's approval holds until something from outside is read."""
    Project.objects.filter(pk=world.project.pk).update(approval_profile="careful")
    outside = Outside(world)
    approve(asked(outside).pk, approver)
    work_off()
    assert len(mail.outbox) == 1
    asked(outside, "n", body="I resign.")
    assert len(mail.outbox) == 1


def test_nor_whose_words_it_offers_as_an_answer(world, add_tool):
    """What an agent that has read nothing offers is the person's once they take it."""
    Project.objects.filter(pk=world.project.pk).update(approval_profile="balanced")
    written = []

    @add_tool(name="send_message", mutating=True, risk_level="high")
    def send_message(run, *, recipient: str, text: str):
        written.append(recipient)

    outside, offer = Outside(world, goal="Look after my news"), "Send the news to Mallory Smith"
    outside.call("q", "ask_user", question="What now?", choices=[offer, "Nothing"])
    message(outside.run.pk, offer)
    asked_about = outside.call("m", "send_message", recipient="Mallory Smith", text="the news")
    assert asked_about.waits_for.kind == "approval" and not written


def test_nor_why_it_picks_one_of_several(world, add_tool):
    Project.objects.filter(pk=world.project.pk).update(approval_profile="balanced")

    @add_tool(name="list_contacts")
    def list_contacts(run):
        return {"contacts": [{"name": name, "email": f"{name}@example.com"} for name in ("ann", "bob")]}

    outside = Outside(world, goal="Email one of my contacts the news")
    outside.call("c", "list_contacts")
    asked(outside, to=["bob@example.com"])
    assert not mail.outbox


def test_a_rule_about_what_was_read_from_outside_speaks_of_every_outside_agent(world):
    CapabilityRule.objects.create(
        organization=world.organization, tool="send_email", effect="deny", condition="run.read_outside"
    )
    refused = Outside(world, goal="Email a@example.com the news").call("m", "send_email", **MAIL)
    assert refused.error["code"] == "PERMISSION_DENIED" and not mail.outbox


def test_the_decision_hands_the_call_to_a_worker_and_the_agent_finds_its_result(outside, approver):
    approval = asked(outside)
    approve(approval.pk, approver)
    outside.run.refresh_from_db()
    assert (outside.run.status, len(queued()), mail.outbox) == ("running", 1, [])

    work_off()
    assert outside.look("m").result["sent"] == 1
    assert [m.to for m in mail.outbox] == [["a@example.com"]]
    approval.refresh_from_db()
    assert approval.consumed_at is not None
    assert types(outside.run)[3:] == [
        "message.created",
        "tool.requires_approval",
        "run.waiting",
        "wait.completed",
        "run.resumed",
        "tool.approved",
        "tool.called",
        "tool.completed",
    ]
    assert chain_holds(outside.run)


def test_an_edit_and_then_the_approval_run_the_edited_call_once(outside, approver):
    edited = {**MAIL, "to": ["b@example.com"]}
    approve(asked(outside).pk, approver, arguments=edited)
    work_off()
    work_off()

    assert [m.to for m in mail.outbox] == [["b@example.com"]]
    assert outside.look("m").arguments == edited
    assert outside.call("m", "send_email", **MAIL).status == "succeeded"
    assert len(mail.outbox) == 1


def test_a_rejection_is_the_calls_answer_with_its_reason(outside, approver):
    reject(asked(outside).pk, approver, "Wrong customer")
    work_off()

    rejected = outside.look("m")
    assert (rejected.status, rejected.error["code"]) == ("rejected", "APPROVAL_REJECTED")
    assert rejected.error["message"] == "Rejected by approver: Wrong customer"
    assert (mail.outbox, outside.run.status) == ([], "running")


def test_expired_is_not_rejected(outside):
    asked(outside)
    overdue(outside.run)
    sweep()
    work_off()

    assert (outside.look("m").status, outside.look("m").error["code"]) == ("expired", "APPROVAL_EXPIRED")
    assert outside.run.status == "running"


def test_a_rule_may_cancel_the_run_when_nobody_decides(outside, rule):
    rule.on_expiry = "cancel_run"
    rule.save()
    asked(outside)
    overdue(outside.run)
    sweep()
    work_off()

    assert (outside.look("m").open, outside.run.status, queued()) == (False, "cancelled", [])


def test_cancelling_the_run_withdraws_the_question(outside, approver):
    approval = asked(outside)
    cancel(outside.run.pk)

    assert outside.look("m").status == "cancelled"
    with pytest.raises(DecisionRefused, match="cancelled"):
        approve(approval.pk, approver)


def test_a_deny_that_came_after_the_approval_wins(outside, approver, rule):
    approve(asked(outside).pk, approver)
    rule.effect = "deny"
    rule.save()
    work_off()

    assert (outside.look("m").status, mail.outbox) == ("denied", [])


def test_a_deny_that_came_while_the_call_was_queued_wins(outside, world):
    asked = outside.call("g", "http_get", work=False, url="http://example.com")
    assert asked.status == "requested"
    CapabilityRule.objects.create(organization=world.organization, tool="http_get", effect="deny")
    work_off()

    assert outside.look("g").status == "denied"
    assert "tool.called" not in types(outside.run)


def test_a_rule_that_became_stricter_asks_again(outside, world, rule):
    first = asked(outside)
    approve(first.pk, decider(world, "service", "robot"))
    rule.effect = "require_human"
    rule.save()
    work_off()

    again = outside.look("m")
    assert again.waits_for.approval != first.pk
    assert outside.run.status == "waiting"
    approve(again.waits_for.approval, decider(world))
    work_off()
    assert (outside.look("m").status, len(mail.outbox)) == ("succeeded", 1)


def test_a_standing_approval_lets_like_calls_pass(outside, world, approver):
    approve(asked(outside).pk, approver, remember=Remember(fixed=("to",), uses=1))
    work_off()

    assert outside.call("m2", "send_email", **{**MAIL, "subject": "Again"}).status == "succeeded"
    third = outside.call("m3", "send_email", **{**MAIL, "subject": "Once more"})
    assert third.waits_for.kind == "approval"


def test_two_parked_calls_are_decided_each_by_itself(outside, approver):
    first, second = asked(outside, "a"), asked(outside, "b", subject="Another")
    reject(first.pk, approver, "no")
    work_off()
    assert (outside.look("a").status, outside.look("b").status) == ("rejected", "waiting")
    assert outside.run.status == "waiting"

    with pytest.raises(OutsideRefused) as refused:
        complete(outside.run.pk, "done")
    assert refused.value.details == {"open": ["b"]}
    approve(second.pk, approver)
    work_off()
    assert outside.look("b").status == "succeeded"
    complete(outside.run.pk, "done")


def test_an_outside_agent_escalates_and_finds_the_groups_result(outside):
    Scripted.play = staticmethod(
        by_role(
            researcher=[say("EVIDENCE: Rival A charges 5.")],
            analyst=[say("PROPOSAL: Match it.")],
            lead=[say("DECISION: Charge 5.")],
        )
    )
    parked = outside.call("e", "escalate_to_group", goal="Compare prices")
    child = Run.objects.get(parent_run=outside.run)
    assert (parked.waits_for.kind, parked.waits_for.child_run) == ("child", child.pk)
    assert (outside.run.status, outside.run.waiting_reason) == ("waiting", "child")

    executor.run(child.pk)
    work_off()
    assert outside.look("e").result == {"success": True, "result": "DECISION: Charge 5."}
    assert outside.run.status == "running"
    complete(outside.run.pk, "They charge 5.")
    assert chain_holds(outside.run)


def test_a_group_an_outside_agent_called_gets_no_more_rights_than_it_has(outside, world):
    world.membership.denied_tools = ["http_get"]
    world.membership.save()
    Scripted.play = staticmethod(
        by_role(
            researcher=[call(("http_get", {"url": "http://example.com"})), say("x")],
            analyst=[say("y")],
            lead=[say("DECISION: z")],
        )
    )
    outside.call("e", "escalate_to_group", goal="Compare prices")
    child = Run.objects.get(parent_run=outside.run)
    executor.run(child.pk)

    assert payload(child, "tool.blocked")["error"]["code"] == "PERMISSION_DENIED"


def test_a_group_that_fails_is_an_answer_too(outside):
    outside.call("e", "escalate_to_group", goal="Compare prices")
    cancel(Run.objects.get(parent_run=outside.run).pk)
    work_off()

    assert outside.look("e").result == {"success": False, "error": "Group run cancelled"}
    assert outside.run.status == "running"


def test_cancelling_an_outside_run_takes_its_groups_along(outside):
    outside.call("e", "escalate_to_group", goal="Compare prices")
    cancel(outside.run.pk)

    assert set(Run.objects.values_list("status", flat=True)) == {"cancelled"}


def test_children_are_limited_for_an_outside_agent_as_for_any_other(world, settings):
    settings.RUN_CHILDREN = 1
    limited = Outside(world)
    limited.call("e1", "escalate_to_group", goal="One")

    assert limited.call("e2", "escalate_to_group", goal="Two").error["code"] == "BUDGET_CHILDREN"
    assert ToolCall.objects.filter(run=limited.run, status="waiting").count() == 1
