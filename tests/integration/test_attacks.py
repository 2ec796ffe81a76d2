"""Nobody stops the others: what one run, token or address may have at once; the others go on meanwhile."""

import os
import threading
from datetime import timedelta

import httpx
import pytest
from django.contrib.auth import get_user_model
from django.core import mail
from django.db import connections
from django.test import Client, override_settings

from common.api import slots
from common.api.errors import Problem
from common.db import execute
from groups.actors import Actor
from groups.models import Token
from policy.models import Capability, CapabilityRule
from runs.models import Approval, ApprovalNotice, Channel, RunEvent, ToolCall
from runs.notices import delivery, watch
from tests.admin_world import PASSWORD, client_of, superuser, tenant
from tests.factories import MembershipFactory
from tests.integration.api_client import Api, problem
from tests.integration.test_decisions import decider
from tests.scripted import call, in_order, say
from tests.server import serving

pytestmark = pytest.mark.django_db

MAIL = {"to": ["ada@example.com"], "subject": "s", "body": "b"}


def asked_to_mail(world):
    capability = Capability.objects.create(organization=world.organization, name="mail")
    capability.bindings.create(organization=world.organization, pattern="send_*")
    CapabilityRule.objects.create(
        organization=world.organization,
        capability=capability,
        effect="require_approval",
        name="mail is checked",
    )


def others_go_on():
    """Another organization's one-line run, and a page of it."""
    made = tenant("Their business", "others")
    assert made.run.status == "waiting"  # it has come as far as its own approval
    assert client_of(superuser(username="op")).get("/admin/").status_code == 200
    return made


# Calls


def test_of_1500_calls_in_one_reply_32_are_carried_out_and_the_agent_is_told_of_the_rest(ask):
    many = call(*[("memory_search", {"query": f"prices {n}"}) for n in range(1500)])
    seen = []

    def play(messages, facts):
        seen.append(messages)
        return many if len(seen) == 1 else say("I see.")

    run = ask(play)
    calls = list(ToolCall.objects.filter(run=run).order_by("id"))

    assert run.status == "completed"
    assert [one.status for one in calls] == ["succeeded"] * 32 + ["failed"]
    assert calls[-1].error["code"] == "TOO_MANY_CALLS"
    last = seen[1][-1]
    assert last.role == "tool" and "1500 calls" in last.content and "1468 calls" in last.content
    assert RunEvent.objects.filter(run=run).count() < 100
    others_go_on()


@override_settings(CALLS_IN_REPLY=3)
def test_as_many_calls_as_are_allowed_are_all_carried_out(ask):
    run = ask(in_order(call(*[("memory_search", {"query": "x"})] * 3), say("ok")))

    assert [one.status for one in ToolCall.objects.filter(run=run)] == ["succeeded"] * 3


# Approvals


def test_a_run_may_wait_for_20_decisions_and_is_told_so(ask, world):
    asked_to_mail(world)
    run = ask(in_order(call(*[("send_email", {**MAIL, "subject": str(n)}) for n in range(30)]), say("ok")))

    assert run.status == "waiting"
    assert Approval.objects.filter(run=run, status="pending").count() == 20
    refused = ToolCall.objects.filter(run=run, status="failed")
    assert {one.error["code"] for one in refused} == {"TOO_MANY_APPROVALS"} and len(refused) == 10
    assert "not more than 20 may" in refused[0].error["message"]
    others_go_on()


@override_settings(OPEN_APPROVALS_ALL=3)
def test_so_may_an_organization_and_another_one_asks_all_the_same(ask, world):
    asked_to_mail(world)
    for _ in range(4):
        ask(in_order(call(("send_email", MAIL), ("send_email", {**MAIL, "subject": "t"})), say("ok")))

    assert Approval.objects.filter(organization=world.organization, status="pending").count() == 3
    made = others_go_on()
    assert Approval.objects.filter(organization=made.organization, status="pending").count() == 1


@override_settings(OPEN_APPROVALS_PERSON=3)
def test_nobody_fills_the_list_of_approvals_alone(ask, world):
    asked_to_mail(world)
    asks = in_order(call(("send_email", MAIL), ("send_email", {**MAIL, "subject": "t"})), say("ok"))
    for _ in range(3):
        ask(in_order(call(("send_email", MAIL), ("send_email", {**MAIL, "subject": "t"})), say("ok")))
    pending = Approval.objects.filter(organization=world.organization, status="pending")
    assert pending.count() == 3

    colleague = MembershipFactory(organization=world.organization).user
    at_terminal = Actor.terminal(colleague, world.organization)
    assert ask(asks, actor=at_terminal).waiting_reason == "approval"
    assert pending.filter(run__user=colleague).count() == 2


@override_settings(OPEN_APPROVALS=1)
def test_an_outside_agent_hears_429(world):
    asked_to_mail(world)
    api = Api(world.user, world.organization)
    run = api.post("runs/", {"project": world.project.slug, "goal": "x", "driver": "external"}).json()["id"]
    answers = [
        api.post(
            f"runs/{run}/tool-calls/?wait=0",
            {"call_id": subject, "name": "send_email", "arguments": {**MAIL, "subject": subject}},
        )
        for subject in ("first", "second")
    ]

    assert answers[0].status_code == 202
    assert problem(answers[1]) == (429, "TOO_MANY_APPROVALS")


# Notices


@pytest.fixture
def queued(monkeypatch):
    found = []

    def enqueue_task(name, *args, delay=0, turn=None):
        if name == "deliver" and not delay:  # what is for now is done now
            delivery.deliver(*args)
        else:
            found.append((name, args))

    monkeypatch.setattr("runs.queue.put.enqueue_task", enqueue_task)
    return found


def test_however_many_approvals_are_asked_for_a_person_gets_one_message(ask, world, queued, settings):
    settings.OPEN_APPROVALS = settings.OPEN_APPROVALS_PERSON = 10_000
    settings.CALLS_IN_REPLY = 10_000
    asked_to_mail(world)
    zoe = decider(world, name="zoe")
    get_user_model().objects.filter(pk=zoe.pk).update(email="zoe@example.com")
    run = ask(in_order(call(*[("send_email", {**MAIL, "subject": str(n)}) for n in range(60)]), say("ok")))
    queued.clear()
    for approval in Approval.objects.filter(run=run).order_by("id"):
        watch.attend(approval.pk)

    assert len(mail.outbox) == 1
    assert [name for name, _ in queued] == ["deliver"]  # one for all that came meanwhile
    execute("UPDATE runs_approvalnotice SET sent_at = sent_at - interval '1 hour'")
    delivery.deliver(Channel.objects.get(user=zoe).pk)
    assert len(mail.outbox) == 2 and "59 calls" in mail.outbox[1].subject
    assert not ApprovalNotice.objects.filter(sent_at=None).exists()


# Streams


@pytest.fixture
def no_slots():
    slots._open.clear()
    yield
    slots._open.clear()


@override_settings(STREAMS=3)
def test_a_token_and_a_person_have_so_many_open_answers(world, no_slots):
    tokens = [Token.objects.issue(world.organization, world.user)[0] for _ in range(3)]
    other = MembershipFactory(organization=world.organization).user
    held = [slots.take(world.user, tokens[0], world.organization.pk) for _ in range(3)]

    with pytest.raises(Problem, match="3 streams"):
        slots.take(world.user, tokens[0], world.organization.pk)
    held += [slots.take(world.user, tokens[1], world.organization.pk) for _ in range(3)]
    with pytest.raises(Problem, match="6 streams"):  # however many tokens somebody makes
        slots.take(world.user, tokens[2], world.organization.pk)
    assert slots.take(other, None, world.organization.pk)

    held.pop().give_back()
    assert slots.take(world.user, tokens[1], world.organization.pk)


@override_settings(STREAMS=2)
def test_a_slot_whose_answer_was_never_begun_is_free_again(world, no_slots):
    for _ in range(10):
        slots.take(world.user, None, world.organization.pk)  # and dropped

    assert slots.count() == 0


# Signing in


def sign_in(name, password="wrong", address="192.0.2.1", client=None):
    client = client or Client()
    return client.post("/sign-in/", {"login": name, "password": password}, REMOTE_ADDR=address)


@pytest.fixture
def ada(world):
    user = get_user_model().objects.create_user("ada", password=PASSWORD, is_staff=True)
    MembershipFactory(organization=world.organization, user=user)
    return user


@override_settings(SIGN_INS=3)
@pytest.mark.parametrize("name", ["ada", "nobody-of-this-name", "ADA ", "x" * 150])
def test_an_account_from_one_address_has_so_many_attempts_whether_it_exists_or_not(ada, name):
    answers = [sign_in(name) for _ in range(5)]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert int(answers[3]["Retry-After"]) > 1
    assert "Too many attempts" in answers[3].content.decode()
    assert sign_in("somebody-else").status_code == 200
    assert sign_in("ada", PASSWORD, "192.0.2.2").status_code == 302  # the owner, elsewhere


@override_settings(SIGN_INS=3)
def test_the_right_password_does_not_get_past_it_and_works_again_later(ada):
    for _ in range(3):
        sign_in("ada")
    assert sign_in("ada", PASSWORD).status_code == 429

    execute("UPDATE groups_throttle SET full_at = full_at - %s", [timedelta(seconds=120)])
    assert sign_in("ada", PASSWORD).status_code == 302
    assert [sign_in("ada").status_code for _ in range(3)] == [200] * 3  # a success gave all of it back


def test_the_admin_has_no_door_of_its_own(ada):
    told = {"username": "ada", "password": PASSWORD}
    for answer in (Client().get("/admin/login/"), Client().post("/admin/login/", told)):
        assert answer["Location"] == "/sign-in/?next=%2Fadmin%2F"
    evil = Client().get("/admin/login/?next=https://evil.example/")
    assert evil["Location"] == "/sign-in/?next=%2Fadmin%2F"


@override_settings(SIGN_INS=3)
def test_nor_is_a_password_guessed_where_it_is_confirmed(ada):
    client = Client()
    client.force_login(ada)
    asks = client.get("/confirm/")["Location"]
    answers = [client.post(asks, {"password": "guess"}) for _ in range(3)]
    assert all("Incorrect password" in answer.content.decode() for answer in answers)

    refused = client.post(asks, {"password": PASSWORD})
    assert refused.status_code == 429 and "Too many attempts" in refused.content.decode()


@override_settings(SIGN_INS_ADDRESS=4)
def test_an_address_has_so_many_whatever_the_names(ada):
    answers = [sign_in(f"name{n}").status_code for n in range(6)]

    assert answers == [200] * 4 + [429] * 2
    assert sign_in("ada", PASSWORD, "192.0.2.2").status_code == 302


@override_settings(SIGN_INS_ACCOUNT=5)
def test_a_guess_from_many_addresses_meets_the_account_and_locks_no_owner_out(ada):
    browser = Client()
    assert sign_in("ada", PASSWORD, "192.0.2.50", browser).status_code == 302
    answers = [sign_in("ada", address=f"198.51.100.{n}").status_code for n in range(8)]
    assert answers == [200] * 5 + [429] * 3

    del browser.cookies["sessionid"]
    assert sign_in("ada", PASSWORD, "203.0.113.9", browser).status_code == 302  # a browser of hers, anywhere
    forged = Client()
    forged.cookies["deputy_known"] = browser.cookies["deputy_known"].value[:-2] + "xx"
    assert sign_in("ada", PASSWORD, "198.51.100.99", forged).status_code in (302, 429)


def test_a_cookie_made_up_is_not_known(ada, rf):
    from groups.sign_in.pace import KNOWN, account, is_known

    request = rf.get("/")
    for value in ("", "x", "a:b:c", f'["{account("ada")}"]'):
        request.COOKIES[KNOWN] = value
        assert not is_known(request, account("ada"))


def test_no_password_is_looked_at_once_an_attempt_is_refused(ada, settings, monkeypatch):
    settings.SIGN_INS = 1
    sign_in("ada")
    monkeypatch.setattr("groups.sign_in.adapters.authenticate", lambda request, **told: 1 / 0)

    assert sign_in("ada", PASSWORD).status_code == 429


@pytest.mark.django_db(transaction=True)
def test_60_sign_ins_at_once_keep_half_of_the_cores_busy_and_leave_the_probe_alone(ada, monkeypatch):
    from groups.sign_in import pace as signing_in

    at_work, most, may_end = [], [0], threading.Event()
    counting = threading.Lock()

    def slow(request, **told):
        with counting:
            at_work.append(1)
            most[0] = max(most[0], len(at_work))
        may_end.wait(30)
        with counting:
            at_work.pop()
        return

    monkeypatch.setattr("groups.sign_in.adapters.authenticate", slow)
    statuses = []

    def attempt(address, n):
        with httpx.Client(timeout=60) as client:
            client.get(f"{address}/sign-in/")
            told = {"csrfmiddlewaretoken": client.cookies["csrftoken"], "login": f"n{n}", "password": "x"}
            statuses.append(client.post(f"{address}/sign-in/", data=told).status_code)

    with serving() as address:
        crowd = [threading.Thread(target=attempt, args=(address, n)) for n in range(60)]
        for one in crowd:
            one.start()
        while len(statuses) < 60 - signing_in.AT_ONCE:
            threading.Event().wait(0.05)
        assert httpx.get(f"{address}/readyz", timeout=60).status_code == 200  # while others are let in
        may_end.set()
        for one in crowd:
            one.join(60)
    connections.close_all()

    assert most[0] == signing_in.HASHES <= max(1, os.cpu_count() // 2)
    assert sorted(set(statuses)) == [200, 429] and statuses.count(429) == 60 - signing_in.AT_ONCE
