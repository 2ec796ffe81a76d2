"""The example of an outside agent, over a real server, with a worker beside it."""

import threading

import httpx
import pytest
from django.core import mail
from django.db import connection
from django.test import override_settings

from examples.outside_agent import Deputy, Refused, work
from runs.actions.decide import approve, reject
from runs.models import Approval, Run

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
