"""Fixtures of tests that use the database."""

from types import SimpleNamespace

import pytest

from common import notifications
from policy.models import Capability, CapabilityRule
from runs.execution import executor
from runs.models import Run
from runs.tools import registry
from tests.acting import start
from tests.admin_world import tenant
from tests.factories import GroupFactory, MemberFactory, MembershipFactory, ProjectFactory
from tests.scripted import Scripted


@pytest.fixture(scope="module", autouse=True)
def no_notifications_left():
    """Tests that commit leave a sender of notifications behind, whose connection holds the database open."""
    yield
    _, sender = notifications._sender or (0, None)
    for _ in range(100):
        if sender is None or not sender.is_alive():
            return
        notifications._wanted.set()  # with nothing pending it ends
        sender.join(0.05)


@pytest.fixture
def world(db):
    """An organization with a project, a member, and a group of a researcher, an analyst and a lead."""
    project = ProjectFactory(name="Atlas")
    membership = MembershipFactory(organization=project.organization, user__username="mia")
    group = GroupFactory(project=project, name="Market", description="Competitor and market analysis")
    for ordinal, role in enumerate(("researcher", "analyst", "lead")):
        MemberFactory(group=group, role__name=role, ordinal=ordinal, is_lead=role == "lead")
    return SimpleNamespace(
        organization=project.organization,
        project=project,
        user=membership.user,
        membership=membership,
        group=group,
    )


@pytest.fixture
def rule(world):
    """send_email needs an approval."""
    capability = Capability.objects.create(organization=world.organization, name="send_email")
    return CapabilityRule.objects.create(
        organization=world.organization,
        capability=capability,
        effect="require_approval",
        name="mail is checked",
    )


@pytest.fixture
def made(db):
    """An organization with something of every kind, for tests of pages."""
    return tenant()


@pytest.fixture
def ask(world):
    """Start a run of mia's agent with a play and drive it, handoffs and all; returns the run."""

    def _ask(play, goal="What do our competitors charge?", drive=True, **fields):
        Scripted.play = staticmethod(play)
        Scripted.asked = []
        run_id = start(user=world.user, project=world.project, goal=goal, **fields)
        if drive:
            executor.run(run_id)
        return Run.objects.get(pk=run_id)

    return _ask


@pytest.fixture
def add_tool():
    """Register a tool for one test."""
    before = dict(registry.all_tools())
    yield lambda **about: registry.tool(description="for a test", **about)
    registry._tools.clear()
    registry._tools.update(before)


@pytest.fixture(scope="session")
def mcp_process(tmp_path_factory):
    """One MCP server for all tests: its SDK takes seconds to start."""
    from tests.integration.test_mcp_servers import Site

    with Site(tmp_path_factory.mktemp("mcp")) as site:
        yield site
