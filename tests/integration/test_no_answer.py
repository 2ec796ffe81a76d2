"""A call that has left and gets no answer may have been carried out: a person says what became of it, and
nobody is told that it has failed.
"""

import asyncio
import json
import threading
from dataclasses import replace

import pytest

from policy.models import Capability, CapabilityRule
from runs.actions.signal import SignalRefused
from runs.execution import executor
from runs.models import Run, RunEvent, ToolCall
from runs.outbound import packing
from runs.tools.base import NoAnswer, ToolContext, Unknown
from runs.tools.mcp import transport
from runs.workers import tasks
from tests.acting import request_call, resolve, start
from tests.factories import MembershipFactory, permit
from tests.integration.outside import Outside, work_off
from tests.integration.test_mcp_servers import DELETE, FIND, accepted, crm, site  # noqa: F401 - fixtures
from tests.integration.test_outbound_calls import carry
from tests.receiver import SmtpController
from tests.scripted import Scripted, call, in_order, say

MAIL = call(("send_email", {"to": ["ada@example.org"], "subject": "x", "body": "y"}))


class PostOffice:
    """An SMTP server that does at each stage of a mail what a test says, and keeps what it has taken."""

    def __init__(self):
        self.taken, self.at_data, self.over = [], "250 OK", threading.Event()

    async def handle_DATA(self, server, session, envelope):
        if self.at_data == "refused":
            return "554 No"
        self.taken.append(envelope.content)
        if self.at_data == "hangs up":
            server.transport.abort()
        while self.at_data == "silent" and not self.over.is_set():
            await asyncio.sleep(0.02)
        return "250 OK"


class Hesitant(PostOffice):
    """Takes mail, and says nothing when one takes one's leave."""

    async def handle_QUIT(self, server, session, envelope):
        while not self.over.is_set():
            await asyncio.sleep(0.02)
        return "221 Bye"


@pytest.fixture
def open_office(settings):
    """Opens a post office where mail goes from here on."""
    opened = []

    def _open(office):
        controller = SmtpController(office, hostname="127.0.0.1", port=0)
        controller.start()
        opened.append((office, controller))
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", controller.port, 0.5
        return office

    yield _open
    for office, controller in opened:
        office.over.set()
        controller.stop()


@pytest.fixture
def may_mail(world):
    capability = Capability.objects.create(organization=world.organization, name="send_email")
    CapabilityRule.objects.create(organization=world.organization, capability=capability, effect="allow")


@pytest.fixture
def ada(world):
    user = MembershipFactory(organization=world.organization).user
    return permit(user, "runs.view_run", "runs.resolve_review")


def only(run):
    run.refresh_from_db()
    return ToolCall.objects.get(run=run)


def in_review(run, times=1):
    run.refresh_from_db()
    unknown = RunEvent.objects.filter(run=run, type="tool.outcome_unknown").count()
    return (run.status, run.waiting_reason, unknown, only(run).status) == (
        "waiting",
        "review",
        times,
        "unknown",
    )


@pytest.mark.django_db
@pytest.mark.parametrize("stage", ["silent", "hangs up"])
def test_a_mail_whose_server_falls_silent_once_it_has_it_is_not_said_to_have_failed(
    ask, may_mail, ada, open_office, stage
):
    office = open_office(PostOffice())
    office.at_data = stage
    run = ask(in_order(MAIL, say("done")))
    assert in_review(run) and len(office.taken) == 1

    resolve(run.pk, only(run).call_id, "succeeded", ada, result="It arrived.")
    executor.run(run.pk)
    run.refresh_from_db()
    assert (run.status, only(run).result, len(office.taken)) == ("completed", "It arrived.", 1)


@pytest.mark.django_db
def test_who_says_that_it_did_not_arrive_may_have_it_sent_again(ask, may_mail, ada, open_office):
    office = open_office(PostOffice())
    office.at_data = "hangs up"
    run = ask(in_order(MAIL, say("done")))
    office.at_data = ""
    resolve(run.pk, only(run).call_id, "retry", ada)
    executor.run(run.pk)
    first, second = (mail.partition(b"Message-ID: ")[2].split()[0] for mail in office.taken)
    assert only(run).status == "succeeded" and first == second


@pytest.mark.django_db
@pytest.mark.parametrize("named", [True, False], ids=["a page of before", "a program"])
def test_what_was_said_of_one_attempt_says_nothing_of_the_next(ask, may_mail, ada, open_office, named):
    office = open_office(PostOffice())
    office.at_data = "hangs up"
    run = ask(in_order(MAIL, say("done")))
    first = run.waits.get(kind="review").correlation_key
    resolve(run.pk, only(run).call_id, "retry", ada, correlation_key=first if named else "")
    executor.run(run.pk)
    assert in_review(run, times=2) and len(office.taken) == 2

    if named:  # the same word again
        resolve(run.pk, only(run).call_id, "retry", ada, correlation_key=first)
    else:
        with pytest.raises(SignalRefused, match="interrupted again"):
            resolve(run.pk, only(run).call_id, "retry", ada)
    executor.run(run.pk)
    assert in_review(run, times=2) and len(office.taken) == 2

    now = run.waits.get(kind="review", resolved_at=None).correlation_key
    resolve(run.pk, only(run).call_id, "failed", ada, correlation_key=now)
    executor.run(run.pk)
    assert only(run).status == "failed" and len(office.taken) == 2


@pytest.mark.django_db
def test_a_server_that_refuses_or_is_away_has_not_sent_it(ask, may_mail, open_office, settings):
    office = open_office(PostOffice())
    office.at_data = "refused"
    assert only(ask(in_order(MAIL, say("done")))).error["code"] == "MAIL_FAILED"
    settings.EMAIL_PORT = 1
    assert only(ask(in_order(MAIL, say("done")))).error["code"] == "MAIL_FAILED"
    assert office.taken == []


@pytest.mark.django_db
def test_what_a_server_has_taken_is_sent_whatever_comes_after(ask, may_mail, open_office):
    office = open_office(Hesitant())
    assert only(ask(in_order(MAIL, say("done")))).status == "succeeded" and len(office.taken) == 1


@pytest.mark.django_db
def test_a_tool_of_an_mcp_server_that_acts_and_gives_no_answer(world, crm, site, ask):  # noqa: F811
    acts = {**DELETE, "annotations": {"destructiveHint": True}}
    site.behave(FIND, acts)
    accepted(crm, world.user)
    CapabilityRule.objects.create(organization=world.organization, tool="crm.delete_customer", effect="allow")
    type(crm).objects.update(timeout_seconds=1)
    site.say(mode="slow")
    run = ask(in_order(call(("crm.delete_customer", {"name": "Ada"})), say("done")))
    assert in_review(run) and [one["name"] for one in site.calls] == ["delete_customer"]

    reads = ask(in_order(call(("crm.find_customer", {"name": "Ada"})), say("done")))
    assert only(reads).error["code"] == "TIMEOUT"


NOTHING = {
    "no content": (204, "", "application/json"),
    "accepted": (202, "", "application/json"),
    "an empty body": (200, "", "application/json"),
    "something else": (200, '{"taken": true}', "application/json"),
    "a stream without a result": (200, ": keep-alive\n\ndata: {}\n\n", "text/event-stream"),
    "a stream that breaks off": (200, 'data: {"jsonrpc": "2.0", "id": 1, "resu', "text/event-stream"),
    "a notification": (
        200,
        'data: {"jsonrpc": "2.0", "method": "notifications/message", "params": {}, "result": {}}\n\n',
        "text/event-stream",
    ),
    "to nobody": (200, '{"jsonrpc": "2.0", "id": null, "result": {"content": []}}', "application/json"),
    "to another": (200, '{"jsonrpc": "2.0", "id": 99, "result": {"content": []}}', "application/json"),
    "a result that is none": (200, '{"jsonrpc": "2.0", "id": "THE CALL", "result": {}}', "application/json"),
    "a word": (200, '{"jsonrpc": "2.0", "id": "THE CALL", "result": "sent"}', "application/json"),
    "no error": (200, '{"jsonrpc": "2.0", "id": "THE CALL", "error": "x"}', "application/json"),
    "no JSON-RPC": (200, '{"id": "THE CALL", "result": {"content": []}}', "application/json"),
    "no type": (200, '{"jsonrpc": "2.0", "id": "THE CALL", "result": {"content": []}}', "text/html"),
    "a gateway's word": (502, "<h1>Bad gateway</h1>", "text/html"),
    "a gateway's silence": (504, "", "text/plain"),
}


@pytest.mark.django_db
@pytest.mark.parametrize("nothing", NOTHING)
def test_a_server_that_takes_a_call_and_says_nothing_of_it(
    world,
    crm,  # noqa: F811
    site,  # noqa: F811
    ask,
    monkeypatch,
    nothing,
):
    site.behave(FIND, {**DELETE, "annotations": {"destructiveHint": True}})
    accepted(crm, world.user)
    CapabilityRule.objects.create(organization=world.organization, tool="crm.delete_customer", effect="allow")
    fetch = transport.fetch

    def says_nothing(url, **how):
        answer = fetch(url, **how)
        if b"tools/call" not in how["content"]:
            return answer
        status, text, kind = NOTHING[nothing]
        text = text.replace('"THE CALL"', json.dumps(json.loads(how["content"])["id"]))
        return replace(answer, status=status, text=text, headers={"content-type": kind})

    monkeypatch.setattr(transport, "fetch", says_nothing)
    run = ask(in_order(call(("crm.delete_customer", {"name": "Ada"})), say("done")))
    assert in_review(run) and [one["name"] for one in site.calls] == ["delete_customer"]


@pytest.fixture
def silent(add_tool):
    """Two tools that get no answer, one of which may be asked again; and how often each was asked."""
    asked = []

    @add_tool(mutating=True)
    def order(run: ToolContext):
        asked.append("order")
        raise NoAnswer("The shop says nothing.", "SHOP_SILENT")

    @add_tool(mutating=True, idempotent=True)
    def put(run: ToolContext):
        asked.append("put")
        raise NoAnswer("The shop says nothing.", "SHOP_SILENT")

    return asked


@pytest.mark.django_db
def test_of_a_tool_that_may_be_asked_again_the_agent_hears(ask, silent):
    run = ask(in_order(call(("put", {})), say("done")))
    assert only(run).error["code"] == "SHOP_SILENT" and silent == ["put"]


def ordered_by_carriers(world, orders):
    replies = (say("done"), call(*[("order", {})] * orders))
    Scripted.play = staticmethod(lambda messages, facts: replies[messages[-1].role == "user"])
    run = Run.objects.get(pk=start(user=world.user, project=world.project, goal="Order"))
    tasks.advance(run.pk)
    for _ in range(orders + 2):
        carry()
        tasks.resume(run.pk)
    run.refresh_from_db()
    return run


@pytest.mark.django_db(transaction=True)
def test_by_a_carrier_it_is_the_same(world, silent, ada):
    run = ordered_by_carriers(world, orders=1)
    assert in_review(run) and silent == ["order"]

    resolve(run.pk, only(run).call_id, "failed", ada, message="The shop has nothing.")
    tasks.advance(run.pk)
    carry()
    tasks.resume(run.pk)
    run.refresh_from_db()
    assert (run.status, silent) == ("completed", ["order"])


@pytest.mark.django_db(transaction=True)
def test_however_often_nothing_is_said_no_worker_was_taken_down_by_it(world, silent):
    run = ordered_by_carriers(world, orders=4)
    assert (run.status, run.waiting_reason, run.error, len(silent)) == ("waiting", "review", None, 4)
    assert run.waits.filter(kind="review", resolved_at=None).count() == 4


def test_what_a_carrier_writes_of_it_is_read_as_it_was():
    assert packing.read_tool(packing.result(Unknown("said"))) == Unknown("said")


@pytest.mark.django_db
def test_and_for_an_agent_from_outside(world, silent):
    outside = Outside(world)
    request_call(outside.run.pk, "c1", "order", {})
    work_off()
    assert (only(outside.run).status, silent) == ("unknown", ["order"])
