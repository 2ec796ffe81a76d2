"""Deputy as a client of node-oidc-provider, which the OpenID Foundation has certified: in its own process."""

import re
import shutil
import socket
import subprocess
import time
from pathlib import Path
from urllib.parse import urljoin

import httpx
import jwt
import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from common import sealed
from common.ids import mcp_server_id
from groups.models import IdentityProvider, KeptSignIn, Membership
from groups.sign_in import openid
from runs.actions import accounts
from runs.models import ConnectedAccount, McpServer
from runs.tools.mcp import accounts as authorizations
from runs.tools.mcp import discovery, grants
from runs.tools.mcp.client import McpError
from tests.factories import MembershipFactory, ProjectFactory

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
HERE = Path(__file__).resolve().parent
PACKAGE = "oidc-provider@9.13.3"
CRM = ("crm", "another-secret-that-is-long-enough")
RESOURCE = "https://crm.example.org/mcp"
SERVER = mcp_server_id()
BACK = f"http://testserver/settings/accounts/{SERVER}/callback/"
SIGNED_IN = "http://testserver/account/provider/{}/callback/"
SIGN_IN = "idp_01m8358mpyfyvssp5afwxrj3n3"


@pytest.fixture(scope="module")
def issuer(tmp_path_factory):
    """The address of the provider."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("a certified provider needs node and npm")
    folder = tmp_path_factory.mktemp("provider")
    shutil.copy(HERE / "certified_provider.mjs", folder / "provider.mjs")
    got = subprocess.run(
        ["npm", "install", "--silent", "--no-audit", "--no-fund", PACKAGE], cwd=folder, capture_output=True
    )
    if got.returncode:
        pytest.skip(f"npm did not get {PACKAGE}")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    signed_in = SIGNED_IN.format(SIGN_IN)
    process = subprocess.Popen(["node", "provider.mjs", str(port), BACK, signed_in], cwd=folder)
    try:
        wait(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def wait(port, process):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert process.poll() is None
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the provider did not start")


def agree(address, login="ada"):
    """Ada signs in at the provider's pages and agrees; where she is sent back to."""
    with httpx.Client(follow_redirects=False) as browser:
        answer = browser.get(address)
        for _ in range(12):
            if answer.is_redirect:
                to = urljoin(str(answer.url), answer.headers["location"])
                if to.startswith("http://testserver/"):
                    return to
                answer = browser.get(to)
                continue
            assert answer.status_code == 200, answer.text
            form = re.search(r'<form[^>]*action="([^"]+)"', answer.text)
            prompt = re.search(r'name="prompt" value="([^"]+)"', answer.text)
            told = {
                "prompt": prompt[1],
                **({"login": login, "password": "x"} if prompt[1] == "login" else {}),
            }
            answer = browser.post(urljoin(str(answer.url), form[1]), data=told)
    raise AssertionError("the provider's pages lead nowhere")


def introspected(issuer, token):
    """What the provider tells the CRM of a token."""
    found = httpx.post(f"{issuer}/token/introspection", data={"token": token}, auth=CRM)
    assert found.status_code == 200, found.text
    return found.json()


@pytest.fixture
def allowed(issuer, settings):
    settings.MCP_ALLOW = settings.IDENTITY_ALLOW = [issuer.removeprefix("http://")]
    settings.PUBLIC_URL = "http://testserver"


def test_a_person_connects_refreshes_and_disconnects(issuer, allowed, monkeypatch):
    project = ProjectFactory()
    mia = MembershipFactory(organization=project.organization).user
    server = McpServer(pk=SERVER, organization=project.organization, name="crm", url=RESOURCE)
    monkeypatch.setattr(discovery, "_challenge", lambda server: "")
    protected = {"resource": RESOURCE, "authorization_servers": [issuer], "scopes_supported": ["crm"]}
    monkeypatch.setattr(discovery, "_protected", lambda server, address: protected)
    server.as_person, server.client_id = True, "deputy"
    for name, value in discovery.discover(server).items():
        setattr(server, name, value)
    server.full_clean()
    server.save()
    assert server.names_issuer and server.revocation_endpoint and server.issuer == issuer

    browser = Client()
    browser.force_login(mia)
    begun = browser.post(reverse("web:connect_account", args=[SERVER]))["Location"]
    assert browser.get(agree(begun))["Location"] == "/settings/"
    account = ConnectedAccount.objects.get()
    first, refresh = sealed.unseal(account.sealed_access), sealed.unseal(account.sealed_refresh)
    told = introspected(issuer, first)
    assert told["active"] and (told["aud"], told["scope"], told["sub"]) == (RESOURCE, "crm", "ada")

    ConnectedAccount.objects.update(expires_at=timezone.now())
    second = authorizations.bearer(server, mia.pk)
    assert second != first and introspected(issuer, second)["active"]
    account.refresh_from_db()
    assert sealed.unseal(account.sealed_refresh) != refresh

    accounts.disconnect(server, mia)
    accounts.revoke(account.pk)
    assert not introspected(issuer, second)["active"]
    with pytest.raises(grants.NotGranted):
        grants.refresh(server, refresh)


@pytest.fixture
def provider(issuer, allowed):
    """For an organization's sign-in."""
    found = IdentityProvider(
        pk=SIGN_IN, organization=ProjectFactory().organization, name="Certified", issuer=issuer,
        client_id="deputy-sign-in", default_role="member", scopes="openid", makes_accounts=True,
    )  # fmt: skip
    found.keep_secret("a-secret-that-is-long-enough-for-anybody")
    found.full_clean()
    found.save()
    IdentityProvider.objects.update(changed_at="2020-01-01T00:00:00Z")
    openid._kept.clear()
    return found


def test_a_person_signs_in(provider):
    organization = provider.organization
    browser = Client()
    begun = browser.get(reverse("oidc_begin", args=[provider.pk]))["Location"]
    back = agree(begun)
    assert browser.get(back).status_code == 302
    assert Membership.objects.get(organization=organization).user.username.startswith("ada")
    assert browser.get("/").status_code == 200
    assert browser.get(back).status_code == 403  # replayed


def test_a_sign_in_is_exchanged_for_tokens_of_one_server(issuer, provider):
    """Also while its person is away; and nothing is left of it at the provider when the membership ends."""
    server = McpServer(organization=provider.organization, name="crm", url=RESOURCE, as_person=True)
    server.exchange_at, server.with_actor = provider.pk, True
    server.full_clean()
    server.save()
    begun = Client().get(reverse("oidc_begin", args=[provider.pk]))["Location"]
    Client().get(agree(begun))  # in another browser
    assert not KeptSignIn.objects.exists()
    browser = Client()
    browser.get(agree(browser.get(reverse("oidc_begin", args=[provider.pk]))["Location"]))
    membership = Membership.objects.get(organization=provider.organization)
    mine = KeptSignIn.objects.get(user=membership.user)

    token = authorizations.bearer(server, membership.user_id)
    claims = jwt.decode(token, options={"verify_signature": False})
    assert (claims["aud"], claims["sub"], claims["act"]) == (RESOURCE, "ada", {"sub": "deputy-sign-in"})
    assert claims["exp"] - claims["iat"] == 120
    assert authorizations.bearer(server, membership.user_id) == token
    assert authorizations.bearer(server, membership.user_id, refused=token) != token

    McpServer.objects.update(resource=f"{RESOURCE}/opaque")
    KeptSignIn.objects.update(expires_at=timezone.now())
    again = authorizations.bearer(McpServer.objects.get(), membership.user_id)
    assert introspected(issuer, again)["aud"] == f"{RESOURCE}/opaque" and "." not in again
    assert KeptSignIn.objects.get().sealed_access != mine.sealed_access

    McpServer.objects.update(resource="https://hr.example.org/mcp")
    with pytest.raises(McpError) as refused:
        authorizations.bearer(McpServer.objects.get(), membership.user_id)
    assert refused.value.code == "EXCHANGE_REFUSED" and "invalid_target" in refused.value.message

    kept = KeptSignIn.objects.get()
    membership.delete()
    assert not KeptSignIn.objects.exists() and introspected(issuer, again)["active"]
    accounts.revoke_sign_in(provider.pk, kept.asked_as, kept.sealed_refresh)
    assert not introspected(issuer, again)["active"]
    assert not introspected(issuer, sealed.unseal(kept.sealed_access))["active"]
