"""The record of changes: what it was, what it is, who changed it, and by which door."""

import json
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event

import pytest
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db import connections, transaction
from django.urls import reverse
from django.utils import timezone

from groups import changes, member_permissions
from groups.models import AgentInstance, Change, CustomRole, Door, Membership, Role, Token
from policy.models import CapabilityRule, Grant
from runs.actions import mcp
from tests.admin_world import client_of, person, superuser, tenant, url
from tests.factories import permit_all
from tests.integration.api_client import Api, problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def manager(made):
    user = permit_all(person(made, "manager", is_staff=True))
    Change.objects.all().delete()
    return user


@pytest.fixture
def api(manager, made):
    found = Api(manager, made.organization)
    Change.objects.all().delete()
    return found


def patched(api, path, body):
    raw = {"data": json.dumps(body), "content_type": "application/json"}
    return api.client.patch(f"/api/{path}", headers=api.headers, **raw)


def test_a_change_over_the_api_names_the_token_and_both_values(made, api, manager):
    patched(api, f"policy/rules/{made.rule.pk}/", {"effect": "allow", "active": False})

    (change,) = Change.objects.all()
    assert (change.before, change.after) == (
        {"effect": "require_approval", "active": True},
        {"effect": "allow", "active": False},
    )
    assert (change.user, change.by, change.via, change.token) == (manager, "manager", "api", api.token.pk)
    assert (change.model, change.object_id, change.action) == (
        "policy.capabilityrule",
        made.rule.pk,
        "changed",
    )
    assert change.organization == made.organization


def test_a_change_on_deputys_pages_names_its_door(made, manager):
    fields = {"organization": made.organization.pk, "name": "payment", "description": "Moves money"}
    client_of(manager).post(url("policy_capability_change", made.capability.pk), fields)

    (change,) = Change.objects.all()
    assert (change.by, change.via, change.token) == ("manager", "admin", "")
    assert change.after == {"description": "Moves money"}
    assert change.before == {"description": "Compare prices"}


def test_a_change_on_a_persons_own_pages_names_that_door(made, manager):
    browser = client_of(manager)
    browser.post(reverse("web:issue"), {"name": "mine", "scopes": ["runs:read"], "days": "9"})
    token = Token.objects.get(name="mine")
    browser.post(reverse("web:revoke", args=[token.pk]))

    found = Change.objects.filter(model="groups.token", object_id=token.pk).order_by("id")
    assert [(one.by, one.via, one.action) for one in found] == [
        ("manager", "page", "added"), ("manager", "page", "changed"),
    ]  # fmt: skip
    assert list(found[1].after) == ["revoked_at"]


def test_what_a_person_prefers_is_in_no_record(made, manager):
    agent = AgentInstance.objects.get(pk=made.run.agent_instance_id)
    agent.preferences = {"food": "allergic to walnuts"}
    agent.save()
    client_of(made.user).post(reverse("web:forget_all"), {"sure": "yes"})

    found = Change.objects.filter(model="groups.agentinstance")
    assert [one.via for one in found.order_by("id")] == ["system", "page"]
    assert "walnuts" not in str([(one.before, one.after) for one in found])


def test_what_is_removed_is_kept_whole_also_in_bulk(made, manager):
    fields = {"organization": made.organization, "tool": "x", "effect": "deny"}
    others = [CapabilityRule.objects.create(**fields) for _ in "ab"]
    Change.objects.all().delete()
    chosen = {"action": "delete_selected", "_selected_action": [rule.pk for rule in others], "post": "yes"}
    client_of(manager).post(url("policy_capabilityrule_changelist"), chosen)

    found = Change.objects.filter(action="removed", model="policy.capabilityrule")
    assert {change.object_id for change in found} == {rule.pk for rule in others}
    assert all(change.before["effect"] == "deny" and change.by == "manager" for change in found)


def test_a_role_a_boundary_and_a_token_leave_their_marks(made, manager):
    browser = client_of(manager)
    fields = {
        "organization": made.organization.pk, "kind": "human", "role": "decider", "active": "on",
        "projects_open": "on", "allowed_tools_list": "send_email", "denied_tools": "",
    }  # fmt: skip
    browser.post(url("groups_membership_change", made.member.pk), fields)
    browser.post(url("groups_token_changelist"), {"action": "revoke", "_selected_action": [made.token.pk]})

    role, token = Change.objects.order_by("id")
    assert role.before == {"role": "member", "allowed_tools": None}
    assert role.after == {"role": "decider", "allowed_tools": ["send_email"]}
    assert (token.model, list(token.after)) == ("groups.token", ["revoked_at"])


def test_a_revoked_grant_and_accepted_tools_are_recorded(made, api, manager):
    Grant.objects.filter(pk=made.grant.pk).update(granted_by=manager)
    api.post(f"policy/grants/{made.grant.pk}/revoke/")
    with changes.acting(manager, Door.ADMIN):
        mcp.accept([made.tool], manager)

    grant, tool = Change.objects.order_by("id")
    assert (grant.model, list(grant.after)) == ("policy.grant", ["revoked_at"])
    assert (tool.model, tool.after["state"], tool.before["state"]) == ("runs.mcptool", "accepted", "new")


def test_no_secret_is_in_the_record(made):
    Change.objects.all().delete()
    _, secret = Token.objects.issue(made.organization, made.user, scopes=["runs:read"])
    made.server.keep_headers({"Authorization": "Bearer hush-hush"})
    made.server.save()
    made.user.set_password("correct horse battery")
    made.user.save()

    told = json.dumps(list(Change.objects.values("before", "after")))
    assert len(Change.objects.all()) == 3
    token = Token.objects.latest("id")
    for word in (secret, token.secret_hash, made.server.sealed_headers, made.user.password):
        assert word not in told
    password = Change.objects.get(model="auth.user")
    assert password.after == {"password": "(another secret)"}


def test_looking_signing_in_and_the_use_of_a_token_change_nothing(made, manager, api):
    Change.objects.all().delete()
    api.get("runs/")
    client_of(manager).get(url("index"))

    assert not Change.objects.exists()


def test_what_deputy_itself_changes_is_nobodys(made):
    Role.objects.create(organization=made.organization, name="Later")

    change = Change.objects.latest("id")
    assert (change.user, change.by, change.via) == (None, "", "system")


def test_an_account_is_recorded_where_its_user_belongs(made):
    word = "correct horse battery"
    fields = {"password1": word, "password2": word, "usable_password": "true"}
    client_of(superuser()).post(url("auth_user_password_change", made.user.pk), fields)
    change = Change.objects.get(model="auth.user", object_id=made.user.pk, action="changed")

    assert (change.organization, change.by) == (made.organization, "root")


def test_the_record_is_read_by_administrators_of_the_whole_organization(made, api, manager):
    other = tenant("Elsewhere", "elsewhere")
    patched(api, f"policy/rules/{made.rule.pk}/", {"active": False})

    (told,) = [change for change in api.get("audit/changes/", model="policy.capabilityrule").json()["results"]
               if change["action"] == "changed"]  # fmt: skip
    assert (told["before"], told["after"], told["via"]) == ({"active": True}, {"active": False}, "api")
    assert api.get(f"audit/changes/{told['id']}/").json() == told
    foreign = Change.objects.filter(organization=other.organization).first()
    assert problem(api.get(f"audit/changes/{foreign.pk}/")) == (404, "NOT_FOUND")
    viewer = Api(other.user, other.organization)
    assert problem(viewer.get("audit/changes/")) == (403, "NOT_ENTITLED")

    browser = client_of(manager)
    page = browser.get(url("groups_change_change", told["id"])).content.decode()
    assert "&quot;active&quot;: true" in page and "&quot;active&quot;: false" in page
    assert browser.get(url("groups_change_change", foreign.pk)).status_code == 404
    assert browser.post(url("groups_change_delete", told["id"]), {"post": "yes"}).status_code == 403
    Membership.objects.filter(user=manager).update(projects=[made.project.pk])
    assert browser.get(url("groups_change_changelist")).status_code == 403


# Of somebody whose rights change while the request waits for its row


MEANWHILE = {
    "lowered": lambda user, token: Membership.objects.filter(user=user).update(role="viewer"),
    "custom role": lambda user, token: CustomRole.objects.update(permissions=[]),
    "some projects": lambda user, token: Membership.objects.filter(user=user).update(projects=[]),
    "inactive": lambda user, token: get_user_model().objects.filter(pk=user.pk).update(is_active=False),
    "removed": lambda user, token: Membership.objects.filter(user=user).delete(),
    "token revoked": lambda user, token: Token.objects.filter(pk=token).update(revoked_at=timezone.now()),
    "token narrowed": lambda user, token: Token.objects.filter(pk=token).update(scopes=["runs:read"]),
    "": lambda user, token: None,
}


@pytest.fixture
def meanwhile(monkeypatch, manager, made):
    """What happens when the rule's row is locked and looked at, before it is saved."""

    def arrange(how, token=""):
        if how == "custom role":
            every = sorted(member_permissions.every())
            own = CustomRole.objects.create(organization=made.organization, name="all", permissions=every)
            Membership.objects.filter(user=manager).update(custom_role=own)
        usual = CapabilityRule.clean

        def clean(self):
            usual(self)
            MEANWHILE[how](manager, token)

        monkeypatch.setattr(CapabilityRule, "clean", clean)

    return arrange


@pytest.mark.parametrize("how", MEANWHILE)
def test_over_the_api_they_change_nothing_by_the_rights_of_before(made, api, manager, meanwhile, how):
    meanwhile(how, api.token.pk)
    answer = patched(api, f"policy/rules/{made.rule.pk}/", {"effect": "allow"})
    assert answer.status_code == (403 if how else 200), answer.content
    made.rule.refresh_from_db()
    assert made.rule.effect == ("require_approval" if how else "allow")
    if how:
        assert "rights have changed" in answer.json()["detail"]
    added = api.post("policy/rules/", {"tool": "http_get", "effect": "allow"})
    assert (added.status_code == 201) == (not how)


@pytest.mark.parametrize("how", [how for how in MEANWHILE if "token" not in how])
def test_nor_in_the_administration(made, manager, meanwhile, how):
    meanwhile(how)
    fields = {
        "organization": made.organization.pk, "capability": made.capability.pk, "effect": "allow",
        "on_expiry": "fail_call", "deciders_needed": "1", "active": "on", "name": "n",
    }  # fmt: skip
    answer = client_of(manager).post(url("policy_capabilityrule_change", made.rule.pk), fields)
    assert answer.status_code == (403 if how else 302), answer.content
    made.rule.refresh_from_db()
    assert made.rule.effect == ("require_approval" if how else "allow")


@pytest.mark.django_db(transaction=True)
def test_a_change_that_waits_for_another_of_the_same_person_goes_by_the_role_of_then(made):
    every = sorted(member_permissions.every())
    own = CustomRole.objects.create(organization=made.organization, name="all", permissions=every)
    user = person(made, "px")
    Membership.objects.filter(user=user).update(custom_role=own)
    api = Api(user, made.organization)

    def change():
        try:
            return patched(api, f"policy/rules/{made.rule.pk}/", {"effect": "allow"}).status_code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            Membership.objects.select_for_update(no_key=True).get(user=user)
            changed = pool.submit(change)
            wait([changed], timeout=1)
            CustomRole.objects.filter(pk=own.pk).update(permissions=["policy.view_capabilityrule"])
        assert changed.result() == 403
    made.rule.refresh_from_db()
    assert made.rule.effect == "require_approval"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("by", ["the api", "another door"])
@pytest.mark.parametrize("removed", ["before", "after"])
def test_a_token_issued_beside_the_removal_of_its_membership_is_revoked_or_not_made(made, removed, by):
    """Removal and issue take the same row: one of them waits for the other."""
    user = permit_all(person(made, "px"))
    api, held, go_on = Api(user, made.organization), Event(), Event()
    member = Membership.objects.get(user=user)

    def issue():
        try:
            if by != "the api":
                with transaction.atomic():
                    Token.objects.issue(made.organization, user, "late")
                return 201
            return api.post("tokens/", {"name": "late", "scopes": ["runs:read"]}).status_code
        except PermissionDenied:
            return 403
        finally:
            connections.close_all()

    def remove():
        try:
            with transaction.atomic():
                member.delete()
                held.set()
                assert go_on.wait(10)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        if removed == "before":
            gone = pool.submit(remove)
            assert held.wait(10)
            made_token = pool.submit(issue)
            wait([made_token], timeout=0.5)
            go_on.set()
            gone.result()
            assert made_token.result() in (401, 403)  # 401 where the machine is so busy that it came later
        else:
            go_on.set()
            assert pool.submit(issue).result() == 201
            pool.submit(remove).result()
    assert not Token.objects.filter(user=user, revoked_at=None).exists()
