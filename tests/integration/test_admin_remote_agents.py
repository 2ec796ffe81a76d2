"""Remote agents in the admin: secrets stay in, and cards are read before they are accepted."""

import pytest

from runs.models import McpServer, RemoteAgent
from runs.tools.a2a import cards, client
from tests.a2a_peer import Peer
from tests.admin_world import client_of, superuser, url

pytestmark = pytest.mark.django_db
CARD = "https://93.184.216.34/.well-known/agent-card.json"


@pytest.fixture
def root(made):
    return client_of(superuser(made))


@pytest.fixture
def card(monkeypatch):
    """What the agent's address answers."""
    told = Peer().usual()
    told["supportedInterfaces"][0]["url"] = "https://93.184.216.34/a2a"
    monkeypatch.setattr(client, "card_of", lambda agent: cards.read(cards.json.dumps(told), agent.url))
    return told


def words(response):
    return response.content.decode()


def fields(made, **more):
    said = {"organization": made.organization.pk, "name": "scout", "url": CARD, "timeout_seconds": 30}
    return {**said, "enabled": "on", "headers": "Authorization: Bearer sesame", **more}


def test_an_agent_is_added_its_card_shown_accepted_and_shown_again_with_what_changed(
    made, root, card, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        root.post(url("runs_remoteagent_add"), fields(made))
    agent = RemoteAgent.objects.get(name="scout")
    assert (agent.state, agent.headers) == ("new", {"Authorization": "Bearer sesame"})
    page = words(root.get(url("runs_remoteagent_change", agent.pk)))
    assert "Authorization" in page and "sesame" not in page and "https://93.184.216.34/a2a" in page

    accept = {"_selected_action": agent.pk, "action": "accept_selected"}
    look = words(root.post(url("runs_remoteagent_changelist"), accept))
    assert "Accept 1 as shown" in look and "Looks up prices." in look and "https://93.184.216.34/a2a" in look
    stale = {**accept, "confirmed": "yes", f"digest-{agent.pk}": "another"}
    assert "Accepted: 0 of 1." in words(root.post(url("runs_remoteagent_changelist"), stale, follow=True))
    confirmed = {**stale, f"digest-{agent.pk}": agent.digest}
    assert "Accepted: 1 of 1." in words(root.post(url("runs_remoteagent_changelist"), confirmed, follow=True))

    card["description"] = "Looks up <b>all</b> you have."
    root.post(url("runs_remoteagent_changelist"), {"_selected_action": agent.pk, "action": "refresh"})
    look = words(root.post(url("runs_remoteagent_changelist"), accept))
    assert "+  &quot;description&quot;: &quot;Looks up &lt;b&gt;all&lt;/b&gt; you have.&quot;," in look
    root.post(url("runs_remoteagent_change", agent.pk), fields(made, headers="-"))
    agent.refresh_from_db()
    assert (agent.headers, agent.state) == ({}, "changed")


def test_what_cannot_be_used_is_refused(made, root, card):
    McpServer.objects.create(organization=made.organization, name="taken", url="https://x.example/")
    for wrong in (
        {"url": "http://127.0.0.1/card.json"},
        {"headers": "no colon"},
        {"headers": "Host: x"},
        {"name": "Big Name"},
        {"name": "taken"},
    ):
        page = root.post(url("runs_remoteagent_add"), fields(made, **wrong))
        assert page.status_code == 200 and not RemoteAgent.objects.exclude(name="partner").exists(), wrong
