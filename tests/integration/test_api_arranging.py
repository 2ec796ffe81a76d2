"""Arranging over the API what the admin arranges: groups, projects, rules, tokens and the like."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from groups.models import AgentInstance, Group, GroupMember, Role, RoutingExample, Token
from policy.models import Capability, CapabilityRule, Grant
from tests.factories import GroupFactory, MembershipFactory, ProjectFactory, RoleFactory
from tests.integration.api_client import Api, permit, problem
from tests.integration.test_api_tenancy import PERMISSIONS
from tests.scripted import call, in_order, say

pytestmark = pytest.mark.django_db

MAIL = {"to": ["a@example.org"], "subject": "x", "body": "x"}


@pytest.fixture
def api(world):
    return Api(permit(world.user, "decide_approval", *PERMISSIONS), world.organization)


@pytest.fixture
def plain(world):
    """Another member, with no permission."""
    member = MembershipFactory(organization=world.organization)
    return Api(member.user, world.organization)


def bodies(world):
    """What can be added, by address, with a body that works."""
    group, role = world.group.pk, Role.objects.get(name="lead").pk
    Capability.objects.get_or_create(organization=world.organization, name="payment")
    grant = {"project": "atlas", "tool": "send_email", "arguments": {"to": ["a@example.org"]}, "max_uses": 2}
    return {
        "projects/": {"slug": "north", "name": "North", "review_deposits": True},
        "roles/": {"name": "Scout", "allowed_tools": [], "delegable_tools": None},
        "groups/": {"project": world.project.slug, "name": "Prices", "capabilities": ["prices"]},
        "groups/members/": {"group": group, "role": role},
        "groups/examples/": {"group": group, "goal": "Who is cheaper?", "fits": False},
        "policy/capabilities/": {"name": "refund"},
        "policy/bindings/": {"pattern": "pay_*", "capability": "payment"},
        "policy/rules/": {"tool": "send_email", "effect": "deny", "shadow": True},
        "policy/grants/": grant | {"project": world.project.pk},
        "tokens/": {"name": "ci", "scopes": ["runs:read"]},
    }


ADDABLE = [
    *("projects/", "roles/", "groups/", "groups/members/", "groups/examples/", "tokens/"),
    *("policy/capabilities/", "policy/bindings/", "policy/rules/", "policy/grants/"),
]


@pytest.mark.parametrize("path", ADDABLE)
def test_what_is_added_is_there_noted_and_added_once(api, world, path):
    body = bodies(world)[path]
    made = api.post(path, body, Idempotency_Key="k")
    again = api.post(path, body, Idempotency_Key="k")

    assert made.status_code == 201, made.content
    shown = api.client.get(made.headers["Location"], headers=api.headers).json()
    told = {name: value for name, value in made.json().items() if name != "secret"}
    assert shown == told == again.json()
    given = {name: value for name, value in body.items() if name not in ("project", "role")}
    assert {name: shown[name] for name in given} == given
    assert LogEntry.objects.get().object_id == shown["id"]


@pytest.mark.parametrize("path", ADDABLE)
def test_nobody_adds_without_the_permission(plain, world, path):
    assert problem(plain.post(path, bodies(world)[path])) == (403, "NOT_ENTITLED")


@pytest.mark.parametrize("path", ADDABLE)
def test_a_field_that_is_not_known_is_refused(api, world, path):
    assert problem(api.post(path, bodies(world)[path] | {"organization": "x"})) == (422, "INVALID")


def patch(api, path, body):
    return api.client.patch(f"/api/{path}", body, content_type="application/json", headers=api.headers)


def remove(api, path):
    return api.client.delete(f"/api/{path}", headers=api.headers)


def pointers(response):
    assert response.status_code == 422, response.content
    return [error["pointer"] for error in response.json()["errors"]]


def test_things_are_changed_field_by_field(api, world):
    lead = Role.objects.get(name="lead")
    changed = patch(api, f"roles/{lead.pk}/", {"allowed_tools": ["ask_user"]})

    assert (changed.json()["allowed_tools"], changed.json()["name"]) == (["ask_user"], "lead")
    assert patch(api, f"groups/{world.group.pk}/", {"active": False}).json()["active"] is False
    assert LogEntry.objects.filter(object_id=lead.pk).get().get_change_message() == "Changed allowed_tools."


def test_who_may_only_look_changes_and_removes_nothing(plain, world):
    path = f"groups/{world.group.pk}/"

    assert problem(patch(plain, path, {"active": False})) == (403, "NOT_ENTITLED")
    assert problem(remove(plain, path)) == (403, "NOT_ENTITLED")
    assert Group.objects.get().active


def test_what_is_removed_is_gone_and_what_is_needed_stays(api, world):
    role = RoleFactory(organization=world.organization)

    assert remove(api, f"roles/{role.pk}/").status_code == 204
    assert problem(api.get(f"roles/{role.pk}/")) == (404, "NOT_FOUND")
    used = Role.objects.get(name="lead")
    assert problem(remove(api, f"roles/{used.pk}/")) == (409, "IN_USE")
    assert not LogEntry.objects.filter(object_id=used.pk).exists()


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("projects/", {"slug": "no blank", "name": "x"}, "/slug"),
        ("roles/", {"name": "lead"}, ""),
        ("groups/members/", {"role": "rol_none"}, "/role"),
        ("groups/members/", {"is_lead": True}, ""),
        ("policy/rules/", {"tool": "", "effect": "deny"}, "/tool"),
        ("policy/rules/", {"condition": "size("}, "/condition"),
        ("policy/rules/", {"tool": "", "capability": "none"}, "/capability"),
        ("policy/grants/", {"any_arguments": True}, "/arguments"),
        ("policy/grants/", {"max_uses": None}, "/expires_at"),
        ("policy/bindings/", {"pattern": "no blank"}, "/pattern"),
        ("tokens/", {"scopes": ["everything"]}, "/scopes/0"),
        ("tokens/", {"expires_at": "2020-01-01T00:00:00Z"}, "/expires_at"),
    ],
)
def test_what_the_admin_would_refuse_is_refused_with_its_place(api, world, path, body, pointer):
    assert pointer in pointers(api.post(path, bodies(world)[path] | body))


def test_a_new_seat_comes_after_the_others_with_an_agent_of_its_own(api, world):
    role = RoleFactory(organization=world.organization, name="scout")
    body = {"group": world.group.pk, "role": role.pk}
    first, second = api.post("groups/members/", body).json(), api.post("groups/members/", body).json()

    assert [first["ordinal"], second["ordinal"]] == [3, 4]
    assert AgentInstance.objects.filter(pk__in=[first["agent"], second["agent"]], role=role).count() == 2
    listed = api.get("groups/members/", group=world.group.pk).json()["results"]
    assert [seat["name"] for seat in listed] == ["researcher", "analyst", "lead", "scout", "scout"]


def test_things_of_elsewhere_cannot_be_tied_in(api, world):
    group, role = GroupFactory(), RoleFactory()
    here = bodies(world)["groups/members/"]

    assert pointers(api.post("groups/members/", here | {"group": group.pk})) == ["/group"]
    assert pointers(api.post("groups/members/", here | {"role": role.pk})) == ["/role"]
    rule = {"tool": "send_email", "effect": "deny"}
    assert pointers(api.post("policy/rules/", rule | {"group": group.pk})) == ["/group"]
    assert problem(api.post("policy/rules/", rule | {"project": group.project_id})) == (
        404,
        "PROJECT_NOT_FOUND",
    )
    assert (GroupMember.objects.filter(role=role).exists(), CapabilityRule.objects.exists()) == (False, False)


def test_who_sees_some_projects_arranges_nothing_of_all(world):
    member = MembershipFactory(organization=world.organization, projects=[world.project.pk])
    api = Api(permit(member.user, *PERMISSIONS), world.organization)
    rule = {"tool": "send_email", "effect": "deny"}
    of_all = CapabilityRule.objects.create(organization=world.organization, **rule)

    assert problem(api.post("policy/rules/", rule)) == (403, "NOT_ENTITLED")
    assert problem(api.post("projects/", {"slug": "x", "name": "X"})) == (403, "NOT_ENTITLED")
    assert problem(patch(api, f"policy/rules/{of_all.pk}/", {"active": False})) == (403, "NOT_ENTITLED")
    assert problem(remove(api, f"policy/rules/{of_all.pk}/")) == (403, "NOT_ENTITLED")
    mine = api.post("policy/rules/", rule | {"project": world.project.slug})
    assert mine.status_code == 201
    assert problem(patch(api, f"policy/rules/{mine.json()['id']}/", {"project": None})) == (
        403,
        "NOT_ENTITLED",
    )
    assert remove(api, f"policy/rules/{mine.json()['id']}/").status_code == 204


def test_a_rule_that_is_added_holds_at_the_next_question(api, world):
    question = {
        "subject": {"type": "user", "id": world.user.username},
        "action": {"name": "send_email", "properties": {"arguments": MAIL}},
        "resource": {"type": "project", "id": world.project.pk},
    }
    rule = api.post("policy/rules/", {"tool": "send_email", "effect": "deny", "shadow": True}).json()
    shadowed = api.post("policy/evaluate/", question).json()["context"]["shadowed"]
    patch(api, f"policy/rules/{rule['id']}/", {"shadow": False})

    assert [found["rule_id"] for found in shadowed] == [rule["id"]]
    assert api.post("policy/evaluate/", question).json()["context"]["effect"] == "deny"


def test_what_routing_is_taught_counts_at_once(api, world):
    other = GroupFactory(project=world.project, name="Legal", organization=world.organization)
    role = RoleFactory(organization=world.organization)
    api.post("groups/members/", {"group": other.pk, "role": role.pk})
    asked = {"project": world.project.pk, "goal": "whistling penguins"}
    api.post("groups/examples/", {"group": other.pk, "goal": "whistling penguins"})

    assert api.post("groups/route/", asked).json()["group"] == other.pk
    learnt = RoutingExample.objects.get()
    assert learnt.corrected_by == world.user
    assert remove(api, f"groups/examples/{learnt.pk}/").status_code == 204


def test_a_standing_approval_lets_a_call_pass_until_it_is_revoked(api, world, ask):
    api.post("policy/rules/", {"tool": "send_email", "effect": "require_approval"})
    grant = api.post("policy/grants/", bodies(world)["policy/grants/"]).json()
    play = (call(("send_email", MAIL)), say("Sent."))

    assert ask(in_order(*play)).status == "completed"
    revoked = api.post(f"policy/grants/{grant['id']}/revoke/").json()
    assert (revoked["uses"], revoked["revoked_at"] is not None) == (1, True)
    assert api.post(f"policy/grants/{grant['id']}/revoke/").json() == revoked
    assert ask(in_order(*play)).waiting_reason == "approval"


def test_only_who_decides_gives_and_revokes_standing_approvals(world):
    api = Api(permit(world.user, *PERMISSIONS), world.organization)
    body = bodies(world)["policy/grants/"]
    assert problem(api.post("policy/grants/", body)) == (403, "NOT_ENTITLED")

    Api(permit(world.user, "decide_approval"), world.organization).post("policy/grants/", body)
    other = MembershipFactory(organization=world.organization)
    refused = Api(permit(other.user, *PERMISSIONS), world.organization)
    assert problem(refused.post(f"policy/grants/{Grant.objects.get().pk}/revoke/")) == (403, "NOT_ENTITLED")


# Tokens


def test_a_token_is_issued_told_once_and_revoked(api):
    made = api.post("tokens/", {"name": "ci", "scopes": ["runs:read"]}, Idempotency_Key="k")
    again = api.post("tokens/", {"name": "ci", "scopes": ["runs:read"]}, Idempotency_Key="k")
    secret, token = made.json()["secret"], made.json()["id"]

    assert made.headers["Cache-Control"] == "no-store"
    assert "secret" not in again.json() and again.json()["id"] == token
    assert secret not in api.get("tokens/").content.decode()
    with_it = {"Authorization": f"Token {secret}"}
    assert api.client.get("/api/runs/", headers=with_it).status_code == 200
    assert api.client.get("/api/groups/", headers=with_it).status_code == 403
    assert api.post(f"tokens/{token}/revoke/").json()["revoked_at"]
    assert api.client.get("/api/runs/", headers=with_it).status_code == 401


def test_a_token_reaches_no_further_than_the_one_that_asked_for_it(world):
    end = timezone.now() + timedelta(days=1)
    asker = Api(permit(world.user, "add_token"), world.organization, scopes=["tokens:write"], expires_at=end)
    later = (end + timedelta(days=1)).isoformat()

    for further in ({"scopes": ["runs:write"]}, {"expires_at": later}):
        assert problem(asker.post("tokens/", further)) == (403, "REACHES_TOO_FAR")
    assert problem(asker.post("tokens/", {})) == (422, "INVALID")
    made = asker.post("tokens/", {"scopes": ["tokens:write"]}).json()
    issued = Token.objects.get(pk=made["id"])
    assert (issued.scopes, issued.expires_at) == (["tokens:write"], end)

    assert asker.post(f"tokens/{asker.token.pk}/revoke/").status_code == 200  # it ends with its own end
    own = {"headers": {"Authorization": f"Token {made['secret']}"}, "content_type": "application/json"}
    assert asker.client.post("/api/tokens/", {"scopes": ["tokens:write"]}, **own).status_code == 201


def test_tokens_are_ones_own(api, plain):
    assert [token["id"] for token in plain.get("tokens/").json()["results"]] == [plain.token.pk]
    assert problem(plain.post(f"tokens/{api.token.pk}/revoke/")) == (404, "NOT_FOUND")
    assert plain.post(f"tokens/{plain.token.pk}/revoke/").status_code == 200
    assert plain.get("tokens/").status_code == 401


def test_a_project_is_not_removed_over_the_api(api, world):
    assert problem(remove(api, f"projects/{world.project.pk}/")) == (405, "METHOD_NOT_ALLOWED")
    assert ProjectFactory._meta.model.objects.filter(pk=world.project.pk).exists()
