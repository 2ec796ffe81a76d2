"""The client for Python, built as it is published, against a real server with a person and a worker."""

# ruff: noqa: F811 - fixtures of other modules
import importlib
import subprocess
import sys
import zipfile
from pathlib import Path

import httpx
import pytest
from django.core import mail
from django.test import override_settings

from runs.models import Run
from tests.acting import approve, reject
from tests.scripted import call, in_order, say

from .api_client import Api
from .test_api_stream import server  # noqa: F401
from .test_decisions import decider
from .test_external_example import person  # noqa: F401

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

SOURCE = Path(__file__).parents[2] / "clients" / "python"
LETTER = {"to": ["ines@example.org"], "subject": "Prices", "body": "5"}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """The package, from a wheel that was just made of the OpenAPI document."""
    made = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", str(SOURCE), "-w", str(made)]
    subprocess.run(command, check=True, timeout=400)
    (wheel,) = made.glob("deputy_client-*.whl")
    zipfile.ZipFile(wheel).extractall(made / "site")
    sys.path.insert(0, str(made / "site"))
    yield importlib.import_module("deputy_client")
    sys.path.remove(str(made / "site"))


@pytest.fixture
def deputy(client, server, world):
    secret = Api(world.user, world.organization).secret
    with override_settings(ALLOWED_HOSTS=["127.0.0.1"]), client.Deputy(server, secret) as made:
        yield made


def test_a_call_is_made_once_somebody_has_approved_it(deputy, client, world, rule, person):
    person(approve)
    run = deputy.drive(world.project.slug, "Write to Ines")
    sent = deputy.call(run.id, "send_email", LETTER, call_id="1")
    again = deputy.call(run.id, "send_email", LETTER, call_id="1")

    assert (sent.status, sent.result["sent"], sent == again, len(mail.outbox)) == ("succeeded", 1, True, 1)
    assert deputy.complete(run.id, "Sent").status == "completed"
    assert [event.type_.value for event in deputy.events(run.id)][-1] == "run.completed"
    with pytest.raises(client.Conflict) as refused:
        deputy.cancel(run.id)
    assert refused.value.code == "RUN_ENDED"


def test_a_rejection_is_the_calls_error(deputy, world, rule, person):
    person(lambda approval, by: reject(approval, by, "Not this customer"))
    run = deputy.drive(world.project.slug, "Write to Ines")

    assert deputy.call(run.id, "send_email", LETTER).error["code"] == "APPROVAL_REJECTED"


def test_whoever_may_decide_finds_what_waits_and_approves_it(
    deputy,
    client,
    server,
    world,
    rule,
    ask,
):
    run = ask(in_order(call(("send_email", LETTER)), say("Sent.")))
    with client.Deputy(server, Api(decider(world), world.organization).secret) as approver:
        (approval,) = approver.approvals(run.pk)
        assert approval.arguments.to_dict() == LETTER
        assert approver.approve(approval, "Fine").status.value == "approved"

    assert deputy.approvals(run.pk) == []
    assert [event.payload.to_dict()["tool"] for event in deputy.events(run.pk, timeout=2)
            if event.type_.value == "tool.requires_approval"] == ["send_email"]  # fmt: skip
    with pytest.raises(client.TimedOut):
        deputy.wait(run.pk, timeout=0.5)


def test_what_was_refused_is_raised_by_its_kind(deputy, client, server, world):
    with pytest.raises(client.NotFound) as refused:
        deputy.run("run_" + "0" * 26)
    assert refused.value.code == "NOT_FOUND"
    with pytest.raises(client.Invalid) as refused:
        deputy.start(world.project.slug, "")
    assert refused.value.errors[0]["pointer"] == "/goal"
    with pytest.raises(client.NotAllowed) as refused:
        client.Deputy(server, "dpt_nobody").approvals()
    assert refused.value.code == "BAD_TOKEN"


def test_what_is_started_is_started_once_although_the_answer_was_lost(client, server, world):
    class Losing(httpx.HTTPTransport):
        lost = 0

        def handle_request(self, request):
            response = super().handle_request(request)
            if request.method == "POST" and not self.lost:
                self.lost += 1
                response.close()
                raise httpx.ReadError("lost", request=request)
            return response

    with override_settings(ALLOWED_HOSTS=["127.0.0.1"]):
        secret = Api(world.user, world.organization).secret
        with client.Deputy(server, secret, transport=Losing()) as deputy:
            run = deputy.start(world.project.slug, "Compare prices")

    assert Run.objects.get().pk == run.id
