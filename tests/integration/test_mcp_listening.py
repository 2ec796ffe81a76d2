"""`subscriptions/listen`, over a real server: an MCP client hears that its list of tools has changed."""

import json
from contextlib import contextmanager

import httpx
import pytest
from django.test import override_settings
from django.utils import timezone

from common.api import slots
from groups.models import Membership, Token
from groups.scopes import SCOPES
from policy.models import CapabilityRule
from runs.mcp.app import with_mcp
from tests.integration.test_mcp_waiting import VERSION
from tests.server import serving

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def server():
    with serving(with_mcp) as address:
        yield address


@pytest.fixture
def token(world):
    made, made.secret = Token.objects.issue(world.organization, world.user, scopes=list(SCOPES))
    return made


@contextmanager
def listening(server, token, **wanted):
    """The stream's messages, as they come."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"notifications": wanted, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": "s-1", "method": "subscriptions/listen", "params": params}
    headers = {
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {token.secret}",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": "subscriptions/listen",
    }
    with (
        override_settings(ALLOWED_HOSTS=["127.0.0.1"]),
        httpx.stream("POST", f"{server}/mcp", json=body, headers=headers, timeout=20) as response,
    ):
        assert response.headers["x-accel-buffering"] == "no"
        lines = (line for line in response.iter_lines() if line.startswith("data: "))
        yield (json.loads(line.removeprefix("data: ")) for line in lines)


def test_a_change_of_policy_is_heard(server, world, token):
    with listening(server, token, toolsListChanged=True, promptsListChanged=True) as messages:
        first = next(messages)
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["notifications"] == {"toolsListChanged": True}

        CapabilityRule.objects.create(organization=world.organization, tool="send_email", effect="deny")
        heard = next(messages)
        Membership.objects.filter(pk=world.membership.pk).update(denied_tools=["http_get"])
        again = next(messages)

    assert heard["method"] == again["method"] == "notifications/tools/list_changed"
    assert heard["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "s-1"


@pytest.mark.parametrize("lost", [{"revoked_at": timezone.now()}, {"scopes": ["runs:read"]}])
def test_the_stream_ends_with_its_token_and_leaves_no_slot_taken(server, world, token, lost):
    with listening(server, token, toolsListChanged=True) as messages:
        next(messages)
        Token.objects.filter(pk=token.pk).update(**lost)
        (last,) = messages

    assert last["result"]["resultType"] == "complete"
    assert slots.count(world.organization.pk) == 0


def test_what_was_not_asked_for_is_not_told(server, world, token):
    with listening(server, token) as messages:
        assert next(messages)["params"]["notifications"] == {}
        CapabilityRule.objects.create(organization=world.organization, tool="send_email", effect="deny")
        token.revoked_at = timezone.now()
        token.save()
        assert [each for each in messages if "method" in each] == []
