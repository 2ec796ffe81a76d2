"""Signing in by a provider of identities: what is accepted, whom it means, and what it opens."""

import ast
import base64
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from html import unescape
from unittest.mock import patch

import jwt
import pytest
from allauth.mfa.totp.internal import auth as totp
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth import get_user_model, update_session_auth_hash
from django.contrib.sessions.models import Session
from django.db import connections
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone

from groups import changes
from groups.actors import CONFIRMED_AT
from groups.models import Change, IdentityProvider, Membership, ProviderSession
from groups.models.providers import INSTALLATION
from groups.sign_in import identities, openid, sessions
from groups.sign_in.addresses import entered
from tests.admin_world import PASSWORD, superuser
from tests.factories import MembershipFactory, OrganizationFactory, ProjectFactory
from tests.identity_provider import OTHER_KEY, IdentityServer

pytestmark = pytest.mark.django_db
User = get_user_model()
ENVIRONMENT = {
    "issuer": "https://id.example.org", "client_id": "deputy", "secret": "s", "name": "Company",
    "scopes": "openid profile email", "groups_claim": "groups", "rules": [], "default_role": "",
    "domains": [], "only": False, "organization": "",
}  # fmt: skip


@pytest.fixture
def server(monkeypatch):
    found = IdentityServer()
    monkeypatch.setattr(openid, "fetch", found.fetch)
    openid._kept.clear()
    return found


@pytest.fixture
def acme():
    return ProjectFactory(slug="atlas", organization__slug="acme").organization


@pytest.fixture
def provider(acme, server):
    return provider_of(acme)


def provider_of(organization, **fields):
    usual = {"issuer": "https://id.example.org", "client_id": "deputy", "default_role": "member"}
    usual["makes_accounts"] = True
    found = IdentityProvider(organization=organization, name="Company", **{**usual, **fields})
    found.keep_secret("s3cret")
    found.save()
    long_ago = timezone.now() - timedelta(days=1)
    IdentityProvider.objects.filter(pk=found.pk).update(changed_at=long_ago)
    return found


def begun(provider, client, purpose="begin", **asked):
    return client.get(reverse(f"oidc_{purpose}", args=[provider.pk]), asked)["Location"]


def back(provider, client, told):
    return client.get(reverse("oidc_callback", args=[provider.pk]), told)


def sign_in(provider, server, client=None, **asked):
    """The answer to the callback, of a client that remembers it."""
    client = client or Client()
    answer = back(provider, client, server.authorize(begun(provider, client, **asked)))
    answer.browser = client
    return answer


def who(client):
    return User.objects.filter(pk=client.session.get("_auth_user_id")).first()


def refused(answer, reason, caplog):
    assert answer.status_code == 403 and reason in unescape(answer.content.decode())
    assert f"was refused: {reason}" in caplog.text
    return True


# What is accepted


def test_somebody_signs_in_with_pkce_state_and_nonce(provider, server, acme):
    client = Client()
    address = begun(provider, client, next="/known/")
    for name in ("code_challenge_method=S256", "state=", "nonce=", "code_challenge="):
        assert name in address
    answer = back(provider, client, server.authorize(address))
    assert answer["Location"] == "/known/"
    made = Membership.objects.get(organization=acme)
    assert who(client) == made.user and made.role == "member" and not made.user.has_usable_password()
    assert client.get("/").status_code == 200


LIES = {
    "token of another issuer": {"token": {"iss": "https://evil.example"}},
    "token for somebody else": {"token": {"aud": "another client"}},
    "expired token": {"token": {"exp": int(time.time()) - 120}},
    "token of the future": {"token": {"iat": int(time.time()) + 100_000}},
    "wrong nonce": {"token": {"nonce": "replayed"}},
    "forged or broken token": {"key": OTHER_KEY},
    "signed by a key that is not the provider's": {"headers": {"kid": "unknown"}},
    "userinfo of somebody else": {"userinfo": {"sub": "another", "email": "x@example.org"}},
    "the configuration is of another issuer": {"metadata": {"issuer": "https://evil.example"}},
    "the token_endpoint is not https": {"metadata": {"token_endpoint": "http://id.example.org/token"}},
    "no subject": {"claims": {"sub": ""}},
    "token without an end": {"token": {"exp": None}},
}


@pytest.mark.parametrize("reason", LIES)
def test_what_a_provider_may_not_say_signs_nobody_in(provider, server, reason, caplog):
    client = Client()
    address = begun(provider, client)
    openid._kept.clear()
    for name, value in LIES[reason].items():
        setattr(server, name, value)
    assert refused(back(provider, client, server.authorize(address)), reason, caplog)
    assert who(client) is None and not SocialAccount.objects.exists()


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_a_token_signed_by_no_key_or_by_the_public_one_is_refused(provider, server, algorithm, caplog):
    server.algorithm, server.key = algorithm, None if algorithm == "none" else "s3cret" * 8
    assert refused(sign_in(provider, server), "forged or broken token", caplog)


@pytest.mark.parametrize("seconds", [-50, 50])
def test_clocks_may_differ_by_a_minute(provider, server, seconds):
    now = int(time.time())
    server.token = {"iat": now + seconds, "exp": now + 10 if seconds > 0 else now - 40}
    assert sign_in(provider, server).status_code == 302


def test_a_state_works_once_and_in_its_own_browser(provider, server, caplog):
    client = Client()
    told = server.authorize(begun(provider, client))
    assert refused(back(provider, Client(), told), "unknown or used state", caplog)
    assert back(provider, client, told).status_code == 302
    client.post(reverse("account_logout"))
    assert refused(back(provider, client, told), "unknown or used state", caplog)


def test_a_state_ends(provider, server, caplog, monkeypatch):
    client = Client()
    told = server.authorize(begun(provider, client))
    monkeypatch.setattr(openid, "STATE_SECONDS", -1)
    assert refused(back(provider, client, told), "expired state", caplog)


def test_the_answer_of_one_provider_is_not_taken_for_anothers(provider, server, caplog):
    other = provider_of(OrganizationFactory())
    client = Client()
    told = server.authorize(begun(provider, client))
    assert refused(back(other, client, told), "answer of another provider", caplog)
    told = server.authorize(begun(provider, client), iss="https://evil.example")
    assert refused(back(provider, client, told), "answer of another issuer", caplog)


def test_an_answer_without_its_issuer_is_refused_where_it_has_to_name_it(provider, server, caplog):
    server.metadata = {"authorization_response_iss_parameter_supported": True}
    assert refused(sign_in(provider, server), "answer of another issuer", caplog)
    client = Client()
    told = server.authorize(begun(provider, client), iss=provider.issuer)
    assert back(provider, client, told).status_code == 302


@pytest.mark.parametrize(
    "where", ["https://evil.example/", "//evil.example", "/\\evil.example", "http:///evil"]
)
def test_nobody_is_sent_to_another_site_afterwards(provider, server, where):
    assert sign_in(provider, server, next=where)["Location"] == "/"


def test_the_callback_is_where_people_reach_deputy_whatever_host_was_asked(provider, settings):
    settings.ALLOWED_HOSTS = ["*"]
    settings.PUBLIC_URL = "https://deputy.example.org"
    asked = Client().get(reverse("oidc_begin", args=[provider.pk]), HTTP_HOST="evil.example")["Location"]
    assert "redirect_uri=https%3A%2F%2Fdeputy.example.org%2F" in asked and "evil" not in asked


def test_an_issuer_inside_the_network_is_not_asked(acme, caplog):
    openid._kept.clear()
    inside = provider_of(acme, issuer="https://169.254.169.254")
    answer = Client().get(reverse("oidc_begin", args=[inside.pk]))
    assert refused(answer, "the provider cannot be asked: ADDRESS_REFUSED", caplog)


def test_a_second_factor_set_up_here_is_asked_for_all_the_same(provider, server):
    from tests.integration.test_sign_in import with_totp

    user = who(sign_in(provider, server).browser)
    with_totp(user)
    answer = sign_in(provider, server)
    assert answer["Location"] == reverse("mfa_authenticate") and who(answer.browser) is None


# Whom it means


def local(name, organization, email="", **fields):
    user = User.objects.create_user(name, email, PASSWORD, **fields)
    MembershipFactory(user=user, organization=organization, role="decider")
    return user


@pytest.mark.parametrize("verified", [True, False, None, "true"])
def test_no_organization_signs_in_as_somebody_of_another_by_claiming_their_address(server, acme, verified):
    """Its administrator configures an issuer of their own, and has named every domain."""
    victim = local("bo", OrganizationFactory(), "bo@victim.example")
    evil = provider_of(acme, domains=["victim.example"], default_role="administrator")
    server.claims = {"sub": "s-9", "email": "bo@victim.example", "preferred_username": "bo"}
    if verified is not None:
        server.claims["email_verified"] = verified
    client = sign_in(evil, server).browser
    assert who(client) != victim
    assert not SocialAccount.objects.filter(user=victim).exists()
    if who(client) is not None:
        assert who(client).username != "bo" and who(client).email == ""


def test_nor_as_a_superuser_who_is_its_member(server, acme, caplog):
    root = superuser()
    root.email = "root@acme.example"
    root.save()
    MembershipFactory(user=root, organization=acme)
    evil = provider_of(acme, domains=["acme.example"])
    server.claims = {"sub": "s-9", "email": "root@acme.example", "email_verified": True}
    assert refused(sign_in(evil, server), "a superuser signs in by no organization", caplog)
    SocialAccount.objects.create(provider=evil.pk, uid="s-9", user=root)
    assert refused(sign_in(evil, server), "a superuser signs in by no organization", caplog)


@pytest.mark.parametrize(
    ("domains", "verified", "means_them"),
    [
        (["acme.example"], True, True),
        (["acme.example"], False, False),
        ([], True, False),
        (["x.org"], True, False),
    ],
)
def test_a_verified_address_of_a_domain_that_is_its_own_means_its_own_member(
    server, acme, domains, verified, means_them
):
    ada = local("ada", acme, "ada@acme.example")
    trusted = provider_of(acme, domains=domains, default_role="decider")
    server.claims = {"sub": "s-2", "email": "Ada@acme.example", "email_verified": verified}
    assert (who(sign_in(trusted, server).browser) == ada) == means_them


@pytest.mark.parametrize(
    "said", ["lıs@acme.example", "liſ@acme.example", "LIſ@ACME.example", "lis@acme.examplE"]
)
def test_an_address_that_a_database_takes_for_theirs_is_another(server, acme, said):
    """It ignores case, and some letters of other addresses have the same capital."""
    lis = local("lis", acme, "Lis@acme.example")
    trusted = provider_of(acme, domains=["acme.example"], default_role="decider")
    server.claims = {"sub": "s-2", "email": said, "email_verified": True}
    signed_in = who(sign_in(trusted, server).browser)
    assert signed_in is not None and (signed_in == lis) is said.isascii()


@pytest.mark.parametrize(
    "said",
    [
        "eve@straße.example",  # a domain of its own, which anybody may have
        "eve@ſtrasse.example",
        "eve@evil.example@strasse.example",
        "eve@evil.example,x@strasse.example",
        "eve x@strasse.example",
    ],
)
def test_no_address_of_another_domain_counts_as_of_one_that_is_named(server, acme, said):
    trusted = provider_of(acme, domains=["Strasse.example"], default_role="decider")
    server.claims = {"sub": "s-2", "email": said, "email_verified": True}
    assert who(sign_in(trusted, server).browser) is None
    server.claims["email"] = "eve@STRASSE.example"
    assert who(sign_in(trusted, server).browser) is not None


def test_an_address_that_somebody_only_says_is_theirs_draws_nobody_to_their_account(server, acme, caplog):
    eve = local("eve", acme, "chief@acme.example")
    eve.emailaddress_set.create(email="chief@acme.example", primary=True)
    trusted = provider_of(acme, domains=["acme.example"])
    server.claims = {"sub": "s-2", "email": "chief@acme.example", "email_verified": True}
    assert refused(sign_in(trusted, server), "an account has not shown that the e-mail address is", caplog)


def looked_at(ada):
    client = Client()
    client.force_login(ada)
    client.get(reverse("account_email"))
    assert ada.emailaddress_set.filter(verified=False).exists()  # allauth's own


def given_back(ada):
    """By a superuser, after the person had gone to and fro."""
    removed_while_made_primary(ada)
    with changes.acting(superuser()):
        for address in ("ada@home.example", "ada@acme.example"):
            ada.email = address
            ada.save()


def moved(ada):
    """They gave their account another address, which they have shown to be theirs, and removed the first."""
    client = Client()
    client.force_login(ada)
    session = client.session
    session[CONFIRMED_AT] = int(time.time())
    session.save()
    ada.emailaddress_set.create(email="ada@home.example", verified=True)
    for action, address in (("primary", "ada@home.example"), ("remove", "ada@acme.example")):
        client.post(reverse("account_email"), {"email": address, f"action_{action}": ""})
    ada.refresh_from_db()
    assert ada.email == "ada@home.example" and not entered(ada, "ada@acme.example")


def shown_and_removed(ada):
    ada.emailaddress_set.create(email="ada@home.example", verified=True, primary=True)
    User.objects.filter(pk=ada.pk).update(email="ada@home.example")
    ada.emailaddress_set.create(email="ada@acme.example", verified=True).delete()


def closed(ada):
    ada.is_active = False
    ada.save()


def connected_to_another(ada):
    SocialAccount.objects.create(provider=IdentityProvider.objects.get().pk, uid="s-1", user=ada)


def removed_while_made_primary(ada):
    """Of two requests at once, as versions before took them: the account's address, and no row of it."""
    with changes.acting(ada):
        ada.email = "ada@home.example"
        ada.save()
        ada.email = "ada@acme.example"
        ada.save()
    looked_at(ada)


def left(ada):
    ada.memberships.get().delete()


def closed_and_left(ada):
    closed(ada)
    left(ada)


def of_two(ada):
    local("ada2", ada.memberships.get().organization, "ADA@acme.example")


ANOTHER = {
    moved: "an account had the e-mail address",
    shown_and_removed: "an account had the e-mail address",
    closed: "the account is not active",
    connected_to_another: "the account is connected to another identity",
    removed_while_made_primary: "an account had the e-mail address",
    left: "an account that has left the organization",
    closed_and_left: "an account that has left the organization",
    of_two: "several accounts have the e-mail address",
}


@pytest.mark.parametrize("what", ANOTHER)
def test_who_has_an_account_gets_no_second_one(server, acme, what, caplog):
    """With which they would vote twice, decide about their own runs, or come back."""
    ada = local("ada", acme, "ada@acme.example")
    trusted = provider_of(acme, domains=["acme.example"], default_role="decider")
    what(ada)
    before = User.objects.count()
    server.claims = {"sub": "s-2", "email": "ada@acme.example", "email_verified": True}
    assert refused(sign_in(trusted, server), ANOTHER[what], caplog)
    assert User.objects.count() == before


def makes_none(provider):
    provider.makes_accounts = False
    provider.save()


def knows_no_group(provider):
    provider.rules = provider.rules[1:]
    provider.save()


def is_off(provider):
    IdentityProvider.objects.filter(pk=provider.pk).update(active=False)


def asks_another(provider):
    IdentityProvider.objects.filter(pk=provider.pk).update(issuer="https://two.example.org")


MEANWHILE = {
    makes_none: "no account is connected to this identity, and the provider makes none",
    knows_no_group: "in no group that makes a member",
    is_off: "the provider's entry has been changed meanwhile",
    asks_another: "the provider's entry has been changed meanwhile",
}


@pytest.mark.parametrize("what", MEANWHILE)
def test_a_sign_in_goes_by_the_entry_as_it_is_when_the_provider_has_answered(
    server, acme, what, caplog, monkeypatch
):
    rules = [{"group": "chiefs", "role": "administrator", "projects": None}, {"group": "x", "role": "viewer"}]
    provider = provider_of(acme, domains=["acme.example"], default_role="", rules=rules)
    finish = openid.finish

    def slowly(request, asked):
        found = finish(request, asked)
        what(provider)
        return found

    monkeypatch.setattr(openid, "finish", slowly)
    server.claims = {"sub": "s-2", "email": "ada@acme.example", "email_verified": True, "groups": ["chiefs"]}
    assert refused(sign_in(provider, server), MEANWHILE[what], caplog)
    assert not Membership.objects.filter(organization=acme).exists()


def taken_out(ada):
    Membership.objects.filter(user=ada).update(active=False, denied_tools=["send_email"])


@pytest.mark.parametrize("what", [looked_at, given_back, taken_out])
def test_who_has_an_account_signs_in_to_it(server, acme, what):
    ada = local("ada", acme, "ada@acme.example")
    trusted = provider_of(acme, domains=["acme.example"], default_role="decider")
    what(ada)
    server.claims = {"sub": "s-2", "email": "ada@acme.example", "email_verified": True}
    assert who(sign_in(trusted, server).browser) == ada
    assert Membership.objects.filter(organization=acme).count() == 1


@pytest.mark.parametrize("elsewhere", [True, False])
@pytest.mark.parametrize("role", ["decider", ""])
def test_whoever_a_provider_has_brought_is_the_same_at_the_next_one(server, acme, elsewhere, role, caplog):
    """Also where the account that was made has no address, since another organization's has it, or is no
    member yet.
    """
    if elsewhere:
        local("ada", OrganizationFactory(), "ada@acme.example")
    usual = {"domains": ["acme.example"], "default_role": role}
    first, second = provider_of(acme, **usual), provider_of(acme, **usual, issuer="https://two.example.org")
    server.claims = {"sub": "s-2", "email": "ada@acme.example", "email_verified": True}
    made = who(sign_in(first, server).browser)
    link = SocialAccount.objects.get()
    SocialAccount.objects.filter(pk=link.pk).update(provider=second.pk)
    assert who(sign_in(first, server).browser) == made
    server.claims["sub"] = "s-3"
    assert refused(sign_in(first, server), "the account is connected to another identity", caplog)
    assert Membership.objects.filter(organization=acme).count() == bool(role)


def by_hand(ada, provider, server):
    client = Client()
    client.force_login(ada)
    sign_in(provider, server, client, purpose="connect")
    assert client.post(reverse("oidc_connected", args=[provider.pk])).status_code == 302


def another_since(ada, provider, server):
    by_hand(ada, provider, server)
    server.claims["email"] = "ada2@acme.example"
    assert who(sign_in(provider, server).browser) == ada


def removed_since(ada, provider, server):
    by_hand(ada, provider, server)
    provider.delete()


def at_the_installations(ada, provider, server):
    by_hand(ada, provider, server)
    SocialAccount.objects.update(provider=INSTALLATION)


@pytest.mark.parametrize("how", [by_hand, removed_since, at_the_installations])
def test_whoever_has_connected_an_identity_is_the_same_at_the_next_provider(server, acme, how):
    """By the address that it came with, which is not the account's."""
    ada = local("ada", acme, "ada@home.example")
    usual = {"domains": ["acme.example"], "default_role": "decider"}
    first, second = provider_of(acme, **usual), provider_of(acme, **usual, issuer="https://two.example.org")
    with changes.acting(ada):
        first.name = "Another name"
        first.save()
    server.claims = {"sub": "s-1", "email": "Ada@acme.example", "email_verified": True}
    how(ada, first, server)
    claims = {"sub": "s-2", "email": "ada@acme.example", "email_verified": True}
    assert identities.of(second, claims) == ada


def test_an_address_that_an_identity_has_come_with_is_nobody_elses(server, acme, caplog):
    """It may be another's by now, so that it leads into no account, and draws none."""
    ada = local("ada", acme, "ada@home.example")
    trusted = provider_of(acme, domains=["acme.example"], default_role="decider")
    server.claims = {"sub": "s-1", "email": "ada@acme.example", "email_verified": True}
    another_since(ada, trusted, server)
    server.claims = {"sub": "s-2", "email": "ada@acme.example", "email_verified": True}
    assert refused(sign_in(trusted, server), "an account had the e-mail address", caplog)
    assert User.objects.count() == 1


def test_an_identity_of_the_installations_provider_brings_nobody_elses_people(server, acme):
    stranger = local("eve", OrganizationFactory(), "eve@home.example")
    link = SocialAccount(provider=INSTALLATION, uid="s-1", user=stranger)
    link.extra_data = {"email": "ada@acme.example"}
    link.save()
    server.claims = {"sub": "s-2", "email": "ada@acme.example", "email_verified": True}
    trusted = provider_of(acme, domains=["acme.example"])
    assert who(sign_in(trusted, server).browser) not in (None, stranger)


@pytest.mark.django_db(transaction=True)
def test_who_comes_in_twice_at_once_is_one_person(acme):
    """At two providers, or at one in two browsers."""
    usual = {"domains": ["acme.example"], "default_role": "decider"}
    first, second = provider_of(acme, **usual), provider_of(acme, **usual, issuer="https://two.example.org")
    told = {"sub": "s-2", "email": "ada@acme.example", "email_verified": True}
    comes = [(first, told), (second, {**told, "sub": "s-3"}), (first, told), (second, {**told, "sub": "s-3"})]
    together = threading.Barrier(len(comes))

    def signs_in(provider, claims):
        try:
            together.wait()
            return identities.of(provider, claims).pk
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(comes)) as pool:
        accounts = {one.result() for one in [pool.submit(signs_in, *come) for come in comes]}
    assert len(accounts) == 1 and SocialAccount.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_two_of_one_name_who_come_in_at_once_are_two_people(acme):
    provider = provider_of(acme)
    together = threading.Barrier(4)

    def signs_in(number):
        try:
            together.wait()
            return identities.of(provider, {"sub": str(number), "preferred_username": "ada"}).username
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        names = set(pool.map(signs_in, range(4)))
    assert names == {"ada@acme", "ada1@acme", "ada2@acme", "ada3@acme"}


@pytest.mark.parametrize("domains", [[], ["acme.example"]])
def test_accounts_are_made_where_the_provider_is_said_to(server, acme, domains, caplog):
    """Somebody whose account has no address, or another one, would get a second."""
    local("ada", acme)
    trusted = provider_of(acme, domains=domains, makes_accounts=False)
    server.claims = {"sub": "s-2", "email": "ada@acme.example", "email_verified": True}
    assert refused(sign_in(trusted, server), "no account is connected to this identity", caplog)
    IdentityProvider.objects.update(makes_accounts=True)
    assert who(sign_in(trusted, server).browser) is not None


@pytest.mark.parametrize("by_password", [True, False])
def test_a_sign_in_that_ended_on_the_way_vouches_for_no_other(server, acme, by_password):
    """Stopped at the second factor at the provider, and gone on with by the password."""
    ada = local("ada", acme, "ada@acme.example")
    secret = generate_totp_secret()
    TOTP.activate(ada, secret)
    provider = provider_of(acme, only=True, domains=["acme.example"])
    server.claims = {"sub": "s-2", "email": "ada@acme.example", "email_verified": True}
    stopped = sign_in(provider, server)
    client, factor = stopped.browser, reverse("mfa_authenticate")
    assert stopped["Location"].startswith(factor)
    if by_password:
        session = client.session
        session["account_login"]["initiated_at"] -= 1000  # ACCOUNT_LOGIN_TIMEOUT is over
        session.save()
        step = client.post(reverse("account_login"), {"login": "ada", "password": PASSWORD})
        assert step["Location"].startswith(factor)
    half_minute = next(totp.yield_hotp_counters_from_time())
    code = totp.format_hotp_value(totp.hotp_value(secret, half_minute))
    assert client.post(factor, {"code": code}).status_code == 302 and who(client) == ada
    assert (client.get("/api/runs/").status_code == 403) == by_password


def test_only_through_a_provider_shuts_out_who_came_by_another(server, acme):
    ada = local("ada", acme)
    other = provider_of(acme, issuer="https://other.example.org")
    only = provider_of(acme, only=True)
    for provider, opens in ((only, True), (other, False)):
        client = Client()
        client.force_login(ada)
        session = client.session
        told = {"user": ada.pk, "provider": provider.pk, "organization": acme.pk, "sid": "", "at": 0}
        session["deputy_through"] = told
        session.save()
        assert (client.get("/api/runs/").status_code == 200) == opens
    IdentityProvider.objects.filter(pk=other.pk).update(only=True)
    assert client.get("/api/runs/").status_code == 200


def test_what_an_organizations_provider_opens_is_that_organization_alone(provider, server, acme):
    user = who(sign_in(provider, server).browser)
    elsewhere = MembershipFactory(user=user, role="administrator").organization
    client = sign_in(provider, server).browser
    assert str(elsewhere) not in client.get("/settings/").content.decode()
    answer = client.get("/api/runs/", headers={"X-Organization": elsewhere.slug})
    assert answer.status_code == 403
    assert client.get("/api/runs/", headers={"X-Organization": acme.slug}).status_code == 200


def test_the_admins_page_that_asks_names_no_project_of_another(provider, server):
    user = who(sign_in(provider, server).browser)
    User.objects.filter(pk=user.pk).update(is_staff=True)
    elsewhere = ProjectFactory(organization=MembershipFactory(user=user, role="administrator").organization)
    mine, asking = sign_in(provider, server).browser, reverse("admin:runs_run_ask")
    page = mine.get(asking)
    assert page.status_code == 200 and elsewhere.pk not in page.content.decode()
    other = Client()
    other.force_login(user)
    assert elsewhere.pk in other.get(asking).content.decode()


@pytest.mark.parametrize(
    "name", ["account_set_password", "account_email", "mfa_activate_totp", "mfa_add_webauthn", "mfa_index"]
)
def test_and_it_changes_nothing_about_how_the_account_signs_in(provider, server, name):
    client = sign_in(provider, server).browser
    assert client.get(reverse(name)).status_code == client.post(reverse(name)).status_code == 403


def test_a_session_ends_when_its_user_becomes_a_superuser_or_the_provider_goes(provider, server):
    first, second = (sign_in(provider, server).browser for _ in range(2))
    User.objects.filter(pk=who(first).pk).update(is_superuser=True)
    assert first.get("/").status_code == 302 and who(first) is None
    User.objects.update(is_superuser=False)
    IdentityProvider.objects.update(active=False)
    assert second.get("/").status_code == 302 and who(second) is None


def test_a_member_connects_an_identity_while_signed_in_and_nobody_elses(provider, server, acme, caplog):
    ada, bo = local("ada", acme), local("bo", acme)
    for user, works in ((ada, True), (bo, False)):
        client = Client()
        client.force_login(user)
        seen = sign_in(provider, server, client, purpose="connect")
        assert seen.status_code == 200 and not SocialAccount.objects.filter(user=user).exists()
        answer = client.post(reverse("oidc_connected", args=[provider.pk]))
        assert (answer.status_code == 302) == works
    assert refused(answer, "the identity is connected to another account", caplog)
    assert who(sign_in(provider, server).browser) == ada


def test_who_is_no_member_connects_no_identity_of_the_organization(provider, server, caplog):
    stranger = local("eve", OrganizationFactory())
    client = Client()
    client.force_login(stranger)
    sign_in(provider, server, client, purpose="connect")
    answer = client.post(reverse("oidc_connected", args=[provider.pk]))
    assert refused(answer, "an organization's provider is connected by its members", caplog)


def test_an_issuer_at_which_anybody_has_an_account_takes_a_domain(server, acme, caplog, monkeypatch):
    public = IdentityServer("https://accounts.google.com")
    monkeypatch.setattr(openid, "fetch", public.fetch)
    google = provider_of(acme, issuer="https://accounts.google.com")
    assert refused(sign_in(google, public), "an e-mail address the provider may not vouch for", caplog)


# Groups


def test_groups_make_members_and_take_away_at_the_next_sign_in(server, acme):
    rules = [
        {"group": "chiefs", "role": "administrator", "projects": None},
        {"group": "staff", "role": "decider", "projects": ["atlas", "gone"]},
    ]
    provider = provider_of(acme, rules=rules, default_role="")
    server.claims = {"sub": "s-3", "groups": ["staff", "other"]}
    client = sign_in(provider, server).browser
    member = Membership.objects.get(organization=acme)
    assert (member.role, member.projects) == ("decider", [acme.projects.get().pk])
    server.claims["groups"] = ["chiefs", "staff"]
    sign_in(provider, server)
    member.refresh_from_db()
    assert (member.role, member.projects) == ("administrator", None)
    assert Change.objects.filter(model="groups.membership", object_id=member.pk, action="changed").exists()

    server.claims["groups"] = []
    assert sign_in(provider, server).browser.get("/").status_code == 403
    member.refresh_from_db()
    assert not member.active
    assert client.get("/").status_code == 403  # the session from before, at its next request


def test_who_is_in_no_group_gets_no_account(server, acme, caplog):
    provider = provider_of(acme, rules=[{"group": "staff", "role": "member"}], default_role="")
    assert refused(sign_in(provider, server), "in no group that makes a member", caplog)
    assert not User.objects.exists()


def test_groups_never_make_a_service_account_a_person(provider, server, acme, caplog):
    robot = MembershipFactory(organization=acme, kind="service").user
    SocialAccount.objects.create(provider=provider.pk, uid="s-1", user=robot)
    assert refused(sign_in(provider, server), "a service account signs in by no provider", caplog)


# Only through the provider


def test_only_through_the_provider_shuts_out_passwords_but_no_superuser(provider, server, acme):
    ada = local("ada", acme)
    root = superuser()
    MembershipFactory(user=root, organization=acme)
    clients = []
    for user in (ada, root):
        clients.append(Client())
        clients[-1].force_login(user)
    assert [client.get("/").status_code for client in clients] == [200, 200]
    IdentityProvider.objects.update(only=True)
    assert [client.get("/").status_code for client in clients] == [403, 200]
    assert sign_in(provider, server).browser.get("/").status_code == 200


def test_the_installation_may_take_its_provider_only(server, settings, acme):
    ada, root = local("ada", acme), superuser()
    before = Client()
    before.force_login(ada)
    settings.OIDC = {**ENVIRONMENT, "only": True, "organization": "acme", "default_role": "member"}
    assert before.get("/").status_code == 302 and who(before) is None
    door = reverse("account_login")
    assert Client().post(door, {"login": "ada", "password": PASSWORD}).status_code == 403
    glass = Client()
    glass.post(door, {"login": "root", "password": PASSWORD})
    assert who(glass) == root
    environment = type("E", (), {"pk": "installation"})
    client = sign_in(environment, server).browser
    assert who(client) is not None and client.get("/").status_code == 200
    assert "Company" in Client().get(door).content.decode()


def test_an_organizations_door_names_its_provider_and_others_none(provider):
    assert provider.name in Client().get("/sign-in/acme/").content.decode()
    OrganizationFactory(slug="quiet")
    assert Client().get("/sign-in/quiet/").status_code == Client().get("/sign-in/nothing/").status_code == 404
    assert provider.pk not in Client().get("/sign-in/").content.decode()


# Confirming, and the end of sessions


def test_a_sign_in_confirms_when_the_provider_says_the_person_proved_themselves(provider, server):
    assert sign_in(provider, server).browser.session[CONFIRMED_AT] == 0
    server.claims["auth_time"] = long_ago = int(time.time()) - 5000
    assert sign_in(provider, server).browser.session[CONFIRMED_AT] == long_ago
    server.claims["auth_time"] = int(time.time()) + 5000
    assert sign_in(provider, server).browser.session[CONFIRMED_AT] == 0


def test_confirming_at_the_provider_takes_somebody_who_signs_in_there_anew(provider, server, caplog):
    client = sign_in(provider, server).browser
    to = client.get(reverse("web:confirm"), {"next": "/known/"})["Location"]
    assert to.startswith(reverse("oidc_confirm", args=[provider.pk]))
    address = client.get(to)["Location"]
    assert "prompt=login" in address and "max_age=0" in address
    answer = back(provider, client, server.authorize(address))
    assert refused(answer, "the provider does not say that the person has just signed in", caplog)
    server.claims["auth_time"] = int(time.time())
    assert sign_in(provider, server, client, purpose="confirm").status_code == 302
    assert client.session[CONFIRMED_AT] >= int(time.time()) - 60
    server.claims["sub"] = "s-2"
    assert refused(sign_in(provider, server, client, purpose="confirm"), "somebody else", caplog)


def test_a_provider_changed_within_the_hour_confirms_nobody(provider, server):
    server.claims["auth_time"] = int(time.time())
    assert sign_in(provider, server).browser.session[CONFIRMED_AT] > 0
    provider.save()
    assert sign_in(provider, server).browser.session[CONFIRMED_AT] == 0


def test_the_provider_ends_its_sessions_and_no_others(provider, server, acme):
    server.claims["sid"] = "one"
    first = sign_in(provider, server).browser
    server.claims["sid"] = "two"
    second = sign_in(provider, server).browser
    ada = Client()
    ada.force_login(local("ada", acme))
    address = reverse("oidc_logout", args=[provider.pk])
    assert Client().post(address, {"logout_token": "x.y.z"}).status_code == 400
    assert Client().post(address, {"logout_token": server.id_token("n")}).status_code == 400
    assert Client().post(address, {"logout_token": server.logout_token(sid="one")}).status_code == 200
    assert [client.get("/").status_code for client in (first, second, ada)] == [302, 200, 200]
    assert Client().post(address, {"logout_token": server.logout_token(sub="s-1")}).status_code == 200
    assert [client.get("/").status_code for client in (second, ada)] == [302, 200]


def test_a_logout_reads_no_session_but_those_it_may_end(provider, server, acme):
    server.claims["sid"] = "one"
    mine = sign_in(provider, server).browser
    for number in range(3):
        Client().force_login(local(f"bo{number}", acme))
    read = []
    decoded = Session.get_decoded
    with patch.object(Session, "get_decoded", lambda row: read.append(row.pk) or decoded(row)):
        told = {"logout_token": server.logout_token(sid="one")}
        assert Client().post(reverse("oidc_logout", args=[provider.pk]), told).status_code == 200
    assert read == [mine.cookies["sessionid"].value] and mine.get("/").status_code == 302


@pytest.mark.parametrize("told", [{"sid": "one"}, {"sub": "s-1"}])
def test_a_session_that_got_another_key_since_ends_with_it(provider, server, acme, told):
    """A new password gives one's own session another key."""
    server.claims["sid"] = "one"
    browser = sign_in(provider, server).browser
    before = browser.cookies["sessionid"].value
    user = User.objects.get(pk=browser.session["_auth_user_id"])
    request = RequestFactory().get("/")
    request.user, request.session = user, browser.session
    user.set_password(PASSWORD)
    user.save()
    update_session_auth_hash(request, user)
    sessions.note(request)
    request.session.save()
    browser.cookies["sessionid"] = request.session.session_key
    assert before != request.session.session_key and browser.get("/").status_code == 200
    Client().post(reverse("oidc_logout", args=[provider.pk]), {"logout_token": server.logout_token(**told)})
    assert browser.get("/").status_code == 302
    sessions.forget()
    assert not ProviderSession.objects.exists()


def test_a_sign_in_that_waits_for_its_second_factor_ends_with_it(provider, server):
    sign_in(provider, server)
    user = SocialAccount.objects.get().user
    TOTP.activate(user, generate_totp_secret())
    waiting = sign_in(provider, server).browser
    key = waiting.cookies["sessionid"].value
    assert "_auth_user_id" not in waiting.session
    told = {"logout_token": server.logout_token(sub="s-1")}
    Client().post(reverse("oidc_logout", args=[provider.pk]), told)
    assert not Session.objects.filter(pk=key).exists()


def test_what_is_no_logout_has_a_pace_and_a_logout_has_none(provider, server, settings):
    settings.SIGN_INS_ADDRESS = 3
    address = reverse("oidc_logout", args=[provider.pk])

    def post(token):
        return Client().post(address, {"logout_token": token})

    assert {post(server.logout_token(sid="x")).status_code for _ in range(5)} == {200}
    assert [post("x.y.z").status_code for _ in range(5)] == [400, 400, 400, 429, 429]
    assert post("x.y.z")["Retry-After"]


# Arranging it


def form(organization, **more):
    fields = {"organization": organization.pk, "name": "New", "issuer": "https://new.example.org"}
    return {**fields, "client_id": "c", "scopes": "openid", "groups_claim": "groups", **more}


@pytest.mark.parametrize(("role", "works"), [("administrator", True), ("decider", False)])
def test_an_administrator_arranges_the_provider_and_its_secret_never_comes_out(acme, role, works):
    clerk = User.objects.create_user("clerk", is_staff=True)
    MembershipFactory(user=clerk, organization=acme, role=role)
    client = Client()
    client.force_login(clerk)
    rules = "staff = decider: atlas\nchiefs=administrator"
    told = form(acme, secret="very-secret-indeed", who=rules, domains="acme.example")
    client.post(reverse("admin:groups_identityprovider_add"), told)
    found = IdentityProvider.objects.filter(name="New").first()
    assert (found is not None) == works
    if found is None:
        return
    assert found.secret == "very-secret-indeed" and "very-secret" not in found.sealed_secret
    assert found.rules[0] == {"group": "staff", "role": "decider", "projects": ["atlas"]}
    assert found.domains == []  # a superuser's to find out
    page = client.get(reverse("admin:groups_identityprovider_change", args=[found.pk])).content.decode()
    assert "very-secret" not in page and "staff = decider: atlas" in page
    assert "very-secret" not in str(list(Change.objects.values("before", "after")))


@pytest.mark.parametrize("who", ["staff", "= member", "staff = king", "staff = member: nowhere"])
def test_a_rule_that_means_nothing_is_refused(acme, who):
    client = Client()
    client.force_login(superuser())
    answer = client.post(reverse("admin:groups_identityprovider_add"), form(acme, who=who))
    assert answer.status_code == 200 and not IdentityProvider.objects.exists()


@pytest.mark.parametrize("fields", [None, ["issuer"]])
def test_a_secret_is_never_sent_to_another_issuer_than_it_was_entered_for(provider, fields):
    before = provider.changed_at
    provider.issuer = "https://evil.example"
    provider.save(update_fields=fields)  # as a second person's confirming does
    provider.refresh_from_db()
    assert provider.secret == "" and provider.changed_at > before


def test_jwt_library_refuses_the_algorithm_confusion_it_is_relied_on_for():
    with pytest.raises(jwt.PyJWTError):
        jwt.decode(jwt.encode({}, None, "none"), OTHER_KEY.public_key(), algorithms=openid.ALGORITHMS)


# What nobody can read


ODD = {
    "a token from beyond all time": {"token": {"iat": float("inf")}},
    "a token that ends beyond all time": {"token": {"exp": float("inf")}},
    "keys that are none": {"_keys": lambda how: (200, {"keys": ["none", 5]})},
    "no list of keys": {"_keys": lambda how: (200, {"keys": 5})},
    "a name that no database keeps": {"claims": {"sub": "s-1", "given_name": "A\x00"}},
    "half a surrogate": {"claims": {"sub": "s-1", "preferred_username": "a", "family_name": "\ud800"}},
    "a subject that no database keeps": {"claims": {"sub": "s\x00"}},
}


@pytest.mark.parametrize("odd", ODD)
def test_what_a_provider_says_that_nobody_can_read_is_refused_in_words(provider, server, odd, caplog):
    client = Client()
    address = begun(provider, client)
    openid._kept.clear()
    for name, value in ODD[odd].items():
        setattr(server, name, value)
    answer = back(provider, client, server.authorize(address))
    assert answer.status_code == 403 and who(client) is None


def test_ways_to_tell_the_secret_that_are_none_are_the_usual_one(provider, server):
    server.metadata = {"token_endpoint_auth_methods_supported": 5}
    assert sign_in(provider, server).status_code == 302


@pytest.mark.parametrize("at", [float("inf"), float("nan")])
def test_nobody_signs_in_who_proved_themselves_at_no_time(provider, server, at, caplog):
    server.token = {"auth_time": at}
    assert refused(sign_in(provider, server), "a token that cannot be kept", caplog)


BRACKETS = base64.urlsafe_b64encode(b"[" * 100_000).decode()


@pytest.mark.parametrize("token", [f"{BRACKETS}.e30.e30", "a.b.c", "\x00", "{'events': 5}", "{'iat': 'now'}"])
def test_a_logout_that_nobody_can_read_is_refused(provider, server, token):
    """Also of strangers, who need no account to send one."""
    if token.startswith("{"):
        token = server.logout_token(sub="s-1", **ast.literal_eval(token))
    told = Client().post(reverse("oidc_logout", args=[provider.pk]), {"logout_token": token})
    assert told.status_code == 400


def test_of_what_a_provider_says_little_is_kept_and_as_text(provider, server, monkeypatch):
    """What was parsed of five hundred large documents filled the memory of a web process."""
    most = {}
    monkeypatch.setattr(
        openid, "fetch", lambda address, **how: most.setdefault(address, how) and server.fetch(address, **how)
    )
    assert sign_in(provider, server).status_code == 302
    assert all(most[address]["max_bytes"] == openid.DOCUMENT_BYTES for address in openid._kept)
    assert {type(text) for _, text in openid._kept.values()} == {str}
