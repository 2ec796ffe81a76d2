"""Only carriers wait for webhooks and mail: who hangs stops no run, and a carrier that dies loses nothing."""

import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.db import connection
from django.test import override_settings

from policy.models import Capability, CapabilityRule
from runs.actions import webhooks
from runs.models import ApprovalNotice, Carrier, QueueMessage, ToolCall, WebhookDelivery, WebhookEndpoint
from runs.models.queue import lanes
from runs.webhooks import sending
from tests.acceptance.house import MODEL, status, until
from tests.acceptance.witness import MailSink
from tests.acting import request_call, start
from tests.factories import MembershipFactory


class Receiver:
    """Takes webhooks; hangs with each until `go_on` is set."""

    def __init__(self):
        self.asked, self.answered = 0, []
        self.go_on = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                receiver.asked += 1
                receiver.go_on.wait(120)
                with suppress(ConnectionError):  # who was killed, or has lost patience, listens no more
                    self.send_response(204)
                    self.end_headers()
                    receiver.answered.append(self.headers["webhook-id"])

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self.go_on.set()
        self.server.shutdown()
        self.server.server_close()


class StuckMail(MailSink):
    """A mail server that says nothing until `go_on` is set."""

    def __init__(self):
        super().__init__()
        self.asked = 0
        self.go_on = threading.Event()
        handle, sink = self.server.RequestHandlerClass.handle, self

        def slow(handler):
            sink.asked += 1
            sink.go_on.wait(120)
            with suppress(ConnectionError):
                handle(handler)

        self.server.RequestHandlerClass.handle = slow

    def close(self):
        self.go_on.set()
        super().close()


@pytest.fixture
def receivers():
    made = [Receiver() for _ in range(6)]
    yield made
    for each in made:
        each.close()


@pytest.fixture
def mail():
    made = StuckMail()
    yield made
    made.close()


@pytest.fixture
def cluster(house, receivers, mail):
    def begin(**environment):
        allowed = ",".join(each.host for each in receivers)
        return house.cluster(WEBHOOK_ALLOW=allowed, DEPUTY_SMTP=mail.address, **environment)

    return begin


@pytest.fixture
def ping(world):
    """Put a message for this receiver on the queue; returns the delivery's id."""

    def _ping(receiver):
        organization, url = world.project.organization, f"http://{receiver.host}/hook"
        endpoint = WebhookEndpoint(organization=organization, url=url, events=["run.failed"])
        webhooks.give_secret(endpoint)
        endpoint.save()
        return sending.ping(endpoint).pk

    return _ping


@pytest.fixture
def letter(world):
    """Start a run whose letter these people are asked about by mail."""

    def _letter(*addresses):
        organization = world.project.organization
        capability = Capability.objects.create(organization=organization, name="mail")
        capability.bindings.create(organization=organization, pattern="send_*")
        rule = {"capability": capability, "effect": "require_approval"}
        CapabilityRule.objects.create(organization=organization, **rule)
        for address in addresses:
            MembershipFactory(organization=organization, user__email=address, role="decider")
        with override_settings(DEPUTY_MODEL=MODEL):
            start(user=world.user, project=world.project, goal="letter 0", context=world.group.pk)

    return _letter


def errands():
    connection.ensure_connection()
    return QueueMessage.objects.filter(queue__in=lanes())


def holders():
    return set(errands().exclude(holder="").values_list("holder", flat=True))


def test_receivers_and_a_mail_server_that_hang_stop_no_run(
    house, ask, ended, cluster, ping, letter, receivers, mail
):
    begun = cluster()
    for receiver in receivers:
        ping(receiver)
    letter("a@example.org", "b@example.org", "c@example.org")
    until(lambda: sum(each.asked for each in receivers) >= 3 and mail.asked, said=begun.said)
    seen = holders()
    runs = [ask("brief") for _ in range(6)]

    for run in runs:
        assert ended(run) == "completed", house.report(run)
        seen |= holders()
    carriers = set(Carrier.objects.values_list("name", flat=True))
    assert seen and seen <= carriers, begun.said()
    assert errands().exists()


def test_one_host_that_hangs_leaves_room_for_others(cluster, ping, receivers):
    begun = cluster()
    hanging, quick = receivers[0], receivers[1]
    quick.go_on.set()
    for _ in range(6):
        ping(hanging)
    until(lambda: hanging.asked, said=begun.said)
    told = ping(quick)

    until(lambda: told in quick.answered, 12, said=begun.said)
    assert hanging.asked <= 2
    assert not hanging.answered


def test_what_a_killed_carrier_was_at_is_done_by_the_next(house, cluster, ping, letter, receivers, mail):
    begun = cluster()
    receiver = receivers[0]
    told = ping(receiver)
    letter("a@example.org")
    until(lambda: receiver.asked and mail.asked, said=begun.said)
    (carrier,) = begun.carriers()
    begun.kill(carrier)
    receiver.go_on.set()
    mail.go_on.set()

    until(lambda: WebhookDelivery.objects.get(pk=told).status == "delivered", said=begun.said)
    assert WebhookDelivery.objects.get(pk=told).attempts == 2
    until(lambda: any("a@example.org" in one.recipients for one in mail.mails), said=begun.said)
    until(lambda: ApprovalNotice.objects.filter(user__email="a@example.org", status="sent"))
    until(lambda: not errands().exists(), said=begun.said)


@pytest.mark.slow
def test_errands_wait_for_a_carrier_and_no_worker_takes_them(house, cluster, ping, receivers):
    receivers[0].go_on.set()
    alone = cluster(CARRIERS="0")
    told = ping(receivers[0])
    waiting = errands().get()
    with pytest.raises(AssertionError):
        until(lambda: holders() or receivers[0].asked, seconds=3)
    assert errands().get().pk == waiting.pk
    alone.end()
    begun = cluster()

    until(lambda: receivers[0].answered == [told], said=begun.said)
    until(lambda: not errands().exists(), said=begun.said)


@pytest.mark.slow
@pytest.mark.usefixtures("their_tools")
def test_calls_of_outside_agents_that_take_long_hold_no_worker(house, world, ask, ended, cluster):
    cluster()
    with override_settings(DEPUTY_MODEL=MODEL):
        outside = start(user=world.user, project=world.project, goal="Work outside", driver="external")
    for number in range(3):
        request_call(outside, str(number), "nap", {"seconds": 30})
    until(lambda: house.witness.count([outside])["nap"] >= 2)
    runs = [ask("brief") for _ in range(4)]

    for run in runs:
        assert ended(run, 25) == "completed", house.report(run)
    assert not ToolCall.objects.filter(run=outside, status="succeeded").exists()
    assert status(outside) == "running"
