"""The rules, over HTTP."""

import pytest

from policy.models import Capability, CapabilityRule
from tests.integration.api_client import Api

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(world):
    return Api(world.user, world.organization)


@pytest.fixture
def rule(world):
    capability = Capability.objects.create(organization=world.organization, name="send_email")
    return CapabilityRule.objects.create(
        organization=world.organization,
        capability=capability,
        effect="require_human",
        condition="size(to) > 1",
        name="Mail to several",
    )


def test_rules_can_be_looked_up(api, rule):
    (shown,) = api.get("policy/rules/", capability="send_email", effect="require_human").json()["results"]

    assert (shown["id"], shown["name"], shown["condition"]) == (rule.pk, "Mail to several", "size(to) > 1")
    assert api.get(f"policy/rules/{rule.pk}/").json() == shown
    assert api.get("policy/rules/", effect="deny").json()["results"] == []
