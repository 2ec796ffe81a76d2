"""Webhooks: what is told, in which transaction, and how it reaches its receiver; checked as receivers do."""

import json
import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from groups import today
from groups.models import Membership
from memory.models import Memory
from runs.actions import webhooks
from runs.execution import executor
from runs.models import Approval, Run, RunEvent, Wait, WebhookDelivery, WebhookEndpoint, WebhookEvent
from runs.queue import put
from runs.webhooks import sending, signing
from runs.workers.sweep import expire_waits_of
from tests.acting import approve, fork, reject, start
from tests.factories import MembershipFactory, ProjectFactory
from tests.integration.api_client import Api, permit, problem
from tests.integration.outside import MAIL, Outside
from tests.integration.test_outbound import names, replying, serving  # noqa: F401
from tests.scripted import by_role, call, in_order, say

pytestmark = pytest.mark.django_db

ALL = list(WebhookEvent.values)


@pytest.fixture
def enqueued(monkeypatch):
    """What is put on the queue: (task, argument, delay)."""
    found = []

    def enqueue_task(name, *arguments, delay=0, turn=None):
        found.append((name, *arguments, delay))

    monkeypatch.setattr(put, "enqueue_task", enqueue_task)
    return found


def hook(world, url="https://93.184.216.34/", events=ALL, **fields):
    endpoint = WebhookEndpoint(organization=world.organization, url=url, events=list(events), **fields)
    endpoint.secret = webhooks.give_secret(endpoint)
    endpoint.full_clean()
    endpoint.save()
    return endpoint


def told(endpoint):
    """(event, data) of its deliveries, in order."""
    return [
        (each.event, each.payload["data"])
        for each in WebhookDelivery.objects.filter(endpoint=endpoint).order_by("pk")
    ]


def decider(world):
    return permit(MembershipFactory(organization=world.organization).user, "decide_approval")


class Receiver:
    """Keeps what it is sent; answers with `status`."""

    def __init__(self):
        self.got, self.status, self.headers = [], 204, {}

    def __call__(self, handler):
        body = handler.rfile.read(int(handler.headers["content-length"]))
        self.got.append((dict(handler.headers.items()), body))
        replying(self.status, b"", **self.headers)(handler)

    def verified(self, secret, number=-1):
        """The message, checked with the scheme's own library."""
        headers, body = self.got[number]
        return Webhook(secret).verify(body, {name.lower(): value for name, value in headers.items()})


@pytest.fixture
def receiver(settings):
    made = Receiver()
    with serving({"/hook": made}) as port:
        settings.WEBHOOK_ALLOW = [f"127.0.0.1:{port}"]
        made.url = f"http://127.0.0.1:{port}/hook"
        yield made


# What is told


def test_an_approval_is_told_when_it_is_asked_for_and_when_it_is_decided(world, enqueued):
    endpoint = hook(world)
    outside = Outside(world)
    outside.call("1", "send_email", **MAIL)
    approval = Approval.objects.get()
    approve(approval.pk, decider(world))

    (first, asked), (second, decided) = told(endpoint)
    assert (first, second) == ("approval.requested", "approval.decided")
    assert asked["approval"] == decided["approval"] == approval.pk
    assert (asked["run"], asked["tool"], asked["effect"]) == (
        outside.run.pk,
        "send_email",
        "require_approval",
    )
    assert decided["outcome"] == "approved" and decided["decided_by"]
    sent = [task for task in enqueued if task[0] == "send_webhook"]
    assert [task[1] for task in sent] == list(
        WebhookDelivery.objects.order_by("pk").values_list("pk", flat=True)
    )


def test_a_rejection_and_an_expiry_are_told_apart(world):
    endpoint = hook(world, events=["approval.decided"])
    for number, end in enumerate(("reject", "expire")):
        outside = Outside(world)
        outside.call("1", "send_email", **{**MAIL, "subject": str(number)})
        approval = Approval.objects.get(run=outside.run)
        if end == "reject":
            reject(approval.pk, decider(world), "No.")
        else:
            Wait.objects.filter(run=outside.run).update(expires_at=timezone.now() - timedelta(hours=1))
            expire_waits_of(outside.run.pk)

    assert [data["outcome"] for _, data in told(endpoint)] == ["rejected", "expired"]
    assert all(data["approval"] for _, data in told(endpoint))


def test_the_end_of_runs_and_deposits_are_told(world, ask):
    endpoint = hook(world)
    run = ask(
        by_role(
            Personal_agent=[
                call(("escalate_to_group", {"goal": "x", "group_id": world.group.pk})),
                say("They charge 5."),
            ],
            researcher=[say("EVIDENCE: 5")],
            analyst=[say("PROPOSAL: 5")],
            lead=[say("DECISION: It is 5.")],
        )
    )

    events = [event for event, _ in told(endpoint)]
    assert sorted(events) == ["memory.deposited", "run.completed", "run.completed"]
    deposit = next(data for event, data in told(endpoint) if event == "memory.deposited")
    assert Memory.objects.filter(pk__in=deposit["memories"]).count() == len(deposit["memories"]) > 0
    ended = [data for event, data in told(endpoint) if event == "run.completed"]
    assert {data["kind"] for data in ended} == {"personal", "group"}
    assert {data["root_run"] for data in ended} == {run.pk}


def test_a_run_that_goes_on_from_another_does_not_tell_its_past_again(world, ask):
    run = ask(in_order(call(("send_email", MAIL)), say("Rejected, then.")))
    approval = Approval.objects.get(run=run)
    reject(approval.pk, decider(world), "No.")
    executor.run(run.pk)
    rejected = RunEvent.objects.get(run=run, type="tool.rejected").seq
    endpoint = hook(world)

    fork(run.pk, rejected, by=world.user)

    assert Run.objects.count() == 2 and told(endpoint) == []


def test_a_failure_tells_its_code(world):
    from tests.acting import fail

    endpoint = hook(world)
    outside = Outside(world, goal="a secret goal")
    fail(outside.run.pk, "a secret message", code="GAVE_UP")

    assert told(endpoint) == [
        (
            "run.failed",
            {
                "organization": world.organization.pk,
                "project": world.project.pk,
                "run": outside.run.pk,
                "root_run": outside.run.pk,
                "kind": "personal",
                "code": "GAVE_UP",
            },
        )
    ]


def test_payloads_hold_no_words_of_anybody(world):
    hook(world)
    outside = Outside(world, goal="a secret goal", context="a secret context")
    outside.call("1", "send_email", to=["secret@example.org"], subject="secret", body="secret")
    reject(Approval.objects.get().pk, decider(world), "a secret reason")

    assert WebhookDelivery.objects.count() == 2
    assert not [each for each in WebhookDelivery.objects.all() if "secret" in json.dumps(each.payload)]


def test_only_what_was_asked_for_and_only_ones_own(world):
    failures = hook(world, events=["run.failed"])
    here = hook(world, project=world.project)
    there = hook(world, project=ProjectFactory(organization=world.organization))
    off = hook(world, enabled=False)
    strangers = hook(type(world)(organization=ProjectFactory().organization))
    Outside(world).call("1", "send_email", **MAIL)

    assert [len(told(each)) for each in (failures, here, there, off, strangers)] == [0, 1, 0, 0, 0]


def test_each_endpoints_message_has_an_id_of_its_own(world):
    hook(world), hook(world)
    Outside(world).call("1", "send_email", **MAIL)

    ids = list(WebhookDelivery.objects.values_list("pk", flat=True))
    assert len(set(ids)) == 2 and all(len(each) == 30 and each.startswith("msg_") for each in ids)


def test_what_is_rolled_back_is_told_to_nobody(world):
    hook(world)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        Outside(world).call("1", "send_email", **MAIL)
        raise ZeroDivisionError
    assert not WebhookDelivery.objects.exists()


def statements(world):
    """How many statements it takes to ask for an approval, in a run that is there already."""
    outside = Outside(world)
    outside.call("0", "list_available_groups")
    with CaptureQueriesContext(connection) as kept:
        outside.call("1", "send_email", work=False, **MAIL)
    return len(kept)


def test_telling_costs_no_further_statement(world, monkeypatch):
    monkeypatch.setattr(today, "AT_ONCE", 60)  # however long the machine takes
    alone = statements(world)
    hook(world)

    assert statements(world) == alone
    assert WebhookDelivery.objects.count() == 1


# Signing


def test_the_schemes_own_library_accepts_what_is_sent(world, receiver):
    endpoint = hook(world, receiver.url)
    Outside(world).call("1", "send_email", **MAIL)
    delivery = WebhookDelivery.objects.get()

    sending.send(delivery.pk)

    message = receiver.verified(endpoint.secret)
    assert message == delivery.payload and message["type"] == "approval.requested"
    headers, _ = receiver.got[0]
    assert headers["webhook-id"] == delivery.pk and headers["content-type"] == "application/json"
    with pytest.raises(WebhookVerificationError):
        receiver.verified(signing.new_secret())


def test_both_secrets_are_good_for_a_day_after_a_rotation(world, receiver):
    endpoint = hook(world, receiver.url)
    new = webhooks.rotate(endpoint)
    for age in (0, 25):
        WebhookEndpoint.objects.update(previous_until=timezone.now() + timedelta(hours=24 - age))
        sending.send(sending.ping(endpoint).pk)

    assert receiver.verified(new, 0) and receiver.verified(endpoint.secret, 0)
    assert receiver.verified(new, 1)
    with pytest.raises(WebhookVerificationError):
        receiver.verified(endpoint.secret, 1)


def test_a_secret_is_nowhere_in_the_database(world):
    endpoint = hook(world)
    assert endpoint.secret not in str(WebhookEndpoint.objects.values().get())


# Sending


def sent(endpoint, at=None):
    """A ping that is sent now, or as if it were that time; as it then stands."""
    delivery = sending.ping(endpoint)
    sending.send(delivery.pk)
    delivery.refresh_from_db()
    return delivery


def test_a_delivery_is_written_down(world, receiver):
    delivery = sent(hook(world, receiver.url))

    assert (delivery.status, delivery.attempts, delivery.response_status) == ("delivered", 1, 204)
    assert delivery.delivered_at and delivery.next_attempt_at is None and len(delivery.history) == 1
    sending.send(delivery.pk)
    assert len(receiver.got) == 1


@pytest.mark.parametrize(("status", "headers"), [(500, {}), (302, {"location": "/hook"}), (404, {})])
def test_a_failure_is_tried_again_later_and_later(world, receiver, enqueued, status, headers):
    receiver.status, receiver.headers = status, headers
    endpoint = hook(world, receiver.url)
    delivery = sent(endpoint)

    assert (delivery.status, delivery.response_status, len(receiver.got)) == ("pending", status, 1)
    task, argument, delay = enqueued[-1]
    assert (task, argument) == ("send_webhook", delivery.pk)
    assert 4 <= delay <= 6
    endpoint.refresh_from_db()
    assert endpoint.failing_since and endpoint.enabled

    sending.send(delivery.pk)  # too early: nothing
    assert len(receiver.got) == 1
    receiver.status = 200
    WebhookDelivery.objects.update(next_attempt_at=timezone.now() - timedelta(seconds=1))
    sending.send(delivery.pk)
    delivery.refresh_from_db()
    endpoint.refresh_from_db()
    assert (delivery.status, delivery.attempts, endpoint.failing_since) == ("delivered", 2, None)
    assert receiver.got[0][0]["webhook-id"] == receiver.got[1][0]["webhook-id"]
    assert receiver.got[0][1] == receiver.got[1][1]


def test_pauses_grow_with_jitter_and_end():
    pauses = [[sending.pause_after(n) for _ in range(20)] for n in range(1, len(sending.PAUSES) + 1)]
    for base, found in zip(sending.PAUSES, pauses, strict=True):
        assert all(base * 0.8 <= each <= base * 1.2 for each in found) and len(set(found)) > 1
    assert sending.pause_after(len(sending.PAUSES) + 1) is None
    assert sending.pause_after(1, wish=600) == 600


@pytest.mark.parametrize(("asked", "least"), [("120", 120), ("9999999", 4), ("soon", 4), ("999999", 86_400)])
def test_a_receiver_may_ask_for_time(world, receiver, enqueued, asked, least):
    receiver.status, receiver.headers = 429, {"retry_after": asked}
    sent(hook(world, receiver.url))
    assert least <= enqueued[-1][2] <= max(least, 6)


def test_it_is_given_up_in_the_end_and_can_be_sent_again(world, receiver, enqueued):
    receiver.status = 500
    endpoint = hook(world, receiver.url)
    delivery = sending.ping(endpoint)
    WebhookDelivery.objects.update(attempts=len(sending.PAUSES))
    sending.send(delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.status, delivery.next_attempt_at) == ("failed", None)

    receiver.status = 200
    assert sending.send_again(delivery) and not sending.send_again(delivery)
    sending.send(delivery.pk)
    delivery.refresh_from_db()
    assert delivery.status == "delivered"


def test_410_switches_it_off_with_a_notice(world, receiver, enqueued, mailoutbox):
    manager = permit(MembershipFactory(organization=world.organization).user, "change_webhookendpoint")
    type(manager).objects.filter(pk=manager.pk).update(email="manager@example.org")
    other = permit(MembershipFactory().user, "change_webhookendpoint")
    type(other).objects.filter(pk=other.pk).update(email="other@example.org")
    receiver.status = 410
    endpoint = hook(world, receiver.url)
    delivery = sent(endpoint)

    endpoint.refresh_from_db()
    assert (endpoint.enabled, delivery.status) == (False, "failed") and "410" in endpoint.disabled_because
    assert ("notify_webhook_disabled", endpoint.pk, 0) in enqueued
    sending.told_who_manages(endpoint.pk)
    (mail,) = mailoutbox
    assert mail.bcc == ["manager@example.org"]
    assert reverse("admin:runs_webhookendpoint_change", args=[endpoint.pk]) in mail.body

    assert sent(endpoint).problem == "The webhook is switched off." and len(receiver.got) == 1


def test_nobody_has_colleagues_written_to_without_end_by_a_webhook_that_fails(world, mailoutbox):
    manager = permit(MembershipFactory(organization=world.organization).user, "change_webhookendpoint")
    type(manager).objects.filter(pk=manager.pk).update(email="manager@example.org")
    endpoint = hook(world)
    WebhookEndpoint.objects.update(enabled=False)
    for _ in range(25):
        sending.told_who_manages(endpoint.pk)
    assert len(mailoutbox) == 20


def test_days_of_failures_switch_it_off_and_a_single_one_does_not(world, receiver, enqueued):
    receiver.status = 500
    endpoint = hook(world, receiver.url)
    for days, enabled in ((4, True), (6, False)):
        WebhookEndpoint.objects.update(failing_since=timezone.now() - timedelta(days=days))
        sent(endpoint)
        endpoint.refresh_from_db()
        assert endpoint.enabled is enabled


def test_a_lost_message_is_found_and_old_ones_are_forgotten(world, enqueued):
    endpoint = hook(world)
    lost, old = sending.ping(endpoint), sending.ping(endpoint)
    WebhookDelivery.objects.filter(pk=lost.pk).update(next_attempt_at=timezone.now() - timedelta(minutes=5))
    then = timezone.now() - timedelta(days=31)
    WebhookDelivery.objects.filter(pk=old.pk).update(status="delivered", created_at=then)
    enqueued.clear()

    assert sending.send_due() == 1 and enqueued == [("send_webhook", lost.pk, 0)]
    assert sending.forget() == 1 and WebhookDelivery.objects.get() == lost


def test_one_worker_sees_to_all_that_is_due_at_an_endpoint(world, receiver):
    endpoint, other = hook(world, receiver.url), hook(world, receiver.url)
    first, second = sending.ping(endpoint), sending.ping(endpoint)
    sending.ping(other)

    sending.send(second.pk)

    sent_ids = [headers["webhook-id"] for headers, _ in receiver.got]
    assert sent_ids == [first.pk, second.pk]


@pytest.mark.django_db(transaction=True)
def test_two_workers_send_a_message_once(world, receiver):
    endpoint = hook(world, receiver.url)
    delivery = sending.ping(endpoint)

    def work():
        sending.send(delivery.pk)
        connection.close()

    workers = [threading.Thread(target=work) for _ in range(4)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert len(receiver.got) == 1


# Addresses that are not public


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://0177.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://[64:ff9b::a00:1]/",
        "http://xn--a.example/",
        "http://10.1.2.3:8080/",
        "http://localhost/",
        "ftp://example.org/",
        "https://user:word@example.org/",
    ],
)
def test_a_private_address_is_refused_when_saved_and_when_sent(world, url, enqueued):
    api = Api(permit(world.user, "view_webhookendpoint", "add_webhookendpoint"), world.organization)
    refused = api.post("webhooks/", {"url": url, "events": ["run.failed"]})
    assert problem(refused) == (422, "INVALID") and refused.json()["errors"][0]["pointer"] == "/url"

    past = hook(world)
    WebhookEndpoint.objects.filter(pk=past.pk).update(url=url)
    delivery = sent(WebhookEndpoint.objects.get(pk=past.pk))
    assert delivery.status == "pending" and delivery.response_status is None
    assert delivery.problem.split(":")[0] in (
        "ADDRESS_REFUSED",
        "SCHEME_REFUSED",
        "URL_INVALID",
        "CONNECTION",
    )


def test_a_name_that_turns_private_later_is_refused_then(world, names, enqueued):  # noqa: F811
    names["rebind.test"] = ["93.184.216.34", "127.0.0.1"]
    assert sent(hook(world, "http://rebind.test/")).problem.startswith("ADDRESS_REFUSED")


def test_a_redirect_inside_is_not_followed(world, receiver, enqueued):
    reached = []
    with serving({"/private": lambda handler: reached.append(1)}) as inner:
        receiver.status, receiver.headers = 307, {"location": f"http://127.0.0.1:{inner}/private"}
        assert sent(hook(world, receiver.url)).response_status == 307
    assert not reached


# The API


@pytest.fixture
def api(world):
    verbs = ("view", "add", "change", "delete")
    may = permit(world.user, *(f"{verb}_webhookendpoint" for verb in verbs))
    return Api(may, world.organization)


BODY = {"url": "https://93.184.216.34/", "events": ["run.failed", "run.failed"]}


def test_a_webhook_is_made_looked_at_changed_tried_and_removed(api, world):
    made = api.post("webhooks/", BODY)
    assert made.status_code == 201 and made.json()["secret"].startswith("whsec_")
    assert made.headers["Cache-Control"] == "no-store"
    pk = made.json()["id"]
    path = f"webhooks/{pk}/"
    assert made.json()["events"] == ["run.failed"] and "secret" not in api.get(path).json()

    rotated = api.post(f"{path}rotate/").json()
    assert rotated["secret"] != made.json()["secret"]
    pinged = api.post(f"{path}ping/")
    assert pinged.status_code == 202 and pinged.json()["payload"]["type"] == "ping"
    (listed,) = api.get("webhooks/deliveries/", webhook=pk).json()["results"]
    assert listed["id"] == pinged.json()["id"]
    assert problem(api.post(f"webhooks/deliveries/{listed['id']}/redeliver/")) == (409, "ON_ITS_WAY")
    WebhookDelivery.objects.update(status="failed")
    assert api.post(f"webhooks/deliveries/{listed['id']}/redeliver/").json()["status"] == "pending"

    changed = api.client.patch(
        f"/api/{path}", json.dumps({"enabled": False}), content_type="application/json", headers=api.headers
    )
    assert changed.json()["enabled"] is False
    assert api.client.delete(f"/api/{path}", headers=api.headers).status_code == 204
    assert not WebhookDelivery.objects.exists()


def test_the_secret_is_not_told_again_to_the_same_key(api):
    first = api.post("webhooks/", BODY, Idempotency_Key="k")
    again = api.post("webhooks/", BODY, Idempotency_Key="k")
    assert first.json()["secret"] and "secret" not in again.json()
    assert again.json()["id"] == first.json()["id"] and WebhookEndpoint.objects.count() == 1


@pytest.mark.parametrize(
    "wrong",
    [{"events": []}, {"events": ["run.started"]}, {"url": "x"}, {"url": None}, {"secret": "whsec_x"}],
)
def test_what_does_not_fit_is_refused(api, wrong):
    assert problem(api.post("webhooks/", {**BODY, **wrong})) == (422, "INVALID")
    assert not WebhookEndpoint.objects.exists()


def test_it_takes_permissions_and_scopes(world):
    hook(world)
    plain = Api(world.user, world.organization)
    assert problem(plain.get("webhooks/")) == (403, "NOT_ENTITLED")
    assert problem(plain.post("webhooks/", BODY)) == (403, "NOT_ENTITLED")
    looker = Api(permit(world.user, "view_webhookendpoint"), world.organization, scopes=["webhooks:read"])
    assert looker.get("webhooks/").status_code == 200
    assert problem(looker.post("webhooks/", BODY)) == (403, "SCOPE_MISSING")


def test_who_sees_some_projects_hears_of_those(world, api):
    mine = hook(world, project=world.project)
    hook(world)
    Membership.objects.filter(pk=world.membership.pk).update(projects=[world.project.pk])

    assert [each["id"] for each in api.get("webhooks/").json()["results"]] == [mine.pk]
    assert problem(api.post("webhooks/", BODY)) == (403, "NOT_ENTITLED")
    assert api.post("webhooks/", {**BODY, "project": world.project.slug}).status_code == 201
    wider = api.client.patch(
        f"/api/webhooks/{mine.pk}/",
        json.dumps({"project": None}),
        content_type="application/json",
        headers=api.headers,
    )
    assert problem(wider) == (403, "NOT_ENTITLED")


def test_a_started_run_alone_tells_nothing(world, ask):
    endpoint = hook(world)
    start(user=world.user, project=world.project, goal="Wait")
    assert told(endpoint) == []
    ask(in_order(say("Done.")))
    assert [event for event, _ in told(endpoint)] == ["run.completed"]
    assert Run.objects.count() == 2
