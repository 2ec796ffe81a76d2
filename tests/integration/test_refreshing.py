"""What an organization has registered elsewhere is looked at again every hour."""

from datetime import timedelta

import pytest
from django.utils import timezone
from django_q.signing import SignedPackage

from runs.actions.refreshing import refresh_due
from runs.models import McpServer, QueueMessage, RemoteAgent

pytestmark = pytest.mark.django_db


def asked():
    """What carriers are asked to look at, which is taken from the queue."""
    packages = [
        SignedPackage.loads(payload) for payload in QueueMessage.objects.values_list("payload", flat=True)
    ]
    QueueMessage.objects.all().delete()
    return {(package["func"].rsplit(".", 1)[-1], *package["args"]) for package in packages}


def test_carriers_look_at_what_was_not_looked_at_for_an_hour_once(world, settings):
    settings.QUEUE_ENABLED = True
    now = timezone.now()
    looked = {"never": None, "long": now - timedelta(minutes=61), "just": now - timedelta(minutes=59)}
    made = {}
    for model, task in ((McpServer, "refresh_mcp_server"), (RemoteAgent, "refresh_remote_agent")):
        for name, at in looked.items():
            for enabled in (True, False):
                made[task, name, enabled] = model.objects.create(
                    organization=world.organization,
                    name=name if enabled else f"{name}_off",
                    url="https://x.example/",
                    enabled=enabled,
                    checked_at=at,
                ).pk

    refresh_due()
    due = {(task, pk) for (task, name, on), pk in made.items() if on and name != "just"}
    assert asked() == due
    refresh_due()
    assert asked() == set()
