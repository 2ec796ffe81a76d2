"""With real workers and carriers: a run waits for its person's account, and goes on by itself."""

import pytest
from django.test import Client, override_settings
from django.urls import reverse

from runs.actions import mcp
from runs.models import ConnectedAccount, McpServer, Run, ToolCall
from tests.acceptance.house import until
from tests.authorization_server import AuthorizationServer
from tests.integration.test_mcp_servers import FIND, Site

pytestmark = pytest.mark.slow


@pytest.fixture
def site(tmp_path):
    with Site(tmp_path) as site:
        yield site


@pytest.fixture
def provider(site):
    found = AuthorizationServer(lambda tokens: site.behave(FIND, tokens=tokens, protected=protected))
    protected = {"resource": site.url, "authorization_servers": [found.issuer]}
    found.on_change({"": "nobody"})  # its tools are listed to anybody
    allowed = [f"127.0.0.1:{site.port}", f"127.0.0.1:{found.port}"]
    with override_settings(MCP_ALLOW=allowed, PUBLIC_URL="http://testserver"):
        yield found
    found.close()


@pytest.fixture
def crm(world, site, provider):
    organization = world.project.organization
    crm = McpServer(organization=organization, name="crm", url=site.url, as_person=True, client_id="deputy")
    crm.save()
    assert mcp.refresh(crm) == ""
    mcp.accept(crm.tools.all(), world.user)
    provider.on_change({})
    return McpServer.objects.get(pk=crm.pk)


def test_runs_wait_for_an_account_and_go_on_when_it_is_connected(
    house, world, ask, crm, site, provider, ended
):
    house.cluster(
        MCP_ALLOW=f"127.0.0.1:{site.port},127.0.0.1:{provider.port}", PUBLIC_URL="http://testserver"
    )
    runs = [ask("alone crm.find_customer") for _ in range(3)]
    waiting = Run.objects.filter(pk__in=runs, status="waiting", waiting_reason="input")
    until(lambda: waiting.count() == 3, said=lambda: house.report(runs[0]))
    assert site.calls == []

    browser = Client()
    browser.force_login(world.user)
    provider.seconds = 61  # good for a second before it is refreshed
    begun = browser.post(reverse("web:connect_account", args=[crm.pk]))["Location"]
    assert browser.get(provider.agree(begun))["Location"] == "/settings/"
    assert [ended(run) for run in runs] == ["completed"] * 3
    made = ToolCall.objects.filter(run__in=runs)
    assert [call.status for call in made] == ["succeeded"] * 3

    account = ConnectedAccount.objects.get()
    browser.post(reverse("web:disconnect_account", args=[crm.pk]))
    until(lambda: not ConnectedAccount.objects.filter(pk=account.pk).exists(), said=house.clusters[0].said)
    assert provider.tokens == {}
