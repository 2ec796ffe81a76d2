"""How many queries lists and trees cost, of ten rows and of a thousand: kept in tests/data/queries.json."""

import json
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from common import ids
from groups.models import (
    AgentInstance,
    Group,
    GroupMember,
    Project,
    Role,
    RoutingExample,
    Token,
)
from memory.models import Memory
from policy.models import Capability, CapabilityRule, Grant, ToolBinding
from runs.models import Approval, Run, RunEvent, ToolCall, Wait
from tests.integration.api_client import Api, permit

pytestmark = pytest.mark.django_db

KEPT = json.loads((Path(__file__).parents[1] / "data" / "queries.json").read_text())


@pytest.fixture
def api(world):
    api = Api(permit(world.user, "decide_approval"), world.organization)
    Token.objects.update(last_used_at=timezone.now())
    return api


def queries(api, path, least):
    with CaptureQueriesContext(connection) as captured:
        response = api.get(path, **({} if path.endswith("tree/") else {"limit": 100}))
    assert response.status_code == 200, response.content
    body = response.json()
    assert len(body["children" if path.endswith("tree/") else "results"]) >= least
    return len(captured)


def make_runs(world, count, parent=None):
    """Runs that wait for an approval, with their call, wait and approval."""
    owned = {"organization": world.organization}
    shared = {**owned, "project": world.project, "user": world.user, "kind": "group", "goal": "x"}
    waits = {"status": "waiting", "waiting_reason": "approval"}
    runs = []
    for _ in range(count):
        run_id = ids.run_id()
        tree = {"root_id": parent.root_id, "depth": 1} if parent else {"root_id": run_id}
        runs.append(Run(**shared, **waits, **tree, id=run_id, parent_run=parent))
    Run.objects.bulk_create(runs)
    called = {**owned, "call_id": "4.0", "tool": "send_email", "status": "waiting"}
    calls = ToolCall.objects.bulk_create(ToolCall(**called, run=run, idempotency_key=run.pk) for run in runs)
    keyed = [{**owned, "run": c.run, "tool_call": c, "correlation_key": "cap-approval-1"} for c in calls]
    Wait.objects.bulk_create(Wait(**each, kind="approval") for each in keyed)
    asked = {"effect": "require_approval", "arguments_digest": "x", "requested_at": timezone.now()}
    Approval.objects.bulk_create(Approval(**each, **asked) for each in keyed)
    return runs


def make_roles(world, count):
    return Role.objects.bulk_create(Role(organization=world.organization, name=f"r{n}") for n in range(count))


def make_groups(world, count):
    owned = {"organization": world.organization}
    role = Role.objects.create(**owned, name="seated")
    agents = AgentInstance.objects.bulk_create(
        AgentInstance(**owned, role=role, name=f"a{n}") for n in range(2)
    )
    groups = Group.objects.bulk_create(
        Group(**owned, project=world.project, name=f"g{n}") for n in range(count)
    )
    GroupMember.objects.bulk_create(
        GroupMember(**owned, role=role, agent_instance=agent, group=group, ordinal=n)
        for group in groups
        for n, agent in enumerate(agents)
    )


def make_examples(world, count):
    RoutingExample.objects.bulk_create(
        RoutingExample(
            organization=world.organization,
            group=world.group,
            goal="x",
            goal_hash=f"{n}",
            corrected_by=world.user,
        )
        for n in range(count)
    )


def make_projects(world, count):
    owned = {"organization": world.organization}
    Project.objects.bulk_create(Project(**owned, slug=f"p{n}", name="P") for n in range(count))


def make_capabilities(world, count):
    owned = {"organization": world.organization}
    return Capability.objects.bulk_create(Capability(**owned, name=f"c{n}") for n in range(count))


def make_rules(world, count):
    CapabilityRule.objects.bulk_create(
        CapabilityRule(organization=world.organization, capability=capability, effect="deny")
        for capability in make_capabilities(world, count)
    )


def make_bindings(world, count):
    ToolBinding.objects.bulk_create(
        ToolBinding(organization=world.organization, capability=capability, pattern="x")
        for capability in make_capabilities(world, count)
    )


def make_grants(world, count):
    granted = {"organization": world.organization, "project": world.project, "granted_by": world.user}
    Grant.objects.bulk_create(
        Grant(**granted, tool="send_email", any_arguments=True, max_uses=1) for _ in range(count)
    )


def make_memories(world, count):
    owned = {"organization": world.organization, "user": world.user, "type": "episodic"}
    Memory.objects.bulk_create(Memory(**owned, content="Asked for prices.") for _ in range(count))


def make_tokens(world, count):
    owned = {"organization": world.organization, "user": world.user}
    Token.objects.bulk_create(Token(**owned, prefix="dpt_", secret_hash=f"h{n}") for n in range(count))


LISTS = {
    "runs/": make_runs,
    "approvals/": make_runs,
    "groups/": make_groups,
    "groups/members/": make_groups,
    "groups/examples/": make_examples,
    "roles/": make_roles,
    "projects/": make_projects,
    "tokens/": make_tokens,
    "policy/rules/": make_rules,
    "policy/capabilities/": make_capabilities,
    "policy/bindings/": make_bindings,
    "policy/grants/": make_grants,
    "memories/": make_memories,
}
PARTS = ("tree/", "children/", "events/", "tool-calls/")


@pytest.mark.parametrize("count", [10, 200])
@pytest.mark.parametrize("path", LISTS)
def test_a_list_costs_what_is_kept_however_long_it_is(api, world, path, count):
    LISTS[path](world, count)

    assert queries(api, path, min(count, 100)) == KEPT[path]


@pytest.mark.parametrize("count", [10, 200])
@pytest.mark.parametrize("part", PARTS)
def test_what_belongs_to_a_run_costs_what_is_kept_however_much_it_is(api, world, part, count):
    (top,) = make_runs(world, 1)
    make_runs(world, count, parent=top)
    owned = {"organization": world.organization, "run": top}
    RunEvent.objects.bulk_create(
        RunEvent(**owned, seq=n, type="message.created", created_at=timezone.now(), digest="")
        for n in range(1, count + 1)
    )
    ToolCall.objects.bulk_create(
        ToolCall(**owned, call_id=f"{n}", tool="x", idempotency_key=f"{n}") for n in range(count)
    )

    assert queries(api, f"runs/{top.pk}/{part}", min(count, 100)) == KEPT[f"runs/{{id}}/{part}"]


def test_what_is_kept_is_about_lists_there_are():
    assert KEPT.keys() == {*LISTS, *(f"runs/{{id}}/{part}" for part in PARTS)}
