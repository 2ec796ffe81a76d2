"""A longer list costs no more queries than a short one."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from common import ids
from groups.models import Token
from memory.models import Memory
from policy.models import Capability, CapabilityRule
from runs.models import Approval, Run, ToolCall, Wait
from tests.factories import GroupFactory, MemberFactory, ProjectFactory, RoleFactory
from tests.integration.api_client import Api, permit

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(world):
    api = Api(permit(world.user, "decide_approval"), world.organization)
    Token.objects.update(last_used_at=timezone.now())
    return api


def queries(api, path, count):
    with CaptureQueriesContext(
        connection,
    ) as captured:
        response = api.get(path, **({} if path.endswith("tree/") else {"limit": 100}))
    assert response.status_code == 200, response.content
    body = response.json()
    assert len(body["children" if path.endswith("tree/") else "results"]) >= count
    return len(captured)


def make_runs(world, count, parent=None):
    """Runs that wait for an approval, with their call, wait and approval."""
    now = timezone.now()
    owned = {"organization": world.organization}
    runs = []
    for _ in range(count):
        run_id = ids.run_id()
        runs.append(
            Run(
                **owned,
                id=run_id,
                project=world.project,
                user=world.user,
                kind="group",
                goal="x",
                status="waiting",
                waiting_reason="approval",
                parent_run=parent,
                root_id=parent.root_id if parent else run_id,
                depth=1 if parent else 0,
            )
        )
    Run.objects.bulk_create(runs)
    for i, run in enumerate(runs):
        call = ToolCall.objects.create(
            **owned, run=run, call_id="4.0", tool="send_email", idempotency_key=f"{run.pk}", status="waiting"
        )
        key = f"cap-approval-{i}"
        Wait.objects.create(**owned, run=run, kind="approval", correlation_key=key, tool_call=call)
        Approval.objects.create(
            **owned,
            run=run,
            tool_call=call,
            effect="require_approval",
            correlation_key=key,
            arguments_digest="x",
            requested_at=now,
        )
    return runs


def make_groups(world, count, parent=None):
    for _ in range(count):
        group = GroupFactory(project=world.project)
        for ordinal in range(2):
            MemberFactory(group=group, ordinal=ordinal)


def make_roles(world, count, parent=None):
    RoleFactory.create_batch(count, organization=world.organization)


def make_projects(world, count, parent=None):
    ProjectFactory.create_batch(count, organization=world.organization)


def make_rules(world, count, parent=None):
    for _ in range(count):
        name = f"c{CapabilityRule.objects.count()}"
        capability = Capability.objects.create(organization=world.organization, name=name)
        CapabilityRule.objects.create(organization=world.organization, capability=capability, effect="deny")


def make_memories(world, count, parent=None):
    for _ in range(count):
        Memory.objects.create(
            organization=world.organization, user=world.user, type="episodic", content="Asked for prices."
        )


@pytest.mark.parametrize(
    ("path", "make"),
    [
        ("runs/", make_runs),
        ("approvals/", make_runs),
        ("groups/", make_groups),
        ("roles/", make_roles),
        ("projects/", make_projects),
        ("policy/rules/", make_rules),
        ("memories/", make_memories),
    ],
)
def test_a_list_of_a_hundred_costs_as_many_queries_as_one_of_ten(api, world, path, make):
    make(world, 10)
    few = queries(api, path, 10)
    make(world, 90)

    assert queries(api, path, 100) == few
    assert few <= 8


@pytest.mark.parametrize("part", ["tree/", "children/"])
def test_a_wide_tree_costs_as_many_queries_as_a_narrow_one(api, world, part):
    (top,) = make_runs(world, 1)
    make_runs(world, 10, parent=top)
    few = queries(api, f"runs/{top.pk}/{part}", 10)
    make_runs(world, 90, parent=top)

    assert queries(api, f"runs/{top.pk}/{part}", 100) == few
    assert few <= 8
