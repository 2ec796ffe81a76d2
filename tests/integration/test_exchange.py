"""A person's sign-in at a provider, exchanged for tokens of an MCP server (RFC 8693)."""

import json
from datetime import timedelta

import jwt
import pytest
from allauth.socialaccount.models import SocialAccount
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django_q.signing import SignedPackage

from common import sealed, token_endpoint
from groups import members
from groups.models import Change, IdentityProvider, KeptSignIn, Membership
from groups.models.providers import INSTALLATION
from groups.sign_in import openid
from runs.actions import mcp
from runs.execution import executor
from runs.models import ConnectedAccount, McpServer, QueueMessage, ToolCall, Wait
from runs.tools.mcp import accounts as authorizations
from runs.tools.mcp import client as mcp_client
from runs.tools.mcp import registry
from runs.tools.mcp.client import Unauthorized
from runs.workers import tasks
from tests.admin_world import client_of, superuser, url
from tests.factories import MembershipFactory, UserFactory, permit
from tests.identity_provider import OTHER_KEY, IdentityServer
from tests.integration.api_client import Api, problem
from tests.integration.helpers import events
from tests.integration.test_mcp_servers import FIND
from tests.integration.test_openid import ENVIRONMENT, begun, provider_of, sign_in
from tests.integration.test_sign_in import with_totp
from tests.scripted import call, say

pytestmark = pytest.mark.django_db
URL = "https://crm.example.org/mcp"


@pytest.fixture
def company(monkeypatch):
    """The provider of identities."""
    found = IdentityServer()
    found.metadata = {
        "scopes_supported": ["openid", "offline_access"],
        "introspection_endpoint": f"{found.issuer}/introspect",
        "revocation_endpoint": f"{found.issuer}/revoke",
    }
    monkeypatch.setattr(openid, "fetch", found.fetch)
    monkeypatch.setattr(token_endpoint, "fetch", found.fetch)
    openid._kept.clear()
    return found


@pytest.fixture
def provider(world, company):
    """Of mia's organization, where she has an identity."""
    found = provider_of(world.organization)
    SocialAccount.objects.create(provider=found.pk, uid="s-1", user=world.user)
    return found


@pytest.fixture
def crm(world, provider, monkeypatch):
    monkeypatch.setattr(mcp_client, "list_tools", lambda server, token="": [FIND])
    monkeypatch.setattr(mcp_client, "list_resources", lambda server, token="": ([], []))
    server = McpServer(organization=world.organization, name="crm", url=URL, as_person=True)
    server.exchange_at = provider.pk
    server.keep_headers({"Authorization": "Bearer the-shared-one"})
    server.full_clean(exclude=["problem"])
    server.save()
    assert mcp.refresh(server) == ""
    mcp.accept(server.tools.all(), world.user)
    return server


@pytest.fixture
def told(monkeypatch):
    """The tokens with which the CRM is called; it takes those that `refuses` does not name."""
    found = []

    def called(server, name, arguments, key, schema, token="", **more):
        found.append(token)
        if found.refuses(token):
            raise Unauthorized(server)
        return {"text": "Ada"}

    found = type("Told", (list,), {"refuses": staticmethod(lambda token: False)})()
    monkeypatch.setattr(registry, "call_tool", called)
    return found


def finding(messages, facts):
    asked = call(("crm.find_customer", {"name": "Ada"}))
    return say("Found.") if messages[-1].role == "tool" else asked


def go_on(world, server, run):
    """What the queue's task does after a sign-in, and then the run's worker."""
    tasks.repeat_calls(world.organization.pk, str(world.user.pk), authorizations.need(server.pk))
    executor.run(run.pk)
    run.refresh_from_db()
    return run


def exchanges(company):
    return [form for form in company.forms if form["grant_type"].endswith("token-exchange")]


def test_a_call_goes_with_a_token_of_the_server_that_the_persons_sign_in_was_exchanged_for(
    world, crm, company, provider, told, ask
):
    run = ask(finding)
    assert (run.status, run.waiting_reason) == ("waiting", "input") and told == []
    assert "Sign in at 'Company' again" in dict(events(run))["tool.waits"]["question"]

    browser = sign_in(provider, company).browser
    assert browser.session["_auth_user_id"] == str(world.user.pk) and "deputy_brought" not in browser.session
    assert go_on(world, crm, run).status == "completed"
    (token,) = told
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["aud"] == URL and "act" not in claims
    (form,) = exchanges(company)
    assert form["subject_token"] == "subject-1" and form["resource"] == URL and "audience" not in form
    called = [payload for type, payload in events(run) if type == "tool.called"]
    assert called[-1]["as_person"] == {"user": "mia", "server": "crm", "exchanged_at": provider.pk}

    assert ask(finding).status == "completed" and len(exchanges(company)) == 1  # kept while it lasts
    account = ConnectedAccount.objects.get()
    assert sealed.unseal(account.sealed_access) == token and account.sealed_refresh == ""
    assert timezone.now() < account.expires_at < timezone.now() + timedelta(seconds=310)
    log = json.dumps([events(run), list(Change.objects.values("before", "after", "label"))], default=str)
    kept = KeptSignIn.objects.get()
    for secret in (token, "subject-1", "refresh-1"):
        assert secret not in log and secret not in kept.sealed_access + kept.sealed_refresh


def test_a_provider_is_asked_for_nothing_and_nothing_is_kept_where_nothing_is_exchanged(
    world, company, provider, crm
):
    assert "offline_access" in begun(provider, Client())
    sign_in(provider, company)
    assert KeptSignIn.objects.count() == 1
    crm.exchange_at, crm.client_id = "", "deputy"
    crm.save()
    assert not KeptSignIn.objects.exists()
    assert "offline_access" not in begun(provider, Client())
    sign_in(provider, company)
    assert not KeptSignIn.objects.exists()


def test_the_sign_in_is_refreshed_while_its_person_is_away_and_asked_for_anew_when_it_ends(
    world, crm, company, provider, told, ask
):
    company.seconds = 20
    sign_in(provider, company)
    first = KeptSignIn.objects.get().sealed_refresh
    company.seconds = 3600
    assert ask(finding).status == "completed"
    assert exchanges(company)[-1]["subject_token"] == "subject-2"
    assert KeptSignIn.objects.get().sealed_refresh != first

    company.access.clear()  # ended there before its time
    ConnectedAccount.objects.update(expires_at=timezone.now())
    assert ask(finding).status == "completed" and exchanges(company)[-1]["subject_token"] == "subject-3"

    company.access.clear()
    company.refreshing.clear()
    ConnectedAccount.objects.update(expires_at=timezone.now())
    run = ask(finding)
    assert run.waiting_reason == "input" and not KeptSignIn.objects.exists()
    sign_in(provider, company)
    assert go_on(world, crm, run).status == "completed"


REFUSED = {
    "invalid_target": {"refusal": "invalid_target"},
    "unauthorized_client": {"refusal": "unauthorized_client"},
    "for somebody else": {"exchanged": {"aud": "https://hr.example.org"}},
    "somebody else, too": {"exchanged": {"aud": [URL, "https://hr.example.org"]}},
    "cannot be checked": {"exchanged": {"aud": None}},
    "another issuer": {"exchanged": {"iss": "https://evil.example"}},
    "forged": {"key": OTHER_KEY},
    "expired": {"exchanged": {"exp": 1}},
    "does not name who acts": {"exchanged": {"act": None}},
    "does not say whom": {"opaque": True, "metadata": {"scopes_supported": ["offline_access"]}},
    "too, or for nobody": {"opaque": True, "exchanged": {"aud": ["account"]}},
}


def test_what_a_provider_gives_in_exchange_is_sent_nowhere_unless_it_is_for_the_server_alone(
    world, crm, company, provider, told, ask
):
    """Signing in again would not help: the call fails, and says why."""
    McpServer.objects.update(with_actor=True)
    sign_in(provider, company)
    honest = {name: getattr(company, name) for name in ("refusal", "exchanged", "key", "opaque", "metadata")}
    for why, lies in REFUSED.items():
        openid._kept.clear()
        for name, value in {**honest, **lies}.items():
            setattr(company, name, value)
        error = ToolCall.objects.get(run=ask(finding)).error
        assert error["code"] == "EXCHANGE_REFUSED" and why in error["message"], (why, error)
        assert "secret words" not in error["message"] and told == [], why
        assert KeptSignIn.objects.exists(), why

    openid._kept.clear()
    for opaque in (False, True):
        for name, value in {**honest, "opaque": opaque}.items():
            setattr(company, name, value)
        ConnectedAccount.objects.all().delete()
        assert ToolCall.objects.get(run=ask(finding)).status == "succeeded"
    assert told[-1] == "opaque" and exchanges(company)[-1]["actor_token"] == "deputys-own"

    ConnectedAccount.objects.all().delete()
    company.down = True
    openid._kept.clear()
    assert ToolCall.objects.get(run=ask(finding)).error["code"] == "OAUTH_AWAY" and len(told) == 2


def test_a_provider_that_refuses_the_person_parks_the_run_and_never_spins(
    world, crm, company, provider, told, ask
):
    sign_in(provider, company)
    for code in ("invalid_grant", "access_denied", "invalid_request"):
        company.refusal, before = code, len(exchanges(company))
        run = ask(finding)
        assert run.waiting_reason == "input" and len(exchanges(company)) == before + 2
        sign_in(provider, company)
        assert go_on(world, crm, run).waiting_reason == "input"  # it may refuse again
        company.refusal = ""
        sign_in(provider, company)
        assert go_on(world, crm, run).status == "completed"
        ConnectedAccount.objects.all().delete()
    assert not Wait.objects.filter(resolved_at=None).exists()


def test_a_server_that_takes_no_token_fails_the_call(world, crm, company, provider, told, ask):
    sign_in(provider, company)
    told.refuses = lambda token: True
    run = ask(finding)
    assert run.status == "completed" and ToolCall.objects.get(run=run).error["code"] == "MCP_UNAUTHORIZED"
    assert len(told) == len(set(told)) == 2 and not ConnectedAccount.objects.exists()


def leave(company, provider, crm, membership):
    membership.active = False
    membership.save()


def log_out(company, provider, crm, membership):
    address = reverse("oidc_logout", args=[provider.pk])
    other = Client().post(address, {"logout_token": company.logout_token(sid="another", sub="s-1")})
    assert other.status_code == 200 and KeptSignIn.objects.exists()
    Client().post(address, {"logout_token": company.logout_token(sid="sid-1")})


def rest(company, provider, crm, membership):
    provider.active = False
    provider.save()


def move(company, provider, crm, membership):
    provider.issuer = "https://evil.example"
    provider.save()


def move_past_the_model(company, provider, crm, membership):
    IdentityProvider.objects.update(client_id="another")


def unlink(company, provider, crm, membership):
    SocialAccount.objects.all().delete()


def belong_elsewhere(company, provider, crm, membership):
    other = MembershipFactory().organization
    IdentityProvider.objects.update(organization=other)


def seal_anew(company, provider, crm, membership):
    KeptSignIn.objects.update(sealed_access="x", sealed_refresh="x")
    ConnectedAccount.objects.all().delete()


ENDS = (leave, log_out, rest, move, move_past_the_model, unlink, belong_elsewhere, seal_anew)
REVOKED = {leave, log_out}


def test_what_ends_a_sign_in_ends_what_it_is_exchanged_for(world, crm, company, provider, settings):
    """At once, also for a token that came before and would last."""
    settings.QUEUE_ENABLED = True
    company.claims["sid"] = "sid-1"
    for ending in ENDS:
        openid._kept.clear()
        Membership.objects.filter(pk=world.membership.pk).update(active=True)
        fields = {"active": True, "issuer": company.issuer, "client_id": "deputy"}
        IdentityProvider.objects.update(**fields, organization=world.organization)
        SocialAccount.objects.get_or_create(provider=provider.pk, uid="s-1", user=world.user)
        provider.refresh_from_db()
        provider.keep_secret("s3cret")
        IdentityProvider.objects.update(sealed_secret=provider.sealed_secret)
        sign_in(IdentityProvider.objects.get(), company)
        authorizations.bearer(crm, world.user.pk)
        before, company.revoked = len(company.forms), []
        ending(company, IdentityProvider.objects.get(), crm, Membership.objects.get(pk=world.membership.pk))
        with pytest.raises(authorizations.NotConnected):
            authorizations.bearer(crm, world.user.pk)
        assert not authorizations.is_there(crm, world.user.pk), ending
        assert len(company.forms) == before, ending
        queued = [one for one in queued_tasks("revoke_sign_in") if one[0] == provider.pk]
        assert bool(queued) == (ending in REVOKED), ending
        for arguments in queued:
            tasks.revoke_sign_in(*arguments)
        assert bool(company.revoked) == (ending in REVOKED), ending
        ConnectedAccount.objects.all().delete()
        KeptSignIn.objects.all().delete()


def queued_tasks(name):
    """The arguments of the queue's messages for the task, which are taken away."""
    found = []
    for message in QueueMessage.objects.all():
        package = SignedPackage.loads(message.payload)
        if package["func"].endswith(f".{name}"):
            found.append(package["args"])
            message.delete()
    return found


def test_a_person_says_no_and_then_yes_again(world, crm, company, provider, told, ask):
    browser = sign_in(provider, company).browser
    assert ask(finding).status == "completed"
    assert "by your sign-in at Company" in browser.get("/settings/").content.decode()
    browser.post(reverse("web:disconnect_account", args=[crm.pk]))
    run = ask(finding)
    assert run.waiting_reason == "input" and len(told) == 1
    assert "the-shared-one" not in str(ConnectedAccount.objects.values())
    sign_in(provider, company)  # which alone does not take it back
    crm.scopes = "crm:read"
    crm.save()  # nor does an administrator
    assert go_on(world, crm, run).waiting_reason == "input"

    page = browser.get(reverse("web:account", args=[crm.pk]) + f"?run={run.pk}").content.decode()
    assert "Allow it again" in page
    answer = browser.post(reverse("web:connect_account", args=[crm.pk]), {"run": run.pk})
    assert answer["Location"] == f"/talk/{run.pk}/"
    assert go_on(world, crm, run).status == "completed" and len(told) == 2


def test_the_page_leads_to_the_provider_and_back_to_the_run(world, crm, company, provider, told, ask):
    run = ask(finding)
    browser = Client()
    browser.force_login(world.user)
    page = browser.get(reverse("web:account", args=[crm.pk]) + f"?run={run.pk}").content.decode()
    assert f"/account/provider/{provider.pk}/?next=%2Ftalk%2F{run.pk}%2F" in page
    SocialAccount.objects.all().delete()
    page = browser.get(reverse("web:account", args=[crm.pk])).content.decode()
    assert reverse("oidc_connect", args=[provider.pk]) in page


def test_nothing_is_kept_of_a_sign_in_that_lacks_its_second_factor(world, crm, company, provider):
    with_totp(world.user)
    browser = sign_in(provider, company).browser
    assert "_auth_user_id" not in browser.session and not KeptSignIn.objects.exists()
    assert "subject-1" not in json.dumps(dict(browser.session))
    browser.force_login(MembershipFactory(organization=world.organization).user)
    assert not KeptSignIn.objects.exists() and "deputy_brought" not in browser.session


def fields(crm, **more):
    usual = {"organization": crm.organization_id, "name": crm.name, "url": crm.url, "timeout_seconds": 30}
    return {**usual, "enabled": "on", "as_person": "on", "exchange_at": crm.exchange_at, **more}


def test_only_who_may_do_everything_has_sign_ins_exchanged(world, crm, company, provider, settings):
    """Deputy asks nobody again before it acts in their name: address and audience say for what."""
    settings.OIDC = {**ENVIRONMENT, "organization": ""}
    clerk, chief = (UserFactory(username=name, is_staff=True) for name in ("clerk", "chief"))
    for user in (clerk, chief):
        MembershipFactory(organization=world.organization, user=user, role="administrator")
    verbs = ("view", "change", "add", "delete")
    clerk = permit(clerk, *(f"runs.{verb}_mcpserver" for verb in verbs))
    root = superuser()
    plain = McpServer.objects.create(organization=world.organization, name="plain", url=f"{URL}/plain")
    theirs = provider_of(MembershipFactory().organization)
    attempts = [
        (clerk, crm, {"url": "https://93.184.216.34/mcp", "resource": URL}, False),
        (clerk, crm, {"audience": "hr"}, False),
        (clerk, crm, {"exchange_at": "", "client_id": "deputy"}, False),
        (clerk, plain, {"exchange_at": provider.pk, "resource": URL}, False),
        (clerk, plain, {"exchange_at": INSTALLATION}, False),
        (chief, plain, {"exchange_at": INSTALLATION}, False),
        (chief, plain, {"exchange_at": theirs.pk}, False),
        (root, plain, {"exchange_at": theirs.pk}, False),
        (chief, plain, {"exchange_at": provider.pk}, True),
        (root, plain, {"exchange_at": INSTALLATION}, True),
        (chief, plain, {"audience": "hr"}, False),
        (chief, plain, {"as_person": "", "client_id": "x"}, False),
        (chief, crm, {"url": "https://93.184.216.34/mcp", "resource": URL}, True),
    ]
    for user, server, asked, works in attempts:
        server.refresh_from_db()
        before = server.bound_to()
        change = url("runs_mcpserver_change", server.pk)
        client_of(user).post(change, fields(server, **asked))
        server.refresh_from_db()
        assert (server.bound_to() != before) == works, (user, asked)
    client_of(clerk).post(url("runs_mcpserver_delete", crm.pk), {"post": "yes"})
    assert McpServer.objects.filter(pk=crm.pk).exists()
    assert members.refuses_exchange(chief, world.organization.pk, INSTALLATION)

    crm.url = "http://93.184.216.34/mcp"
    with pytest.raises(ValidationError, match="https"):
        crm.full_clean()


def test_over_the_api_somebody_lists_and_ends_what_is_theirs(world, crm, company, provider, told, ask):
    """As on their page, by the same actions."""
    other = McpServer.objects.create(
        organization=world.organization, name="wiki", url="https://wiki.example/mcp", as_person=True,
        client_id="deputy", issuer="https://as.example",
    )  # fmt: skip
    sign_in(provider, company)
    authorizations.bearer(crm, world.user.pk)
    mine = {"organization": world.organization, "server": other, "sealed_access": sealed.seal("a")}
    bound = McpServer.objects.get(pk=other.pk).bound_to()
    ConnectedAccount.objects.create(**mine, user=world.user, scopes="read write", bound_to=bound)
    stranger = MembershipFactory(organization=world.organization).user
    api, theirs = Api(world.user, world.organization), Api(stranger, world.organization)

    answer = api.get("accounts/")
    by_sign_in, by_account = answer.json()["results"]
    assert by_sign_in["server"] == {"id": crm.pk, "name": "crm"} and by_sign_in["since"] is not None
    assert [by_sign_in[name] for name in ("way", "provider", "connected")] == ["sign_in", "Company", True]
    assert (by_account["way"], by_account["scopes"]) == ("account", ["read", "write"])
    assert by_account["connected"] is True
    assert "seal" not in answer.content.decode() and "ey" not in str(by_sign_in["scopes"])
    assert [one["connected"] for one in theirs.get("accounts/").json()["results"]] == [False, False]

    for server in (crm, other):
        address = f"accounts/{server.pk}/disconnect/"
        assert theirs.post(address).status_code == 404
        reading = Api(world.user, world.organization, scopes=["accounts:read"], name="reads")
        assert problem(reading.post(address)) == (403, "SCOPE_MISSING")
        assert api.post(address).status_code == 204
        assert api.post(address).status_code == 404
        assert not authorizations.is_there(server, world.user.pk)
    assert [one["declined"] for one in api.get("accounts/").json()["results"]] == [True, False]
    assert ask(finding).waiting_reason == "input"
    assert api.post(f"accounts/{McpServer().pk}/disconnect/").status_code == 404
