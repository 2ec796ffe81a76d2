"""Webhooks in the admin."""

import pytest

from runs.models import WebhookDelivery, WebhookEndpoint
from tests.admin_world import client_of, person, superuser, url

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(made):
    return client_of(superuser(made))


def fields(made, **more):
    return {
        "organization": made.organization.pk,
        "url": "https://93.184.216.34/hook",
        "description": "Chat",
        "events": ["approval.requested", "run.failed"],
        "enabled": "on",
        **more,
    }


def test_a_webhook_is_made_and_its_secret_shown_once(made, root):
    page = root.post(url("runs_webhookendpoint_add"), fields(made), follow=True).content.decode()
    endpoint = WebhookEndpoint.objects.get(description="Chat")

    assert "The secret is whsec_" in page and endpoint.events == ["approval.requested", "run.failed"]
    change = url("runs_webhookendpoint_change", endpoint.pk)
    assert "whsec_" not in root.get(change).content.decode()
    root.post(change, fields(made, events=["run.completed"]))
    endpoint.refresh_from_db()
    assert endpoint.events == ["run.completed"]


@pytest.mark.parametrize("wrong", [{"url": "http://10.0.0.1/"}, {"events": []}, {"events": ["x"]}])
def test_what_cannot_be_used_is_refused(made, root, wrong):
    page = root.post(url("runs_webhookendpoint_add"), fields(made, **wrong))
    assert page.status_code == 200 and not WebhookEndpoint.objects.filter(description="Chat").exists()


def test_one_that_was_switched_off_is_switched_on_again(made, root):
    WebhookEndpoint.objects.filter(pk=made.webhook.pk).update(enabled=False)
    root.post(url("runs_webhookendpoint_change", made.webhook.pk), fields(made, project=made.project.pk))
    made.webhook.refresh_from_db()
    assert (made.webhook.enabled, made.webhook.disabled_because) == (True, "")


def test_ping_rotate_and_send_again(made, root):
    chosen = {"_selected_action": made.webhook.pk}
    pinged = root.post(url("runs_webhookendpoint_changelist"), {**chosen, "action": "ping"}, follow=True)
    assert "a ping is on its way" in pinged.content.decode()
    assert WebhookDelivery.objects.filter(event="ping").exists()
    rotated = root.post(url("runs_webhookendpoint_changelist"), {**chosen, "action": "rotate"}, follow=True)
    assert "The secret is whsec_" in rotated.content.decode()

    WebhookDelivery.objects.filter(pk=made.delivery.pk).update(status="failed")
    again = {"_selected_action": made.delivery.pk, "action": "redeliver"}
    root.post(url("runs_webhookdelivery_changelist"), again)
    made.delivery.refresh_from_db()
    assert made.delivery.status == "pending"


def test_who_may_only_look_does_nothing(made):
    permissions = ("runs.view_webhookendpoint", "runs.view_webhookdelivery")
    browser = client_of(person(made, "looker", *permissions, is_staff=True))
    WebhookDelivery.objects.update(status="failed")
    before = WebhookEndpoint.objects.values().get()

    for action in ("ping", "rotate"):
        browser.post(
            url("runs_webhookendpoint_changelist"), {"_selected_action": made.webhook.pk, "action": action}
        )
    again = {"_selected_action": made.delivery.pk, "action": "redeliver"}
    browser.post(url("runs_webhookdelivery_changelist"), again)

    assert WebhookDelivery.objects.get().status == "failed"
    assert WebhookEndpoint.objects.values().get() == before
