# ruff: noqa: F811
"""Accounts and memberships that are written back as they were while somebody takes something back."""

import json
import time
from contextlib import closing

import pytest
from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth import get_user_model
from django.core import mail
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application

from groups import changes, oauth, today
from groups.actors import Actor
from groups.models import (
    Connection,
    GroupMember,
    IdentityProvider,
    Membership,
    Organization,
    Project,
    ProposedChange,
    Token,
)
from groups.sign_in import identities
from groups.sign_in.openid import Refused
from memory import curate
from memory.models import Memory
from policy.authority import NotAllowed
from policy.models import CapabilityRule, Grant
from runs.actions import decide
from runs.execution import executor, outside_agents
from runs.gate import approvals
from runs.models import Approval, ToolCall
from tests.acting import at_the_pages
from tests.admin_world import client_of, url
from tests.at_once import Beside, at_once, until_blocked
from tests.factories import MemberFactory, MembershipFactory, ProjectFactory, RoleFactory, UserFactory
from tests.forms import change_form
from tests.integration.api_client import Api
from tests.integration.outside import MAIL, Outside, work_off
from tests.integration.test_decisions import SEND
from tests.integration.test_oauth import (  # noqa: F401 - fixtures
    PROGRAM,
    ada,
    connected,
    document,
    pressed,
    refreshed,
    shown,
)
from tests.integration.test_second_person import administrator
from tests.scripted import in_order, say

pytestmark = pytest.mark.django_db(transaction=True)
User = get_user_model()
OLD, NEW = "an old long password", "a new long password"
ANEW = {"oldpassword": OLD, "password1": NEW, "password2": NEW}


def with_password(user):
    user.set_password(OLD)
    user.save(update_fields=["password"])
    return user


def beside(do, meanwhile, seconds=0.0):
    """Do it while somebody else's change has been made and is not committed yet, for so long."""

    def alone():
        with closing(connection):
            return do()

    with transaction.atomic():
        meanwhile()
        doing = Beside(alone)
        until_blocked(doing)
        time.sleep(seconds)
    return doing.result()


def signed_in(user):
    browser = Client()
    browser.post(reverse("account_login"), {"login": user.username, "password": OLD})
    return browser


def test_who_changes_their_password_stays_closed_out(world, ask, rule):
    decider = with_password(MembershipFactory(organization=world.organization, role="decider").user)
    run = ask(in_order(SEND, say("done")))
    browser, mine = signed_in(decider), User.objects.filter(pk=decider.pk)
    beside(
        lambda: browser.post(reverse("account_change_password"), ANEW),
        lambda: mine.update(is_active=False),
    )
    approval = Approval.objects.get(run=run)
    page = reverse("web:approval", args=[approval.pk])
    browser.post(page, {"decision": "approve", "arguments_digest": approval.arguments_digest})
    executor.run(run.pk)
    assert not mine.get().is_active and not mail.outbox


def test_and_is_no_superuser_any_more(world):
    root = with_password(UserFactory(is_superuser=True, is_staff=True))
    browser, mine = signed_in(root), User.objects.filter(pk=root.pk)
    beside(
        lambda: browser.post(reverse("account_change_password"), ANEW),
        lambda: mine.update(is_superuser=False, is_staff=False),
    )
    assert not mine.get().is_superuser
    assert mine.get().check_password(NEW)


def test_nor_does_a_link_for_a_new_password_open_what_was_closed(world):
    member = with_password(world.user)
    mine, browser = User.objects.filter(pk=member.pk), Client()
    key = f"{user_pk_to_url_str(member)}-{default_token_generator.make_token(member)}"
    page = "account_reset_password_from_key"
    uid, _, code = key.partition("-")
    form = browser.get(reverse(page, args=[uid, code]))["Location"]
    beside(
        lambda: browser.post(form, {"password1": NEW, "password2": NEW}),
        lambda: mine.update(is_active=False),
    )
    assert not mine.get().is_active
    assert mine.get().check_password(NEW)


FORM = {"last_login_0": "", "last_login_1": "", "date_joined_0": "2026-01-01", "date_joined_1": "12:00:00"}


def test_a_form_of_an_account_brings_back_no_password_that_its_person_has_just_changed(world):
    root = UserFactory(is_superuser=True, is_staff=True)
    member = with_password(world.user)
    mine = User.objects.filter(pk=member.pk)

    def changed():
        one = mine.get()
        one.set_password(NEW)
        one.save(update_fields=["password"])

    fields = {"username": "mia", "first_name": "Mia", "last_name": "", "email": "", "is_active": "on", **FORM}
    page = url("auth_user_change", member.pk)
    beside(lambda: client_of(root).post(page, fields), changed)
    assert mine.get().first_name == "Mia"
    assert mine.get().check_password(NEW)


def test_nor_does_who_gives_somebody_a_new_password_give_their_account_back(world):
    root = UserFactory(is_superuser=True, is_staff=True)
    mine = User.objects.filter(pk=world.user.pk)
    page = url("auth_user_password_change", world.user.pk)
    fields = {"password1": NEW, "password2": NEW, "usable_password": "true", "set-password": "1"}
    beside(lambda: client_of(root).post(page, fields), lambda: mine.update(is_active=False))
    assert mine.get().check_password(NEW)
    assert not mine.get().is_active


def test_a_sign_in_at_a_provider_writes_back_nothing_that_an_administrator_takes_away(world):
    provider = IdentityProvider.objects.create(
        organization=world.organization, name="Company", issuer="https://id.example.org", client_id="deputy",
        groups_claim="groups", rules=[{"group": "staff", "role": "decider", "projects": None}],
    )  # fmt: skip
    SocialAccount.objects.create(provider=provider.pk, uid="s-1", user=world.user)
    mine = Membership.objects.filter(pk=world.membership.pk)
    mine.update(role="member")
    beside(
        lambda: identities.of(provider, {"sub": "s-1", "groups": ["staff"]}),
        lambda: mine.update(denied_tools=["send_email"]),
    )
    assert (mine.get().role, mine.get().denied_tools) == ("decider", ["send_email"])


def test_who_allows_a_program_twice_at_once_connects_it_once(ada):
    page, form = shown(ada)
    application, scopes = Application.objects.get(client_id=PROGRAM), ["runs:read"]
    answer = beside(
        lambda: pressed(ada, page, form),
        lambda: oauth.connect(application, ada.user, ada.organization, scopes, {ada.organization.pk}),
    )
    assert answer.status_code == 302 and "code=" in answer["Location"]
    assert Token.objects.filter(revoked_at=None).count() == Connection.objects.count() == 1


def test_a_token_that_is_refreshed_while_its_program_is_connected_anew_is_refused_in_words(ada):
    got = connected(ada)
    application, scopes = Application.objects.get(client_id=PROGRAM), ["runs:read"]
    answer = beside(
        lambda: refreshed(got["refresh_token"]),
        lambda: oauth.connect(application, ada.user, ada.organization, scopes, {ada.organization.pk}),
    )
    assert (answer.status_code, json.loads(answer.content)["error"]) == (400, "invalid_grant")
    assert not AccessToken.objects.exists()


def test_of_three_refreshes_of_a_token_at_once_one_gets_the_next(ada):
    got = connected(ada)
    answers = at_once(*[lambda: refreshed(got["refresh_token"])] * 3)
    assert sorted(answer.status_code for answer in answers) == [200, 400, 400]
    assert AccessToken.objects.count() <= 1  # one that comes after it ends them all


@pytest.mark.parametrize("door", ["api", "page", "list"])
def test_with_a_second_person_one_removes_no_rule_that_a_colleague_has_just_put_to_work(world, door):
    """A rule that is off is removed by one."""
    root = administrator(world, "root")
    Organization.objects.filter(pk=world.organization.pk).update(second_person=True)
    rule = CapabilityRule.objects.create(
        organization=world.organization, tool="send_email", effect="deny", active=False
    )
    mine, there = CapabilityRule.objects.filter(pk=rule.pk), url("policy_capabilityrule_changelist")
    chosen = {"action": "delete_selected", "_selected_action": [rule.pk], "post": "yes"}
    api, browser = Api(root, world.organization), client_of(root)
    doors = {
        "api": lambda: api.client.delete(f"/api/policy/rules/{rule.pk}/", headers=api.headers),
        "page": lambda: browser.post(url("policy_capabilityrule_delete", rule.pk), {"post": "yes"}),
        "list": lambda: browser.post(there, chosen),
    }
    beside(doors[door], lambda: mine.update(active=True))
    assert mine.exists()
    assert ProposedChange.objects.get().action == "removed"


@pytest.mark.parametrize("where", ["all", "another project"])
@pytest.mark.parametrize("door", ["api", "api removes", "form", "page", "list"])
def test_who_sees_one_project_changes_no_rule_that_has_just_left_it(world, door, where):
    organization = world.organization
    mine = administrator(world, "ada", projects=[world.project.pk])
    other = ProjectFactory(organization=organization)
    about = {"organization": organization, "project": world.project, "limited": True}
    rule = CapabilityRule.objects.create(**about, tool="send_email", effect="deny")
    rows, there = CapabilityRule.objects.filter(pk=rule.pk), url("policy_capabilityrule_changelist")
    chosen = {"action": "delete_selected", "_selected_action": [rule.pk], "post": "yes"}
    api, browser = Api(mine, organization), client_of(mine)
    change = url("policy_capabilityrule_change", rule.pk)
    form = change_form(browser.get(change)) | {"effect": "allow"}
    path = f"/api/policy/rules/{rule.pk}/"
    say = {"content_type": "application/json", "headers": api.headers}
    doors = {
        "api": lambda: api.client.patch(path, json.dumps({"effect": "allow"}), **say),
        "api removes": lambda: api.client.delete(path, headers=api.headers),
        "form": lambda: browser.post(change, form),
        "page": lambda: browser.post(url("policy_capabilityrule_delete", rule.pk), {"post": "yes"}),
        "list": lambda: browser.post(there, chosen),
    }
    answer = beside(doors[door], lambda: rows.update(project=None if where == "all" else other))
    assert answer.status_code in (302, 403, 404)
    assert rows.get().effect == "deny"


@pytest.mark.parametrize("how", ["switched off", "removed", "by a sign-in"])
def test_whom_somebody_has_switched_off_is_no_member_again_by_signing_in(world, how):
    """Whom a sign-in has switched off, since their group was gone, is one again with it."""
    provider = IdentityProvider.objects.create(
        organization=world.organization, name="Company", issuer="https://id.example.org", client_id="deputy",
        groups_claim="groups", rules=[{"group": "staff", "role": "decider", "projects": None}],
    )  # fmt: skip
    SocialAccount.objects.create(provider=provider.pk, uid="s-1", user=world.user)
    mine = Membership.objects.get(pk=world.membership.pk)
    if how == "by a sign-in":
        identities.of(provider, {"sub": "s-1", "groups": []})
    with changes.acting(administrator(world, "root")):
        if how == "switched off":
            mine.active = False
            mine.save()
        elif how == "removed":
            mine.delete()
    if how == "by a sign-in":
        identities.of(provider, {"sub": "s-1", "groups": ["staff"]})
    else:
        with pytest.raises(Refused, match="an administrator has ended the membership"):
            identities.of(provider, {"sub": "s-1", "groups": ["staff"]})
    there = Membership.objects.filter(user=world.user, active=True)
    assert there.exists() is (how == "by a sign-in")


def test_a_providers_form_that_was_opened_before_gives_no_line_back(world):
    root = administrator(world, "root")
    lines = [{"group": "bosses", "role": "decider", "projects": None}]
    provider = IdentityProvider.objects.create(
        organization=world.organization, name="Company", issuer="https://id.example.org", client_id="deputy",
        groups_claim="groups", rules=lines,
    )  # fmt: skip
    browser, page = client_of(root), url("groups_identityprovider_change", provider.pk)
    form = change_form(browser.get(page)) | {"name": "The company"}
    IdentityProvider.objects.filter(pk=provider.pk).update(rules=[])
    assert browser.post(page, form).status_code == 302
    provider.refresh_from_db()
    assert (provider.rules, provider.name) == ([], "Company")


def test_a_groups_form_gives_no_seat_its_old_role_back(world):
    """Nobody changes a seat between its being compared and being written."""
    root = administrator(world, "root")
    seat = MemberFactory(group__project=world.project)
    other = RoleFactory(organization=world.organization)
    browser, page = client_of(root), url("groups_group_change", seat.group_id)
    form = change_form(browser.get(page)) | {"description": "Another one"}
    seats = GroupMember.objects.filter(pk=seat.pk)
    beside(lambda: browser.post(page, form), lambda: seats.update(role=other))
    assert seats.get().role == other


def test_a_memory_is_changed_by_nobody_who_may_not_any_more(world, monkeypatch):
    mine = administrator(world, "curious")
    monkeypatch.setattr(today, "AT_ONCE", 0)
    memory = Memory.objects.create(
        organization=world.organization, project=world.project, type="archival", content="As it was."
    )
    token, _ = Token.objects.issue(world.organization, mine, scopes=["memory:write", "speak_as_person"])
    member = Membership.objects.get(user=token.user)
    actor = Actor.of_token(token, member)
    Token.objects.filter(pk=token.pk).update(revoked_at=timezone.now())
    with pytest.raises(NotAllowed):
        curate.edit(memory.pk, actor, content="Pay to eve@rival.example.")
    memory.refresh_from_db()
    assert memory.content == "As it was."


def test_a_revoked_tokens_other_arguments_take_no_effect(world, ask, rule, monkeypatch):
    """Where policy lets them pass without anybody's decision."""
    monkeypatch.setattr(today, "AT_ONCE", 0)
    CapabilityRule.objects.create(
        organization=world.organization, tool="send_email", effect="allow", project=world.project,
        condition='args.to.all(a, a.endsWith("@acme.example"))',
    )  # fmt: skip
    decider = MembershipFactory(organization=world.organization, role="decider")
    token, _ = Token.objects.issue(world.organization, decider.user, scopes=["approvals:decide"])
    actor = Actor.of_token(token, decider)
    run = ask(in_order(SEND, say("done")))
    approval = Approval.objects.get(run=run)
    Token.objects.filter(pk=token.pk).update(revoked_at=timezone.now())
    said = {**approval.arguments, "to": ["boss@acme.example"], "body": "Mine"}
    with pytest.raises(decide.DecisionRefused):
        decide.approve(approval.pk, actor, digest=approval.arguments_digest, arguments=said)
    executor.run(run.pk)
    assert not mail.outbox


@pytest.mark.django_db(transaction=True)
def test_a_call_that_waits_for_its_standing_approval_hears_of_a_deny_meanwhile(world, rule):
    ada = administrator(world, "giver")
    grant = Grant.objects.create(
        organization=world.organization, project=world.project, tool="send_email", any_arguments=True,
        granted_by=ada, max_uses=9,
    )  # fmt: skip
    outside = Outside(world)

    def held():
        list(Grant.objects.select_for_update().filter(pk=grant.pk))
        CapabilityRule.objects.create(organization=world.organization, tool="send_email", effect="deny")

    assert beside(lambda: outside.call("c1", "send_email", **MAIL), held, 0.1).status == "denied"
    assert not mail.outbox and not grant.uses.exists()


def test_a_token_that_is_revoked_while_its_use_is_noted_calls_nothing(world):
    """To note that it is in use takes its row, which its revocation holds."""
    mine = administrator(world, "holder")
    CapabilityRule.objects.create(organization=world.organization, tool="send_email", effect="allow")
    api = Api(mine, world.organization)
    said = {"project": world.project.pk, "goal": "Send it.", "driver": "external"}
    run = api.post("runs/", said).json()["id"]
    tokens = Token.objects.filter(pk=api.token.pk)
    tokens.update(last_used_at=None)
    call = {"call_id": "c1", "name": "send_email", "arguments": MAIL}

    def asks():
        return api.post(f"runs/{run}/tool-calls/", call)

    answer = beside(asks, lambda: tokens.update(revoked_at=timezone.now()), 0.1)
    assert answer.status_code in (401, 403), answer.content
    assert not ToolCall.objects.filter(run=run).exists()


@pytest.mark.parametrize("lost", ["is_superuser", "is_active"])
def test_a_superuser_of_no_organization_changes_nothing_once_they_are_none(world, lost):
    root = UserFactory(username="root2", is_staff=True, is_superuser=True)
    rule = CapabilityRule.objects.create(organization=world.organization, tool="send_email", effect="deny")
    browser, page = client_of(root), url("policy_capabilityrule_change", rule.pk)
    form = change_form(browser.get(page)) | {"effect": "allow"}
    rows = CapabilityRule.objects.filter(pk=rule.pk)

    def meanwhile():
        list(rows.select_for_update())
        User.objects.filter(pk=root.pk).update(**{lost: False})

    answer = beside(lambda: browser.post(page, form), meanwhile)
    assert (answer.status_code, rows.get().effect) == (403, "deny")


def test_ones_own_vote_counts_no_more_once_the_project_has_taken_it_away(world, rule, monkeypatch):
    """Also while the call is weighed."""
    projects = Project.objects.filter(pk=world.project.pk)
    projects.update(allow_self_approval=True)
    CapabilityRule.objects.filter(pk=rule.pk).update(effect="require_human")
    Membership.objects.filter(user=world.user).update(role="decider")
    outside = Outside(world)
    outside.call("c1", "send_email", **MAIL)
    approval = Approval.objects.get(run=outside.run)
    usual = approvals.held

    def late(*about):
        found = usual(*about)
        projects.update(allow_self_approval=False)
        return found

    monkeypatch.setattr(approvals, "held", late)
    mine = at_the_pages(world.user, world.organization.pk)
    decide.approve(approval.pk, mine, digest=approval.arguments_digest)
    work_off()
    assert outside.look("c1").status == "waiting" and not mail.outbox


def test_a_token_that_is_revoked_while_its_call_is_weighed_calls_nothing(world, monkeypatch):
    CapabilityRule.objects.create(organization=world.organization, tool="send_email", effect="allow")
    token, _ = Token.objects.issue(world.organization, world.user, scopes=["runs:write"])
    actor = Actor.of_token(token, Membership.objects.get(user=world.user))
    outside, usual = Outside(world), outside_agents._ask
    monkeypatch.setattr(today, "AT_ONCE", 0)

    def long(*about):
        usual(*about)
        Token.objects.filter(pk=token.pk).update(revoked_at=timezone.now())

    monkeypatch.setattr(outside_agents, "_ask", long)
    with pytest.raises(NotAllowed):
        outside_agents.request_call(outside.run.pk, actor, "c1", "send_email", MAIL)
    assert not ToolCall.objects.filter(run=outside.run).exists() and not mail.outbox
