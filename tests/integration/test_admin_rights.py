"""Who may open what in the admin, and what of other organizations anybody sees (nothing)."""

import json

import pytest
from django.urls import reverse

from groups.models import Membership, RoutingExample
from policy.models import CapabilityRule
from runs.models import Approval, Run
from tests.admin_world import APPROVER, client_of, objects_of, person, registered, superuser, tenant, url
from tests.factories import ProjectFactory, RoleFactory, permit_all

pytestmark = pytest.mark.django_db

HISTORY = {
    f"runs_{name}"
    for name in (
        "run",
        "runevent",
        "toolcall",
        "wait",
        "approval",
        "approvaldecision",
        "approvalnotice",
        "idempotencyrecord",
        "webhookdelivery",
        "schedule",
        "scheduledrun",
    )
}
UNADDABLE = {*HISTORY, "groups_change", "groups_proposedchange", "policy_grantuse", "policy_policyversion"}
APPROVER_SEES = {"runs_run", "runs_approval"}
POSTED = ("runs_run_say", "runs_run_resolve", "groups_group_learn")


@pytest.fixture
def other():
    return tenant("Another tenant's words", "other")


@pytest.fixture
def manager(made):
    """A member of the organization with every permission there is, who is no superuser."""
    user = person(made, "manager", is_staff=True)
    return permit_all(user)


def pages(made):
    """Every page of the admin about this organization: (url name, method, address)."""
    found = [("index", "get", url("index"))]
    for stem, thing in objects_of(made).items():
        found += [
            (f"{stem}_changelist", "get", url(f"{stem}_changelist")),
            (f"{stem}_add", "get", url(f"{stem}_add")),
            (f"{stem}_change", "get", url(f"{stem}_change", thing.pk)),
            (f"{stem}_delete", "get", url(f"{stem}_delete", thing.pk)),
            (f"{stem}_history", "get", url(f"{stem}_history", thing.pk)),
        ]
    found += [
        ("runs_run_ask", "get", url("runs_run_ask")),
        ("runs_run_live", "get", url("runs_run_live", made.run.pk)),
        ("runs_run_cancel", "get", url("runs_run_cancel", made.run.pk)),
        ("runs_run_cancel", "post", url("runs_run_cancel", made.run.pk)),
        ("runs_run_say", "post", url("runs_run_say", made.run.pk)),
        ("runs_run_resolve", "post", url("runs_run_resolve", made.run.pk)),
        ("runs_approval_change", "post", url("runs_approval_change", made.approval.pk)),
        ("runs_what_if", "get", url("runs_what_if")),
        ("runs_decisions", "get", url("runs_decisions")),
        ("runs_decisions_export", "get", url("runs_decisions_export")),
        ("groups_group_where", "get", url("groups_group_where")),
        ("groups_group_learn", "post", url("groups_group_learn")),
        ("runs_queuemessage_changelist", "get", url("runs_queuemessage_changelist")),
        ("runs_workergroup_changelist", "get", url("runs_workergroup_changelist")),
        ("auth_user_changelist", "get", url("auth_user_changelist")),
        ("auth_user_add", "get", url("auth_user_add")),
        ("auth_user_change", "get", url("auth_user_change", made.user.pk)),
    ]
    return found


def opened(made, user):
    """The status of every page for this user, before anything is changed by it."""
    client = client_of(user)
    found = {}
    for name, method, address in pages(made):
        data = {"group": made.group.pk} if method == "post" else None
        found[f"{method} {name}"] = getattr(client, method)(address, data).status_code
    return found


@pytest.mark.parametrize("who", ["anonymous", "member"])
def test_who_is_not_staff_is_asked_to_sign_in_everywhere(who, made):
    user = None if who == "anonymous" else made.user
    client = client_of(user)

    for _, method, address in pages(made):
        answer = getattr(client, method)(address)
        assert answer.status_code == 302, address
        assert answer["Location"].startswith(reverse("admin:login")), address


def test_staff_without_permissions_see_an_overview_of_nothing(made):
    found = opened(made, person(made, "clerk", is_staff=True))

    assert found.pop("get index") == 200
    assert set(found.values()) == {403}


def test_an_approver_looks_at_runs_and_decides_approvals_and_nothing_else(made):
    found = opened(made, person(made, "approver", *APPROVER, is_staff=True))

    allowed = {name for name, status in found.items() if status != 403}
    assert allowed == {
        "get index",
        "get runs_run_changelist",
        "get runs_run_change",
        "get runs_run_history",
        "get runs_run_live",
        "get runs_approval_changelist",
        "get runs_approval_change",
        "get runs_approval_history",
        "post runs_approval_change",
    }
    assert Run.objects.get(pk=made.run.pk).status == "waiting"


def test_a_superuser_opens_everything_but_may_not_rewrite_history(made):
    found = opened(made, superuser(made))

    refused = {name for name, status in found.items() if status == 403}
    expected = {f"get {stem}_{verb}" for stem in UNADDABLE for verb in ("add", "delete")}
    expected |= {"get policy_grant_delete", "get groups_token_delete"}  # revoked, never deleted
    expected.add("get runs_mcptool_add")  # their servers list them
    assert refused == expected
    assert {status for name, status in found.items() if name.startswith("get") and status != 403} == {200}


@pytest.mark.parametrize("stem", sorted(UNADDABLE))
def test_history_cannot_be_changed_by_a_post(stem, made):
    thing = objects_of(made)[stem]
    before = type(thing).objects.filter(pk=thing.pk).values().get()

    client_of(superuser(made)).post(url(f"{stem}_change", thing.pk), {"status": "failed", "goal": "x"})

    assert type(thing).objects.filter(pk=thing.pk).values().get() == before


def test_nothing_of_another_organization_is_there(made, other, manager):
    client = client_of(manager)

    undeletable = {*UNADDABLE, "groups_organization", "groups_token", "policy_grant"}
    for name, method, address in pages(other):
        stem, _, verb = name.rpartition("_")
        if verb == "delete" and stem in undeletable:
            assert client.get(address).status_code == 403, address  # whatever the id is
        elif verb in ("change", "delete", "history", "live", "cancel", "say", "resolve") and (
            not name.startswith("auth_")
        ):
            assert getattr(client, method)(address).status_code == 404, (method, address)
        elif name.endswith("_changelist") or name == "index":
            assert "Another tenant" not in client.get(address).content.decode(), address
    assert client.post(url("groups_group_learn"), {"group": other.group.pk, "goal": "x"}).status_code == 404
    assert client.get(url("groups_group_where", project=other.project.pk, goal="x")).status_code == 404
    assert client.get(url("auth_user_change", other.user.pk)).status_code == 404
    assert Run.objects.get(pk=other.run.pk).status == "waiting"


def test_the_same_pages_of_ones_own_organization_are_there(made, manager):
    client = client_of(manager)

    for stem, thing in objects_of(made).items():
        assert client.get(url(f"{stem}_change", thing.pk)).status_code == 200, stem


def test_a_membership_that_ended_shows_nothing(made, manager):
    Membership.objects.filter(user=manager).update(active=False)

    assert client_of(manager).get(url("runs_run_change", made.run.pk)).status_code == 403


def test_a_membership_of_some_projects_shows_only_theirs(made, manager):
    room = ProjectFactory(organization=made.organization, name="Borealis")
    Membership.objects.filter(user=manager).update(projects=[room.pk])
    everywhere = CapabilityRule.objects.create(
        organization=made.organization, name="Everywhere", tool="web_fetch", effect="deny"
    )
    client = client_of(manager)

    for stem in ("runs_run", "runs_approval", "runs_toolcall", "runs_wait", "runs_runevent", "groups_group"):
        assert client.get(url(f"{stem}_change", objects_of(made)[stem].pk)).status_code == 404, stem
    assert client.get(url("policy_capabilityrule_change", everywhere.pk)).status_code == 200


@pytest.mark.parametrize(
    ("model", "field"),
    [("groups.group", "project"), ("policy.capabilityrule", "role"), ("policy.toolbinding", "capability")],
)
def test_the_choices_while_typing_are_ones_own(model, field, made, other, manager):
    app, name = model.split(".")
    query = {"app_label": app, "model_name": name, "field_name": field, "term": ""}

    found = client_of(manager).get(url("autocomplete", **query)).content.decode()

    assert json.loads(found)["results"]
    assert "Another tenant" not in found


def test_a_foreign_thing_is_refused_however_it_is_sent(made, other, manager):
    fields = {
        "organization": made.organization.pk,
        "project": other.project.pk,
        "name": "Mixed",
        "max_rounds": 3,
        "members-TOTAL_FORMS": 0,
        "members-INITIAL_FORMS": 0,
    }

    page = client_of(manager).post(url("groups_group_add"), fields)

    assert page.status_code == 200
    assert "not one of the available choices" in page.content.decode()


def test_two_organizations_of_ones_own_are_not_mixed_either(made, other):
    role = RoleFactory(organization=other.organization)
    fields = {
        "organization": made.organization.pk,
        "role": role.pk,
        "tool": "send_email",
        "effect": "deny",
        "on_expiry": "fail_call",
        "deciders_needed": 1,
        "active": "on",
    }

    page = client_of(superuser(made)).post(url("policy_capabilityrule_add"), fields)

    assert "belongs to another organization" in page.content.decode()


def test_a_manager_cannot_make_themselves_a_superuser(manager):
    client = client_of(manager)

    assert client.post(url("auth_user_change", manager.pk), {"is_superuser": "on"}).status_code == 403
    assert client.get(url("auth_user_password_change", manager.pk)).status_code == 403


def test_a_manager_issues_tokens_for_themselves_and_not_for_others(made, manager):
    root = superuser(made)
    fields = {"organization": made.organization.pk, "name": "ci", "user": root.pk, "scopes": ["runs:read"]}
    client = client_of(manager)

    refused = client.post(url("groups_token_add"), fields)
    issued = client.post(url("groups_token_add"), {**fields, "user": manager.pk}, follow=True)

    assert "not one of the available choices" in refused.content.decode()
    assert "The secret is dpt_" in issued.content.decode()
    assert "dpt_" in issued.content.decode()
    assert "The secret is" not in client.get(url("groups_token_changelist")).content.decode()


def test_bulk_actions_ask_for_their_permission(made):
    looker = person(made, "looker", "runs.view_approval", "groups.view_token", is_staff=True)
    client = client_of(looker)
    chosen = {
        "_selected_action": made.approval.pk,
        "action": "reject_selected",
        "confirmed": "yes",
        "reason": "x",
    }

    client.post(url("runs_approval_changelist"), chosen)
    client.post(url("groups_token_changelist"), {"_selected_action": made.token.pk, "action": "revoke"})

    assert Approval.objects.get(pk=made.approval.pk).status == "pending"
    made.token.refresh_from_db()
    assert made.token.revoked_at is None


def test_every_registered_model_is_in_the_matrix(made):
    assert set(objects_of(made)) == set(registered())
    assert RoutingExample.objects.count() >= 1
