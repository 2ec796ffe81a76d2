"""The approval queue, where approvals are decided one after the other, and running again from an event."""

import json

import pytest

from runs.models import Approval, Run, RunEvent
from tests.acting import approve, reject
from tests.admin_world import APPROVER, client_of, drive, person, superuser, tenant, text, url
from tests.factories import permit
from tests.scripted import by_role, call

from .api_client import Api

pytestmark = pytest.mark.django_db


@pytest.fixture
def approver(made):
    return person(made, "ines", *APPROVER, is_staff=True)


def another(made, subject="Prices of May"):
    letter = {"to": ["ada@example.org"], "subject": subject, "body": "Compare prices"}
    said = call(("send_email", letter), content="I promise it is harmless")
    return Approval.objects.get(run=drive(made, "Write again", by_role(Personal_agent=[said])))


def decided(client, approval, decision="approve", **fields):
    data = {"decision": decision, "arguments_digest": approval.arguments_digest, **fields}
    return client.post(url("runs_approval_change", approval.pk), data)


def test_after_a_decision_the_next_one_that_waits_opens_and_the_last_is_spoken_of(made, approver):
    second, third = another(made), another(made)
    client = client_of(approver)

    answer = decided(client, second)

    assert answer["Location"] == url("runs_approval_change", third.pk)
    page = text(client.get(answer["Location"]))
    assert "Approved; the call runs now." in page
    assert url("runs_approval_change", second.pk) in page
    assert "2 of 2 that wait for you" in page
    assert decided(client, third)["Location"] == url(
        "runs_approval_change", made.approval.pk
    )  # from the front
    assert decided(client, made.approval)["Location"] == url("runs_approval_change", made.approval.pk)
    assert "Nothing else waits for you." in text(client.get(url("runs_approval_change", made.approval.pk)))


def test_the_approval_queue_opens_with_the_one_that_has_waited_longest(made, approver):
    another(made)
    client = client_of(approver)

    assert client.get(url("runs_approval_next"))["Location"] == url("runs_approval_change", made.approval.pk)


def test_the_queue_has_one_order_at_every_door(made, approver):
    second, third = another(made), another(made)
    oldest_first = [made.approval.pk, second.pk, third.pk]
    client = client_of(approver)

    listed = [one.pk for one in client.get(url("runs_approval_changelist")).context["cl"].result_list]
    own = client.get("/waiting/").context["to_decide"]
    over_api = Api(approver, made.organization).get("approvals/", status="pending").json()["results"]
    newest_first = Api(approver, made.organization).get("approvals/").json()["results"]

    assert listed == [one.approval.pk for group in own for one in group.entries] == oldest_first
    assert [one["id"] for one in over_api] == oldest_first
    assert [one["id"] for one in newest_first] == oldest_first[::-1]


def test_calls_of_one_run_and_tool_stand_under_one_heading_in_the_list(made, approver):
    letters = [("send_email", {"to": [f"{name}@example.org"], "subject": "x", "body": "x"}) for name in "ab"]
    drive(made, "Write to two", by_role(Personal_agent=[call(*letters)]))

    html = client_of(approver).get(url("runs_approval_changelist")).content.decode()

    assert html.count('class="dp-group"') == 1  # a single call needs none
    heading = html.split('class="dp-group"')[1].split("</th>")[0]
    assert "send_email" in heading and "2 calls" in heading and "Write to two" in heading
    elsewise = client_of(approver).get(url("runs_approval_changelist", o="3")).content.decode()
    assert 'class="dp-group"' not in elsewise and "Write to two" in elsewise


def test_those_that_take_their_own_page_open_one_by_one_after_the_others(made, approver):
    second, third = another(made), another(made)
    address = url("runs_approval_changelist")
    chosen = {"action": "reject_selected", "_selected_action": [made.approval.pk, second.pk, third.pk]}
    client = client_of(approver)

    page = text(client.post(address, {**chosen, "action": "approve_selected"}))  # different runs, high risk
    digests = {f"digest-{one.pk}": one.arguments_digest for one in (made.approval, second, third)}
    first = decided(client, second, then="x")
    client.post(address, {**chosen, "confirmed": "yes", "reason": "No", **digests})

    assert "3 cannot be decided together with others" in page and f"?then={made.approval.pk}" in page
    assert first["Location"].startswith(url("runs_approval_change", third.pk))
    data = {"decision": "approve", "arguments_digest": "x"}
    assert client.post(url("runs_approval_change", third.pk), data).status_code == 200
    assert Approval.objects.filter(status="rejected").count() == 2


def test_the_approval_queue_is_the_list_where_nothing_waits_for_this_person(made):
    looker = person(made, "lou", "runs.view_approval", is_staff=True)

    assert client_of(looker).get(url("runs_approval_next"))["Location"] == url("runs_approval_changelist")
    assert client_of(person(made, "pat", is_staff=True)).get(url("runs_approval_next")).status_code == 403


def test_what_is_refused_stays_on_the_page_as_written(made, approver):
    page = text(
        decided(client_of(approver), made.approval, "approve_fields", reason="Well", **{"argument-0": ""})
    )

    assert "do not fit its schema" in page
    assert ">Well</textarea>" in page
    assert Approval.objects.get(pk=made.approval.pk).status == "pending"


@pytest.mark.parametrize(
    ("button", "held"),
    [
        ("approve", {"argument-0": "bo@example.org"}),
        ("approve", {"arguments": '{"to": ["bo@example.org"], "subject": "Prices", "body": "Compare"}'}),
        ("approve", {"arguments": "{"}),
        ("approve_fields", {"arguments": "{}"}),
        ("approve_edited", {"argument-0": "bo@example.org"}),
        ("approve_always", {"argument-0": "bo@example.org", "until": "2099-01-01"}),
    ],
)
def test_a_button_approves_nothing_while_the_form_holds_what_it_does_not_take(made, approver, button, held):
    whole = {"arguments": json.dumps(made.call.effective_arguments)}
    page = text(decided(client_of(approver), made.approval, button, **{**whole, **held}))

    assert "other arguments than this button approves" in page
    assert Approval.objects.get().status == "pending"


def test_one_argument_is_changed_in_its_field(made, approver):
    fields = {"argument-0": "bo@example.org\r\ncy@example.org"}

    decided(client_of(approver), made.approval, "approve_fields", **fields)

    changed = Approval.objects.get(replaces=made.approval)
    whole = made.call.effective_arguments
    assert changed.edited_arguments == whole | {"to": ["bo@example.org", "cy@example.org"]}


def test_what_differs_from_the_last_approved_call_is_marked(made, approver):
    approve(made.approval.pk, approver)
    client = client_of(approver)

    page = text(client.get(url("runs_approval_change", another(made).pk)))

    assert "Compared with the last approved call to the same place" in page
    assert page.count("ap-mark-changed") == 1 and "Last time:" in page


def test_calls_of_other_projects_and_rejected_ones_are_not_compared_with(made, approver):
    reject(made.approval.pk, approver, "No")

    page = text(client_of(approver).get(url("runs_approval_change", another(made).pk)))

    assert "ap-mark" not in page


def test_the_agents_own_words_are_labelled_as_such(made, approver):
    page = text(client_of(approver).get(url("runs_approval_change", another(made).pk)))

    before, words = page.split("The agent's own words")
    assert "nobody has checked it" in words
    assert "I promise it is harmless" in words and "I promise it is harmless" not in before


def test_the_state_says_what_became_of_it_elsewhere(made, approver):
    client, address = client_of(approver), url("runs_approval_state", made.approval.pk)
    before = client.get(address).json()
    reject(made.approval.pk, person(made, "omar", *APPROVER), "Too early")

    after = client.get(address).json()

    assert before == {"pending": True, "said": ""}
    assert after["pending"] is False
    assert after["said"].startswith("Rejected by omar") and after["said"].endswith("Reason: Too early")
    assert client_of(superuser()).get(url("runs_approval_state", "apr_none")).status_code == 404


def test_what_happens_at_another_tenant_is_not_found(made):
    rival = tenant("Their business", "rival")
    stranger = person(rival, "sam", *APPROVER, is_staff=True)

    for name, thing in (
        ("runs_approval_state", made.approval),
        ("runs_run_stream", made.run),
        ("runs_run_live", made.run),
    ):
        assert client_of(stranger).get(url(name, thing.pk)).status_code == 404, name


# Run again from here


@pytest.fixture
def owner(made):
    made.user.is_staff = True
    made.user.save()
    return permit(made.user, "runs.view_run", "runs.start_run")


def test_a_run_is_run_again_from_its_page(made, owner):
    client = client_of(owner)
    page = text(client.get(url("runs_run_change", made.run.pk)))
    address = url("runs_run_fork", made.run.pk, 2)

    asked = text(client.get(address))
    answer = client.post(address, {"content": "Only by post"})

    assert address in page
    assert "This run stays as it is." in asked
    new = Run.objects.exclude(pk=made.run.pk).get(goal=made.run.goal, status="pending", parent_run=None)
    assert answer["Location"] == url("runs_run_change", new.pk)
    said = RunEvent.objects.filter(run=new, type="message.created").latest("seq").payload
    assert (said["content"], said["author"]) == ("Only by post", owner.username)
    assert f"from event 2 of {made.run.pk}" in text(client.get(answer["Location"]))


def test_where_it_cannot_be_run_again_the_page_says_why(made, owner):
    page = text(client_of(owner).get(url("runs_run_fork", made.run.pk, 1)))

    assert "after a message or after the result of a call" in page
    assert "<textarea" not in page


def test_nobody_else_runs_it_again(made):
    root = client_of(superuser(made))

    assert root.get(url("runs_run_fork", made.run.pk, 2)).status_code == 403
    assert root.post(url("runs_run_fork", made.run.pk, 2)).status_code == 403
    assert "dp-again" not in text(root.get(url("runs_run_change", made.run.pk)))
    assert Run.objects.filter(status="pending").count() == 0


# Speaking to a run tree, and the queue


def test_words_reach_the_run_below_that_they_are_for(made):
    Run.objects.filter(pk=made.child.pk).update(status="running", ended_at=None)
    asker = person(made, "noor", "runs.view_run", "runs.cancel_run", is_staff=True)
    client = client_of(asker)

    page = text(client.get(url("runs_run_change", made.run.pk)))
    client.post(url("runs_run_say", made.run.pk), {"content": "Look at Asia too", "to": made.child.pk})

    assert f'<option value="{made.child.pk}">' in page
    assert RunEvent.objects.filter(run=made.child, payload__content="Look at Asia too").exists()
    assert not RunEvent.objects.filter(run=made.run, payload__content="Look at Asia too").exists()


def test_words_for_a_run_of_another_family_are_refused(made):
    asker = person(made, "noor", "runs.view_run", "runs.start_run", is_staff=True)

    answer = client_of(asker).post(url("runs_run_say", made.run.pk), {"content": "x", "to": made.asking.pk})

    assert answer.status_code == 404


def test_the_queues_page_says_whether_all_is_well(made):
    from datetime import timedelta

    from django.utils import timezone

    from runs.models import QueueMessage

    root = client_of(superuser(made))
    QueueMessage.objects.all().delete()
    well = text(root.get(url("runs_health")))
    QueueMessage.objects.create(queue="deputy", payload="x", due_at=timezone.now() - timedelta(minutes=5))

    ill = text(root.get(url("runs_health")))

    assert "All is well." in well
    assert "Work waits and nobody takes it." in ill and "manage.py cluster" in ill
    assert (
        client_of(person(made, "lou", "runs.view_run", is_staff=True)).get(url("runs_health")).status_code
        == 403
    )


def test_the_first_page_counts_by_capability_and_draws_what_is_in_the_tables(made, approver):
    context = client_of(approver).get(url("index")).context

    (waiting,) = [figure for figure in context["figures"] if figure["label"] == "Waiting for me"]
    assert [(kind["name"], kind["count"]) for kind in waiting["kinds"]] == [("send_email", 1)]
    assert client_of(approver).get(waiting["kinds"][0]["link"]).context["cl"].result_count == 1
    runs, decisions = context["charts"]
    assert (runs.total, decisions.total) == (2, 0)
    assert sum(sum(counts) for _, counts in runs.rows) == 2 and len(runs.rows) == 14
    approve(made.approval.pk, approver)
    assert client_of(approver).get(url("index")).context["charts"][1].rows[-1][1] == [1, 0, 0]
