"""Pages cost as many queries for many rows, more than a page of a list, as for ten."""

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from groups import models as who
from policy import models as may
from runs import models as what
from runs.models import Run, RunEvent, ToolCall, Wait
from tests.admin_world import client_of, registered, superuser, tenant, url

pytestmark = pytest.mark.django_db


def users(start, count):
    names = [f"many{n}" for n in range(start, start + count)]
    return get_user_model().objects.bulk_create([get_user_model()(username=name) for name in names])


def runs(made, count, **fields):
    rows = []
    for n in range(count):
        run = Run(
            organization=made.organization, project=made.project, user=made.user, kind="group",
            group=made.group, goal=f"Goal {n}", agent_instance=made.seat.agent_instance, role=made.role,
            **fields,
        )  # fmt: skip
        run.root_id = fields.get("root_id") or run.pk
        rows.append(run)
    return Run.objects.bulk_create(rows)


def calls(made, count):
    return ToolCall.objects.bulk_create(
        ToolCall(
            organization=made.organization, run=run, call_id="2.0", tool="send_email",
            effective_arguments={"to": ["a@example.org"], "subject": "s", "body": "b"},
            request_digest="d", idempotency_key=run.pk, status="waiting",
        )
        for run in runs(made, count)
    )  # fmt: skip


def approvals(made, count):
    return what.Approval.objects.bulk_create(
        what.Approval(
            organization=made.organization, run=call.run, tool_call=call, effect="require_approval",
            rule=made.rule.pk, explanation="Because", arguments_digest="d", correlation_key="k",
            requested_at=timezone.now(),
        )
        for call in calls(made, count)
    )  # fmt: skip


def more(stem, made, start, count):
    """`count` further rows of a model, each with related objects of its own where that is possible."""
    o, numbers = made.organization, range(start, start + count)
    if stem == "groups_organization":
        who.Organization.objects.bulk_create(who.Organization(slug=f"o{n}", name=f"O{n}") for n in numbers)
    elif stem == "groups_project":
        who.Project.objects.bulk_create(who.Project(organization=o, slug=f"p{n}", name="P") for n in numbers)
    elif stem == "groups_membership":
        who.Membership.objects.bulk_create(
            who.Membership(organization=o, user=u) for u in users(start, count)
        )
    elif stem == "groups_token":
        who.Token.objects.bulk_create(
            who.Token(organization=o, user=u, prefix="dpt_", secret_hash=u.username)
            for u in users(start, count)
        )
    elif stem == "groups_customrole":
        who.CustomRole.objects.bulk_create(who.CustomRole(organization=o, name=f"c{n}") for n in numbers)
    elif stem == "groups_change":
        who.Change.objects.bulk_create(
            who.Change(organization=o, user=u, via="admin", action="added", model="groups.role", label="R")
            for u in users(start, count)
        )
    elif stem == "groups_proposedchange":
        who.ProposedChange.objects.bulk_create(
            who.ProposedChange(
                organization=o, user=u, by="x", via="admin", action="added", label="R", why="w"
            )
            for u in users(start, count)
        )
    elif stem == "groups_role":
        who.Role.objects.bulk_create(who.Role(organization=o, name=f"r{n}") for n in numbers)
    elif stem == "groups_agentinstance":
        roles = who.Role.objects.bulk_create(who.Role(organization=o, name=f"r{n}") for n in numbers)
        who.AgentInstance.objects.bulk_create(
            who.AgentInstance(organization=o, role=role, user=user)
            for role, user in zip(roles, users(start, count), strict=True)
        )
    elif stem in ("groups_group", "groups_groupmember", "groups_routingexample"):
        for n in numbers:
            group = who.Group.objects.create(organization=o, project=made.project, name=f"g{n}")
            role = who.Role.objects.create(organization=o, name=f"r{n}")
            agent = who.AgentInstance.objects.create(organization=o, role=role)
            who.GroupMember.objects.create(organization=o, group=group, role=role, agent_instance=agent)
            who.RoutingExample.objects.create(organization=o, group=group, goal=f"g{n}", goal_hash=f"h{n}")
    elif stem in ("policy_capability", "policy_toolbinding", "policy_capabilityrule"):
        for n in numbers:
            capability = may.Capability.objects.create(organization=o, name=f"c{n}")
            may.ToolBinding.objects.create(organization=o, pattern=f"t{n}", capability=capability)
            group = who.Group.objects.create(organization=o, project=made.project, name=f"g{n}")
            role = who.Role.objects.create(organization=o, name=f"r{n}")
            may.CapabilityRule.objects.create(
                organization=o,
                capability=capability,
                effect="deny",
                project=made.project,
                group=group,
                role=role,
            )
    elif stem in ("policy_grant", "policy_grantuse"):
        for n in numbers:
            grant = may.Grant.objects.create(
                organization=o, project=made.project, tool=f"t{n}", any_arguments=True,
                granted_by=made.user, max_uses=1,
            )  # fmt: skip
            may.GrantUse.objects.create(organization=o, grant=grant, idempotency_key=f"k{n}")
    elif stem == "policy_tooldeclaration":
        may.ToolDeclaration.objects.bulk_create(
            may.ToolDeclaration(organization=o, tool=f"tool{n}") for n in numbers
        )
    elif stem == "policy_outsideentity":
        may.OutsideEntity.objects.bulk_create(
            may.OutsideEntity(organization=o, type="record", identifier=f"record-{n}") for n in numbers
        )
    elif stem == "policy_policyversion":
        for n in numbers:
            other = who.Organization.objects.create(slug=f"o{n}", name=f"O{n}")
            may.PolicyVersion.objects.get_or_create(organization=other)
    elif stem == "runs_run":
        runs(made, count)
    elif stem == "runs_runevent":
        RunEvent.objects.bulk_create(
            RunEvent(organization=o, run=run, seq=1, type="run.started", created_at=timezone.now())
            for run in runs(made, count)
        )
    elif stem == "runs_toolcall":
        calls(made, count)
    elif stem == "runs_wait":
        Wait.objects.bulk_create(
            Wait(organization=o, run=run, kind="input", correlation_key="k") for run in runs(made, count)
        )
    elif stem == "runs_idempotencyrecord":
        what.IdempotencyRecord.objects.bulk_create(
            what.IdempotencyRecord(organization=o, user=user, key=f"k{n}", request_digest="d")
            for n, user in zip(numbers, users(start, count), strict=True)
        )
    elif stem == "runs_approval":
        approvals(made, count)
    elif stem == "runs_approvalnotice":
        what.ApprovalNotice.objects.bulk_create(
            what.ApprovalNotice(organization=o, approval=a, user=u)
            for a, u in zip(approvals(made, count), users(start, count), strict=True)
        )
    elif stem in ("runs_webhookendpoint", "runs_webhookdelivery"):
        for n in numbers:
            hook = what.WebhookEndpoint.objects.create(
                organization=o, url=f"https://example.org/{n}", events=["run.failed"], project=made.project
            )
            what.WebhookDelivery.objects.create(organization=o, endpoint=hook, event="run.failed", payload={})
    elif stem == "runs_modelprice":
        what.ModelPrice.objects.bulk_create(
            what.ModelPrice(organization=o, model=f"m{n}", input_price=n, output_price=n) for n in numbers
        )
    elif stem in ("runs_schedule", "runs_scheduledrun"):
        for user, run in zip(users(start, count), runs(made, count), strict=True):
            schedule = what.Schedule.objects.create(
                organization=o, project=made.project, user=user, title="t", goal="g", cron="0 9 * * *"
            )
            what.ScheduledRun.objects.create(
                organization=o, schedule=schedule, due_at=timezone.now(), outcome="started", run=run
            )
    elif stem in ("runs_mcpserver", "runs_mcptool"):
        for n in numbers:
            server = what.McpServer.objects.create(organization=o, name=f"s{n}", url="https://example.org/")
            what.McpTool.objects.create(
                organization=o, server=server, name="t", digest="d", state="unusable", accepted_by=made.user
            )
    elif stem == "runs_remoteagent":
        what.RemoteAgent.objects.bulk_create(
            what.RemoteAgent(organization=o, name=f"r{n}", url="https://example.org/", accepted_by=made.user)
            for n in numbers
        )
    elif stem == "runs_channel":
        what.Channel.objects.bulk_create(
            what.Channel(organization=o, project=made.project, kind="email", name=f"c{n}") for n in numbers
        )
    elif stem == "runs_modelkey":
        for n in numbers:
            other = who.Organization.objects.create(slug=f"o{n}", name=f"O{n}")
            what.ModelKey.objects.create(organization=other, provider="openai", sealed_key="x")
    elif stem in ("runs_schedule", "runs_scheduledrun"):
        for n in numbers:
            schedule = what.Schedule.objects.create(
                organization=o,
                project=made.project,
                user=made.user,
                title=f"s{n}",
                goal="g",
                cron="0 9 * * *",
            )
            what.ScheduledRun.objects.create(
                organization=o, schedule=schedule, due_at=timezone.now(), outcome="missed"
            )
    elif stem == "groups_identityprovider":
        who.IdentityProvider.objects.bulk_create(
            who.IdentityProvider(organization=o, name=f"i{n}", issuer=f"https://i{n}.example", client_id="d")
            for n in numbers
        )
    else:
        assert stem == "runs_approvaldecision"
        what.ApprovalDecision.objects.bulk_create(
            what.ApprovalDecision(
                organization=o, approval=a, user=u, approved=True, as_human=True, arguments_digest="d"
            )
            for a, u in zip(approvals(made, count), users(start, count), strict=True)
        )


def queries(client, address):
    with CaptureQueriesContext(
        connection,
    ) as asked:
        assert client.get(address).status_code == 200
    return len(asked)


@pytest.mark.parametrize("stem", registered())
def test_a_long_list_costs_what_a_list_of_ten_costs(stem):
    made = tenant()
    client = client_of(superuser(made))
    address = url(f"{stem}_changelist")
    more(stem, made, 0, 10)
    client.get(address)
    few = queries(client, address)

    more(stem, made, 1000, 50)  # a page has 50 rows
    client.get(address)  # what is kept by the policy's version is read anew once

    assert queries(client, address) == few
    assert few <= 12


def grow(made, children, events):
    below = runs(made, children, parent_run=made.run, root_id=made.run.root_id, depth=1)
    Wait.objects.bulk_create(
        Wait(organization=made.organization, run=run, kind="input", correlation_key="k") for run in below
    )
    last = RunEvent.objects.filter(run=made.run).order_by("-seq").values_list("seq", flat=True)[0]
    RunEvent.objects.bulk_create(
        RunEvent(
            organization=made.organization, run=made.run, seq=last + n, type="message.created",
            payload={
                "role": "user", "author": "mia", "content": f"word {n}",
                "memories": [{"id": f"mem_{n}", "tier": 2}],
            },
            created_at=timezone.now(),
        )
        for n in range(1, events + 1)
    )  # fmt: skip
    Run.objects.filter(pk=made.run.pk).update(last_seq=last + events)


def test_a_run_with_hundreds_below_it_costs_what_one_with_ten_costs():
    made = tenant()
    client = client_of(superuser(made))
    address = url("runs_run_change", made.run.pk)
    grow(made, 10, 10)
    few = queries(client, address)

    grow(made, 300, 300)
    with CaptureQueriesContext(connection) as asked:
        page = client.get(address).content.decode()

    assert len(asked) <= few <= 20
    assert "312 runs" in page
    assert page.count('class="dp-kin') <= 22  # the rest behind "show more"
    assert "Show more" in page and "Show earlier events" in page
    whole = client.get(address + "?children=2000&events=5000").content.decode()
    assert whole.count('class="dp-kin') == 312
    assert "Show more" not in whole and "Show earlier" not in whole


def test_the_dashboard_costs_the_same_however_much_waits():
    made = tenant()
    client = client_of(superuser(made))
    client.get(url("index"))
    more("runs_approval", made, 0, 10)
    few = queries(client, url("index"))

    more("runs_approval", made, 1000, 190)

    assert queries(client, url("index")) == few <= 20


@pytest.mark.parametrize("name", ["runs_decisions", "runs_what_if", "runs_health", "runs_run_ask"])
def test_the_other_pages_cost_the_same_however_much_there_is(name):
    made = tenant()
    client = client_of(superuser(made))
    more("runs_runevent", made, 0, 10)
    client.get(url(name))
    few = queries(client, url(name))

    more("runs_runevent", made, 1000, 190)
    more("runs_approval", made, 1000, 190)

    assert queries(client, url(name)) == few <= 20


def test_an_approvals_page_costs_the_same_however_many_wait():
    made = tenant()
    client = client_of(superuser(made))
    address = url("runs_approval_change", made.approval.pk)
    client.get(address)
    more("runs_approval", made, 0, 10)
    few = queries(client, address)

    more("runs_approval", made, 1000, 190)

    assert queries(client, address) == few <= 42
