"""An outside agent over HTTP: 200 with the result, 202 while it waits, 403 with the policy's words."""

import contextvars
import threading
import time
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from django.core import mail
from django.db import connection
from django.test import Client

from common import current, turns
from groups.models import Project
from policy.models import CapabilityRule
from runs.execution.calls import NAMED_HERE
from runs.gate import provenance
from runs.models import Approval, Run, ToolCall
from tests.acting import approve, reject
from tests.factories import MembershipFactory
from tests.guard import ends

from .api_client import Api, permit, problem
from .outside import MAIL, work_off
from .test_decisions import decider

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(world):
    return Api(world.user, world.organization)


@pytest.fixture
def run(api, world):
    started = api.post("runs/", {"project": world.project.slug, "goal": "Sell more", "driver": "external"})
    assert started.status_code == 202
    assert (started.json()["status"], started.json()["driver"]) == ("running", "external")
    return f"runs/{started.json()['id']}/"


def ask(api, run, call_id, name, wait="0", **arguments):
    return api.post(
        f"{run}tool-calls/?wait={wait}", {"call_id": call_id, "name": name, "arguments": arguments}
    )


def at(api, location):
    return api.client.get(urlsplit(location).path, headers=api.headers)


@pytest.fixture
def stopped(api, run):
    """send_email waits for an approval, as it is of high risk."""
    answer = ask(api, run, "m", "send_email", **MAIL)
    assert answer.status_code == 202, answer.content
    return answer


def test_an_allowed_call_is_200_with_its_result(api, run):
    answer = ask(api, run, "1", "list_available_groups")

    assert answer.status_code == 200
    assert answer.json()["status"] == "succeeded"
    assert answer.json()["result"]["groups"][0]["name"] == "Market"
    assert answer.json()["waits_for"] is None


def test_a_denied_call_is_403_with_the_policys_words(api, run, world):
    CapabilityRule.objects.create(
        organization=world.organization, tool="send_email", effect="deny", name="no mail"
    )

    denied = ask(api, run, "m", "send_email", **MAIL)
    assert problem(denied) == (403, "PERMISSION_DENIED")
    assert denied.json()["detail"].startswith("Tool 'send_email' is denied by policy: ")
    assert (denied.json()["unlockable"], denied.json()["call_id"]) == (False, "m")
    shown = api.get(f"{run}tool-calls/m/")
    assert (shown.status_code, shown.json()["error"]["message"]) == (200, denied.json()["detail"])


def test_a_call_that_waits_is_202_and_says_where_for_what_and_until_when(api, stopped):
    waits = stopped.json()["waits_for"]
    approval = Approval.objects.get()

    assert (waits["kind"], waits["approval"]) == ("approval", approval.pk)
    assert waits["correlation_key"] == approval.correlation_key
    assert waits["expires_at"].startswith(approval.expires_at.isoformat()[:19])
    assert at(api, stopped.headers["Location"]).json() == stopped.json()


def test_an_approved_call_is_found_where_location_said(api, stopped, world):
    approver = permit(decider(world), "decide_approval")
    approval = stopped.json()["waits_for"]["approval"]
    edited = {**MAIL, "subject": "Edited"}
    decided = Api(approver, world.organization).post(f"approvals/{approval}/approve/", {"arguments": edited})
    assert decided.status_code == 200
    assert at(api, stopped.headers["Location"]).status_code == 202
    work_off()

    answer = at(api, stopped.headers["Location"])
    assert (answer.status_code, answer.json()["status"]) == (200, "succeeded")
    assert answer.json()["arguments"] == edited
    assert [m.subject for m in mail.outbox] == ["Edited"]


def test_a_rejected_call_is_200_with_the_reason(api, run, stopped, world):
    reject(stopped.json()["waits_for"]["approval"], decider(world), "Wrong customer")
    work_off()

    answer = at(api, stopped.headers["Location"])
    assert (answer.status_code, answer.json()["status"]) == (200, "rejected")
    assert answer.json()["error"]["message"] == "Rejected by approver: Wrong customer"
    assert ask(api, run, "m", "send_email", **MAIL).json() == answer.json()


def test_the_same_call_id_again_is_the_same_call(api, run, stopped):
    again = ask(api, run, "m", "send_email", **MAIL)

    assert (again.status_code, again.json()) == (202, stopped.json())
    assert (ToolCall.objects.count(), Approval.objects.count()) == (1, 1)


def test_the_same_call_id_with_other_arguments_is_409(api, run, stopped):
    assert problem(ask(api, run, "m", "send_email", **{**MAIL, "body": "x"})) == (409, "CALL_DIFFERS")


def test_nobody_holds_a_web_process_by_calls_that_are_weighed_by_much(api, run, world, monkeypatch):
    Project.objects.filter(pk=world.project.pk).update(approval_profile="balanced")
    assert ask(api, run, "1", "list_available_groups").status_code == 200
    monkeypatch.setattr(provenance, "MUCH", 1)

    def send():
        current.answering(SimpleNamespace(user=world.user))
        return ask(api, run, "m", "send_email", **MAIL)

    own = turns.of_person(world.user.pk)
    assert turns.take(own)
    assert turns.take(own)
    refused = contextvars.Context().run(send)
    assert (problem(refused), refused.headers["Retry-After"]) == ((503, "LOCKED"), "1")
    assert ToolCall.objects.filter(tool="send_email").count() == 0

    turns.give_back(own)
    assert contextvars.Context().run(send).status_code == 202
    assert turns.take(own), "its turn was given back"
    turns.give_back(own)
    turns.give_back(own)


def test_arguments_that_do_not_fit_are_422_with_a_pointer(api, run):
    wrong = ask(api, run, "1", "memory_search", query="x", limit=99)

    assert problem(wrong) == (422, "INVALID_ARGUMENTS")
    assert [e["pointer"] for e in wrong.json()["errors"]] == ["/arguments/limit"]
    assert problem(ask(api, run, "2", "fly")) == (422, "UNKNOWN_TOOL")


@pytest.mark.parametrize(
    "body",
    [
        {"name": "x"},
        {"call_id": "", "name": "x"},
        {"call_id": "a b", "name": "x"},
        {"call_id": " a", "name": "x"},
        {"call_id": "ü", "name": "x"},
        {"call_id": "x" * 65, "name": "x"},
        {"call_id": 1, "name": "x"},
        {"call_id": "1", "name": "x" * 65},
        {"call_id": "1", "name": "x", "arguments": []},
        {"call_id": "1", "name": "x", "argument": {}},
    ],
)
def test_a_body_that_does_not_fit_asks_for_nothing(api, run, body):
    assert problem(api.post(f"{run}tool-calls/", body)) == (422, "INVALID")
    assert not ToolCall.objects.exists()


@pytest.mark.parametrize("wait", ["31", "-1", "x", ""])
def test_one_waits_30_seconds_at_most(api, run, wait):
    assert problem(ask(api, run, "1", "list_available_groups", wait=wait)) == (400, "BAD_QUERY")


@pytest.mark.parametrize("call_id", ["a/b", "a?b=c#d", "50%", "~!@$&*()"])
def test_any_call_id_has_an_address(api, run, call_id):
    asked = ask(api, run, call_id, "ask_user", question="?")
    assert asked.status_code == 202

    found = api.client.get(asked.headers["Location"], headers=api.headers)
    assert found.json()["call_id"] == call_id


def test_calls_are_listed_in_order(api, run):
    for call_id in ("b", "a"):
        ask(api, run, call_id, "list_available_groups")

    assert [c["call_id"] for c in api.get(f"{run}tool-calls/").json()["results"]] == ["b", "a"]


def test_the_run_shows_which_call_waits_for_what(api, run, stopped):
    (wait,) = api.get(run).json()["waits"]
    assert (wait["kind"], wait["tool"], wait["call_id"]) == ("approval", "send_email", "m")


def test_a_question_is_answered_by_a_message(api, run):
    asked = ask(api, run, "q", "ask_user", question="Which colour?")
    assert asked.json()["waits_for"]["question"] == "Which colour?"
    api.post(f"{run}message/", {"content": "Green"})
    work_off()

    assert api.get(f"{run}tool-calls/q/").json()["result"]["answer"] == "Green"


def test_complete_and_fail_end_the_run(api, run, stopped, world):
    assert problem(api.post(f"{run}complete/", {"output": "x"})) == (409, "CALLS_OPEN")
    assert api.post(f"{run}complete/", {"output": "x"}).json()["open"] == ["m"]
    failed = api.post(f"{run}fail/", {"code": "LOST", "message": "I am lost."})
    assert failed.json()["error"] == {"code": "LOST", "message": "I am lost."}
    assert api.post(f"{run}fail/", {"code": "LOST", "message": "I am lost."}).status_code == 200
    assert problem(api.post(f"{run}complete/", {"output": "x"})) == (409, "RUN_ENDED")
    assert problem(ask(api, run, "n", "list_available_groups")) == (409, "RUN_ENDED")
    assert problem(api.post(f"{run}fail/", {"code": "lower", "message": "x"})) == (422, "INVALID")


def test_only_the_runs_own_user_drives_it(run, world):
    other = MembershipFactory(organization=world.organization).user
    stranger = Api(permit(other, "cancel_run", "decide_approval"), world.organization)

    assert problem(ask(stranger, run, "1", "list_available_groups")) == (403, "NOT_ENTITLED")
    assert stranger.get(f"{run}tool-calls/").status_code == 200
    assert not ToolCall.objects.exists()


def test_a_token_that_only_reads_calls_nothing(run, world):
    reader = Api(world.user, world.organization, scopes=["runs:read"])

    assert problem(ask(reader, run, "1", "list_available_groups")) == (403, "SCOPE_MISSING")


# with real threads, which see only what is committed


@pytest.fixture
def together():
    """Run functions side by side; returns their answers."""

    def _together(*functions):
        answers, barrier = [None] * len(functions), threading.Barrier(len(functions))

        def one(i, function):
            try:
                barrier.wait(10)
                answers[i] = function()
            finally:
                connection.close()

        threads = [threading.Thread(target=one, args=item) for item in enumerate(functions)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        return answers

    return _together


@pytest.mark.django_db(transaction=True)
def test_the_same_call_many_times_at_once_is_executed_once(api, run, together):
    answers = together(*[lambda: ask(api, run, "1", "ask_user", question="Which colour?")] * 6)

    assert [a.status_code for a in answers] == [202] * 6
    assert len({a.content for a in answers}) == 1
    assert ToolCall.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("own", ["", NAMED_HERE], ids=["with ids of its own", "over MCP without one"])
def test_the_same_words_many_times_at_once_are_one_call_to_decide_about(api, run, together, own):
    """Each was a call of its own: deciders were asked about it so often, and so many mails could leave."""
    answers = together(*[lambda n=n: ask(api, run, f"{own}{n}", "send_email", **MAIL) for n in range(6)])

    assert [a.status_code for a in answers] == [202] * 6
    assert len({a.json()["call_id"] for a in answers}) == 1
    assert Approval.objects.count() == ToolCall.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_several_workers_at_one_approved_call_execute_it_once(api, run, together, world):
    approval = ask(api, run, "m", "send_email", **MAIL).json()["waits_for"]["approval"]
    approve(approval, decider(world))
    together(*[work_off] * 4)

    assert len(mail.outbox) == 1
    assert ToolCall.objects.get().status == "succeeded"
    assert ToolCall.objects.get().attempt == 1


@pytest.mark.django_db(transaction=True)
def test_whoever_waits_hears_of_the_end_at_once(api, run, together, world):
    approval = ask(api, run, "m", "send_email", **MAIL).json()["waits_for"]["approval"]
    approver = decider(world)

    def decide():
        time.sleep(0.3)
        approve(approval, approver)
        work_off()

    with ends(25):  # what nobody told of waits for 30
        answer, _ = together(lambda: api.get(f"{run}tool-calls/m/", wait=30), decide)
    assert (answer.status_code, answer.json()["status"]) == (200, "succeeded")


@pytest.mark.django_db(transaction=True)
def test_so_does_a_browser_whose_request_is_looked_at_again_when_it_has_waited(world, run):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(world.user)
    browser.get("/settings/")
    token = browser.cookies["csrftoken"].value
    body = {"call_id": "m", "name": "send_email", "arguments": MAIL}
    for headers, status in (({}, 403), ({"X-CSRFToken": token}, 202)):
        answer = browser.post(
            f"/api/{run}tool-calls/?wait=1", body, content_type="application/json", headers=headers
        )
        assert answer.status_code == status, answer.content


@pytest.mark.django_db(transaction=True)
def test_whoever_waits_hears_of_the_runs_end(api, run, together):
    ask(api, run, "q", "ask_user", question="?")

    def cancel():
        time.sleep(0.3)
        return api.post(f"{run}cancel/")

    answer, _ = together(lambda: api.get(f"{run}tool-calls/q/", wait=30), cancel)
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert Run.objects.get().status == "cancelled"


def test_without_wait_a_call_that_waits_for_somebody_is_answered_at_once(api, run):
    asked = api.post(
        f"{run}tool-calls/", {"call_id": "q", "name": "ask_user", "arguments": {"question": "?"}}
    )

    assert asked.status_code == 202
