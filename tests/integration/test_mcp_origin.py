"""An MCP server at another address is another server: it gets no secret, and no call unseen."""

import pytest

from groups.models import Change
from runs.actions import mcp
from runs.models import McpServer, McpTool
from runs.models.mcp import origin
from runs.tools.base import ToolError
from runs.tools.mcp import client, registry
from tests.admin_world import client_of, person, tenant, url
from tests.factories import permit_all

pytestmark = pytest.mark.django_db

SECRET = {"Authorization": "Bearer hush-hush"}


@pytest.fixture
def made():
    """A server with a secret, and one of its tools accepted."""
    found = tenant()
    found.server.keep_headers(SECRET)
    found.server.save()
    mcp.accept([found.tool], found.user)
    return found


@pytest.fixture
def sent(monkeypatch):
    """What would have gone out: (address, headers) of each request."""
    requests = []

    def listed(server):
        requests.append((server.url, server.headers))
        return []

    monkeypatch.setattr(client, "list_tools", listed)
    monkeypatch.setattr(client, "list_resources", lambda server: ([], []))
    return requests


def move(made, address, **changes):
    server = McpServer.objects.get(pk=made.server.pk)
    server.url = address
    for name, value in changes.items():
        setattr(server, name, value)
    server.save()
    return server


def states(made):
    tool = McpTool.objects.get(pk=made.tool.pk)
    return tool.state, tool.accepted, tool.accepted_digest


@pytest.mark.parametrize(
    "address",
    [
        "https://crm.evil.example/mcp",
        "http://crm.example.org/mcp",
        "https://crm.example.org:8443/mcp",
        "https://crm.example.org@evil.example/mcp",
        "https://sub.crm.example.org/mcp",
    ],
)
def test_another_origin_gets_no_secret_and_no_acceptance(made, address):
    server = move(made, address)

    assert (server.headers, server.header_names) == ({}, [])
    assert McpServer.objects.get(pk=server.pk).headers == {}
    assert states(made) == ("new", None, "")
    assert registry.suspended(McpTool.objects.get(pk=made.tool.pk))


@pytest.mark.parametrize("address", ["https://crm.example.org:443/v2", "https://CRM.example.org./mcp"])
def test_the_same_origin_keeps_both(made, address):
    assert move(made, address).headers == SECRET
    assert states(made)[0] == "accepted"


def test_saving_the_address_alone_takes_the_secret_along(made):
    server = McpServer.objects.get(pk=made.server.pk)
    server.url = "https://crm.evil.example/mcp"
    server.save(update_fields=["url"])

    assert McpServer.objects.get(pk=server.pk).headers == {}


def test_what_was_changed_or_gone_is_not_taken_for_accepted_when_it_moves(made):
    McpTool.objects.filter(pk=made.tool.pk).update(state="gone")
    move(made, "https://crm.evil.example/mcp")

    assert states(made) == ("gone", None, "")


def test_the_admins_form_sends_no_secret_to_the_new_address(made, sent):
    browser = client_of(permit_all(person(made, "manager", is_staff=True)))
    fields = {"url": "https://93.184.216.34/mcp", "headers": "", "timeout_seconds": 30, "enabled": "on"}
    page = url("runs_mcpserver_change", made.server.pk)
    answer = browser.post(page, fields)
    assert answer.status_code == 302, answer.content.decode()
    mcp.refresh(McpServer.objects.get(pk=made.server.pk))

    assert sent and all(headers == {} for _, headers in sent)
    assert states(made)[0] in ("new", "gone") and not states(made)[1]


def test_a_secret_given_with_the_new_address_is_for_it(made):
    server = McpServer.objects.get(pk=made.server.pk)
    server.keep_headers({"X-Key": "of the new one"})
    server.url = "https://new.example.org/mcp"
    server.save()

    assert McpServer.objects.get(pk=server.pk).headers == {"X-Key": "of the new one"}
    assert states(made)[0] == "new"


def test_a_call_that_passed_the_gate_before_the_move_is_not_sent(made, monkeypatch):
    tool = McpTool.objects.select_related("server").get(pk=made.tool.pk)
    call = registry.made(tool).function
    sent = []
    monkeypatch.setattr(registry, "call_tool", lambda *args, **more: sent.append(args))
    known = {"organization_id": made.organization.pk, "idempotency_key": "k", "filled": None}
    known |= {"run_id": "run_x", "call_id": "1.0"}
    context = type("Context", (), known)
    call(context)
    assert len(sent) == 1
    move(made, "https://crm.evil.example/mcp")

    with pytest.raises(ToolError) as refused:
        call(context)
    assert refused.value.code == "TOOL_SUSPENDED"
    assert len(sent) == 1


def test_the_move_is_in_the_record_of_changes(made):
    Change.objects.all().delete()
    move(made, "https://crm.evil.example/mcp")

    found = {change.model: change for change in Change.objects.all()}
    assert found["runs.mcptool"].after["state"] == "new"
    assert found["runs.mcpserver"].after["url"] == "https://crm.evil.example/mcp"
    assert "hush" not in str(found["runs.mcpserver"].before)


def test_an_origin_is_scheme_host_and_port():
    assert origin("HTTPS://A.example:443/x?y") == origin("https://a.example")
    assert origin("https://a.example") != origin("http://a.example:443")
    assert origin("https://[broken") != origin("https://[other")
