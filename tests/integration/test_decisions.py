"""Approvals: exactly what was approved runs, once, and only those who may decide do."""

from datetime import timedelta
from functools import partial

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.admin.models import CHANGE, LogEntry
from django.core import mail
from django.utils import timezone

from groups import changes
from groups.models import Change, CustomRole, IdentityProvider, Membership
from policy import grants
from policy.models import CapabilityRule, Grant
from runs.actions import decide
from runs.actions.decide import DecisionRefused, Remember
from runs.execution import executor
from runs.gate import deciders
from runs.models import Approval, Run, ToolCall
from runs.workers.sweep import sweep
from tests.acting import approve, at_the_pages, by_token, cancel, reject, resolve
from tests.admin_world import superuser
from tests.factories import MembershipFactory
from tests.factories import permit as only
from tests.integration.api_client import permit
from tests.scripted import by_role, call, in_order, say

from .helpers import chain_holds, payload, types

pytestmark = pytest.mark.django_db

TO = {"to": ["a@example.com"], "subject": "Hello", "body": "Text"}
SEND = call(("send_email", TO))


def decider(world, kind="human", name="approver", **fields):
    membership = MembershipFactory(
        organization=world.organization,
        user__username=name,
        user__email=f"{name}@example.com",
        kind=kind,
        **fields,
    )
    return only(membership.user, "decide_approval", "resolve_review", "policy.add_grant")


@pytest.fixture
def approver(world):
    return decider(world)


@pytest.fixture
def waiting(ask, rule):
    """A run that waits for somebody to approve its mail; returns (run, approval)."""

    def make(*replies, sent=TO, **fields):
        for name, value in fields.items():
            setattr(rule, name, value)
        rule.save()
        run = ask(in_order(call(("send_email", sent)), *(replies or [say("done")])))
        assert (run.status, run.waiting_reason) == ("waiting", "approval")
        return run, Approval.objects.get(run=run, status="pending")

    return make


def resumed(run):
    executor.run(run.pk)
    run.refresh_from_db()
    assert chain_holds(run)
    return run


def error_of(run):
    return ToolCall.objects.get(run=run).error


def test_a_risky_call_stops_and_says_why(waiting):
    run, approval = waiting()

    asked = payload(run, "tool.requires_approval")
    assert (asked["effect"], asked["arguments"], asked["approval"]) == ("require_approval", TO, approval.pk)
    assert asked["correlation_key"] == f"cap-approval-{ToolCall.objects.get(run=run).idempotency_key}"
    assert "mail is checked" in approval.explanation
    assert mail.outbox == []
    assert "tool.called" not in types(run)


def test_what_was_approved_runs_once_and_the_approval_is_used_up(waiting, approver):
    run, approval = waiting()
    approve(approval.pk, approver, "fine")
    resumed(run)

    assert (run.status, len(mail.outbox), mail.outbox[0].to) == ("completed", 1, ["a@example.com"])
    approval.refresh_from_db()
    assert (approval.status, approval.decided_by) == ("approved", approver)
    assert approval.consumed_at is not None


def test_the_same_decision_again_answers_alike_and_another_is_refused_saying_who(waiting, approver):
    run, approval = waiting()
    for _ in range(3):
        assert approve(approval.pk, approver).status == "approved"
    with pytest.raises(DecisionRefused, match="approved by approver") as refused:
        reject(approval.pk, approver, "no")

    assert refused.value.code == "ALREADY_DECIDED"
    resumed(run)
    assert len(mail.outbox) == 1


def test_a_rejection_reaches_the_agent_with_its_reason_and_the_run_goes_on(waiting, approver):
    run, approval = waiting(say("I could not send it."))
    reject(approval.pk, approver, "Wrong customer")

    assert resumed(run).output == "I could not send it."
    assert error_of(run) == {"code": "APPROVAL_REJECTED", "message": "Rejected by approver: Wrong customer"}
    assert mail.outbox == []


def test_a_rejection_needs_a_reason(waiting, approver):
    _, approval = waiting()

    with pytest.raises(DecisionRefused) as refused:
        reject(approval.pk, approver, "  ")
    assert refused.value.code == "REASON_MISSING"


def test_a_reason_that_cannot_be_kept_is_refused_and_nothing_happens(waiting, approver):
    _, approval = waiting()

    for take in (approve, reject):
        with pytest.raises(DecisionRefused) as refused:
            take(approval.pk, approver, "no\x00")
        assert refused.value.code == "REASON_INVALID"
    approval.refresh_from_db()
    assert approval.status == "pending"


def test_expired_is_not_rejected(waiting):
    run, approval = waiting()
    overdue(run)
    sweep()

    assert resumed(run).status == "completed"
    assert error_of(run)["code"] == "APPROVAL_EXPIRED"
    approval.refresh_from_db()
    assert approval.status == "expired"


def overdue(run):
    run.waits.update(expires_at=timezone.now() - timedelta(hours=1))
    run.approvals.update(expires_at=timezone.now() - timedelta(hours=1))


def test_after_the_time_is_over_nobody_decides(waiting, approver):
    run, approval = waiting()
    overdue(run)

    with pytest.raises(DecisionRefused) as refused:
        approve(approval.pk, approver)
    assert refused.value.code == "EXPIRED"


def test_a_rule_may_cancel_the_run_when_nobody_decides(waiting):
    run, _ = waiting(on_expiry="cancel_run")
    overdue(run)
    sweep()

    run.refresh_from_db()
    assert run.status == "cancelled"
    assert not Approval.objects.filter(status="pending").exists()


def test_cancelling_the_run_withdraws_the_question(waiting, approver):
    run, approval = waiting()
    cancel(run.pk)

    with pytest.raises(DecisionRefused, match="cancelled"):
        approve(approval.pk, approver)


# who may decide


def test_nobody_without_the_permission_decides(waiting, world):
    _, approval = waiting()
    outsider = MembershipFactory(user__username="outsider").user
    only(outsider, "decide_approval")

    for user in (world.user, outsider):
        with pytest.raises(DecisionRefused) as refused:
            approve(approval.pk, user)
        assert refused.value.code == "NOT_ENTITLED"


def test_of_several_deciders_each_is_a_person_or_a_robot_that_the_rule_names(waiting, world, approver):
    robot = decider(world, "service", "robot")
    members = [one.memberships.get() for one in (robot, approver)]
    roles, named = ([f"role:{one.role_name}" for one in members], [f"member:{one.pk}" for one in members])
    for names, counts in (([], False), (roles, False), (named, True)):
        _, approval = waiting(deciders_needed=2, deciders=names)
        here = deciders.decidable(by_token(robot, world.organization.pk), Approval.objects.all())
        assert here.filter(pk=approval.pk).exists() == counts
        if counts:
            assert approve(approval.pk, robot).status == "pending"
            continue
        with pytest.raises(DecisionRefused, match="Several people") as refused:
            approve(approval.pk, robot)
        assert refused.value.code == "HUMAN_ONLY"


def test_a_role_or_a_project_that_a_rule_names_means_people(waiting, world):
    """Whoever holds a robot's token could give it the role, its role the name, or the project to it."""
    robot = decider(world, "service", "robot")
    member = robot.memberships.get()
    world.project.owner = member
    world.project.save()
    here = by_token(robot, world.organization.pk)
    for names in ([f"role:{member.role_name}"], ["project.owner"], [f"role:{member.role_name}", "run.user"]):
        _, approval = waiting(deciders=names)
        assert not deciders.decidable(here, Approval.objects.filter(pk=approval.pk)).exists()
        with pytest.raises(DecisionRefused, match="where the rule names it itself") as refused:
            approve(approval.pk, robot)
        assert refused.value.code == "HUMAN_ONLY"
    _, approval = waiting(deciders=[f"member:{member.pk}", "role:curator"])
    assert approve(approval.pk, robot).status == "approved"


def test_nobody_casts_a_colleagues_vote_by_changing_their_account(waiting, world, approver):
    """Whoever gives somebody else's account a password, a role or a token could sit at it now."""
    root = superuser()
    LogEntry.objects.log_actions(root.pk, [approver], CHANGE, "Changed password.", single_object=True)
    here = at_the_pages(approver, world.organization.pk)
    named = [f"member:{approver.memberships.get().pk}"]
    usual = {"effect": "require_approval", "deciders_needed": 1, "deciders": []}
    for demand in ({"deciders_needed": 2}, {"deciders": named}, {"effect": "require_human"}):
        _, approval = waiting(**{**usual, **demand})
        assert not deciders.decidable(here, Approval.objects.filter(pk=approval.pk)).exists()
        with pytest.raises(DecisionRefused, match="changed your account"):
            decide.approve(approval.pk, here, approval.arguments_digest)
    _, approval = waiting(**usual)  # which the administrator may decide as well
    assert deciders.decidable(here, Approval.objects.filter(pk=approval.pk)).exists()
    assert decide.approve(approval.pk, here, approval.arguments_digest).status == "approved"


@pytest.mark.parametrize("when", ["before", "after"])
def test_nor_does_one_cast_so_count_once_the_rule_names_them(waiting, world, approver, rule, when):
    """Any one decider could let it pass at the time; what they themself have decided counts."""
    run, approval = waiting()
    change = partial(LogEntry.objects.log_actions, superuser().pk, [approver], CHANGE, single_object=True)
    if when == "before":
        change("Changed password.")
    assert approve(approval.pk, approver).status == "approved"
    if when == "after":
        change("Changed password.")
    rule.deciders = [f"member:{approver.memberships.get().pk}"]
    rule.save()
    run = resumed(run)
    assert (run.status, len(mail.outbox)) == (("waiting", 0) if when == "before" else ("completed", 1))


@pytest.mark.parametrize("by", ["membership", "role", "project", "nobody"])
def test_nor_one_of_whom_somebody_else_makes_one_of_those_named_since(waiting, world, approver, rule, by):
    """Whoever places people does not choose whose word counts, though it was given freely."""
    home = world.organization
    clerks, board = (
        CustomRole.objects.create(organization=home, name=name, permissions=["runs.decide_approval"])
        for name in ("clerks", "board")
    )
    member = approver.memberships.get()
    Membership.objects.filter(pk=member.pk).update(custom_role=board if by == "nobody" else clerks)
    member.refresh_from_db()
    run, approval = waiting()
    assert approve(approval.pk, approver).status == "approved"
    admin = decider(world, name="admin")
    with changes.acting(admin, "admin"):
        if by == "membership":
            member.custom_role = board
            member.save()
        elif by == "role":
            board.name, clerks.name = "former", "board"
            board.save()
            clerks.save()
        elif by == "project":
            world.project.owner = member
            world.project.save()
    rule.deciders = ["project.owner" if by == "project" else "role:board"]
    rule.save()
    run = resumed(run)
    assert (run.status, len(mail.outbox)) == (("completed", 1) if by == "nobody" else ("waiting", 0))
    if by == "nobody":
        return

    approval = Approval.objects.get(run=run, status="pending")
    here = at_the_pages(approver, home.pk)
    assert not deciders.decidable(here, Approval.objects.filter(pk=approval.pk)).exists()
    with pytest.raises(DecisionRefused, match=r"what rules mean you by|changed your account"):
        decide.approve(approval.pk, here, approval.arguments_digest)
    Change.objects.update(created_at=timezone.now() - timedelta(hours=2))
    assert deciders.decidable(here, Approval.objects.filter(pk=approval.pk)).exists()
    assert decide.approve(approval.pk, here, approval.arguments_digest).status == "approved"


def test_nor_by_changing_the_provider_that_says_who_they_are(waiting, world, approver):
    """Whoever arranges a provider can have their own server say that somebody has signed in, and then take
    the provider away again; so can one for people whom they invent.
    """
    home = IdentityProvider.objects.create(
        organization=world.organization, name="Company", issuer="https://id.example.org", client_id="deputy"
    )
    SocialAccount.objects.create(provider=home.pk, uid="s-1", user=approver)
    _, approval = waiting(deciders_needed=2)
    here, program = at_the_pages(approver, world.organization.pk), by_token(approver, world.organization.pk)
    admin = decider(world, name="admin")
    LogEntry.objects.log_actions(admin.pk, [home], CHANGE, "Changed issuer.", single_object=True)
    for removed in (False, True):
        if removed:
            home.delete()
        for actor in (here, program):
            with pytest.raises(DecisionRefused, match="the provider by which you sign in"):
                decide.approve(approval.pk, actor, approval.arguments_digest)
        assert not deciders.decidable(here, Approval.objects.filter(pk=approval.pk)).exists()
    LogEntry.objects.update(action_time=timezone.now() - timedelta(hours=2))
    assert decide.approve(approval.pk, here, approval.arguments_digest).status == "pending"
    assert approval.decisions.filter(user=approver, approved=True).exists()


def test_a_service_account_decides_require_approval_but_never_require_human(waiting, world):
    robot = decider(world, "service", "robot")
    _, approval = waiting()
    assert approve(approval.pk, robot).decided_as_human is False

    _, approval = waiting(effect="require_human")
    with pytest.raises(DecisionRefused) as refused:
        approve(approval.pk, robot)
    assert refused.value.code == "HUMAN_ONLY"
    with pytest.raises(DecisionRefused):
        approve(approval.pk, robot, remember=Remember(any_arguments=True, uses=5))
    assert not Grant.objects.exists()


def test_a_person_does_not_decide_a_human_approval_of_their_own_run(waiting, world):
    permit(world.user, "decide_approval")
    _, approval = waiting(effect="require_human")
    with pytest.raises(DecisionRefused) as refused:
        approve(approval.pk, world.user)
    assert refused.value.code == "OWN_RUN"

    world.project.allow_self_approval = True
    world.project.save()
    assert approve(approval.pk, world.user).status == "approved"


def test_four_eyes_take_two_distinct_deciders(waiting, world, approver):
    run, approval = waiting(deciders_needed=2)
    assert approve(approval.pk, approver).status == "pending"
    assert approve(approval.pk, approver).status == "pending"

    assert approve(approval.pk, decider(world, name="second")).status == "approved"
    assert resumed(run).status == "completed"


def test_an_edit_voids_what_was_said_of_other_arguments(waiting, world, approver):
    _, approval = waiting(deciders_needed=2)
    approve(approval.pk, approver)
    second, third = decider(world, name="second"), decider(world, name="third")

    edited = approve(approval.pk, second, arguments={**TO, "subject": "Other"})
    assert (edited.status, edited.replaces_id) == ("pending", approval.pk)
    assert approve(edited.pk, third).status == "approved"


# editing


def test_edited_arguments_replace_the_old_ones_wholly(waiting, approver):
    run, approval = waiting()
    edited = {**TO, "to": ["b@example.com"]}
    approve(approval.pk, approver, arguments=edited)
    resumed(run)

    assert [m.to for m in mail.outbox] == [["b@example.com"]]
    kept = ToolCall.objects.get(run=run)
    assert (kept.arguments, kept.effective_arguments) == (TO, edited)
    assert payload(run, "tool.called")["arguments"] == edited
    assert payload(run, "tool.called")["idempotency_key"] == kept.idempotency_key


def test_an_edit_that_fails_the_schema_is_refused_and_leaves_it_pending(waiting, approver):
    _, approval = waiting()

    with pytest.raises(DecisionRefused, match="/to") as refused:
        approve(approval.pk, approver, arguments={**TO, "to": "not a list"})
    assert refused.value.code == "INVALID_ARGUMENTS"
    approval.refresh_from_db()
    assert (approval.status, approval.edited_arguments) == ("pending", None)


def test_an_edit_that_policy_denies_is_refused_and_leaves_it_pending(waiting, approver, world):
    _, approval = waiting()
    CapabilityRule.objects.create(
        organization=world.organization,
        tool="send_email",
        effect="deny",
        condition='subject == "Bad"',
        name="no bad",
    )

    with pytest.raises(DecisionRefused, match="no bad") as refused:
        approve(approval.pk, approver, arguments={**TO, "subject": "Bad"})
    assert refused.value.code == "POLICY_DENIES"
    approval.refresh_from_db()
    assert approval.status == "pending"


# between approval and dispatch


def test_a_deny_that_came_after_the_approval_wins(waiting, approver, rule):
    run, approval = waiting()
    approve(approval.pk, approver)
    rule.effect = "deny"
    rule.save()

    resumed(run)
    assert mail.outbox == []
    assert error_of(run)["code"] == "PERMISSION_DENIED"


def test_a_rule_that_became_stricter_asks_again(waiting, world, rule):
    run, approval = waiting()
    approve(approval.pk, decider(world, "service", "robot"))
    rule.effect = "require_human"
    rule.save()

    resumed(run)
    assert (run.status, run.waiting_reason) == ("waiting", "approval")
    approval.refresh_from_db()
    assert approval.status == "superseded"
    again = Approval.objects.get(run=run, status="pending")
    approve(again.pk, decider(world))
    assert resumed(run).status == "completed"
    assert len(mail.outbox) == 1


def test_a_right_taken_away_works_at_the_next_call(waiting, approver, world):
    run, approval = waiting()
    approve(approval.pk, approver)
    world.membership.active = False
    world.membership.save()

    resumed(run)
    assert mail.outbox == []
    assert error_of(run)["code"] == "PERMISSION_DENIED"


# grants


def test_always_allow_lets_like_calls_pass_until_its_uses_are_up(waiting, approver, ask):
    run, approval = waiting()
    approve(approval.pk, approver, remember=Remember(fixed=("to",), uses=1))
    resumed(run)

    second = ask(in_order(call(("send_email", {**TO, "subject": "Again"})), say("ok")))
    assert (second.status, len(mail.outbox)) == ("completed", 2)
    assert payload(second, "tool.called")["decision"]["grant"] == Grant.objects.get().pk
    assert ask(in_order(SEND)).status == "waiting"


def test_a_grant_covers_only_the_arguments_it_names(waiting, approver, ask):
    run, approval = waiting()
    approve(approval.pk, approver, remember=Remember(fixed=("to",), uses=9))
    resumed(run)

    other = ask(in_order(call(("send_email", {**TO, "to": ["c@example.com"]}))))
    assert other.status == "waiting"


def test_a_grant_covers_no_argument_that_the_approved_call_did_not_have(waiting, approver):
    """A blind copy, say, which whoever approved has not seen; who makes one elsewhere says what is free."""
    _, approval = waiting()
    approve(approval.pk, approver, remember=Remember(fixed=("to",), uses=9))
    grant = Grant.objects.get()
    assert grant.free == ["body", "subject"]
    with_copy = {**TO, "bcc": ["c@example.com"]}
    named = ("to", "subject", "body", "bcc")
    assert grants.matches(grant.arguments, grant.free, {**TO, "subject": "Again", "bcc": None}, named)
    assert not grants.matches(grant.arguments, grant.free, with_copy, named)
    for said in (None, "", [], {}, [[], ""], True):  # where a tool takes others, their names say something
        assert not grants.matches(grant.arguments, grant.free, {**TO, "eve@rival.example": said}, named)
    assert grants.matches(grant.arguments, None, with_copy, named)


def test_nor_one_that_the_approved_call_left_empty(waiting, approver, ask):
    """A list of no blind copies shows nobody who might get one."""
    empty = {"bcc": [], "cc": [""], "reply_to": " ", "headers": {}, "from": None}
    assert grants.said({**TO, **empty, "urgent": False, "delay": 0}) == {*TO, "urgent", "delay"}
    run, approval = waiting(say("done"), sent={**TO, "subject": ""})
    approve(approval.pk, approver, remember=Remember(fixed=("to",), uses=9))
    resumed(run)
    assert Grant.objects.get().free == ["body"]

    assert ask(in_order(call(("send_email", {**TO, "subject": "", "body": "Other"})), say("ok"))).status == (
        "completed"
    )
    assert ask(in_order(SEND)).status == "waiting"
    assert len(mail.outbox) == 2


def test_a_grant_never_lifts_a_deny_nor_a_persons_decision(waiting, approver, ask, rule):
    run, approval = waiting()
    approve(approval.pk, approver, remember=Remember(any_arguments=True, uses=9))
    resumed(run)

    rule.effect = "require_human"
    rule.save()
    assert ask(in_order(SEND)).status == "waiting"
    rule.effect = "deny"
    rule.save()
    assert payload(ask(in_order(SEND, say("ok"))), "tool.blocked")["error"]["code"] == "PERMISSION_DENIED"


def test_a_revoked_or_endless_grant_helps_nobody(waiting, approver, ask):
    run, approval = waiting()
    for remember in (Remember(fixed=("to",)), Remember(uses=3), Remember(fixed=("nonsense",), uses=3)):
        with pytest.raises(DecisionRefused) as refused:
            approve(approval.pk, approver, remember=remember)
        assert refused.value.code == "GRANT_REFUSED"
    approve(approval.pk, approver, remember=Remember(fixed=("to",), uses=9))
    resumed(run)
    Grant.objects.update(revoked_at=timezone.now())

    assert ask(in_order(SEND)).status == "waiting"


def test_one_of_several_deciders_allows_nothing_in_advance(waiting, approver):
    _, approval = waiting(deciders_needed=2)

    with pytest.raises(DecisionRefused) as refused:
        approve(approval.pk, approver, remember=Remember(fixed=("to",), uses=3))

    assert refused.value.code == "GRANT_REFUSED"
    assert not Grant.objects.exists()


# deep down, and interrupted


def test_an_approval_three_levels_down_resumes_exactly_that_call(ask, rule, approver):
    def play(messages, facts):
        if facts["role"] in ("analyst", "lead") or any(m.role == "tool" for m in messages):
            return say("DECISION: done")
        depth = Run.objects.filter(status="running").latest("depth").depth
        return SEND if depth == 3 else call(("escalate_to_group", {"goal": "deeper"}))

    run = ask(play)
    approval = Approval.objects.get()
    assert (approval.run.depth, approval.run.root, run.status) == (3, run, "waiting")
    approve(approval.pk, approver, arguments={**TO, "to": ["edited@example.com"]})
    executor.run(approval.run_id)

    run.refresh_from_db()
    assert run.status == "completed"
    assert [m.to for m in mail.outbox] == [["edited@example.com"]]


def test_a_reviewed_call_ends_as_the_person_said(interrupted_mail, approver):
    run = interrupted_mail
    for _ in range(2):
        resolve(run.pk, ToolCall.objects.get(run=run).call_id, "succeeded", approver, {"sent": 1})

    assert resumed(run).status == "completed"
    assert ToolCall.objects.get(run=run).result == {"sent": 1}
    assert mail.outbox == []


def test_a_retry_passes_policy_again(interrupted_mail, approver, rule):
    run = interrupted_mail
    resolve(run.pk, ToolCall.objects.get(run=run).call_id, "retry", approver)
    resumed(run)

    assert run.waiting_reason == "approval"
    approve(Approval.objects.get(status="pending").pk, approver)
    assert resumed(run).status == "completed"
    assert len(mail.outbox) == 1


@pytest.fixture
def interrupted_mail(waiting, approver, monkeypatch):
    """The worker died after tool.called: nobody knows whether the mail went out."""
    run, approval = waiting()
    approve(approval.pk, approver)

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("runs.execution.executor.perform", die)
    with pytest.raises(KeyboardInterrupt):
        executor.run(run.pk)
    monkeypatch.undo()
    Run.objects.filter(pk=run.pk).update(lease_expires_at=timezone.now() - timedelta(hours=1))
    sweep()
    executor.run(run.pk)
    run.refresh_from_db()
    assert (run.status, run.waiting_reason) == ("waiting", "review")
    return run


def test_the_groups_share_of_rights_only_narrows(ask, world):
    world.membership.denied_tools = ["http_get"]
    world.membership.save()
    run = ask(
        by_role(
            Personal_agent=[call(("escalate_to_group", {"goal": "g"})), say("done")],
            researcher=[call(("http_get", {"url": "http://example.com"})), say("x")],
            analyst=[say("y")],
            lead=[say("DECISION: z")],
        )
    )

    child = Run.objects.get(parent_run=run)
    assert child.delegated_permissions == {
        "allowed_tools": None,
        "denied_tools": ["http_get"],
        "vouched_tools": [],
    }
    blocked = payload(child, "tool.blocked")
    assert blocked["error"]["code"] == "PERMISSION_DENIED"
    assert blocked["error"]["message"].startswith("Tool 'http_get' is denied by policy: ")
    assert run.delegated_permissions is None


def test_a_roles_ban_holds_whatever_was_delegated(ask, world):
    world.group.members.get(role__name="researcher").role.__class__.objects.filter(name="researcher").update(
        denied_tools=["memory_search"]
    )
    run = ask(
        by_role(
            Personal_agent=[call(("escalate_to_group", {"goal": "g"})), say("done")],
            researcher=[call(("memory_search", {"query": "q"})), say("x")],
            analyst=[call(("memory_search", {"query": "q"})), say("y")],
            lead=[say("DECISION: z")],
        )
    )

    child = Run.objects.get(parent_run=run)
    assert payload(child, "tool.blocked")["decision"]["reason_code"] == "role_denied"
    assert payload(child, "tool.completed")["tool"] == "memory_search"
