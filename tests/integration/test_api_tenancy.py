"""Nobody learns of another's things: every address with an id answers 404 to who may not see it."""

import json

import pytest
from django.db import transaction
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from common.sealed import seal
from groups.models import (
    Change,
    Group,
    GroupMember,
    Project,
    ProposedChange,
    Role,
    RoutingExample,
    Token,
)
from groups.routing import learn
from groups.scopes import SCOPES
from memory.models import Memory
from policy.models import Capability, CapabilityRule, Grant, ToolBinding
from runs.models import (
    Approval,
    Channel,
    ConnectedAccount,
    McpServer,
    Run,
    Schedule,
    ToolCall,
    WebhookDelivery,
    WebhookEndpoint,
)
from tests.factories import MembershipFactory, ProjectFactory
from tests.integration.api_client import Api, permit, problem
from tests.scripted import call, in_order, say

pytestmark = pytest.mark.django_db

# What each address is about, by the beginning of its name.
THINGS = {
    "api-account": McpServer,
    "api-run": Run,
    "api-agui": Project,
    "api-job": Run,
    "api-call": ToolCall,
    "api-approval": Approval,
    "api-group": Group,
    "api-role": Role,
    "api-project": Project,
    "api-rule": CapabilityRule,
    "api-memory": Memory,
    "api-member": GroupMember,
    "api-example": RoutingExample,
    "api-capability": Capability,
    "api-binding": ToolBinding,
    "api-grant": Grant,
    "api-token": Token,
    "api-webhook": WebhookEndpoint,
    "api-delivery": WebhookDelivery,
    "api-change": Change,
    "api-proposal": ProposedChange,
    "api-schedule": Schedule,
    "api-channel": Channel,
}

# A body for each that takes one. An address that is missing here fails the test.
BODIES = {
    "api-run-cancel": {},
    "api-agui": {"threadId": "t", "runId": "r", "messages": [{"id": "m", "role": "user", "content": "x"}]},
    "api-run-context": {"operation": "getPage"},
    "api-run-message": {"content": "x"},
    "api-run-fork": {"seq": 2},
    "api-run-signal": {"correlation_key": "k"},
    "api-job-signal": {"correlation_key": "k"},
    "api-run-calls": {"call_id": "1", "name": "ask_user", "arguments": {"question": "?"}},
    "api-run-complete": {"output": "x"},
    "api-run-fail": {"message": "x"},
    "api-call-resolve": {"outcome": "failed"},
    "api-approval-approve": {},
    "api-approval-reject": {"reason": "x"},
    "api-group-detail": {"active": True},
    "api-role-detail": {"description": "x"},
    "api-project-detail": {"name": "x"},
    "api-member-detail": {"ordinal": 7},
    "api-example-detail": {},
    "api-rule-detail": {"shadow": True},
    "api-capability-detail": {"description": "x"},
    "api-binding-detail": {"pattern": "send_*"},
    "api-grant-revoke": {},
    "api-token-revoke": {},
    "api-webhook-detail": {"description": "x"},
    "api-webhook-ping": {},
    "api-webhook-rotate": {},
    "api-delivery-redeliver": {},
    "api-schedule-detail": {"title": "x"},
    "api-schedule-pause": {},
    "api-schedule-resume": {},
    "api-channel-detail": {"enabled": False},
    "api-channel-test": {},
    "api-account-disconnect": {},
    "api-proposal-confirm": {},
    "api-proposal-reject": {},
    "api-memory-detail": {"content": "x"},
    "api-memory-approve": {},
    "api-memory-retract": {},
    "api-memory-restore": {},
    "api-memory-promote": {},
    "api-memory-supersede": {"content": "x"},
    "api-memory-merge": {"memories": ["mem_x"]},
}
# Seen by every member of the project, done only by the run's own user or with a permission.
OTHERS_MAY_NOT = {
    ("api-run-calls", "post"),
    ("api-run-complete", "post"),
    ("api-run-fail", "post"),
    ("api-run-fork", "post"),
}
OTHERS_MAY_NOT |= {("api-call-resolve", "post")}
OF_THE_ORGANIZATION = (
    "api-role",
    "api-capability",
    "api-binding",
)  # seen whatever one's projects, and arranged by members of the whole
ONES_OWN = ("api-token", "api-schedule", "api-channel", "api-account")
# What a memory that is active, and alone, refuses; roles and capabilities that are in use; and proposals, of
# whoever comes with a token.
REFUSED = {
    ("api-memory-approve", "post"): (409, "wrong_state"),
    ("api-memory-restore", "post"): (409, "wrong_state"),
    ("api-memory-merge", "post"): (422, "INVALID"),
    ("api-delivery-redeliver", "post"): (409, "ON_ITS_WAY"),
    ("api-role-detail", "delete"): (409, "IN_USE"),
    ("api-capability-detail", "delete"): (409, "IN_USE"),
    ("api-proposal-confirm", "post"): (403, "HUMAN_ONLY"),
    ("api-proposal-reject", "post"): (403, "HUMAN_ONLY"),
}
ARRANGED = (
    *("group", "groupmember", "role", "project", "routingexample", "token"),
    *("capabilityrule", "capability", "toolbinding", "grant", "webhookendpoint"),
)
PERMISSIONS = [f"{verb}_{model}" for verb in ("add", "change", "delete") for model in ARRANGED]
PERMISSIONS += ["view_webhookendpoint", "view_change", "view_proposedchange"]


def addresses(resolver=None, prefix=""):
    """(name, methods) of every address below /api/ that takes an id."""
    for entry in (resolver or get_resolver()).url_patterns:
        path = prefix + str(entry.pattern).lstrip("^")
        if isinstance(entry, URLResolver):
            yield from addresses(entry, path)
        elif isinstance(entry, URLPattern) and path.startswith("api/") and "(?P<" in path:
            yield entry.name, sorted(methods_of(entry.callback))


def methods_of(view):
    return getattr(view, "actions", None) or {"get": None}


ADDRESSES = [(name, method) for name, methods in addresses() for method in methods]


@pytest.fixture
def things(ask, world):
    """One of each, all of mia's organization and project."""
    capability = Capability.objects.create(organization=world.organization, name="send_email")
    CapabilityRule.objects.create(
        organization=world.organization,
        project=world.project,
        capability=capability,
        effect="require_approval",
    )
    mail = {"to": ["ines@example.org"], "subject": "x", "body": "x"}
    ask(in_order(call(("send_email", mail)), say("Sent.")))
    Memory.objects.create(
        organization=world.organization, project=world.project, type="archival", content="Prices are 5."
    )
    mine = {"organization": world.organization}
    ToolBinding.objects.create(**mine, capability=capability, pattern="mail_*")
    granted = {"project": world.project, "granted_by": world.user, "max_uses": 1}
    Grant.objects.create(**mine, **granted, tool="send_email", any_arguments=True)
    hook = WebhookEndpoint.objects.create(
        **mine,
        project=world.project,
        url="https://93.184.216.34/",
        events=["run.failed"],
        sealed_secret=seal("x"),
    )
    WebhookDelivery.objects.create(**mine, endpoint=hook, event="run.failed", payload={})
    Token.objects.issue(world.organization, world.user, scopes=list(SCOPES))
    Schedule.objects.create(
        **mine, project=world.project, user=world.user, title="x", goal="x", cron="0 9 * * *"
    )
    there = {"issuer": "https://as.example", "client_id": "deputy"}
    crm = McpServer.objects.create(**mine, **there, name="crm", url="https://crm.example", as_person=True)
    ConnectedAccount.objects.create(**mine, user=world.user, server=crm, sealed_access=seal("x"))
    Channel.objects.create(**mine, user=world.user, kind="email")
    proposed = {"user": world.user, "by": "mia", "via": "web", "action": "added", "model": "policy.grant"}
    ProposedChange.objects.create(**mine, **proposed, object_id="x", label="a grant", why="It asks nobody.")
    learn(world.organization.pk, world.group.pk, "Prices", by=world.user)
    found = {name: model.objects.filter(**mine).order_by("pk").first() for name, model in THINGS.items()}
    return found | {"api-role": Role.objects.get(name="analyst")}


def asked(api, name, method, things):
    about, thing = next(found for found in things.items() if name.startswith(f"{found[0]}-"))
    path = reverse(name, args=[thing.run_id, thing.call_id] if about == "api-call" else [thing.pk])
    if method == "get":
        return api.client.get(path, headers=api.headers)
    seen = {"arguments_digest": thing.arguments_digest} if about == "api-approval" else {}
    body = json.dumps(BODIES[name] | seen)
    return getattr(api.client, method)(path, body, content_type="application/json", headers=api.headers)


def powerful(user, organization):
    return Api(permit(user, "decide_approval", "cancel_run", "curate_memory", *PERMISSIONS), organization)


def test_there_are_addresses_to_walk():
    assert len(ADDRESSES) >= 12


A_WORLD = 30  # addresses; making the things anew takes longer than to ask for one
SOME = range(0, len(ADDRESSES), A_WORLD)


def wrong(first, api, things, expected):
    """The addresses that did not answer as `expected(name, method)` says, with what they answered."""
    found = {}
    for name, method in ADDRESSES[first : first + A_WORLD]:
        kept = transaction.savepoint()
        answer = asked(api, name, method, things)
        transaction.savepoint_rollback(kept)
        status, code = expected(name, method)
        if (answer.status_code, code and problem(answer)[1]) != (status, code):
            found[f"{method} {name}"] = (answer.status_code, answer.content[:200])
    return found


@pytest.mark.parametrize("first", SOME)
def test_another_organizations_things_do_not_exist(things, first):
    project = ProjectFactory()
    stranger = MembershipFactory(organization=project.organization)

    api = powerful(stranger.user, project.organization)
    assert wrong(first, api, things, lambda name, method: (404, "NOT_FOUND")) == {}


@pytest.mark.parametrize("first", SOME)
def test_things_of_a_project_one_is_not_in_do_not_exist(things, world, first):
    elsewhere = ProjectFactory(organization=world.organization)
    member = MembershipFactory(organization=world.organization, projects=[elsewhere.pk])

    def expected(name, method):
        if name.startswith(OF_THE_ORGANIZATION) and method == "get":
            return 200, ""
        if name.startswith((*OF_THE_ORGANIZATION, "api-change", "api-proposal")):
            return 403, "NOT_ENTITLED"
        return 404, "NOT_FOUND"

    assert wrong(first, powerful(member.user, world.organization), things, expected) == {}


@pytest.mark.parametrize("first", SOME)
def test_who_may_see_them_does(things, world, first):
    member = MembershipFactory(organization=world.organization)

    def expected(name, method):
        if (name, method) in OTHERS_MAY_NOT:
            return 403, "NOT_ENTITLED"
        if name.startswith(ONES_OWN):
            return 404, "NOT_FOUND"
        if (name, method) in REFUSED:
            return REFUSED[name, method]
        if name in ("api-call-detail", "api-webhook-ping"):
            return 202, ""  # its call waits
        return (204 if method == "delete" else 200), ""

    assert wrong(first, powerful(member.user, world.organization), things, expected) == {}


@pytest.mark.parametrize(
    "path",
    [
        *("runs/", "approvals/", "groups/", "groups/members/", "groups/examples/", "roles/", "projects/"),
        *("policy/rules/", "policy/capabilities/", "policy/bindings/", "policy/grants/", "memories/"),
        *("webhooks/", "webhooks/deliveries/"),
    ],
)
def test_lists_hold_nothing_of_another_organization(things, world, path):
    stranger = MembershipFactory()

    assert powerful(stranger.user, stranger.organization).get(path).json()["results"] == []
    member = MembershipFactory(organization=world.organization)
    assert powerful(member.user, world.organization).get(path).json()["results"]
