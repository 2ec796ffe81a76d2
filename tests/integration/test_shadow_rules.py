"""A shadow rule is recorded with whatever its call came to, and changes nothing."""

import pytest

from policy.models import CapabilityRule
from runs.execution import executor
from runs.models import Approval
from tests.acting import approve
from tests.scripted import call, in_order, say

from .helpers import payload, types
from .test_decisions import TO, decider

pytestmark = pytest.mark.django_db

SEND = call(("send_email", TO))


@pytest.fixture
def shadow(world):
    def make(effect="deny", **fields):
        return CapabilityRule.objects.create(
            organization=world.organization,
            **{"tool": "send_email", "effect": effect, "shadow": True, **fields},
        )

    return make


def recorded(run, type):
    return payload(run, type)["decision"].get("shadowed", [])


def test_with_a_call_that_runs(ask, shadow):
    tried = shadow("deny", tool="memory_search")
    run = ask(in_order(call(("memory_search", {"query": "x"})), say("done")))

    assert recorded(run, "tool.called") == [{"rule": tried.pk, "effect": "deny", "error": None}]
    assert "tool.completed" in types(run)


def test_with_a_call_that_is_denied(ask, shadow, world):
    tried = shadow("require_human")
    CapabilityRule.objects.create(organization=world.organization, tool="send_email", effect="deny")
    run = ask(in_order(SEND, say("done")))

    assert recorded(run, "tool.blocked") == [{"rule": tried.pk, "effect": "require_human", "error": None}]


def test_with_a_call_that_needs_an_approval_and_again_when_it_runs(ask, shadow, world):
    tried = shadow("deny")
    run = ask(in_order(SEND, say("done")))
    said = [{"rule": tried.pk, "effect": "deny", "error": None}]
    assert recorded(run, "tool.requires_approval") == said

    approve(Approval.objects.get(run=run).pk, decider(world))
    executor.run(run.pk)
    assert recorded(run, "tool.called") == said


def test_with_the_error_of_a_condition_that_cannot_be_evaluated(ask, shadow):
    tried = shadow("deny", condition="args.missing == 1")
    run = ask(in_order(SEND, say("done")))

    (said,) = recorded(run, "tool.requires_approval")
    assert (said["rule"], said["effect"]) == (tried.pk, "deny")
    assert "missing" in said["error"]


def test_not_where_its_condition_is_false(ask, shadow):
    shadow("deny", condition="size(to) > 5")
    run = ask(in_order(SEND, say("done")))

    assert recorded(run, "tool.requires_approval") == []
