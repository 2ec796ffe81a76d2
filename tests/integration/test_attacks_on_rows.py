# ruff: noqa: F811
"""Accounts and memberships that are written back as they were while somebody takes something back."""

import json
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
from oauth2_provider.models import AccessToken, Application

from groups import oauth
from groups.models import Connection, IdentityProvider, Membership, Organization, ProposedChange, Token
from groups.sign_in import identities
from policy.models import CapabilityRule
from runs.execution import executor
from runs.models import Approval
from tests.admin_world import client_of, url
from tests.at_once import Beside, at_once, until_blocked
from tests.factories import MembershipFactory, UserFactory
from tests.integration.api_client import Api
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


def beside(do, meanwhile):
    """Do it while somebody else's change has been made and is not committed yet."""

    def alone():
        with closing(connection):
            return do()

    with transaction.atomic():
        meanwhile()
        doing = Beside(alone)
        until_blocked(doing)
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
