"""Signing in: passwords, links and codes by mail, second factors, and confirming that it is you."""

import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal import auth as totp
from django.contrib.auth import get_user_model
from django.core import mail
from django.core.cache import cache
from django.test import Client, override_settings
from django.urls import reverse

from common import sealed
from groups import accounts
from groups.actors import CONFIRMED_AT, Actor
from groups.models import Change
from groups.sign_in import pace
from groups.sign_in.sessions import BEGAN_AT, SEEN_AT
from launch.home import PROJECT
from policy.authority import NotAllowed, may_act_as_person
from tests.admin_world import PASSWORD, superuser
from tests.factories import MembershipFactory, UserFactory
from tests.unit.test_deploy_check import PRODUCTION

pytestmark = pytest.mark.django_db

NEW = "a wholly other password"


@pytest.fixture
def ada():
    user = get_user_model().objects.create_user("ada", "ada@example.org", PASSWORD)
    MembershipFactory(user=user)
    return user


def signed_in(client):
    return "_auth_user_id" in client.session


def with_password(name="ada", password=PASSWORD, client=None, **told):
    client = client or Client()
    answer = client.post(reverse("account_login"), {"login": name, "password": password, **told})
    return SimpleNamespace(client=client, answer=answer)


@pytest.fixture(autouse=True)
def one_half_minute(monkeypatch):
    """A code counts in one half minute, which does not end here between making the code and sending it."""
    now = [*totp.yield_hotp_counters_from_time()]
    monkeypatch.setattr(totp, "yield_hotp_counters_from_time", lambda: now)


def with_totp(user):
    secret = totp.generate_totp_secret()
    totp.TOTP.activate(user, secret)
    RecoveryCodes.activate(user)
    (half_minute,) = totp.yield_hotp_counters_from_time()
    return lambda: totp.format_hotp_value(totp.hotp_value(secret, half_minute))


def link_in(message):
    return re.search(r"https?://[^/\s]+(/\S+)", message.body).group(1)


def code_in(message):
    return re.search(r"^([A-Z0-9-]{4,})$", message.body, re.MULTILINE).group(1)


# Accounts


def test_nobody_makes_an_account_for_themselves(ada):
    told = {"username": "eve", "email": "eve@example.org", "password1": NEW, "password2": NEW}
    answer = Client().post(reverse("account_signup"), told)
    assert answer.status_code == 200 and "Closed" in answer.content.decode()
    assert not get_user_model().objects.filter(username="eve").exists()


def test_a_password_is_set_anew_by_a_link_that_works_once(ada):
    client = Client()
    client.post(reverse("account_reset_password"), {"email": "ada@example.org"}, HTTP_HOST="localhost")
    (message,) = mail.outbox
    assert message.to == ["ada@example.org"]

    form = client.get(link_in(message))["Location"]
    client.post(form, {"password1": NEW, "password2": NEW})
    ada.refresh_from_db()
    assert ada.check_password(NEW)
    again = Client().get(link_in(message))
    assert again.status_code == 200 and "password1" not in again.content.decode()


def test_a_link_in_mail_leads_to_where_people_reach_deputy_whatever_host_was_asked(ada, settings):
    settings.ALLOWED_HOSTS = ["*"]
    settings.PUBLIC_URL = "https://deputy.example.org"
    Client().post(reverse("account_reset_password"), {"email": "ada@example.org"}, HTTP_HOST="evil.example")
    assert "evil.example" not in mail.outbox[0].body
    assert "https://deputy.example.org/account/password/reset/key/" in mail.outbox[0].body


@pytest.mark.parametrize("door", ["account_reset_password", "account_request_login_code"])
def test_whether_an_account_has_an_address_shows_in_no_answer(ada, door):
    answers = [Client().post(reverse(door), {"email": f"{name}@example.org"}) for name in ("ada", "nobody")]
    assert {(answer.status_code, answer.headers.get("Location")) for answer in answers} == {
        (302, answers[0]["Location"])
    }
    assert [message.to for message in mail.outbox] == [["ada@example.org"]]


@override_settings(SIGN_IN_MAILS=2)
@pytest.mark.parametrize("door", ["account_reset_password", "account_request_login_code"])
@pytest.mark.parametrize("name", ["ada", "nobody"])
def test_an_address_is_sent_so_many_mails_and_no_more(ada, door, name):
    told = {"email": f"{name}@example.org"}
    answers = [Client().post(reverse(door), told, REMOTE_ADDR=f"192.0.2.{n}") for n in range(4)]
    assert [answer.status_code for answer in answers] == [302, 302, 429, 429]
    assert len(mail.outbox) <= 2


def test_a_code_sent_by_mail_signs_in_once(ada):
    client = Client()
    client.post(reverse("account_request_login_code"), {"email": "ada@example.org"})
    code = code_in(mail.outbox[0])
    client.post(reverse("account_confirm_login_code"), {"code": code})
    assert signed_in(client)

    other = Client()
    other.post(reverse("account_confirm_login_code"), {"code": code})
    assert not signed_in(other)


GIVEN_UP = pytest.mark.parametrize("since", ["kept", "given up", "given up and typed in again"])


def give_up(row, since):
    if since != "kept":
        row.delete()
    if since == "given up and typed in again":
        row.user.emailaddress_set.create(email=row.email)


@GIVEN_UP
def test_a_code_sent_to_an_address_counts_as_long_as_it_is_the_accounts(ada, since):
    row = ada.emailaddress_set.create(email="old@example.net", verified=True)
    client = Client()
    client.post(reverse("account_request_login_code"), {"email": "old@example.net"})
    code = code_in(mail.outbox[0])
    give_up(row, since)
    answer = client.post(reverse("account_confirm_login_code"), {"code": code}, follow=True)
    assert signed_in(client) is (since == "kept")
    assert ("has given up the address" in answer.content.decode()) is (since != "kept")


def test_nor_does_a_code_sent_to_where_the_account_was_written_to_before(ada):
    client = Client()
    client.post(reverse("account_request_login_code"), {"email": "ada@example.org"})
    code = code_in(mail.outbox[0])
    ada.emailaddress_set.create(email="ada@example.org")  # as the page of one's addresses does
    ada.email = "ada@elsewhere.example"
    ada.save()
    client.post(reverse("account_confirm_login_code"), {"code": code})
    assert not signed_in(client)


@GIVEN_UP
def test_a_link_to_a_password_counts_as_long_as_the_address_is_the_accounts(ada, since):
    row = ada.emailaddress_set.create(email="old@example.net", verified=True)
    client = Client()
    client.post(reverse("account_reset_password"), {"email": "old@example.net"}, HTTP_HOST="localhost")
    give_up(row, since)
    answer = client.get(link_in(mail.outbox[0]), follow=True)
    assert ("password1" in answer.content.decode()) is (since == "kept")


def test_a_code_is_guessed_three_times_and_then_void(ada):
    client = Client()
    client.post(reverse("account_request_login_code"), {"email": "ada@example.org"})
    code = code_in(mail.outbox[0])
    for _ in range(3):
        client.post(reverse("account_confirm_login_code"), {"code": "000-000"})
    client.post(reverse("account_confirm_login_code"), {"code": code})
    assert not signed_in(client)


@pytest.mark.parametrize(
    "where", ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:x"]
)
def test_after_signing_in_nobody_is_sent_to_another_site(ada, where):
    assert with_password(next=where).answer["Location"] == "/"


def test_nobody_has_deputy_write_to_an_address_that_they_have_not_shown_to_be_theirs(ada):
    client = with_password().client
    change = reverse("account_email")
    theirs = {"email": "board@example.net"}
    client.post(change, {**theirs, "action_add": ""})
    assert EmailAddress.objects.filter(user=ada, **theirs, verified=False).exists()
    client.post(change, {**theirs, "action_primary": ""})
    ada.refresh_from_db()
    assert ada.email == "ada@example.org"

    statuses = [client.post(change, {**theirs, "action_send": ""}).status_code for _ in range(6)]
    assert statuses == [302] * 4 + [429] * 2
    EmailAddress.objects.filter(user=ada, **theirs).update(verified=True)
    client.post(change, {**theirs, "action_primary": ""})
    ada.refresh_from_db()
    assert ada.email == "board@example.net"


@pytest.mark.parametrize("door", ["account_reset_password", "account_request_login_code"])
@pytest.mark.parametrize("has_an_account", [True, False])
def test_an_address_that_somebody_else_has_typed_in_leads_nobody_into_their_account(
    ada, door, has_an_account
):
    """Its owner would show it to be the other's, and a provider then take the other for them."""
    theirs = {"email": "board@example.net"}
    with_password().client.post(reverse("account_email"), {**theirs, "action_add": ""})
    if has_an_account:
        chair = UserFactory(username="chair", **theirs)
    mail.outbox.clear()
    owner = Client()
    owner.post(reverse(door), theirs)
    assert len(mail.outbox) == has_an_account
    assert not has_an_account or "chair" in mail.outbox[0].body or door == "account_request_login_code"
    if found := re.search(r"^([A-Z0-9-]{4,})$", "".join(one.body for one in mail.outbox), re.MULTILINE):
        owner.post(reverse("account_confirm_login_code"), {"code": found.group(1)})
        assert owner.session["_auth_user_id"] == str(chair.pk)
    assert not EmailAddress.objects.filter(user=ada, verified=True, **theirs).exists()


@pytest.mark.parametrize("who", ["its owner, without an account", "its owner, with one", "the account"])
def test_a_link_that_shows_an_address_counts_in_a_session_of_the_account_that_named_it(ada, who):
    own = with_password().client
    theirs = {"email": "board@example.net"}
    own.post(reverse("account_email"), {**theirs, "action_add": ""})
    link = re.search(r"https?://[^/]+(/account/confirm-email/\S+)", mail.outbox[-1].body).group(1)
    chair = UserFactory(username="chair")
    client = {"the account": own}.get(who, Client())
    if who == "its owner, with one":
        client.force_login(chair)
    answers = [client.get(link), client.post(link)]
    assert EmailAddress.objects.get(**theirs).verified == (who == "the account")
    if who == "its owner, without an account":
        assert {answer["Location"].partition("?")[0] for answer in answers} == {reverse("account_login")}


def test_a_browser_that_is_found_open_makes_no_address_the_accounts(ada):
    """Neither at once, nor when its owner confirms next, nor by the link."""
    client = with_password().client
    client.post(reverse("account_email"), {"email": "mine@example.net", "action_add": ""})
    link = re.search(r"https?://[^/]+(/account/confirm-email/\S+)", mail.outbox[-1].body).group(1)
    forget_confirmation(client)
    asked = client.post(reverse("account_email"), {"email": "finder@example.net", "action_add": ""})
    for answer in (client.get(link), client.post(link), asked):
        assert answer["Location"].startswith(reverse("account_reauthenticate"))
    answer = client.post(asked["Location"], {"password": PASSWORD})
    assert answer["Location"] == reverse("account_email")
    assert [(one.email, one.verified) for one in ada.emailaddress_set.exclude(email=ada.email)] == [
        ("mine@example.net", False)
    ]
    client.post(link)
    assert ada.emailaddress_set.get(email="mine@example.net").verified


def test_removing_ones_address_makes_none_ones_own_that_was_only_typed_in(ada):
    client = with_password().client
    change, theirs = reverse("account_email"), {"email": "board@example.net"}
    client.post(change, {**theirs, "action_add": ""})
    for email in ("ada@example.org", "board@example.net", "ada@example.org"):
        client.post(change, {"email": email, "action_remove": ""})
        ada.refresh_from_db()
        assert ada.email == "ada@example.org"
    assert not EmailAddress.objects.filter(**theirs).exists()


def test_nobody_has_deputy_write_to_many_strangers(ada):
    client = with_password().client
    change = reverse("account_email")
    strangers = [f"board+{number}@example.net" for number in range(7)]
    statuses = [client.post(change, {"email": each, "action_add": ""}).status_code for each in strangers]
    assert statuses.count(429) == 2 and not EmailAddress.objects.filter(email=strangers[-1]).exists()


@pytest.mark.parametrize("has", ["a password", "a passkey", "nothing"])
@pytest.mark.parametrize("door", ["account_set_password", "account_change_password"])
def test_a_browser_that_is_found_open_sets_no_password(ada, has, door):
    """By which whoever found it would confirm that it is them; nor may the old one be guessed there."""
    client = with_password().client
    if has != "a password":
        ada.set_unusable_password()
        ada.save()
        session = client.session
        session["_auth_user_hash"] = ada.get_session_auth_hash()
        session.save()
    if has == "a passkey":
        Authenticator.objects.create(user=ada, type="webauthn", data={"name": "Key"})
    forget_confirmation(client)
    before = ada.password
    new = {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW}
    for answer in (client.get(reverse(door)), client.post(reverse(door), new)):
        led = reverse("account_login") if has == "nothing" else "/reauthenticate/"
        assert answer.status_code == 302 and led in answer["Location"]
    ada.refresh_from_db()
    assert ada.password == before and signed_in(client)


# Second factors


def test_a_password_alone_does_not_open_an_account_with_a_second_factor(ada):
    code = with_totp(ada)
    step = with_password()
    assert step.answer["Location"] == reverse("mfa_authenticate") and not signed_in(step.client)
    step.client.post(reverse("mfa_authenticate"), {"code": "000000"})
    assert not signed_in(step.client)
    step.client.post(reverse("mfa_authenticate"), {"code": code()})
    assert signed_in(step.client)


def test_a_sign_in_whose_second_factor_is_removed_meanwhile_begins_anew(ada):
    """It went round between the two pages."""
    with_totp(ada)
    step = with_password()
    Authenticator.objects.filter(user=ada).delete()
    answer = step.client.get(step.answer["Location"], follow=True)
    assert answer.status_code == 200 and answer.request["PATH_INFO"] == reverse("account_login")
    assert not signed_in(step.client)
    assert signed_in(with_password(client=step.client).client)


def test_a_code_of_a_second_factor_works_once_whichever_process_is_asked(ada):
    code = with_totp(ada)()
    for written, works in ((code, True), (code, False), (f"{code[:3]} {code[3:]}", False)):
        cache.clear()  # another web process remembers nothing of this one
        step = with_password()
        step.client.post(reverse("mfa_authenticate"), {"code": written})
        assert signed_in(step.client) == works


def test_a_code_by_mail_does_not_pass_the_second_factor_by(ada):
    with_totp(ada)
    client = Client()
    client.post(reverse("account_request_login_code"), {"email": "ada@example.org"})
    code = code_in(mail.outbox[0])
    answer = client.post(reverse("account_confirm_login_code"), {"code": code})
    assert answer["Location"] == reverse("mfa_authenticate") and not signed_in(client)


def test_nor_does_a_new_password_by_mail(ada):
    with_totp(ada)
    client = Client()
    client.post(reverse("account_reset_password"), {"email": "ada@example.org"})
    form = client.get(link_in(mail.outbox[0]))["Location"]
    client.post(form, {"password1": NEW, "password2": NEW})
    assert not signed_in(client)
    assert with_password(password=NEW).answer["Location"] == reverse("mfa_authenticate")


def test_codes_of_a_second_factor_are_few_from_wherever_they_come(ada):
    code = with_totp(ada)
    statuses = []
    for n in range(7):
        step = with_password()
        address = f"192.0.2.{n}"
        tried = step.client.post(reverse("mfa_authenticate"), {"code": "000000"}, REMOTE_ADDR=address)
        statuses.append(tried.status_code)
    assert statuses == [200] * 5 + [429] * 2
    assert step.client.post(reverse("mfa_authenticate"), {"code": code()}).status_code == 429


def test_a_recovery_code_works_once(ada):
    with_totp(ada)
    code = Authenticator.objects.get(user=ada, type="recovery_codes").wrap().get_unused_codes()[0]
    for works in (True, False):
        step = with_password()
        step.client.post(reverse("mfa_authenticate"), {"code": code})
        assert signed_in(step.client) == works


def test_the_secret_of_an_authenticator_is_encrypted_in_the_database(ada):
    with_totp(ada)
    kept = Authenticator.objects.get(user=ada, type="totp").data["secret"]
    assert len(sealed.unseal(kept)) == 32 and sealed.unseal(kept) not in kept


def test_factors_are_changed_only_by_who_has_just_confirmed(ada):
    client = with_password().client
    addresses = [reverse(name) for name in ("mfa_activate_totp", "mfa_add_webauthn", "account_email")]
    assert [client.get(address).status_code for address in addresses] == [200] * 3
    forget_confirmation(client)
    for address in addresses[:2]:
        assert client.get(address)["Location"].startswith(reverse("account_reauthenticate"))
    client.post(addresses[2], {"action_add": "", "email": "eve@example.org"})
    assert not ada.emailaddress_set.filter(email="eve@example.org").exists()


def test_what_changes_of_somebodys_factors_is_recorded_without_its_secret(ada):
    with_totp(ada)
    change = Change.objects.filter(model="mfa.authenticator").first()
    assert change.organization_id == ada.memberships.get().organization_id
    assert "data" not in change.after or "secret" not in str(change.after["data"]).replace("(secret)", "")


def test_factors_that_an_administrator_removes_void_the_account_for_an_hour(ada):
    with_totp(ada)
    session = with_password("ada")
    mine = Client()
    mine.force_login(ada)
    root = Client()
    root.force_login(superuser())
    chosen = {"action": "remove_factors", "_selected_action": [ada.pk]}
    root.post(reverse("admin:auth_user_changelist"), chosen)

    assert not Authenticator.objects.filter(user=ada).exists()
    assert mine.get("/").status_code == 302 and session.client.get("/").status_code == 302
    assert accounts.changed_by_another(ada, ada.memberships.get().organization_id)
    actor = Actor(ada, ada.memberships.get(), "session", interactive=True)
    with pytest.raises(NotAllowed, match="administrator changed your account"):
        may_act_as_person(actor)


def test_an_account_that_is_given_another_address_has_given_up_the_one_before(ada):
    kept = ada.emailaddress_set.create(email="too@example.net", verified=True)
    ada.emailaddress_set.create(email="Ada@example.org", verified=True, primary=True)
    root = Client()
    root.force_login(superuser())
    account = {"username": "ada", "email": "ada@elsewhere.example", "is_active": "on"}
    account |= {"date_joined_0": "2026-05-01", "date_joined_1": "12:00:00"}
    assert root.post(reverse("admin:auth_user_change", args=[ada.pk]), account).status_code == 302
    assert list(ada.emailaddress_set.all()) == [kept]
    mail.outbox.clear()
    Client().post(reverse("account_request_login_code"), {"email": "ada@example.org"})
    assert not mail.outbox
    account["first_name"] = "Ada"
    root.post(reverse("admin:auth_user_change", args=[ada.pk]), account)
    Client().post(reverse("account_request_login_code"), {"email": "ada@elsewhere.example"})
    assert [one.to for one in mail.outbox] == [["ada@elsewhere.example"]]


def test_who_is_no_superuser_removes_nobodys_factors(ada):
    with_totp(ada)
    clerk = get_user_model().objects.create_user("clerk", is_staff=True)
    MembershipFactory(user=clerk, organization=ada.memberships.get().organization, role="administrator")
    client = Client()
    client.force_login(clerk)
    chosen = {"action": "remove_factors", "_selected_action": [ada.pk]}
    client.post(reverse("admin:auth_user_changelist"), chosen)
    assert Authenticator.objects.filter(user=ada).count() == 2


# Confirming


def forget_confirmation(client):
    session = client.session
    session[CONFIRMED_AT] = 0
    session.save()


def test_a_code_of_the_authenticator_confirms_too(ada, rf):
    client = Client()
    client.force_login(ada)
    code = with_totp(ada)
    forget_confirmation(client)
    client.post(reverse("mfa_reauthenticate"), {"code": "000000"})
    assert client.session[CONFIRMED_AT] == 0
    client.post(reverse("mfa_reauthenticate"), {"code": code()})
    assert client.session[CONFIRMED_AT] > 0


def test_the_first_step_of_two_confirms_nothing(ada):
    with_totp(ada)
    assert CONFIRMED_AT not in with_password().client.session


def test_an_account_without_anything_to_confirm_with_is_not_taken_for_confirmed(ada):
    ada.set_unusable_password()
    ada.save()
    client = Client()
    client.force_login(ada)
    assert client.get(reverse("mfa_activate_totp")).status_code == 200  # it has just signed in
    forget_confirmation(client)
    assert client.get(reverse("mfa_activate_totp")).status_code == 302
    assert client.get(reverse("web:confirm")).status_code == 403


# What the page offers


def test_the_door_says_when_it_runs_with_demo_accounts(settings, tmp_path):
    settings.DEPUTY_HOME = tmp_path
    assert "demo accounts" not in Client().get("/sign-in/").content.decode()
    (tmp_path / "demo.txt").write_text("mia: …")
    assert "demo accounts" in Client().get("/sign-in/").content.decode()


def test_what_takes_mail_is_not_offered_where_mail_goes_nowhere(settings):
    assert reverse("account_reset_password") in Client().get("/sign-in/").content.decode()
    settings.EMAIL_BACKEND = "common.mail.PrivateFiles"
    assert reverse("account_reset_password") not in Client().get("/sign-in/").content.decode()


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_page_of_an_account_opens_and_has_no_script_of_its_own(ada, language):
    with_totp(ada)
    client = Client(headers={"accept-language": language})
    client.force_login(ada)
    names = [
        *("account_email", "account_change_password", "account_reauthenticate", "account_logout"),
        *("mfa_index", "mfa_list_webauthn", "mfa_add_webauthn", "mfa_reauthenticate", "mfa_deactivate_totp"),
        "mfa_generate_recovery_codes",
    ]
    for name in names:
        answer = client.get(reverse(name))
        page = answer.content.decode()
        assert answer.status_code == 200 and 'class="card"' in page, name
        scripts = re.findall(r"<script\b([^>]*)>", page)
        assert all("src=" in one or 'type="application/json"' in one for one in scripts), name


def test_a_mail_that_cannot_be_sent_is_logged_without_its_words(ada, caplog):
    with patch("django.core.mail.EmailMessage.send", side_effect=OSError("secret words")):
        Client().post(reverse("account_reset_password"), {"email": "ada@example.org"})
    assert "a mail was not sent: OSError" in caplog.text and "secret words" not in caplog.text


# Sessions


def test_somebody_lists_their_sessions_and_ends_one(ada):
    here, there = with_password().client, with_password().client
    page = here.get(reverse("account_sessions")).content.decode()
    (other,) = re.findall(r'name="end" value="(\d+)"', page)
    here.post(reverse("account_sessions"), {"end": other})
    assert [client.get("/").status_code for client in (here, there)] == [200, 302]


def test_nobody_ends_the_session_of_somebody_else(ada):
    there = with_password().client
    (mine,) = ada.usersession_set.all()
    bo = get_user_model().objects.create_user("bo", password=PASSWORD)
    MembershipFactory(user=bo)
    assert with_password("bo").client.post(reverse("account_sessions"), {"end": mine.pk}).status_code == 404
    assert there.get("/").status_code == 200


def test_all_other_sessions_end_at_once(ada):
    here, there, third = (with_password().client for _ in range(3))
    here.post(reverse("account_sessions"), {"end": "others"})
    assert [client.get("/").status_code for client in (here, there, third)] == [200, 302, 302]


def aged(client, key, seconds):
    session = client.session
    session[key] -= seconds
    session.save()


@pytest.mark.parametrize(
    ("key", "setting"), [(BEGAN_AT, "SESSION_SECONDS"), (SEEN_AT, "SESSION_IDLE_SECONDS")]
)
def test_a_session_ends_in_time(ada, settings, key, setting):
    client = with_password().client
    aged(client, key, getattr(settings, setting) - 30)
    assert client.get("/").status_code == 200
    client = with_password().client
    aged(client, key, getattr(settings, setting))
    assert client.get("/").status_code == 302 and not signed_in(client)


def test_a_page_left_open_does_not_keep_its_session(ada):
    client = with_password().client
    aged(client, SEEN_AT, 3600)
    before = client.session[SEEN_AT]
    client.get(reverse("web:count"), headers={"Sec-Fetch-Mode": "cors"})
    assert client.session[SEEN_AT] == before
    client.get("/", headers={"Sec-Fetch-Mode": "navigate"})
    assert client.session[SEEN_AT] > before


def test_a_new_browser_is_told_by_mail_and_a_known_one_is_not(ada):
    client = with_password().client
    (message,) = mail.outbox
    assert message.to == ["ada@example.org"] and "127.0.0.1" in message.body
    client.post(reverse("account_logout"))
    with_password(client=client)
    assert len(mail.outbox) == 1


@pytest.mark.slow
def test_10000_guesses_from_everywhere_let_nobody_in_and_lock_nobody_out(ada):
    """A hundred addresses guess at one account, which its owner goes on using from her own browser."""
    mine = with_password().client
    others = get_user_model().objects.create_user("bo", password=PASSWORD)
    MembershipFactory(user=others)
    statuses = set()
    for n in range(10_000):
        told = {"login": "ada", "password": f"guess {n}"}
        guess = Client().post(reverse("account_login"), told, REMOTE_ADDR=f"198.51.{n % 100}.7")
        statuses.add(guess.status_code)
        assert "sessionid" not in guess.cookies
    assert statuses == {200, 429}

    mine.post(reverse("account_logout"))
    with_password(client=mine)
    assert signed_in(mine)
    assert signed_in(with_password("bo").client)


# Cookies

TOLD = """
import django, json
django.setup()
from django.conf import settings
from groups.sign_in import pace
print(json.dumps({n: getattr(settings, n) for n in dir(settings) if "_COOKIE_" in n} | {"known": pace.KNOWN}))
"""


def test_behind_https_every_cookie_is_secure_and_what_signs_in_is_this_hosts_alone(
    ada, settings, monkeypatch, tmp_path
):
    environment = {"PATH": os.environ["PATH"], "DEPUTY_HOME": str(tmp_path), **PRODUCTION}
    made = subprocess.run(
        [sys.executable, "-c", TOLD], cwd=PROJECT, env=environment, capture_output=True, text=True, check=True
    )
    told = json.loads(made.stdout)
    monkeypatch.setattr(pace, "KNOWN", told.pop("known"))
    for name, value in told.items():
        setattr(settings, name, value)

    client = Client()
    client.get(reverse("account_login"), secure=True)
    client.post(reverse("account_login"), {"login": "ada", "password": PASSWORD}, secure=True)
    client.post(reverse("web:choose"), {"theme": "dark", "time_zone": "Asia/Shanghai"}, secure=True)
    client.post(reverse("set_language"), {"language": "zh-hans"}, secure=True)

    cookies = client.cookies
    hosts_own = {name for name in cookies if name.startswith("__Host-")}
    assert hosts_own == {"__Host-sessionid", "__Host-csrftoken", "__Host-deputy_known"}
    assert {"theme", "time_zone", "django_language"} < set(cookies)
    for name, cookie in cookies.items():
        assert cookie["secure"] and cookie["samesite"] == "Lax", name
        assert cookie["httponly"] or name == "__Host-csrftoken", name
        assert (cookie["path"], cookie["domain"]) == ("/", ""), name
