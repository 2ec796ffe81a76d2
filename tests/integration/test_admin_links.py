"""The admin's own links lead to its pages."""

import re

import pytest
from django.urls import reverse

from policy.models import CapabilityRule
from runs.models import Approval, Run
from tests.scripted import call, in_order

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("model", ["run", "approval"])
def test_the_links_of_a_list_open(ask, world, admin_client, model):
    CapabilityRule.objects.create(
        organization=world.organization, tool="send_email", effect="require_approval"
    )
    mail = {"to": ["a@example.com"], "subject": "s", "body": "b"}
    run = ask(in_order(call(("send_email", mail))))
    assert Approval.objects.filter(run=run).exists()
    assert Run.objects.count() == 1

    page = admin_client.get(reverse(f"admin:runs_{model}_changelist")).content.decode()
    (link, *_) = re.findall(rf'href="(/admin/runs/{model}/[^"]+/change/)', page)
    assert admin_client.get(link).status_code == 200
