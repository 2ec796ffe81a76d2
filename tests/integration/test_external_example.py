"""The examples of outside agents, over a real server, with a worker beside them."""

import threading

import httpx
import pytest
from django.core import mail
from django.db import connection
from django.test import override_settings

from examples.outside_agent import Deputy, Refused, work
from runs.models import Approval, Run, ToolCall
from tests.acting import approve, reject
from tests.model_server import ModelServer, asks_for, says

from .api_client import Api
from .helpers import chain_holds, types
from .outside import work_off
from .test_api_stream import server  # noqa: F401
from .test_decisions import decider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def person(world):
    """A person who decides whatever waits, in their own way, and a worker: until the test is over."""
    over, threads = threading.Event(), []
    approver = decider(world)

    def attend(decide):
        try:
            while not over.wait(0.05):
                for approval in Approval.objects.filter(status="pending"):
                    decide(approval.pk, approver)
                work_off()
        finally:
            connection.close()

    def _person(decide):
        threads.append(threading.Thread(target=attend, args=(decide,)))
        threads[0].start()

    yield _person
    over.set()
    for thread in threads:
        thread.join(10)


@pytest.fixture
def http(server, world):  # noqa: F811
    with override_settings(ALLOWED_HOSTS=["127.0.0.1"]):
        headers = Api(world.user, world.organization).headers
        with httpx.Client(base_url=server, headers=headers, timeout=40) as client:
            yield client


def test_it_works_through_an_approval_to_its_end(http, world, person):
    person(approve)
    deputy = Deputy(http, world.project.slug, "Groups of Atlas")

    assert "'sent': 1" in work(deputy, "Groups of Atlas")
    run = Run.objects.get()
    assert (run.pk, run.status, len(mail.outbox)) == (deputy.run, "completed", 1)
    assert run.output.startswith("Groups of Atlas: ")
    assert "Market" in mail.outbox[0].body
    assert types(run)[-1] == "run.completed"
    assert chain_holds(run)


def test_it_hears_of_a_rejection_and_goes_on(http, world, person):
    person(lambda approval, by: reject(approval, by, "Not this customer"))
    deputy = Deputy(http, world.project.slug, "Groups of Atlas")

    assert work(deputy, "Groups").endswith("refused: Rejected by approver: Not this customer")
    assert (Run.objects.get().status, mail.outbox) == ("completed", [])


def test_what_policy_denies_is_told_in_words(http, world):
    world.membership.denied_tools = ["list_available_groups"]
    world.membership.save()
    deputy = Deputy(http, world.project.slug, "Groups")

    with pytest.raises(Refused, match="Tool 'list_available_groups' is denied by policy"):
        deputy.call("1", "list_available_groups", {})


def test_a_graph_of_langgraph_works_under_the_gate(http, world, person):
    from examples import langgraph_agent

    person(approve)
    deputy = Deputy(http, world.project.slug, "Groups of Atlas")

    assert "'sent': 1" in langgraph_agent.work(deputy, "Groups of Atlas")
    run = Run.objects.get()
    assert (run.status, len(mail.outbox)) == ("completed", 1)
    assert [call.tool for call in ToolCall.objects.order_by("id")] == ["list_available_groups", "send_email"]
    assert chain_holds(run)


def test_an_agent_of_openais_sdk_works_under_the_gate(http, world, person):
    from openai import AsyncOpenAI

    from examples import openai_agent

    letter = {"to": ["ines@example.org"], "subject": "Groups", "body": "Market"}
    world.membership.denied_tools = ["http_get"]
    world.membership.save()
    person(approve)
    deputy = Deputy(http, world.project.slug, "Write to Ines")
    script = [
        says(None, asks_for("list_available_groups", {}, "call_1")),
        says(None, asks_for("send_email", letter, "call_2")),
        says("Ines has been written to."),
    ]
    with ModelServer(*script) as models:
        client = AsyncOpenAI(base_url=models.base_url, api_key="none")
        answer = openai_agent.work(deputy, "Write to Ines", "tiny-1", client)
        offered = {tool["function"]["name"] for tool in models.received[0].body["tools"]}
        told = models.received[-1].body["messages"][-1]

    assert answer == "Ines has been written to."
    assert "send_email" in offered and "http_get" not in offered
    assert (told["role"], "'sent': 1" in told["content"]) == ("tool", True)
    run = Run.objects.get()
    assert (run.status, run.output, len(mail.outbox)) == ("completed", answer, 1)
    calls = ToolCall.objects.order_by("id").values_list("call_id", "status")
    assert list(calls) == [("call_1", "succeeded"), ("call_2", "succeeded")]
