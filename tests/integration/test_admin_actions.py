"""What people do in the admin, and that it is the same as what the actions do."""

import json
from datetime import UTC, datetime

import pytest
from django.contrib import admin

from groups.models import AgentInstance, Group, GroupMember, Membership, Role, RoutingExample
from memory.models import DepositedKnowledge
from policy.models import Capability, CapabilityRule, Grant, ToolBinding
from runs.models import Approval, ApprovalDecision, Run, ToolCall, Wait
from tests.acting import holder, reject
from tests.admin_world import APPROVER, client_of, drive, person, superuser, text, url
from tests.factories import MemberFactory, ProjectFactory, permit
from tests.forms import change_form
from tests.scripted import by_role, call, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def approver(made):
    return person(made, "ines", *APPROVER, "policy.add_grant", is_staff=True)


def post_decision(client, approval, decision, **fields):
    data = {"decision": decision, "arguments_digest": approval.arguments_digest, **fields}
    return client.post(url("runs_approval_change", approval.pk), data, follow=True)


def demand(made, **fields):
    """The rule wants this, and the approval says so."""
    CapabilityRule.objects.filter(pk=made.rule.pk).update(**fields)
    Approval.objects.filter(pk=made.approval.pk).update(**fields)


def status(thing):
    return type(thing).objects.values_list("status", flat=True).get(pk=thing.pk)


# Decisions


def test_an_approval_shows_what_would_run_for_whom_why_and_where_it_comes_from(made, approver):
    page = text(client_of(approver).get(url("runs_approval_change", made.approval.pk)))

    for words in ("ada@example.org", "send_email", made.user.username, "Approve and send to", made.rule.name):
        assert words in page
    assert url("runs_run_change", made.run.pk) in page


def test_an_approved_call_may_run(made, approver):
    page = text(post_decision(client_of(approver), made.approval, "approve"))

    assert "Approved; the call runs now." in page
    made.approval.refresh_from_db()
    assert (made.approval.status, made.approval.decided_by) == ("approved", approver)
    assert status(made.run) == "pending"


def test_a_rejection_without_a_reason_is_refused_in_words(made, approver):
    page = text(post_decision(client_of(approver), made.approval, "reject", reason="  "))

    assert "A rejection needs a reason" in page
    assert status(made.approval) == "pending"


def test_the_agent_is_told_the_reason_of_a_rejection(made, approver):
    post_decision(client_of(approver), made.approval, "reject", reason="Not on a Friday")

    assert status(made.approval) == "rejected"
    assert Wait.objects.get(pk=made.wait.pk).payload["reason"] == "Not on a Friday"


def test_a_decision_made_elsewhere_meanwhile_is_said(made, approver):
    other = person(made, "omar", *APPROVER, is_staff=True)
    reject(made.approval.pk, other, "Too early")

    against = text(post_decision(client_of(approver), made.approval, "approve"))
    alike = text(post_decision(client_of(approver), made.approval, "reject", reason="Too early"))

    assert "already been rejected by omar" in against
    assert "omar has meanwhile decided the same" in alike
    assert "Rejected by omar" in text(client_of(approver).get(url("runs_approval_change", made.approval.pk)))


def test_a_request_that_changed_since_it_was_shown_is_not_decided(made, approver):
    shown = Approval.objects.get(pk=made.approval.pk)
    shown.arguments_digest = "another"

    page = text(post_decision(client_of(approver), shown, "approve"))

    assert "has changed since you saw it" in page
    assert status(made.approval) == "pending"


def test_who_may_not_decide_is_told_why_and_gets_no_buttons(made):
    own = person(made, "own", *APPROVER, is_staff=True)
    Run.objects.filter(pk=made.run.pk).update(user=own)
    demand(made, effect="require_human")
    client = client_of(own)

    page = text(client.get(url("runs_approval_change", made.approval.pk)))
    posted = text(post_decision(client, made.approval, "approve"))

    assert "You cannot decide this for your own run" in page
    assert 'value="approve"' not in page
    assert "You cannot decide this for your own run" in posted
    assert status(made.approval) == "pending"


def test_a_superuser_who_is_no_member_does_not_decide(made):
    client = client_of(superuser())
    page = text(client.get(url("runs_approval_change", made.approval.pk)))
    posted = post_decision(client, made.approval, "approve")

    assert "You may not decide approvals of this project" in page
    assert posted.status_code == 403
    assert status(made.approval) == "pending"


def test_arguments_can_be_changed_before_they_run(made, approver):
    letter = {"to": ["ines@example.org"], "subject": "Short", "body": "Shorter"}

    post_decision(client_of(approver), made.approval, "approve_edited", arguments=json.dumps(letter))

    changed = Approval.objects.get(replaces=made.approval)
    assert (status(made.approval), changed.status, changed.edited_arguments) == (
        "superseded",
        "approved",
        letter,
    )
    assert ToolCall.objects.get(pk=made.call.pk).effective_arguments == letter


def test_changed_arguments_sent_twice_are_answered_alike_and_others_are_refused(made, approver):
    letter = {"to": ["ines@example.org"], "subject": "Short", "body": "Shorter"}
    shown, client = made.approval, client_of(approver)

    for _ in range(2):
        page = text(post_decision(client, shown, "approve_edited", arguments=json.dumps(letter)))
        assert "Approved; the call runs now." in page
    assert ApprovalDecision.objects.get(user=approver).approval.replaces == shown
    other = json.dumps(letter | {"subject": "Long"})
    for page in (
        text(post_decision(client, shown, "approve_edited", arguments=other)),
        text(post_decision(client, shown, "approve")),
    ):
        assert "Its arguments were changed" in page


@pytest.mark.parametrize(
    ("sent", "said"),
    [("{", "not JSON"), ("[]", "JSON object"), ('{"to": []}', "do not fit its schema")],
)
def test_changed_arguments_that_cannot_run_are_refused_in_words(made, approver, sent, said):
    page = text(post_decision(client_of(approver), made.approval, "approve_edited", arguments=sent))

    assert said in page
    assert status(made.approval) == "pending"


def test_true_is_another_argument_than_1(made, approver):
    """In Python they are equal; what was typed would have been dropped, and the old value would have run."""
    ToolCall.objects.filter(pk=made.call.pk).update(effective_arguments={"subject": 1})

    page = text(
        post_decision(client_of(approver), made.approval, "approve_edited", arguments='{"subject": true}')
    )

    assert "do not fit its schema" in page
    assert status(made.approval) == "pending"


def test_a_recipient_that_comes_twice_is_not_decided(made, approver):
    sent = '{"to": ["ada@example.org"], "subject": "x", "body": "y", "to": ["eve@example.net"]}'

    page = text(post_decision(client_of(approver), made.approval, "approve_edited", arguments=sent))

    assert "are not JSON" in page
    assert status(made.approval) == "pending"


def test_the_first_of_two_deciders_is_told_that_another_has_to_follow(made, approver):
    ApprovalDecision.objects.all().delete()
    demand(made, deciders_needed=2)

    page = text(post_decision(client_of(approver), made.approval, "approve", reason="Fine by me"))

    assert "2 people have to approve" in page
    assert "ines has approved: Fine by me" in page
    assert status(made.approval) == "pending"


# Standing approvals


def always(client, approval, **fields):
    named = {f"remember-{name}": value for name, value in fields.items()}
    return text(post_decision(client, approval, "approve_always", reason="Ada is known", **named))


def test_the_offer_to_allow_calls_like_this_chooses_nothing_beforehand(made, approver):
    page = text(client_of(approver).get(url("runs_approval_change", made.approval.pk)))

    assert "Always allow calls like this" in page
    for name in ("to", "subject", "body"):
        assert f'name="remember-same" value="{name}"' in page
    assert "Whatever the arguments" in page
    assert "checked" not in page.split("Always allow calls like this")[1]


def test_calls_like_the_approved_one_pass_until_their_number_is_up(made, approver):
    page = always(client_of(approver), made.approval, same=["to"], uses="3")

    grant = Grant.objects.exclude(pk=made.grant.pk).get()
    assert (grant.tool, grant.arguments) == ("send_email", {"to": ["ada@example.org"]})
    assert (grant.any_arguments, grant.max_uses, grant.expires_at) == (False, 3, None)
    assert (grant.granted_by, grant.project, grant.reason) == (approver, made.project, "Ada is known")
    assert "Calls like it pass from now on." in page
    assert status(made.approval) == "approved"


def test_every_call_of_a_tool_passes_until_a_time_where_somebody_says_so(made, approver):
    always(client_of(approver), made.approval, any_arguments="on", until="2126-01-31T08:00")

    grant = Grant.objects.exclude(pk=made.grant.pk).get()
    assert (grant.any_arguments, grant.arguments, grant.max_uses) == (True, {}, None)
    assert grant.expires_at == datetime(2126, 1, 31, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"same": ["to"]}, "needs an end"),
        ({"uses": "3"}, "Say which arguments must stay the same"),
        ({"same": ["to"], "any_arguments": "on", "uses": "3"}, "one of the two"),
        ({"same": ["cc"], "uses": "3"}, "not one of the available choices"),
        ({"same": ["to"], "uses": "0"}, "greater than or equal to 1"),
        ({"same": ["to"], "uses": "many"}, "whole number"),
        ({"same": ["to"], "until": "2020-01-01T00:00"}, "This time is over"),
        ({"same": ["to"], "until": "soon"}, "valid date/time"),
    ],
)
def test_a_standing_approval_that_says_too_little_or_nonsense_decides_nothing(made, approver, fields, said):
    page = always(client_of(approver), made.approval, **fields)

    assert said in page
    assert '<details class="dp-more ap-more" open>' in page
    assert "Ada is known</textarea>" in page  # kept as written
    assert status(made.approval) == "pending"
    assert Grant.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"effect": "require_human"}, "What a person has to decide cannot be allowed in advance"),
        ({"deciders_needed": 2}, "What several people have to decide"),
    ],
)
def test_what_a_person_or_several_have_to_decide_is_not_allowed_in_advance(made, approver, fields, said):
    demand(made, **fields)
    client = client_of(approver)

    page = text(client.get(url("runs_approval_change", made.approval.pk)))
    refused = always(client, made.approval, same=["to"], uses="3")

    assert "Always allow" not in page + refused
    assert said in refused
    assert status(made.approval) == "pending"
    assert Grant.objects.count() == 1


def test_who_may_not_decide_makes_no_standing_approval(made):
    looker = person(made, "lou", "runs.view_approval", is_staff=True)
    client = client_of(looker)

    page = text(client.get(url("runs_approval_change", made.approval.pk)))
    answer = client.post(
        url("runs_approval_change", made.approval.pk),
        {
            "decision": "approve_always",
            "arguments_digest": made.approval.arguments_digest,
            "remember-same": "to",
            "remember-uses": "3",
        },
    )

    assert "Always allow" not in page
    assert answer.status_code == 403
    assert Grant.objects.count() == 1


# Several at once


def low_risk(made):
    """An approval of a harmless call, which may be decided together with others."""
    CapabilityRule.objects.create(
        organization=made.organization, tool="memory_search", effect="require_approval", name="Ask first"
    )
    search = {"query": "what we pay"}
    run = drive(made, "Look it up", by_role(Personal_agent=[call(("memory_search", search))]))
    return Approval.objects.get(run=run)


def choose(client, action, *approvals, **fields):
    data = {"action": action, "_selected_action": [a.pk for a in approvals], **fields}
    return client.post(url("runs_approval_changelist"), data, follow=True)


def confirmed(*approvals):
    return {"confirmed": "yes", **{f"digest-{a.pk}": a.arguments_digest for a in approvals}}


def test_several_are_shown_with_every_argument_before_they_are_decided(made, approver):
    low = low_risk(made)

    page = text(choose(client_of(approver), "reject_selected", low, made.approval))

    assert "what we pay" in page and "ada@example.org" in page
    assert (status(low), status(made.approval)) == ("pending", "pending")


def test_harmless_calls_are_approved_together(made, approver):
    low = low_risk(made)
    client = client_of(approver)

    asked = text(choose(client, "approve_selected", low))
    choose(client, "approve_selected", low, **confirmed(low))

    assert "Approve 1" in asked
    assert status(low) == "approved"


def test_calls_of_high_risk_are_not_approved_together_with_others(made, approver):
    low = low_risk(made)
    client = client_of(approver)

    page = text(choose(client, "approve_selected", low, made.approval))
    choose(client, "approve_selected", low, made.approval, **confirmed(low, made.approval))

    assert "send_email is of high risk: decide it on its own page" in page
    assert (status(low), status(made.approval)) == ("approved", "pending")


def test_what_a_person_has_to_decide_is_not_approved_together_with_others(made, approver):
    low = low_risk(made)
    Approval.objects.filter(pk=low.pk).update(effect="require_human")

    page = text(choose(client_of(approver), "approve_selected", low, **confirmed(low)))

    assert "a person has to decide it on its own page" in page
    assert status(low) == "pending"


def test_several_are_rejected_with_one_reason_and_not_without(made, approver):
    low = low_risk(made)
    client = client_of(approver)
    both = (low, made.approval)

    choose(client, "reject_selected", *both, **confirmed(*both), reason=" ")
    assert {status(a) for a in both} == {"pending"}
    choose(client, "reject_selected", *both, **confirmed(*both), reason="Budget is frozen")

    assert {status(a) for a in both} == {"rejected"}


def test_of_several_the_one_that_changed_meanwhile_is_left_alone(made, approver):
    low = low_risk(made)

    page = text(choose(client_of(approver), "approve_selected", low, confirmed="yes"))

    assert "Say which arguments you decide about" in page
    assert status(low) == "pending"


# Runs


@pytest.fixture
def asker(made):
    rights = ("runs.view_run", "runs.start_run", "runs.cancel_run", "runs.resolve_review")
    return person(made, "noor", *rights, is_staff=True)


def test_asking_starts_a_run_and_shows_it(made, asker):
    fields = {"project": made.project.pk, "goal": "Count the chairs", "session_key": "chairs"}

    answer = client_of(asker).post(url("runs_run_ask"), fields)

    run = Run.objects.get(goal="Count the chairs")
    assert answer["Location"] == url("runs_run_change", run.pk)
    assert (run.user, run.session_key, run.status) == (asker, "chairs", "pending")


def test_asking_nothing_is_refused_in_words(made, asker):
    page = text(client_of(asker).post(url("runs_run_ask"), {"project": made.project.pk, "goal": "   "}))

    assert "This field is required" in page


def test_a_superuser_who_is_no_member_is_told_why_they_cannot_ask(made):
    assert "You are a member of no project" in text(client_of(superuser()).get(url("runs_run_ask")))


@pytest.fixture
def owner(made, asker):
    """The person for whom the runs work, who may look at them here."""
    made.user.is_staff = True
    made.user.save()
    return permit(made.user, "runs.view_run", "runs.start_run")


def test_an_answer_reaches_the_agent_that_asked(made, owner):
    client = client_of(owner)
    page = text(client.get(url("runs_run_change", made.asking.pk)))

    said = text(client.post(url("runs_run_say", made.asking.pk), {"content": "2026"}, follow=True))

    assert "Your answer" in page and "The agent asks:" in page
    assert "The agent has its answer" in said
    assert status(made.asking) == "pending"


def test_an_empty_word_is_refused_in_words(made, asker):
    said = text(client_of(asker).post(url("runs_run_say", made.asking.pk), {"content": " "}, follow=True))

    assert "The message is empty" in said
    assert status(made.asking) == "waiting"


def test_cancelling_asks_once_more_and_takes_everything_below(made, asker):
    client = client_of(asker)

    assert "This cannot be undone" in text(client.get(url("runs_run_cancel", made.run.pk)))
    assert status(made.run) == "waiting"
    client.post(url("runs_run_cancel", made.run.pk), {"reason": "Changed my mind"})

    run = Run.objects.get(pk=made.run.pk)
    assert (run.status, run.error["message"]) == ("cancelled", "Cancelled by noor. Changed my mind")
    assert status(made.approval) == "cancelled"


def test_cancelling_what_has_ended_is_refused_in_words(made, asker):
    page = text(client_of(asker).post(url("runs_run_cancel", made.child.pk), follow=True))

    assert "The run has already completed" in page


def test_a_runs_page_tells_its_story(made, asker):
    page = text(client_of(asker).get(url("runs_run_change", made.run.pk)))

    for words in (
        "Handed to a group",
        "Needs an approval",
        "a decision on",
        "UNKNOWN_TOOL",
        "escalate_to_group",
    ):
        assert words in page
    assert url("runs_run_change", made.child.pk) in page


def test_the_tree_says_what_each_run_still_waits_for(made, owner):
    client = client_of(owner)
    before = client.get(url("runs_run_change", made.asking.pk)).context["run_tree"].branches
    client.post(url("runs_run_say", made.asking.pk), {"content": "2026"})
    after = client.get(url("runs_run_change", made.asking.pk)).context["run_tree"].branches

    assert [wait.kind for branch in before if branch.kin for wait in branch.kin.waits] == ["input"]
    assert [wait.kind for branch in after if branch.kin for wait in branch.kin.waits] == []


def test_the_live_view_answers_only_what_is_new(made, asker):
    client = client_of(asker)
    first = client.get(url("runs_run_live", made.run.pk)).json()
    again = client.get(url("runs_run_live", made.run.pk, v=first["stamp"])).json()
    client.post(url("runs_run_cancel", made.run.pk))
    after = client.get(url("runs_run_live", made.run.pk, v=first["stamp"])).json()

    assert set(first["parts"]) == {"summary", "tree", "timeline"} and first["active"] is True
    assert again == {"stamp": first["stamp"], "active": True, "parts": {}}
    assert after["active"] is False and "Cancelled" in after["parts"]["summary"]


def test_somebody_says_what_became_of_an_interrupted_call(made, asker):
    run = made.run
    ToolCall.objects.filter(pk=made.call.pk).update(status="unknown")
    Wait.objects.create(
        organization=made.organization,
        run=run,
        kind="review",
        correlation_key="review-0",
        tool_call=made.call,
    )
    client = client_of(asker)
    page = text(client.get(url("runs_run_change", run.pk)))

    fields = {"call_id": made.call.call_id, "outcome": "failed", "message": "It bounced"}
    client.post(url("runs_run_resolve", run.pk), fields)

    assert "was interrupted: nobody knows whether it happened" in page
    assert Wait.objects.get(run=run, kind="review").payload["message"] == "It bounced"


@pytest.mark.parametrize(
    ("query", "goals"),
    [
        ({"q": "Count"}, {"Count the chairs"}),
        ({"group": "active"}, {"Compare prices"}),
        ({"status__exact": "completed"}, {"Compare prices", "Count the chairs"}),
        ({"level": "child"}, {"Compare prices"}),
        ({"asked": "hour"}, {"Compare prices", "Count the chairs"}),
        ({"group": "failed_today"}, set()),
        ({"group": "waiting_person"}, {"Compare prices"}),
    ],
)
def test_runs_are_found(made, asker, query, goals):
    drive(made, "Count the chairs", by_role(Personal_agent=[say("Twelve.")]))

    listed = client_of(asker).get(url("runs_run_changelist", **query)).context["cl"].result_list

    assert {run.goal for run in listed} == goals


def test_a_run_is_found_by_its_id(made, asker):
    listed = client_of(asker).get(url("runs_run_changelist", q=made.run.pk)).context["cl"].result_list

    assert [run.pk for run in listed] == [made.run.pk]


# The first page


def test_the_first_page_counts_what_waits_runs_and_failed(made, approver):
    drive(made, "Fail", lambda messages, facts: call(("no_such_tool", {})))

    figures = {f["label"]: f for f in client_of(approver).get(url("index")).context["figures"]}

    assert figures["Waiting for me"]["count"] == 1
    assert figures["Running"]["count"] == 2
    assert figures["Failed in the last day"]["count"] == 1


def test_what_the_figures_link_to_has_as_many_rows(made, approver):
    client = client_of(approver)

    for figure in client.get(url("index")).context["figures"]:
        assert client.get(figure["link"]).context["cl"].result_count == figure["count"], figure["label"]


def test_an_approval_i_cannot_decide_does_not_wait_for_me(made, approver):
    Run.objects.filter(pk=made.run.pk).update(user=approver)
    Approval.objects.filter(pk=made.approval.pk).update(effect="require_human")

    figures = {f["label"]: f["count"] for f in client_of(approver).get(url("index")).context["figures"]}

    assert figures["Waiting for me"] == 0


def test_nothing_at_all_says_what_to_do(db):
    client = client_of(superuser())

    assert "Nothing runs. Ask your agent something." in text(client.get(url("index")))
    assert "No run yet. Ask your agent something" in text(client.get(url("runs_run_changelist")))
    assert "No group yet. Add one" in text(client.get(url("groups_group_changelist")))
    assert "Nothing fits these filters" in text(client.get(url("runs_run_changelist", q="x")))


# Settings


def role_fields(made, **fields):
    return {"name": made.role.name, "denied_tools": "", "delegable_tools_open": "on", **fields}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"allowed_tools_open": "on", "allowed_tools_list": "send_email"}, None),
        ({"allowed_tools_list": ""}, []),
        (
            {"allowed_tools_list": "send_email\r\nmemory_search\r\nask_user\n\nsend_email"},
            ["send_email", "memory_search", "ask_user"],
        ),
    ],
)
def test_no_restriction_and_an_empty_list_are_different_things(made, sent, kept):
    client_of(superuser(made)).post(url("groups_role_change", made.role.pk), role_fields(made, **sent))

    role = Role.objects.get(pk=made.role.pk)
    assert role.allowed_tools == kept
    assert role.delegable_tools is None


LISTS = ([], ["send_email"], ["send_email", "memory_search"], None)


@pytest.mark.parametrize("names", LISTS)
def test_a_role_saved_as_it_is_stays_as_it_is(made, names):
    kept = {"allowed_tools": names, "delegable_tools": names, "denied_tools": ["ask_user"]}
    Role.objects.filter(pk=made.role.pk).update(**kept)
    client = client_of(superuser(made))

    client.post(
        url("groups_role_change", made.role.pk),
        change_form(client.get(url("groups_role_change", made.role.pk))),
    )

    assert Role.objects.values(*kept).get(pk=made.role.pk) == kept


@pytest.mark.parametrize("names", LISTS)
@pytest.mark.parametrize("several", [False, True])
def test_a_membership_saved_as_it_is_stays_as_it_is(made, names, several):
    projects = [made.project.pk, ProjectFactory(organization=made.organization).pk][: 2 if several else 1]
    kept = {"projects": projects, "allowed_tools": names, "denied_tools": []}
    Membership.objects.filter(pk=made.member.pk).update(**kept)
    client = client_of(superuser(made))

    page = client.get(url("groups_membership_change", made.member.pk))
    client.post(url("groups_membership_change", made.member.pk), change_form(page))

    found = Membership.objects.values(*kept).get(pk=made.member.pk)
    assert {**found, "projects": sorted(found["projects"] or [])} == {**kept, "projects": sorted(projects)}


def test_a_list_that_is_refused_is_shown_as_it_was_sent(made):
    sent = role_fields(made, name="", allowed_tools_list="send_email\r\nmemory_search")

    page = client_of(superuser(made)).post(url("groups_role_change", made.role.pk), sent)

    shown = change_form(page)
    assert "allowed_tools_open" not in shown
    assert shown["allowed_tools_list"][0].split() == ["send_email", "memory_search"]


def test_a_membership_is_limited_to_projects_chosen_by_name(made):
    fields = {
        "role": made.member.role,
        "active": "on",
        "projects_list": [made.project.pk],
        "allowed_tools_open": "on",
    }

    client_of(superuser(made)).post(url("groups_membership_change", made.member.pk), fields)

    assert Membership.objects.get(pk=made.member.pk).projects == [made.project.pk]


def agent_of(made):
    return AgentInstance.objects.create(organization=made.organization, role=made.role)


def group_fields(made, *members):
    fields = {
        "organization": made.organization.pk,
        "project": made.project.pk,
        "name": "Design",
        "capabilities": "logos\nfonts",
        "max_rounds": 2,
        "active": "on",
        "members-TOTAL_FORMS": len(members),
        "members-INITIAL_FORMS": 0,
    }
    for i, (ordinal, lead) in enumerate(members):
        fields |= {
            f"members-{i}-ordinal": ordinal,
            f"members-{i}-role": made.role.pk,
            f"members-{i}-agent_instance": agent_of(made).pk,
        } | ({f"members-{i}-is_lead": "on"} if lead else {})
    return fields


def test_a_group_is_made_with_its_members(made):
    client_of(superuser(made)).post(url("groups_group_add"), group_fields(made, (0, False), (1, True)))

    group = Group.objects.get(name="Design")
    assert group.capabilities == ["logos", "fonts"]
    seats = GroupMember.objects.filter(group=group).values_list("ordinal", "is_lead", "organization_id")
    assert list(seats) == [(0, False, made.organization.pk), (1, True, made.organization.pk)]


def test_two_leads_are_refused_in_words(made):
    page = client_of(superuser(made)).post(url("groups_group_add"), group_fields(made, (0, True), (1, True)))

    assert "Only one member can lead the group" in text(page)


def test_what_is_taken_is_refused_in_words_whatever_the_page_keeps_fixed(made):
    """The organization, or the group, stands on such a page and is no field of its form."""
    client = client_of(superuser(made))
    capability = Capability.objects.create(organization=made.organization, name="x")
    kinds = {"organization": made.organization, "capability": capability}
    _, binding = (ToolBinding.objects.create(pattern=name, **kinds) for name in ("http_get", "http_*"))
    MemberFactory(group=made.group, role=made.role, ordinal=7)
    seat = MemberFactory(group=made.group, role=made.role, ordinal=8)
    chosen = {"role": seat.role_id, "agent_instance": seat.agent_instance_id}
    for thing, fields in (
        (binding, {"pattern": "http_get", "capability": capability.pk}),
        (seat, {**chosen, "ordinal": 7}),
        (seat, {**chosen, "ordinal": 8, "agent_instance": made.seat.agent_instance_id}),
    ):
        page = client.post(url(f"{thing._meta.label_lower.replace('.', '_')}_change", thing.pk), fields)
        assert page.status_code == 200 and page.context["errors"]


def test_a_goal_is_scored_and_corrected(made):
    client = client_of(superuser(made))
    page = text(
        client.get(url("groups_group_where", project=made.project.pk, goal="Compare prices of rivals"))
    )

    fields = {"group": made.group.pk, "goal": "Paint the fence", "fits": "no"}
    client.post(url("groups_group_learn"), fields)

    assert "Matched:" in page and "This goal belongs here" in page
    learnt = RoutingExample.objects.get(goal="Paint the fence")
    assert (learnt.kind, learnt.corrected_by.username) == ("misfit", "root")


def test_a_rule_that_cannot_hold_is_refused_in_words(made):
    fields = {
        "organization": made.organization.pk,
        "tool": "send_email",
        "effect": "deny",
        "condition": "amount >",
        "on_expiry": "fail_call",
        "deciders_needed": 1,
    }

    client = client_of(superuser(made))

    assert "line 1, column" in text(client.post(url("policy_capabilityrule_add"), fields))
    without = {**fields, "tool": "", "condition": ""}
    assert "name exactly one" in text(client.post(url("policy_capabilityrule_add"), without))


def test_a_standing_approval_is_in_the_name_of_who_gave_it_and_can_be_revoked(made):
    root = superuser(made)
    client = client_of(root)
    fields = {
        "organization": made.organization.pk,
        "project": made.project.pk,
        "tool": "send_email",
        "arguments": '{"subject": "News"}',
        "max_uses": 3,
    }

    refused = text(client.post(url("policy_grant_add"), {**fields, "arguments": "", "max_uses": ""}))
    client.post(url("policy_grant_add"), fields)
    grant = Grant.objects.get(tool="send_email")
    client.post(url("policy_grant_changelist"), {"action": "revoke", "_selected_action": grant.pk})

    assert "needs an end" in refused and "one of the two" in refused
    grant.refresh_from_db()
    assert grant.granted_by == root
    assert grant.revoked_at is not None


def test_a_token_is_issued_shown_once_and_revoked(made):
    root = superuser(made)
    client = client_of(root)
    fields = {"organization": made.organization.pk, "user": root.pk, "name": "ci", "scopes": ["runs:read"]}

    issued = text(client.post(url("groups_token_add"), fields, follow=True))
    secret = issued.split("The secret is ")[1].split(" ")[0]
    token = holder(secret)
    assert token is not None and (token.user, token.scopes) == (root, ["runs:read"])
    assert secret not in text(client.get(url("groups_token_change", token.pk)))
    client.post(url("groups_token_changelist"), {"action": "revoke", "_selected_action": token.pk})

    assert holder(secret) is None


def test_the_sidebar_counts_what_waits_and_says_nothing_where_nothing_does(made, approver):
    client = client_of(approver)

    waiting = client.get(url("index")).context["sidebar_navigation"]
    reject(made.approval.pk, approver, "No")
    quiet = client.get(url("index"))

    assert [
        item.get("badge") for part in waiting for item in part["items"] if item["title"] == "Approvals"
    ] == [1]
    items = [item for part in quiet.context["sidebar_navigation"] for item in part["items"]]
    assert not any("badge" in item for item in items)


def test_learning_is_counted_where_memories_have_a_page(made):
    labels = [f["label"] for f in client_of(superuser(made)).get(url("index")).context["figures"]]

    assert ("Learnt this week" in labels) is admin.site.is_registered(DepositedKnowledge)


def test_the_timeline_names_the_rule_of_a_denied_call(made):
    rule = CapabilityRule.objects.create(
        organization=made.organization, tool="http_get", effect="deny", name="No pages"
    )
    asks = by_role(Personal_agent=[call(("http_get", {"url": "https://example.com/"})), say("ok")])
    run = drive(made, "Read it", asks)
    page = text(client_of(superuser()).get(url("runs_run_change", run.pk)))

    assert ToolCall.objects.get(run=run).status == "denied"
    assert f"(<code>{rule.pk}</code>)" in page
