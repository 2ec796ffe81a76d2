"""What holds for the whole organization is arranged by members of all of it, whichever door they try."""

import json

import pytest

from groups.models import (
    AgentInstance,
    CustomRole,
    Group,
    GroupMember,
    Membership,
    Organization,
    Project,
    Role,
    Token,
)
from memory.models import DepositedKnowledge
from policy.models import Capability, CapabilityRule, ToolBinding, ToolDeclaration
from runs.models import McpServer, McpTool, RemoteAgent, WebhookEndpoint
from tests.admin_world import client_of, objects_of, person, url
from tests.factories import permit_all
from tests.integration.api_client import Api, problem

pytestmark = pytest.mark.django_db

WHOLE = (
    *("groups_organization", "groups_membership", "groups_customrole", "groups_role", "groups_agentinstance"),
    *("policy_capability", "policy_toolbinding", "policy_tooldeclaration", "policy_capabilityrule"),
    "policy_outsideentity",
    *("runs_mcpserver", "runs_mcptool", "runs_remoteagent"),
)
MODELS = (
    *(Organization, Project, Membership, CustomRole, Role, AgentInstance, Group, GroupMember, Token),
    *(Capability, CapabilityRule, ToolBinding, ToolDeclaration, McpServer, McpTool),
    *(RemoteAgent, WebhookEndpoint),
)


@pytest.fixture
def limited(made):
    """An administrator by role, whose membership names one project: of it they may arrange everything."""
    user = permit_all(person(made, "limited", is_staff=True))
    Membership.objects.filter(user=user).update(projects=[made.project.pk])
    return user


@pytest.fixture
def api(limited, made):
    return Api(limited, made.organization)


def everything():
    used = {"last_used_at"}  # of tokens
    columns = {model: [each.attname for each in model._meta.concrete_fields] for model in MODELS}
    return {
        model.__name__: list(model.objects.order_by("pk").values(*(set(names) - used)))
        for model, names in columns.items()
    }


@pytest.mark.parametrize("stem", WHOLE)
def test_the_admin_shows_it_and_changes_nothing(made, limited, stem):
    thing, before = objects_of(made)[stem], everything()
    browser = client_of(limited)
    page = browser.get(url(f"{stem}_change", thing.pk))
    fields = dict.fromkeys(("name", "slug", "effect", "url", "pattern", "tool"), "x")

    assert page.status_code == 200
    if stem != "runs_mcptool":  # its page only shows
        assert browser.post(url(f"{stem}_change", thing.pk), fields).status_code == 403
    assert browser.post(url(f"{stem}_delete", thing.pk), {"post": "yes"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [thing.pk], "post": "yes"}
    browser.post(url(f"{stem}_changelist"), chosen)
    assert everything() == before


@pytest.mark.parametrize("stem", sorted(set(WHOLE) - {"policy_capabilityrule", "runs_mcptool"}))
def test_the_admin_adds_none(limited, made, stem):
    assert client_of(limited).get(url(f"{stem}_add")).status_code == 403


def test_the_admins_own_actions_ask_as_well(made, limited):
    browser = client_of(limited)
    accept = {
        "action": "accept_selected",
        "confirmed": "yes",
        "_selected_action": [made.tool.pk],
        f"digest-{made.tool.pk}": made.tool.digest,
    }
    browser.post(url("runs_mcptool_changelist"), accept)
    browser.post(url("runs_mcpserver_changelist"), {"action": "refresh", "_selected_action": made.server.pk})
    card = {
        "_selected_action": made.remote_agent.pk,
        "confirmed": "yes",
        f"digest-{made.remote_agent.pk}": "",
    }
    for action in ("refresh", "accept_selected"):
        browser.post(url("runs_remoteagent_changelist"), {"action": action, **card})

    made.tool.refresh_from_db()
    made.server.refresh_from_db()
    made.remote_agent.refresh_from_db()
    assert (made.tool.state, made.server.checked_at) == ("new", None)
    assert (made.remote_agent.state, made.remote_agent.checked_at) == ("new", None)


def rule_form(made, **changes):
    return {
        "organization": made.organization.pk,
        "tool": "send_email",
        "effect": "deny",
        "on_expiry": "fail_call",
        "deciders_needed": 1,
        "active": "on",
        **changes,
    }


def test_a_rule_of_ones_own_project_is_arranged_and_not_widened(made, limited):
    browser, add = client_of(limited), url("policy_capabilityrule_add")
    everywhere = browser.post(add, rule_form(made))
    assert "required" in everywhere.content.decode()
    assert browser.post(add, rule_form(made, project=made.project.pk, name="Ours")).status_code == 302
    ours = CapabilityRule.objects.get(name="Ours")
    wider = browser.post(url("policy_capabilityrule_change", ours.pk), rule_form(made, name="Ours"))
    assert "required" in wider.content.decode()
    assert CapabilityRule.objects.get(pk=ours.pk).project == made.project


@pytest.mark.parametrize(
    ("wide", "narrow", "refused"),
    [
        ({"tool": "send_email"}, {"tool": "send_email", "effect": "allow"}, True),
        ({"effect": "require_human", "tool": "send_email"}, {"tool": "send_email"}, True),
        ({"deciders_needed": 2, "tool": "send_email"}, {"tool": "send_email"}, True),
        ({"capability": True}, {"tool": "send_email", "effect": "allow"}, True),
        ({"tool": "send_email"}, {"tool": "send_email", "effect": "deny"}, False),
        ({"tool": "send_email"}, {"tool": "http_get", "effect": "allow"}, False),
        ({"tool": "send_email", "shadow": True}, {"tool": "send_email", "effect": "allow"}, False),
    ],
)
def test_a_rule_of_ones_own_project_loosens_none_of_all(made, limited, api, wide, narrow, refused):
    CapabilityRule.objects.all().delete()
    if wide.pop("capability", False):
        wide["capability"] = Capability.objects.create(organization=made.organization, name="send_email")
    wide = {"effect": "require_approval", **wide}
    CapabilityRule.objects.create(organization=made.organization, name="Of all", **wide)
    narrow = {"effect": "require_approval", **narrow}
    answer = api.post("policy/rules/", {**narrow, "project": made.project.slug, "name": "Ours"})
    page = client_of(limited).post(
        url("policy_capabilityrule_add"), rule_form(made, project=made.project.pk, name="Theirs", **narrow)
    )

    assert answer.status_code == (403 if refused else 201)
    assert ("asks for more" in page.content.decode()) == refused
    assert CapabilityRule.objects.filter(project=made.project).count() == (0 if refused else 2)


def test_a_webhook_of_the_whole_organization_is_not_added(made, limited):
    fields = {"organization": made.organization.pk, "url": "https://a.example.org/", "events": ["run.failed"]}
    page = client_of(limited).post(url("runs_webhookendpoint_add"), fields)

    assert "required" in page.content.decode()
    assert WebhookEndpoint.objects.count() == 1


def test_no_project_is_added_or_removed(made, limited):
    browser = client_of(limited)

    assert browser.get(url("groups_project_add")).status_code == 403
    assert browser.post(url("groups_project_delete", made.project.pk), {"post": "yes"}).status_code == 403


def of_api(made):
    """What the API would arrange of the whole organization: (method, address, body)."""
    whole = {"url": "https://a.example.org/", "events": ["run.failed"]}
    return [
        ("post", "projects/", {"slug": "north", "name": "North"}),
        ("post", "roles/", {"name": "Scout"}),
        ("patch", f"roles/{made.role.pk}/", {"denied_tools": []}),
        ("delete", f"roles/{made.role.pk}/", None),
        ("post", "policy/capabilities/", {"name": "refund"}),
        ("patch", f"policy/capabilities/{made.capability.pk}/", {"description": "x"}),
        ("delete", f"policy/capabilities/{made.capability.pk}/", None),
        ("post", "policy/bindings/", {"pattern": "pay_*", "capability": "payment"}),
        ("patch", f"policy/bindings/{made.binding.pk}/", {"pattern": "pay_*"}),
        ("delete", f"policy/bindings/{made.binding.pk}/", None),
        ("post", "policy/rules/", {"tool": "send_email", "effect": "allow"}),
        ("patch", f"policy/rules/{made.rule.pk}/", {"active": False}),
        ("patch", f"policy/rules/{made.rule.pk}/", {"project": made.project.slug}),
        ("delete", f"policy/rules/{made.rule.pk}/", None),
        ("post", "webhooks/", whole),
        ("get", "audit/changes/", None),
    ]


def test_the_api_refuses_all_of_it(made, api):
    before = everything()
    for method, path, body in of_api(made):
        send = getattr(api.client, method)
        raw = {} if body is None else {"data": json.dumps(body), "content_type": "application/json"}
        answer = send(f"/api/{path}", headers=api.headers, **raw)
        assert problem(answer) == (403, "NOT_ENTITLED"), (method, path, answer.content)
    assert everything() == before


def test_knowledge_of_the_whole_organization_is_curated_by_members_of_all_of_it(made, limited, api):
    known = DepositedKnowledge.objects.filter(organization=made.organization).first()
    DepositedKnowledge.objects.exclude(pk=known.pk).delete()
    assert problem(api.post(f"memories/{known.pk}/promote/")) == (403, "NOT_ENTITLED")
    chosen = {"action": "promote", "_selected_action": [known.pk]}
    client_of(limited).post(url("memory_depositedknowledge_changelist"), chosen)
    DepositedKnowledge.objects.filter(pk=known.pk).update(project=None, group=None)
    assert problem(api.post(f"memories/{known.pk}/retract/")) == (403, "NOT_ENTITLED")
    client_of(limited).post(url("memory_depositedknowledge_changelist"), {**chosen, "action": "retract"})

    assert list(DepositedKnowledge.objects.values_list("pk", "status")) == [(known.pk, "active")]


def test_whoever_sees_all_projects_arranges_it(made):
    api = Api(permit_all(person(made, "manager", is_staff=True)), made.organization)

    assert api.post("roles/", {"name": "Scout"}).status_code == 201
    assert api.client.get("/api/audit/changes/", headers=api.headers).status_code == 200


# what is in use stays


@pytest.fixture
def manager(made):
    return permit_all(person(made, "manager", is_staff=True))


def test_a_capability_that_a_rule_or_binding_names_is_not_removed(made, manager):
    api, browser = Api(manager, made.organization), client_of(manager)
    page = url("policy_capability_delete", made.capability.pk)
    for needed in (made.binding, CapabilityRule(organization=made.organization, effect="deny")):
        if needed is not made.binding:
            needed.capability = made.capability
            needed.save()
            made.binding.delete()
        answer = api.client.delete(f"/api/policy/capabilities/{made.capability.pk}/", headers=api.headers)
        assert problem(answer) == (409, "IN_USE")
        assert str(needed) in answer.json()["detail"]
        assert "would require deleting the following protected" in browser.get(page).content.decode()
        browser.post(page, {"post": "yes"})
        chosen = {"action": "delete_selected", "_selected_action": [made.capability.pk], "post": "yes"}
        browser.post(url("policy_capability_changelist"), chosen)
        assert Capability.objects.filter(pk=made.capability.pk).exists()
    needed.delete()
    browser.post(page, {"post": "yes"})
    assert not Capability.objects.filter(pk=made.capability.pk).exists()


def test_a_rule_about_a_capability_that_is_removed_meanwhile_collides(made, manager, monkeypatch):
    api, here = Api(manager, made.organization), Capability.objects.filter(organization=made.organization)
    CapabilityRule.objects.all().delete()
    ToolBinding.objects.all().delete()
    monkeypatch.setattr(CapabilityRule, "full_clean", lambda rule: here._raw_delete("default"))
    answer = api.post("policy/rules/", {"capability": made.capability.name, "effect": "deny"})
    assert problem(answer) == (409, "CONFLICT")
    assert here.exists()


def test_a_capability_keeps_its_name(made, manager):
    api = Api(manager, made.organization)
    path = f"/api/policy/capabilities/{made.capability.pk}/"
    body = {"data": json.dumps({"name": "payments"}), "content_type": "application/json"}

    answer = api.client.patch(path, headers=api.headers, **body)
    assert problem(answer) == (422, "INVALID")
    fields = {"organization": made.organization.pk, "name": "payments", "description": ""}
    page = client_of(manager).post(url("policy_capability_change", made.capability.pk), fields)
    assert page.status_code == 302  # the page does not offer it
    assert Capability.objects.get(pk=made.capability.pk).name == "payment"
    CapabilityRule.objects.all().delete()  # nor once no rule is about it: one may be on its way
    answer = api.client.patch(path, headers=api.headers, **body)
    assert problem(answer) == (422, "INVALID")


def test_a_role_that_seats_agents_or_rules_name_is_not_removed(made, manager):
    api, browser = Api(manager, made.organization), client_of(manager)
    lone = Role.objects.create(organization=made.organization, name="Lone")
    CapabilityRule.objects.create(organization=made.organization, role=lone, tool="send_email", effect="deny")
    for role in (made.role, lone):
        answer = api.client.delete(f"/api/roles/{role.pk}/", headers=api.headers)
        assert problem(answer) == (409, "IN_USE")
        browser.post(url("groups_role_delete", role.pk), {"post": "yes"})
        chosen = {"action": "delete_selected", "_selected_action": [role.pk], "post": "yes"}
        browser.post(url("groups_role_changelist"), chosen)
        assert Role.objects.filter(pk=role.pk).exists()


def test_a_group_that_a_rule_names_is_not_removed_and_made_anew_without_it(made, manager):
    rule = CapabilityRule.objects.create(
        organization=made.organization, group=made.group, tool="send_email", effect="deny"
    )
    api = Api(manager, made.organization)

    assert problem(api.client.delete(f"/api/groups/{made.group.pk}/", headers=api.headers)) == (409, "IN_USE")
    client_of(manager).post(url("groups_group_delete", made.group.pk), {"post": "yes"})
    assert CapabilityRule.objects.filter(pk=rule.pk, group=made.group).exists()
