"""With real workers and carriers: a group's seat is an agent of the official SDK for A2A, or of another
organization of Deputy's.
"""

import socket
import subprocess
from types import SimpleNamespace

import pytest
from django.test import override_settings

from groups.models import Role, Token
from policy.models import Capability, CapabilityRule
from runs.actions import remote_agents
from runs.models import A2ATask, RemoteAgent, RemoteTask, Run, Wait
from tests.acceptance.house import MODEL, status, until
from tests.acceptance.web import Web
from tests.acting import at_the_pages, cancel, message, start
from tests.environments import python_with
from tests.factories import GroupFactory, MemberFactory, MembershipFactory, ProjectFactory, permit_all

pytestmark = pytest.mark.slow
CARD = "/.well-known/agent-card.json"
SDK = ["a2a-sdk[http-server]==1.3.0", "uvicorn==0.54.0"]


@pytest.fixture(params=["JSONRPC", "HTTP+JSON"])
def site(request, tmp_path):
    """The SDK's agent, in a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    cancelled = tmp_path / "cancelled"
    command = [python_with(SDK), "tests/acceptance/a2a_site.py", str(port), str(cancelled), request.param]
    process = subprocess.Popen(command)

    def answers():
        assert process.poll() is None
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        until(answers)
        yield SimpleNamespace(address=f"127.0.0.1:{port}", cancelled=cancelled)
    finally:
        process.terminate()
        process.wait(10)


def seated(world, url, headers=None):
    """The group whose only seat is the agent with this card; a rule lets it be asked."""
    organization = world.project.organization
    agent = RemoteAgent(organization=organization, name="partner", url=url)
    agent.keep_headers(headers or {})
    agent.save()
    assert remote_agents.refresh(agent) == ""
    assert remote_agents.accept([RemoteAgent.objects.get(pk=agent.pk)], world.user)
    capability = Capability.objects.create(organization=organization, name="a2a_send")
    CapabilityRule.objects.create(organization=organization, capability=capability, effect="allow", name="r")
    group = GroupFactory(project=world.project, name="Scouts")
    role = Role.objects.create(organization=organization, name="partner", model="a2a:partner")
    MemberFactory(group=group, role=role, is_lead=True)
    return group


def relay(world, group, words):
    with override_settings(DEPUTY_MODEL=MODEL):
        return start(user=world.user, project=world.project, goal=f"relay {words}", context=group.pk)


def answer(world, run, words):
    """Of the person, to what the remote agent asks."""
    asked = Wait.objects.filter(run__parent_run=run, kind="input", resolved_at=None)
    wait = until(asked.first)
    message(wait.run_id, words, at_the_pages(world.user, wait.organization_id), wait.correlation_key)


def test_an_agent_of_the_official_sdk_has_a_seat(house, world, site, ended):
    with override_settings(A2A_ALLOW=[site.address]):
        group = seated(world, f"http://{site.address}{CARD}")
    house.cluster(A2A_ALLOW=site.address)
    runs = {words: relay(world, group, words) for words in ("at once", "a long one", "a question", "fail")}
    answer(world, runs["a question"], "2025")
    assert {ended(run) for run in runs.values()} == {"completed"}
    said = {words: Run.objects.get(pk=run).output for words, run in runs.items()}
    assert "Rival A charges 5 (at once)." in said["at once"]
    assert "Rival A charges 5 (a long one)." in said["a long one"]
    assert "Rival A charges 5 (2025)." in said["a question"]
    assert "Group run failed" in said["fail"] and "No prices today." in said["fail"]
    assert RemoteTask.objects.get(run__parent_run=runs["a long one"]).polls > 1

    run = relay(world, group, "for ever")
    task = until(RemoteTask.objects.filter(run__parent_run=run).first, said=lambda: house.report(run))
    cancel(run, world.user)
    until(site.cancelled.exists)
    assert site.cancelled.read_text().split() == [task.task_id]
    until(lambda: RemoteTask.objects.get(pk=task.pk).ended_at)
    assert not RemoteTask.objects.filter(ended_at=None).exists()


def test_an_agent_of_another_organization_of_deputys_has_a_seat(house, world, ended):
    """Both ways by HTTP; what it asks, and that it is cancelled, goes through both."""
    theirs = MembershipFactory(organization=ProjectFactory(published=True).organization)
    project = theirs.organization.projects.get()
    scopes = ["runs:read", "runs:write", "speak_as_person"]
    _, secret = Token.objects.issue(theirs.organization, permit_all(theirs.user), scopes=scopes)
    web = Web(house)
    address = web.url.removeprefix("http://")
    web.environment["PUBLIC_URL"] = web.url
    web.restart()
    try:
        web.wait()
        with override_settings(A2A_ALLOW=[address]):
            url = f"{web.url}/a2a/projects/{project.pk}{CARD}"
            group = seated(world, url, {"Authorization": f"Bearer {secret}"})
        house.cluster(A2A_ALLOW=address, PUBLIC_URL=web.url)

        run = relay(world, group, "deep 0")
        assert ended(run) == "completed" and "> DECISION: 0" in Run.objects.get(pk=run).output
        given = A2ATask.objects.get()
        assert (given.hops, given.run.goal, given.run.user) == (1, "deep 0", theirs.user)

        run = relay(world, group, "asking")
        answer(world, run, "2025")
        assert ended(run) == "completed" and "2025" in Run.objects.get(pk=run).output

        run = relay(world, group, "asking")
        until(Wait.objects.filter(run__parent_run=run, kind="input").first)
        cancel(run, world.user)
        given = A2ATask.objects.latest("created_at").run_id
        until(lambda: status(given) == "cancelled", said=lambda: house.report(given))
    finally:
        web.end()
