"""A member's role holds in their organization alone; nobody widens their own place or uses another's key."""

from types import SimpleNamespace

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group as PermissionGroup
from django.contrib.auth.models import Permission
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from groups import member_permissions
from groups.admin.lists import LinesField
from groups.current import CHOSEN, membership_of
from groups.models import AgentInstance, CustomRole, MemberRole, Membership, Role, Token
from groups.scopes import DEFAULT, SCOPES
from memory.models import DepositedKnowledge
from runs.actions.decide import DecisionRefused
from runs.admin.dashboard import decidable
from runs.models import Approval
from tests.acting import approve
from tests.admin_world import client_of, person, superuser, tenant, url
from tests.factories import MembershipFactory, ProjectFactory, UserFactory, permit, permit_all
from tests.integration.api_client import Api, problem

pytestmark = pytest.mark.django_db

DECIDES = "runs.decide_approval"


@pytest.fixture
def here():
    return tenant("Here", "here")


@pytest.fixture
def there():
    return tenant("There", "there")


@pytest.fixture
def both(here, there):
    """A decider here who is a plain member there."""
    user = UserFactory(username="both", is_staff=True)
    MembershipFactory(organization=here.organization, user=user, role="decider")
    MembershipFactory(organization=there.organization, user=user, role="member")
    return user


def standing_in(user, made):
    """A browser in which the user has chosen the organization."""
    client = client_of(user)
    answer = client.post(url("groups_organization_choose"), {"organization": made.organization.pk})
    assert answer.status_code == 302
    return client


def manager(made, name="manager", **fields):
    user = person(made, name, is_staff=True)
    Membership.objects.filter(user=user).update(**fields)
    return permit_all(user)


# roles


def test_each_standard_role_may_what_a_lesser_one_may():
    carried = member_permissions.standard()

    assert set(carried) == set(MemberRole.values)
    assert carried["viewer"] < carried["member"] < carried["decider"] < carried["administrator"]
    assert carried["member"] < carried["curator"] < carried["administrator"]
    assert [role for role in MemberRole.values if DECIDES in carried[role]] == ["decider", "administrator"]
    assert not carried["decider"] & {"groups.view_token", "runs.view_webhookendpoint"}


def test_every_permission_a_role_may_carry_is_one_of_djangos():
    there = {".".join(pair) for pair in Permission.objects.values_list("content_type__app_label", "codename")}

    assert member_permissions.every() <= there


def test_an_organizations_own_role_takes_the_place_of_the_standard_one(here):
    role = CustomRole.objects.create(
        organization=here.organization, name="Night shift", permissions=[DECIDES, "runs.gone_since"]
    )
    member = MembershipFactory(organization=here.organization, role="administrator", custom_role=role)

    assert member_permissions.of(member) == {DECIDES}
    assert list(Membership.objects.filter(member_permissions.holding(DECIDES))) == [member]
    member.active = False
    assert member_permissions.of(member) == set()


def test_what_django_itself_lets_somebody_counts_for_nothing(here):
    user = MembershipFactory(organization=here.organization, role="viewer").user
    user.user_permissions.set(Permission.objects.all())
    group = PermissionGroup.objects.create(name="Approvers")
    group.permissions.set(Permission.objects.all())
    user.groups.add(group)

    assert not user.has_perm(DECIDES)
    with pytest.raises(DecisionRefused):
        approve(here.approval.pk, user)


@pytest.mark.parametrize("name", ["decider", " Administrator "])
def test_an_own_role_is_not_called_like_a_standard_one(here, name):
    with pytest.raises(ValidationError, match="already"):
        CustomRole(organization=here.organization, name=name).full_clean()
    with pytest.raises(ValidationError, match="There is no permission"):
        CustomRole(organization=here.organization, name="x", permissions=["runs.decide"]).full_clean()


@pytest.mark.parametrize(
    "name", ["board,role:decider", "board; decider", "a=b", "a:b", "a\nb", "a\u2028b", "a\u00a0b", " a", "a "]
)
def test_an_own_role_has_no_name_that_a_list_would_take_for_several(here, name):
    with pytest.raises(ValidationError, match="A name is one line"):
        CustomRole(organization=here.organization, name=name).full_clean()
    CustomRole(organization=here.organization, name="The board's deciders (2nd)").full_clean()


def test_a_lists_form_leaves_its_names_as_they_are():
    """Whoever saves a rule for another reason would let others decide."""
    stored = ["role:board,role:decider", "role:board\u2028role:decider"]
    field = LinesField()
    shown = field.widget.format_value(stored)
    assert field.clean(shown.replace("\n", "\r\n")) == stored and not field.has_changed(stored, shown)


def test_a_role_that_members_have_stays(here):
    role = CustomRole.objects.create(organization=here.organization, name="Night shift")
    MembershipFactory(organization=here.organization, custom_role=role)

    with pytest.raises(ProtectedError):
        role.delete()


# one organization at a time


def test_a_decider_of_one_organization_decides_nothing_in_another(both, here, there):
    with pytest.raises(DecisionRefused):
        approve(there.approval.pk, both)
    api = Api(both, there.organization)
    assert problem(api.post(f"approvals/{there.approval.pk}/approve/")) == (404, "NOT_FOUND")
    assert api.get("approvals/").json()["results"] == []

    browser = standing_in(both, there)
    assert browser.get(url("runs_approval_change", here.approval.pk)).status_code == 404
    browser.post(url("runs_approval_change", there.approval.pk), {"decision": "approve"})

    assert set(Approval.objects.values_list("status", flat=True)) == {"pending"}
    assert approve(here.approval.pk, both).status == "approved"


def test_badges_counts_and_choices_follow_the_chosen_organization(both, here, there):
    runs = url("runs_run_changelist")
    query = {"app_label": "policy", "model_name": "grant", "field_name": "project", "term": ""}
    choices = url("autocomplete", **query)

    def seen(made):
        browser = standing_in(both, made)
        index = browser.get(url("index"))
        return {
            "waits": index.context["figures"][0]["count"],
            "runs": {run.organization for run in browser.get(runs).context["cl"].result_list},
            "choices": [each["text"] for each in browser.get(choices).json()["results"]],
        }

    assert seen(here) == {"waits": 1, "runs": {here.organization}, "choices": ["Here"]}
    assert seen(there) == {"waits": 0, "runs": {there.organization}, "choices": ["There"]}


def test_only_whoever_belongs_to_several_is_offered_the_choice(both, here, there):
    choose = url("groups_organization_choose")

    assert choose in client_of(both).get(url("index")).content.decode()
    assert choose not in client_of(manager(here)).get(url("index")).content.decode()


def test_nobody_chooses_where_they_do_not_belong(both, here, there):
    elsewhere = tenant("Elsewhere", "elsewhere")
    browser = client_of(both)
    choose = url("groups_organization_choose")

    assert browser.post(choose, {"organization": elsewhere.organization.pk}).status_code == 403
    browser.post(choose, {"organization": there.organization.pk})
    Membership.objects.filter(user=both, organization=there.organization).update(active=False)
    assert there.run.pk not in browser.get(url("runs_run_changelist")).content.decode()
    session = browser.session
    session[CHOSEN] = elsewhere.organization.pk
    session.save()
    assert elsewhere.run.pk not in browser.get(url("runs_run_changelist")).content.decode()


def test_who_has_chosen_nothing_acts_where_they_have_been_longest(here):
    """Whoever takes them into another organization, whatever it is called, does not move them there."""
    user = person(here, "longstanding", is_staff=True)
    permit_all(user)
    other = tenant("Aaa", "aaa")
    MembershipFactory(organization=other.organization, user=user, role="administrator")
    shown = client_of(user).get(url("runs_run_changelist")).context["cl"].result_list
    assert {run.organization for run in shown} == {here.organization}


def test_the_api_takes_the_choice_of_the_session_and_a_header_before_it(both, here, there):
    browser = client_of(both)
    assert problem(browser.get("/api/runs/")) == (400, "ORGANIZATION_MISSING")
    browser = standing_in(both, there)

    def runs(**headers):
        return {run["id"] for run in browser.get("/api/runs/", headers=headers).json()["results"]}

    assert there.run.pk in runs() and here.run.pk not in runs()
    assert here.run.pk in runs(**{"X-Organization": "here"})


def test_without_a_request_who_belongs_to_several_acts_in_none(both, here):
    assert membership_of(both) is None
    assert membership_of(here.user) == here.member


def test_knowledge_is_that_of_the_chosen_organization(both, here, there):
    def found(made):
        browser = standing_in(both, made)
        rows = browser.get(url("memory_depositedknowledge_changelist")).context["cl"].result_list
        return {row.organization_id for row in rows}

    assert DepositedKnowledge.objects.count() >= 2
    assert (found(here), found(there)) == ({here.organization.pk}, {there.organization.pk})


# superusers


def test_a_superuser_runs_the_installation_and_decides_only_as_a_member(here, rf):
    stranger, viewer = superuser(username="root"), superuser(here, "watcher")
    Membership.objects.filter(user=viewer).update(role="viewer", custom_role=None)

    for user in (stranger, viewer):
        request = SimpleNamespace(user=user, _deputy_sight=None)
        assert not decidable(request).exists()
        with pytest.raises(DecisionRefused):
            approve(here.approval.pk, user)
    assert client_of(stranger).get(url("runs_run_change", here.run.pk)).status_code == 200


def test_over_the_api_a_superuser_may_what_their_role_says(here):
    root = superuser(here)
    Membership.objects.filter(user=root).update(role="viewer", custom_role=None)
    body = {"tool": "send_email", "effect": "allow"}

    assert problem(Api(root, here.organization).post("policy/rules/", body)) == (403, "NOT_ENTITLED")
    Membership.objects.filter(user=root).update(role="administrator")
    assert Api(root, here.organization).post("policy/rules/", body).status_code == 201


# kinds


def test_a_membership_stays_a_persons_or_a_services(here):
    with pytest.raises(ValidationError, match="stays a person"):
        here.member.kind = "service"
        here.member.full_clean()
    with pytest.raises(IntegrityError), transaction.atomic():
        Membership.objects.filter(pk=here.member.pk).update(kind="service")
    for name, other in (("user", UserFactory()), ("organization", ProjectFactory().organization)):
        with pytest.raises(IntegrityError), transaction.atomic():
            Membership.objects.filter(pk=here.member.pk).update(**{name: other})


def test_the_admin_changes_no_kind(here):
    client_of(superuser()).post(
        url("groups_membership_change", here.member.pk), member_form(here, kind="service", role="viewer")
    )

    here.member.refresh_from_db()
    assert (here.member.kind, here.member.role) == ("human", "viewer")


def test_a_token_ends_with_its_membership_and_does_not_come_back_with_the_next(here):
    api = Api(here.user, here.organization)
    here.member.delete()
    MembershipFactory(organization=here.organization, user=here.user, kind="service")

    assert problem(api.get("runs/")) == (401, "BAD_TOKEN")


# one's own place


def member_form(made, **changes):
    fields = {
        "organization": made.organization.pk,
        "kind": "human",
        "role": "member",
        "active": "on",
        "projects_open": "on",
        "allowed_tools_open": "on",
        "denied_tools": "",
    }
    return {name: value for name, value in {**fields, **changes}.items() if value is not None}


@pytest.mark.parametrize("who", ["manager", "root"])
def test_nobody_changes_their_own_membership(here, who):
    user = manager(here) if who == "manager" else superuser(here)
    Membership.objects.filter(user=user).update(denied_tools=["send_email"])
    mine = Membership.objects.get(user=user)
    browser = client_of(user)

    assert browser.post(url("groups_membership_change", mine.pk), member_form(here)).status_code == 403
    assert browser.post(url("groups_membership_delete", mine.pk), {"post": "yes"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [mine.pk], "post": "yes"}
    browser.post(url("groups_membership_changelist"), chosen)
    assert Membership.objects.get(pk=mine.pk).denied_tools == ["send_email"]


def test_a_superuser_without_a_place_may_give_themselves_one_and_others_may_not(here):
    root = superuser()
    fields = member_form(here, user=root.pk, role="administrator")

    assert client_of(root).post(url("groups_membership_add"), fields).status_code == 302
    assert Membership.objects.get(user=root).role == "administrator"


def test_nobody_gives_a_role_that_carries_more_than_their_own(here):
    user = permit(
        person(here, "clerk", is_staff=True),
        *("groups.view_membership", "groups.add_membership", "groups.change_membership"),
        *("groups.delete_membership", "auth.view_user"),
        *member_permissions.standard()["member"],
    )
    new = UserFactory(username="new")
    MembershipFactory(user=new, organization=here.organization, role="viewer")
    theirs = Membership.objects.get(user=new)
    boss = MembershipFactory(organization=here.organization, role="administrator")
    browser = client_of(user)

    page = browser.post(url("groups_membership_change", theirs.pk), member_form(here, role="administrator"))
    assert "carries more than your own" in page.content.decode()
    assert browser.post(url("groups_membership_change", boss.pk), member_form(here)).status_code == 403
    assert browser.post(url("groups_membership_delete", boss.pk), {"post": "yes"}).status_code == 403
    assert browser.post(url("groups_membership_change", theirs.pk), member_form(here)).status_code == 302
    assert Membership.objects.get(pk=theirs.pk).role == "member"


def test_nobody_widens_the_role_they_hold(here):
    user = permit(
        person(here, "clerk", is_staff=True),
        *("groups.view_customrole", "groups.add_customrole", "groups.change_customrole"),
    )
    mine = Membership.objects.get(user=user).custom_role
    other = CustomRole.objects.create(organization=here.organization, name="Looks")
    fields = {"organization": here.organization.pk, "name": "Looks", "permissions": [DECIDES]}
    browser = client_of(user)

    assert browser.post(url("groups_customrole_change", mine.pk), fields).status_code == 403
    page = browser.post(url("groups_customrole_change", other.pk), fields).content.decode()
    assert "carries more than your own" in page
    page = browser.post(url("groups_customrole_add"), {**fields, "name": "Decides"}).content.decode()
    assert "carries more than your own" in page
    fields["permissions"] = ["groups.view_customrole"]
    assert browser.post(url("groups_customrole_change", other.pk), fields).status_code == 302


# tokens


def token_form(made, user, *scopes):
    return {"organization": made.organization.pk, "user": user.pk, "name": "x", "scopes": list(scopes)}


@pytest.mark.parametrize("who", ["manager", "root"])
def test_nobody_issues_a_token_for_another_person(here, who):
    user = manager(here) if who == "manager" else superuser(here)
    browser = client_of(user)

    page = browser.post(url("groups_token_add"), token_form(here, here.user, "runs:read"))
    assert "not one of the available choices" in page.content.decode()
    assert not Token.objects.filter(user=here.user).exclude(pk=here.token.pk).exists()
    change = {"name": "x", "scopes": list(SCOPES)}
    assert browser.post(url("groups_token_change", here.token.pk), change).status_code == 403


def test_a_service_account_gets_one_from_an_administrator(here, there):
    """Whoever holds it may do what the account comes to do: by another role, and by what others arrange."""
    robot = MembershipFactory(organization=here.organization, kind="service", role="decider").user
    MembershipFactory(organization=there.organization, user=robot)  # a person there
    most = member_permissions.every() - {"policy.change_capabilityrule"}
    clerk = permit(person(here, "clerk", is_staff=True), *most)
    page = client_of(clerk).post(url("groups_token_add"), token_form(here, robot, "runs:read"))
    assert "are for administrators" in page.content.decode()

    browser = client_of(manager(here))
    browser.post(url("groups_token_add"), token_form(here, robot, "runs:read"))
    assert Token.objects.get(user=robot).organization == here.organization
    page = client_of(superuser()).post(url("groups_token_add"), token_form(there, robot, "runs:read"))
    assert "issued for oneself" in page.content.decode()


def test_nor_from_whom_more_is_denied_to_than_to_it(here):
    """Neither gives the other what it lacks: what agents of a member may use, and what its role may do."""
    robot = MembershipFactory(organization=here.organization, kind="service", role="decider")
    browser, form = client_of(manager(here)), token_form(here, robot.user, "runs:read")
    for mine in ({"denied_tools": ["send_email"]}, {"denied_tools": [], "allowed_tools": ["memory_search"]}):
        Membership.objects.filter(user__username="manager").update(**mine)
        page = browser.post(url("groups_token_add"), form)
        assert "may use as much" in page.content.decode()
    Membership.objects.filter(user__username="manager").update(denied_tools=[], allowed_tools=None)
    strict, usual = (Role.objects.create(organization=here.organization, name=name) for name in "sp")
    Role.objects.filter(pk=strict.pk).update(denied_tools=["send_email"])
    its = AgentInstance.objects.create(organization=here.organization, role=usual, user=robot.user)
    mine = get_user_model().objects.get(username="manager")
    AgentInstance.objects.create(organization=here.organization, role=strict, user=mine)
    assert "may use as much" in browser.post(url("groups_token_add"), form).content.decode()
    AgentInstance.objects.filter(pk=its.pk).update(role=strict)
    Membership.objects.filter(pk=robot.pk).update(allowed_tools=[])
    Membership.objects.filter(user=mine).update(allowed_tools=["memory_search"])
    browser.post(url("groups_token_add"), form)
    assert Token.objects.filter(user=robot.user, revoked_at=None).exists()


def test_a_token_reads_unless_more_was_asked_for_by_name(here):
    token, _ = Token.objects.issue(here.organization, here.user)
    assert set(token.scopes) == set(DEFAULT) and all(name.endswith(":read") for name in DEFAULT)
    asker = Api(permit(here.user, "groups.add_token"), here.organization)
    made = asker.post("tokens/", {"name": "ci"}).json()
    assert set(made["scopes"]) == set(DEFAULT)
    named = asker.post("tokens/", {"scopes": ["approvals:decide"]}).json()
    assert named["scopes"] == ["approvals:decide"]
    assert problem(asker.post("tokens/", {"scopes": []})) == (422, "INVALID")
    here.user.is_staff = True
    here.user.save()
    page = client_of(permit_all(here.user)).post(url("groups_token_add"), token_form(here, here.user))
    assert "required" in page.content.decode()


def test_a_token_without_scopes_reaches_nothing(here):
    bare = Api(here.user, here.organization, scopes=[])

    assert problem(bare.get("runs/")) == (403, "SCOPE_MISSING")


def test_who_sees_some_projects_finds_only_their_own_tokens(here):
    user = manager(here, projects=[here.project.pk])
    browser = client_of(user)
    revoke = {"action": "revoke", "_selected_action": [here.token.pk]}
    browser.post(url("groups_token_changelist"), revoke)

    here.token.refresh_from_db()
    assert here.token.revoked_at is None
    assert browser.get(url("groups_token_change", here.token.pk)).status_code == 404
