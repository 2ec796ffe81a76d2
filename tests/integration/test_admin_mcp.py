"""MCP servers and their tools in the admin: secrets stay in, and tools are read before they are accepted."""

import pytest

from runs.models import McpServer, McpTool
from runs.tools.mcp import client
from runs.tools.mcp.grants import callback_address
from tests.admin_world import client_of, person, superuser, tenant, url
from tests.factories import permit_all

pytestmark = pytest.mark.django_db

TOOL = {
    "name": "find_customer",
    "description": "Finds a customer.",
    "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    "annotations": {"readOnlyHint": True, "openWorldHint": True},
}


@pytest.fixture
def root(made):
    return client_of(superuser(made))


@pytest.fixture
def listed(monkeypatch):
    """What servers answer."""
    tools = [dict(TOOL)]
    monkeypatch.setattr(client, "list_tools", lambda server: tools)
    monkeypatch.setattr(client, "list_resources", lambda server: ([], []))
    return tools


def words(response):
    return response.content.decode()


def fields(made, **more):
    return {
        "organization": made.organization.pk,
        "name": "shop",
        "url": "https://93.184.216.34/mcp",
        "timeout_seconds": 30,
        "enabled": "on",
        "headers": "Authorization: Bearer sesame\nX-Tenant: 7",
        **more,
    }


def test_a_server_is_added_listed_and_its_headers_are_never_shown(
    made, root, listed, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        root.post(url("runs_mcpserver_add"), fields(made))
    server = McpServer.objects.get(name="shop")

    assert server.tools.get().state == "new"
    assert server.headers == {"Authorization": "Bearer sesame", "X-Tenant": "7"}
    shown = words(root.get(url("runs_mcpserver_change", server.pk)))
    assert "Authorization" in shown and "sesame" not in shown

    root.post(url("runs_mcpserver_change", server.pk), fields(made, headers=""))
    server.refresh_from_db()
    assert server.headers["X-Tenant"] == "7"
    root.post(url("runs_mcpserver_change", server.pk), fields(made, headers="-"))
    server.refresh_from_db()
    assert (server.headers, server.header_names) == ({}, [])


def test_a_server_acts_as_the_person_and_its_client_secret_is_never_shown(made, root, listed):
    there = {
        "issuer": "https://93.184.216.34",
        "authorization_endpoint": "https://93.184.216.34/authorize",
        "token_endpoint": "https://93.184.216.34/token",
    }
    as_person = {"as_person": "on", "client_id": "deputy", "secret": "sesame-2", "headers": "", **there}
    root.post(url("runs_mcpserver_add"), fields(made, **as_person))
    server = McpServer.objects.get(name="shop")

    assert server.as_person and server.secret == "sesame-2"
    shown = words(root.get(url("runs_mcpserver_change", server.pk)))
    assert callback_address(server) in shown and "sesame-2" not in shown
    change = url("runs_mcpserver_change", server.pk)
    root.post(
        change, fields(made, **{**as_person, "secret": "", "token_endpoint": "https://93.184.216.34/t"})
    )
    server.refresh_from_db()
    assert server.token_endpoint.endswith("/t") and server.secret == ""  # it was for another endpoint
    for wrong in ({"client_id": ""}, {"token_endpoint": ""}, {"token_endpoint": "http://93.184.216.34/t"}):
        page = root.post(change, fields(made, **{**as_person, **wrong}))
        assert page.status_code == 200 and "errorlist" in words(page), wrong


@pytest.mark.parametrize(
    "wrong",
    [{"url": "http://127.0.0.1/mcp"}, {"headers": "no colon"}, {"headers": "Host: x"}, {"name": "Big Name"}],
)
def test_what_cannot_be_used_is_refused(made, root, listed, wrong):
    page = root.post(url("runs_mcpserver_add"), fields(made, **wrong))

    assert page.status_code == 200 and not McpServer.objects.filter(url=fields(made)["url"]).exists()
    assert not McpServer.objects.filter(name="shop").exists()


def test_a_tool_is_shown_accepted_and_shown_again_with_what_changed(made, root, listed):
    chosen = {"_selected_action": made.server.pk, "action": "refresh"}
    root.post(url("runs_mcpserver_changelist"), chosen)
    tool = McpTool.objects.get(name="find_customer")
    page = words(root.get(url("runs_mcptool_change", tool.pk)))
    assert "reads only, reaches out" in page and "Risk for agents: high" in page

    accept = {"_selected_action": tool.pk, "action": "accept_selected"}
    assert "Accept 1 as shown" in words(root.post(url("runs_mcptool_changelist"), accept))
    confirmed = {**accept, "confirmed": "yes", f"digest-{tool.pk}": tool.digest}
    assert "Accepted: 1 of 1." in words(root.post(url("runs_mcptool_changelist"), confirmed, follow=True))

    listed[0]["description"] = "Finds a customer <b>and pays</b>."
    root.post(url("runs_mcpserver_changelist"), chosen)
    page = words(root.get(url("runs_mcptool_change", tool.pk)))
    assert "+  &quot;description&quot;: &quot;Finds a customer &lt;b&gt;and pays&lt;/b&gt;.&quot;," in page
    stale = words(root.post(url("runs_mcptool_changelist"), confirmed, follow=True))
    assert "Accepted: 0 of 1." in stale and McpTool.objects.get(pk=tool.pk).state == "changed"


def test_looking_takes_one_permission_refreshing_and_accepting_others(made, listed):
    looker = person(made, "looker", "runs.view_mcpserver", "runs.view_mcptool", is_staff=True)
    browser = client_of(looker)

    browser.post(url("runs_mcpserver_changelist"), {"_selected_action": made.server.pk, "action": "refresh"})
    accept = {
        "_selected_action": made.tool.pk,
        "action": "accept_selected",
        "confirmed": "yes",
        f"digest-{made.tool.pk}": made.tool.digest,
    }
    browser.post(url("runs_mcptool_changelist"), accept)

    assert list(McpTool.objects.values_list("pk", "state")) == [(made.tool.pk, "new")]
    assert "Accept 1" not in words(browser.get(url("runs_mcptool_change", made.tool.pk)))


def test_another_organizations_tools_are_not_accepted_from_here(made, listed):
    other = tenant("Another tenant's words", "other")
    manager = person(made, "manager", is_staff=True)
    permit_all(manager)
    accept = {
        "_selected_action": other.tool.pk,
        "action": "accept_selected",
        "confirmed": "yes",
        f"digest-{other.tool.pk}": other.tool.digest,
    }

    client_of(manager).post(url("runs_mcptool_changelist"), accept)

    assert McpTool.objects.get(pk=other.tool.pk).state == "new"
