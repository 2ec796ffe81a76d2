"""Approvals over HTTP: by their own address, or by a signal with their key."""

import pytest
from django.core import mail

from policy.models import Capability, CapabilityRule, Grant
from runs.execution import executor
from runs.models import Approval, Run
from tests.factories import MembershipFactory
from tests.integration.api_client import Api, permit, problem
from tests.scripted import call, in_order, say

pytestmark = pytest.mark.django_db

MAIL = {"to": ["ines@example.org"], "subject": "Prices", "body": "5"}


@pytest.fixture
def owner(world):
    return Api(world.user, world.organization)


@pytest.fixture
def decider(world):
    member = MembershipFactory(organization=world.organization, user__username="ada")
    return Api(permit(member.user, "decide_approval", "policy.add_grant"), world.organization)


@pytest.fixture
def bystander(world):
    return Api(MembershipFactory(organization=world.organization).user, world.organization)


@pytest.fixture
def rule(world):
    capability = Capability.objects.create(organization=world.organization, name="send_email")
    return CapabilityRule.objects.create(
        organization=world.organization, capability=capability, effect="require_approval"
    )


@pytest.fixture
def asked(ask, rule):
    """A run that waits for an approval of a mail."""
    ask(in_order(call(("send_email", MAIL)), say("Sent.")))
    return Approval.objects.select_related("run").get()


def signalled(api, approval, **payload):
    payload = {"arguments_digest": approval.arguments_digest, **payload}
    body = {"correlation_key": approval.correlation_key, "payload": payload}
    return api.post(f"runs/{approval.run_id}/signal/", body)


def finished(approval):
    executor.run(approval.run_id)
    return Run.objects.get(pk=approval.run_id)


def test_a_pending_approval_shows_what_would_run(decider, asked):
    (shown,) = decider.get("approvals/", status="pending").json()["results"]

    assert (shown["id"], shown["tool"], shown["arguments"]) == (asked.pk, "send_email", MAIL)
    assert (shown["user"], shown["effect"], shown["capability"]) == ("mia", "require_approval", "send_email")
    assert shown["correlation_key"].startswith("cap-approval-")
    assert decider.get(f"approvals/{asked.pk}/").json() == shown


def test_the_run_names_the_approval_it_waits_for(owner, asked):
    (wait,) = owner.get(f"runs/{asked.run_id}/").json()["waits"]

    assert (wait["kind"], wait["approval"], wait["tool"]) == ("approval", asked.pk, "send_email")


def test_an_approved_call_runs(decider, asked):
    answer = decider.post(f"approvals/{asked.pk}/approve/", {"reason": "Fine."})

    assert answer.status_code == 200
    assert (answer.json()["status"], answer.json()["decided_by"]) == ("approved", "ada")
    assert (finished(asked).status, len(mail.outbox)) == ("completed", 1)


def test_a_rejection_reaches_the_agent_with_its_reason(decider, asked):
    assert problem(decider.post(f"approvals/{asked.pk}/reject/", {})) == (422, "INVALID")
    assert problem(decider.post(f"approvals/{asked.pk}/reject/", {"reason": " "})) == (422, "INVALID")
    answer = decider.post(f"approvals/{asked.pk}/reject/", {"reason": "Too early."})

    assert (answer.json()["status"], answer.json()["reason"]) == ("rejected", "Too early.")
    assert (finished(asked).status, len(mail.outbox)) == ("completed", 0)


def test_the_same_decision_again_is_answered_alike_and_another_is_a_conflict(decider, asked):
    first = decider.post(f"approvals/{asked.pk}/approve/")
    again = decider.post(f"approvals/{asked.pk}/approve/")

    assert (again.status_code, again.json()) == (200, first.json())
    other = decider.post(f"approvals/{asked.pk}/reject/", {"reason": "No."})
    assert problem(other) == (409, "ALREADY_DECIDED")


def test_edited_arguments_are_what_runs(decider, asked):
    edited = {**MAIL, "body": "6"}
    answer = decider.post(f"approvals/{asked.pk}/approve/", {"arguments": edited})

    assert (answer.json()["arguments"], answer.json()["edited_arguments"]) == (edited, edited)
    replaced = decider.get(f"approvals/{asked.pk}/").json()
    assert (replaced["status"], replaced["arguments"]) == ("superseded", MAIL)  # what its digest is of
    finished(asked)
    assert mail.outbox[0].body == "6"


def test_edited_arguments_that_do_not_fit_are_refused_with_their_path(decider, asked):
    answer = decider.post(f"approvals/{asked.pk}/approve/", {"arguments": {**MAIL, "to": "ines"}})

    assert problem(answer) == (422, "INVALID_ARGUMENTS")
    assert answer.json()["errors"][0]["pointer"] == "/arguments/to"
    asked.refresh_from_db()
    assert asked.status == "pending"


def test_an_approval_may_be_made_standing(decider, asked):
    answer = decider.post(f"approvals/{asked.pk}/approve/", {"remember": {"fixed": ["to"], "uses": 3}})

    assert answer.status_code == 200, answer.content
    assert Grant.objects.get().arguments == {"to": MAIL["to"]}


@pytest.mark.parametrize("name", ["to ", " to", ""])
def test_what_a_standing_approval_keeps_is_called_as_it_is(decider, asked, name):
    """The names of a call's arguments are whatever its agent says: `to` and `to ` may both be there."""
    answer = decider.post(f"approvals/{asked.pk}/approve/", {"remember": {"fixed": [name], "uses": 3}})
    assert answer.status_code == 422 and not Grant.objects.exists()


def test_a_standing_approval_without_an_end_is_refused(decider, asked):
    answer = decider.post(f"approvals/{asked.pk}/approve/", {"remember": {"fixed": ["to"]}})

    assert problem(answer) == (422, "INVALID")
    assert answer.json()["errors"][0]["pointer"] == "/remember"


def test_the_owner_sees_their_approval_and_does_not_decide_it(owner, asked):
    assert owner.get(f"approvals/{asked.pk}/").status_code == 200
    assert problem(owner.post(f"approvals/{asked.pk}/approve/")) == (403, "NOT_ENTITLED")
    assert problem(signalled(owner, asked, approved=True)) == (403, "NOT_ENTITLED")


def test_a_bystander_does_not_see_it(bystander, asked):
    assert bystander.get("approvals/").json()["results"] == []
    assert problem(bystander.get(f"approvals/{asked.pk}/")) == (404, "NOT_FOUND")
    assert problem(bystander.post(f"approvals/{asked.pk}/approve/")) == (404, "NOT_FOUND")
    answer = signalled(bystander, asked, approved=True)
    assert problem(answer) == (404, "NO_SUCH_WAIT")
    assert answer.json()["open"] == []


def test_a_service_account_does_not_decide_what_needs_a_person(world, asked, rule):
    rule.effect = "require_human"
    rule.save()
    member = MembershipFactory(organization=world.organization, kind="service", role="decider")
    robot = Api(member.user, world.organization)

    assert problem(robot.post(f"approvals/{asked.pk}/approve/")) == (403, "HUMAN_ONLY")
    assert problem(signalled(robot, asked, approved=True)) == (403, "HUMAN_ONLY")


def test_nobody_decides_what_needs_a_person_for_their_own_run(owner, asked, rule):
    rule.effect = "require_human"
    rule.save()
    permit(owner.user, "decide_approval")

    assert problem(owner.post(f"approvals/{asked.pk}/approve/")) == (403, "OWN_RUN")
    assert problem(signalled(owner, asked, approved=True)) == (403, "OWN_RUN")


def test_two_deciders_where_two_are_needed(ask, rule, decider, world):
    rule.deciders_needed = 2
    rule.save()
    ask(in_order(call(("send_email", MAIL)), say("Sent.")))
    approval = Approval.objects.get()
    second = MembershipFactory(organization=world.organization, user__username="bo")
    second = Api(permit(second.user, "decide_approval"), world.organization)

    first = decider.post(f"approvals/{approval.pk}/approve/").json()
    assert (first["status"], [word["user"] for word in first["decisions"]]) == ("pending", ["ada"])
    assert second.post(f"approvals/{approval.pk}/approve/").json()["status"] == "approved"


def test_a_signal_decides_as_the_approval_itself_does(decider, asked):
    first = signalled(decider, asked, approved=True)

    assert first.status_code == 200
    assert (first.json()["outcome"], first.json()["correlation_key"]) == ("approved", asked.correlation_key)
    assert finished(asked).status == "completed"
    assert len(mail.outbox) == 1


def test_the_same_signal_again_is_answered_alike_also_once_the_run_has_ended(decider, asked):
    first = signalled(decider, asked, approved=True)
    finished(asked)
    again = signalled(decider, asked, approved=True)

    assert (again.status_code, again.json()) == (200, first.json())
    assert problem(signalled(decider, asked, approved=False)) == (409, "ALREADY_DECIDED")
    assert len(mail.outbox) == 1


def test_a_signal_may_reject_without_a_reason(decider, asked):
    assert signalled(decider, asked, approved=False).json()["outcome"] == "rejected"
    assert finished(asked).status == "completed"
    assert mail.outbox == []


def test_a_signal_with_edited_arguments_runs_those(decider, asked):
    assert signalled(decider, asked, approved=True, arguments={**MAIL, "body": "6"}).status_code == 200
    finished(asked)
    assert mail.outbox[0].body == "6"


@pytest.mark.parametrize(
    "payload",
    [None, {}, "yes", [], {"approved": None}, {"approved": "true"}, {"approved": 1}, {"reason": "Fine."}],
)
def test_an_approvals_signal_says_yes_or_no(decider, asked, payload):
    body = {"correlation_key": asked.correlation_key, "payload": payload}
    answer = decider.post(f"runs/{asked.run_id}/signal/", body)

    assert problem(answer) == (422, "INVALID")
    assert answer.json()["errors"][0]["pointer"] == "/payload/approved"


def test_nothing_in_an_approvals_signal_is_overlooked(decider, asked):
    answer = signalled(decider, asked, approved=True, argument={"body": "6"})

    assert problem(answer) == (422, "INVALID")
    asked.refresh_from_db()
    assert asked.status == "pending"


def test_an_unknown_approval_key_is_answered_with_the_open_ones(decider, asked):
    body = {"correlation_key": "cap-approval-none", "payload": {"approved": True}}
    answer = decider.post(f"runs/{asked.run_id}/signal/", body)

    assert problem(answer) == (404, "NO_SUCH_WAIT")
    assert answer.json()["open"] == [asked.correlation_key]


def test_the_approval_of_a_cancelled_run_is_a_conflict(decider, owner, asked):
    owner.post(f"runs/{asked.run_id}/cancel/")

    assert problem(decider.post(f"approvals/{asked.pk}/approve/")) == (409, "ALREADY_DECIDED")
    assert problem(signalled(decider, asked, approved=True)) == (409, "ALREADY_DECIDED")


def test_approvals_can_be_narrowed_down(decider, asked, world):
    def found(**query):
        return [each["id"] for each in decider.get("approvals/", **query).json()["results"]]

    assert found(run=asked.run_id) == found(root=asked.run_id) == found(tool="send_email") == [asked.pk]
    assert found(project=world.project.slug) == found(status=["pending", "approved"]) == [asked.pk]
    assert found(status="approved") == found(tool="http_get") == found(project="none") == []
    asked_at = asked.requested_at.isoformat()
    assert found(user="mia") == found(requested_after=asked_at) == [asked.pk]
    assert found(user="other") == found(requested_before=asked_at) == []


def test_a_plain_signal_is_kept_and_the_same_again_is_answered_alike(owner, ask):
    run = ask(in_order(call(("ask_user", {"question": "Year?"})), say("Done.")))
    body = {"correlation_key": "invoice-417", "payload": {"paid": True}}
    first = owner.post(f"runs/{run.pk}/signal/", body)

    assert (first.status_code, first.json()["outcome"]) == (200, "kept")
    assert owner.post(f"runs/{run.pk}/signal/", body).json() == first.json()
    other = owner.post(f"runs/{run.pk}/signal/", {**body, "payload": {"paid": False}})
    assert problem(other) == (409, "SIGNAL_DIFFERS")


@pytest.mark.parametrize("key", ["child-run_x", "retry-4", "review-3.0"])
def test_keys_that_are_not_for_signals_are_refused(owner, asked, key):
    answer = owner.post(f"runs/{asked.run_id}/signal/", {"correlation_key": key})

    assert problem(answer) == (422, "INVALID")
    assert answer.json()["errors"][0]["code"] == "RESERVED_KEY"
