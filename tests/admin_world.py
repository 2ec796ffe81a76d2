"""An organization with one of everything the admin shows, and the people who look at it."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from groups import changes, routing
from groups.models import AgentInstance, Change, CustomRole, IdentityProvider, ProposedChange, Role, Token
from groups.models.groups import RoutingExample
from policy.models import (
    Capability,
    CapabilityRule,
    Grant,
    GrantUse,
    OutsideEntity,
    PolicyVersion,
    ToolBinding,
    ToolDeclaration,
)
from runs.execution import executor
from runs.models import (
    Approval,
    ApprovalDecision,
    ApprovalNotice,
    Channel,
    IdempotencyRecord,
    McpServer,
    McpTool,
    ModelKey,
    ModelPrice,
    QueueMessage,
    RemoteAgent,
    Run,
    RunEvent,
    Schedule,
    ScheduledRun,
    ToolCall,
    Wait,
    WebhookDelivery,
    WebhookEndpoint,
    WorkerGroup,
)
from tests.acting import start
from tests.factories import (
    GroupFactory,
    MemberFactory,
    MembershipFactory,
    ProjectFactory,
    permit,
    permit_all,
    unrecorded,
)
from tests.kept_rows import kept
from tests.scripted import Scripted, by_role, call, say

APPROVER = ("runs.view_run", "runs.view_approval", "runs.decide_approval")
OF_INSTALLATION = (QueueMessage, WorkerGroup)
PASSWORD = "a long enough pass phrase"


def text(response: Any) -> str:
    return str(response.content.decode())


def tenant(text: str = "Compare prices", name: str = "acme") -> SimpleNamespace:
    """An organization whose every text field says `text`, with a run that waits for an approval."""
    return kept((text, name), lambda: _made(text, name))


def _made(text: str, name: str) -> SimpleNamespace:
    with unrecorded():
        made = _tenant(text, name)
    made.proposal.row_digest = changes.row_of(made.project)
    made.proposal.save(update_fields=["row_digest"])
    return made


def _tenant(text: str, name: str) -> SimpleNamespace:
    project = ProjectFactory(name=text, organization__name=text, organization__slug=name)
    organization = project.organization
    member = MembershipFactory(organization=organization, user__username=f"mia-of-{name}")
    user = member.user
    group = GroupFactory(project=project, name=text, description=text, capabilities=[text[:100]])
    seat = MemberFactory(group=group, role__name=text, role__description=text, ordinal=0, is_lead=True)
    role = seat.role
    Role.objects.filter(pk=role.pk).update(system_prompt=text, denied_tools=[text[:64]])
    AgentInstance.objects.filter(pk=seat.agent_instance_id).update(name=text)
    made = SimpleNamespace(
        organization=organization,
        project=project,
        member=member,
        user=user,
        group=group,
        seat=seat,
        role=role,
    )
    made.capability = Capability.objects.create(organization=organization, name="payment", description=text)
    made.binding = ToolBinding.objects.create(
        organization=organization, pattern=text[:64], capability=made.capability
    )
    made.declaration = ToolDeclaration.objects.create(organization=organization, tool=text[:64])
    made.entity = OutsideEntity.objects.create(
        organization=organization, type=text[:64], identifier=text[:200], properties={"text": text}
    )
    made.rule = CapabilityRule.objects.create(
        organization=organization, name=text, tool="send_email", effect="require_approval"
    )
    made.grant = Grant.objects.create(
        organization=organization,
        project=project,
        tool=text[:64],
        arguments={text: text},
        reason=text,
        granted_by=user,
        max_uses=5,
    )
    made.use = GrantUse.objects.create(organization=organization, grant=made.grant, idempotency_key="k" * 64)
    made.version = PolicyVersion.objects.get(organization=organization)
    made.own_role = CustomRole.objects.create(organization=organization, name=text[:100])
    made.token, _ = Token.objects.issue(organization, user, text[:100], scopes=[text[:40]])
    routing.learn(organization.pk, group.pk, text, by=user)
    made.example = RoutingExample.objects.get(group=group)
    made.run = waiting_for_approval(made, text)
    made.asking = waiting_for_answer(made, text)
    made.child = Run.objects.filter(parent_run=made.run).first()
    made.approval = Approval.objects.get(run=made.run)
    made.call = ToolCall.objects.get(approvals=made.approval)
    made.wait = Wait.objects.filter(run=made.run, resolved_at=None).get()
    made.decision = ApprovalDecision.objects.create(
        organization=organization,
        approval=made.approval,
        user=user,
        approved=True,
        as_human=True,
        reason=text,
        arguments_digest="of others",
    )
    made.record = IdempotencyRecord.objects.create(
        organization=organization, user=user, key=text, request_digest="d", body={text: text}, location=text
    )
    made.notice, _ = ApprovalNotice.objects.get_or_create(
        organization=organization, approval=made.approval, user=user
    )
    made.server = McpServer.objects.create(
        organization=organization, name="crm", url="https://crm.example.org/mcp", problem=text
    )
    definition = {"title": text, "description": text, "input_schema": {"title": text}, "annotations": {}}
    made.tool = McpTool.objects.create(
        organization=organization, server=made.server, name=text[:100], definition=definition, digest="d"
    )
    made.remote_agent = RemoteAgent.objects.create(
        organization=organization, name="partner", url="https://partner.example.org/card.json", problem=text
    )
    made.model_key = ModelKey(organization=organization, provider="openai")
    made.model_key.keep_key("sk-of-the-world-0123456789")
    made.model_key.save()
    made.price = ModelPrice.objects.create(
        organization=organization, model=text[:200], input_price=1, output_price=2
    )
    made.provider = IdentityProvider.objects.create(
        organization=organization, name=text[:60], issuer="https://id.example.org", client_id="deputy"
    )
    made.webhook = WebhookEndpoint.objects.create(
        organization=organization,
        project=project,
        url="https://hooks.example.org/",
        description=text[:200],
        events=["run.failed"],
        sealed_secret="x",
        disabled_because=text,
    )
    made.delivery = WebhookDelivery.objects.create(
        organization=organization,
        endpoint=made.webhook,
        event="run.failed",
        payload={text: text},
        problem=text[:300],
    )
    made.channel = Channel(organization=organization, project=project, kind="email", name=text[:100])
    made.channel.keep_address("team@example.com", "team@example.com")
    made.channel.save()
    made.schedule = Schedule.objects.create(
        organization=organization,
        project=project,
        user=user,
        title=text[:200],
        goal=text,
        cron="0 9 * * *",
        next_at=made.run.created_at + timedelta(days=1),
        stopped_because=text[:500],
    )
    made.scheduled = ScheduledRun.objects.create(
        organization=organization,
        schedule=made.schedule,
        due_at=made.run.created_at,
        outcome="started",
        run=made.run,
        reason=text[:500],
    )
    made.event = RunEvent.objects.filter(run=made.run, type="run.created").get()
    made.proposal = ProposedChange.objects.create(
        organization=organization,
        user=made.user,
        by=str(made.user),
        via="admin",
        action="changed",
        model="groups.project",
        object_id=made.project.pk,
        label=str(made.project),
        why="what groups learn is not reviewed any more",
        before={"review_deposits": made.project.review_deposits},
        after={"review_deposits": not made.project.review_deposits},
    )
    made.change = Change.objects.create(
        organization=organization,
        via="system",
        action="added",
        model="groups.project",
        object_id=project.pk,
        label=text[:200],
        after={"name": text},
    )
    return made


def drive(made: SimpleNamespace, text: str, play: Any, **fields: Any) -> Run:
    Scripted.play = staticmethod(play)
    run_id = start(user=made.user, project=made.project, goal=text, **fields)
    executor.run(run_id)
    return Run.objects.get(pk=run_id)


def waiting_for_approval(made: SimpleNamespace, text: str = "Write to Ada") -> Run:
    """A run that has asked its group and waits to be allowed to send a message."""
    mail = {"to": ["ada@example.org"], "subject": text, "body": text}

    replies = [
        call((text[:60], {text: text}), content=text),
        call(("escalate_to_group", {"goal": text, "group_id": made.group.pk}), content=text),
        call(("send_email", mail), content=text),
    ]

    def play(messages: Any, facts: Any) -> Any:
        return replies.pop(0) if facts["role"] == "Personal agent" else say(f"DECISION: {text} 42")

    return drive(made, text, play, context=text, session_key=text[:200])


def waiting_for_answer(made: SimpleNamespace, text: str = "Which year?") -> Run:
    return drive(made, text, by_role(Personal_agent=[call(("ask_user", {"question": text}))]))


def person(made: SimpleNamespace | None, username: str, *permissions: str, **fields: Any) -> Any:
    """A user with these permissions, who is a member of the organization when one is given."""
    with unrecorded():
        user = get_user_model().objects.create_user(username, password=PASSWORD, **fields)
    if made is not None:
        MembershipFactory(organization=made.organization, user=user)
    return permit(user, *permissions)


def superuser(made: SimpleNamespace | None = None, username: str = "root") -> Any:
    return permit_all(person(made, username, is_staff=True, is_superuser=True))


def client_of(user: Any) -> Client:
    client = Client()
    if user is not None:
        client.force_login(user)
    return client


def objects_of(made: SimpleNamespace) -> dict[str, Any]:
    """One object of each registered model that belongs to a tenant, by its url name's stem."""
    found = [
        made.organization, made.project, made.member, made.own_role, made.token, made.role, made.seat,
        made.group,
        made.seat.agent_instance, made.example, made.capability, made.binding, made.rule, made.grant,
        made.declaration, made.entity, made.use, made.version, made.run, made.approval, made.call,
        made.wait, made.event, made.decision, made.record, made.notice, made.server, made.tool,
        made.model_key, made.webhook, made.delivery, made.change, made.schedule, made.scheduled,
        made.channel, made.provider, made.proposal, made.price, made.remote_agent,
    ]  # fmt: skip
    return {f"{thing._meta.app_label}_{thing._meta.model_name}": thing for thing in found}


def url(name: str, *args: Any, **query: Any) -> str:
    return reverse(f"admin:{name}", args=args, query=query or None)


def registered() -> list[str]:
    """The url name stems of the models in the admin that belong to tenants."""
    own = ("groups", "policy", "runs")
    return [
        f"{model._meta.app_label}_{model._meta.model_name}"
        for model in admin.site._registry
        if model._meta.app_label in own and model not in OF_INSTALLATION
    ]
