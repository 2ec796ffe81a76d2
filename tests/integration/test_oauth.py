"""Programs that people connect: how they get a token, how far it reaches, and how it ends."""

import base64
import hashlib
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from threading import Event
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.cache import cache
from django.db import connections
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application, Grant, RefreshToken

from common import csp
from common.outbound import Fetched
from groups import oauth
from groups.actors import CONFIRMED_AT
from groups.models import IdentityProvider, Membership, Token
from groups.sign_in import sessions
from runs.queue.worker_status import WorkerStatus
from runs.workers import worker
from tests.admin_world import person
from tests.factories import MembershipFactory, OrganizationFactory, ProjectFactory, permit_all
from tests.integration.api_client import problem

pytestmark = pytest.mark.django_db
PROGRAM = "https://client.example.org/deputy.json"
BACK = "https://client.example.org/back"
VERIFIER = "v" * 64
SITE = "https://deputy.example.org"


@pytest.fixture
def document(monkeypatch, settings):
    """The program's document about itself, as its own server would send it."""
    settings.PUBLIC_URL = SITE
    settings.ALLOWED_HOSTS = ["*"]
    settings.OAUTH2_PROVIDER = {**settings.OAUTH2_PROVIDER, "OIDC_ISS_ENDPOINT": SITE}
    cache.clear()
    found = {"client_id": PROGRAM, "client_name": "Notes", "redirect_uris": [BACK]}

    def fetch(address, **how):
        return Fetched(address, 200, {}, json.dumps(found), 0, False, ())

    monkeypatch.setattr(oauth, "fetch", fetch)
    return found


@pytest.fixture
def ada(document):
    project = ProjectFactory()
    user = permit_all(person(None, "ada"))
    MembershipFactory(organization=project.organization, user=user, role="administrator")
    client = Client()
    client.force_login(user)
    return SimpleNamespace(user=user, client=client, organization=project.organization)


def challenge(verifier=VERIFIER):
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def asked(**more):
    usual = {
        "response_type": "code", "client_id": PROGRAM, "redirect_uri": BACK, "state": "s",
        "scope": "runs:read runs:write", "code_challenge": challenge(), "code_challenge_method": "S256",
        "resource": f"{SITE}/mcp",
    }  # fmt: skip
    return {name: value for name, value in {**usual, **more}.items() if value is not None}


def shown(who, **more):
    """The page that asks, and the form on it."""
    page = who.client.get(reverse("oauth2_provider:authorize"), asked(**more))
    assert page.status_code == 200, page.content.decode()[-500:]
    form = {name: field for name, field in page.context["form"].initial.items() if field}
    organization = re.search(r'name="organization" value="(.+?)"', page.content.decode())[1]
    return page, {**form, "organization": organization, "allow": "Allow"}


def pressed(who, page, form):
    return who.client.post(page.request["PATH_INFO"] + "?" + page.request["QUERY_STRING"], form)


def allowed(who, **more):
    """What comes back to the program when the person presses Allow."""
    answer = pressed(who, *shown(who, **more))
    return {name: values[0] for name, values in parse_qs(urlsplit(answer["Location"]).query).items()}


def redeemed(code, **more):
    told = {
        "grant_type": "authorization_code", "code": code, "redirect_uri": BACK, "client_id": PROGRAM,
        "code_verifier": VERIFIER, "resource": f"{SITE}/mcp",
    }  # fmt: skip
    told = {name: value for name, value in {**told, **more}.items() if value is not None}
    return Client().post(reverse("oauth2_provider:token"), told)


def refreshed(token, **more):
    told = {"grant_type": "refresh_token", "refresh_token": token, "client_id": PROGRAM, **more}
    return Client().post(reverse("oauth2_provider:token"), told)


def connected(who, **more):
    return redeemed(allowed(who, **more)["code"], resource=more.get("resource", f"{SITE}/mcp")).json()


def api(access, path="/api/runs/"):
    return Client().get(path, headers={"Authorization": f"Bearer {access}"})


API = {"resource": f"{SITE}/api"}


def test_a_connection_ends_where_its_token_does(ada):
    """Its person may give it an end, as any token of theirs."""
    got = connected(ada, **API)
    assert api(got["access_token"]).status_code == 200
    Token.objects.filter(connection__user=ada.user).update(expires_at=timezone.now())
    assert api(got["access_token"]).status_code == 401
    assert refreshed(got["refresh_token"], **API).status_code == 400


def test_a_program_is_connected_and_works_in_the_persons_name(ada):
    page = ada.client.get(reverse("oauth2_provider:authorize"), asked(**API))
    said = page.content.decode()
    assert "Notes" in said and "client.example.org" in said and "runs:write" in said
    assert "form-action 'self' https://client.example.org" in page["Content-Security-Policy"]
    got = connected(ada, **API)
    assert got["token_type"] == "Bearer" and got["expires_in"] == 900
    assert api(got["access_token"]).status_code == 200
    assert api(got["access_token"], "/api/memories/").status_code == 403  # not of its scopes
    assert Token.objects.get().name == "Notes (client.example.org)"
    assert "Notes (client.example.org)" in ada.client.get(reverse("web:settings")).content.decode()


def test_what_the_program_has_is_kept_as_a_digest(ada):
    got = connected(ada, **API)
    for model in (AccessToken, RefreshToken):
        assert model.objects.get().token not in (got["access_token"], got["refresh_token"])


def test_the_answer_names_the_issuer(ada):
    assert allowed(ada)["iss"] == SITE


@pytest.mark.parametrize(
    ("resource", "path", "status"),
    [
        (f"{SITE}/mcp", "/api/runs/", 401),
        (f"{SITE}/api", "/api/runs/", 200),
        (f"{SITE}/api/runs", "/api/runs/", 200),
        (f"{SITE}/api/run", "/api/runs/", 401),
        (None, "/api/runs/", 200),
    ],
)
def test_a_token_is_good_for_the_address_it_names(ada, resource, path, status):
    assert api(connected(ada, resource=resource)["access_token"], path).status_code == status


@pytest.mark.parametrize("resource", [f"{SITE}/api", f"{SITE}/api/tokens"])
def test_no_token_is_issued_by_it_which_would_be_good_elsewhere_and_outlast_it(ada, resource):
    access = connected(ada, resource=resource, scope="runs:read tokens:write")["access_token"]
    assert api(access, "/api/tokens/").status_code == 403  # it writes and does not read them
    body = {"data": {"scopes": ["runs:read"]}, "content_type": "application/json"}
    answer = Client().post("/api/tokens/", headers={"Authorization": f"Bearer {access}"}, **body)
    assert problem(answer) == (403, "REACHES_TOO_FAR")
    assert Token.objects.count() == 1


@pytest.mark.parametrize(
    "resource", ["https://evil.example/mcp", f"{SITE}/", f"{SITE}/mcpx", f"{SITE}/admin", f"{SITE}.evil/mcp"]
)
def test_no_token_is_made_for_another_server(ada, resource):
    page = ada.client.get(reverse("oauth2_provider:authorize"), asked(resource=resource))
    assert page.status_code == 400 and "another server" in page.content.decode()


@pytest.mark.parametrize(
    "wrong",
    [
        {"code_challenge": None, "code_challenge_method": None},
        {"code_challenge": VERIFIER, "code_challenge_method": "plain"},
        {"response_type": "token"},
        {"redirect_uri": "https://evil.example/back"},
        {"redirect_uri": BACK + "/more"},
        {"client_id": "https://client.example.org/other.json"},
        {"scope": "everything"},
    ],
)
def test_what_does_not_fit_gets_no_code(ada, wrong):
    answer = ada.client.get(reverse("oauth2_provider:authorize"), asked(**wrong))
    assert 'name="allow"' not in answer.content.decode()
    assert not answer.headers.get("Location", BACK).startswith("https://evil")
    assert "code=" not in answer.headers.get("Location", "")


def test_a_form_that_names_a_program_that_is_not_there_is_refused(ada):
    page, form = shown(ada)
    answer = pressed(ada, page, {**form, "client_id": "https://client.example.org/other.json"})
    assert answer.status_code == 400 and "no such program" in answer.content.decode()


def test_a_form_without_what_the_program_asks_for_is_refused(ada):
    page, _ = shown(ada)
    answer = pressed(ada, page, {"allow": "1"})
    assert answer.status_code == 400 and "without what the program asks for" in answer.content.decode()


@pytest.mark.parametrize("address", ["http://client.example.org/back", "javascript:alert(1)"])
def test_a_program_gets_nothing_in_the_clear(ada, document, address):
    document["redirect_uris"] = [address]
    answer = ada.client.get(reverse("oauth2_provider:authorize"), asked(redirect_uri=address))
    assert 'name="allow"' not in answer.content.decode()


def test_a_program_on_the_persons_own_machine_may_listen_on_any_port(ada, document):
    document["redirect_uris"] = ["http://127.0.0.1/back"]
    assert "code" in allowed(ada, redirect_uri="http://127.0.0.1:4711/back")


def test_a_code_works_once_and_with_its_verifier(ada):
    code = allowed(ada)["code"]
    assert redeemed(code, code_verifier="w" * 64).status_code == 400
    code = allowed(ada)["code"]
    assert redeemed(code).status_code == 200
    assert redeemed(code).status_code == 400


@pytest.mark.parametrize("grant", ["password", "client_credentials", "implicit"])
def test_no_other_way_to_a_token(ada, grant):
    allowed(ada)
    told = {"grant_type": grant, "client_id": PROGRAM, "username": "ada", "password": "x"}
    assert Client().post(reverse("oauth2_provider:token"), told).status_code in (400, 401)


def test_a_refresh_token_is_exchanged_and_one_used_twice_ends_them_all(ada):
    first = connected(ada, **API)
    second = refreshed(first["refresh_token"]).json()
    assert api(second["access_token"]).status_code == 200
    assert refreshed(first["refresh_token"]).status_code == 400
    assert refreshed(second["refresh_token"]).status_code == 400
    assert api(second["access_token"]).status_code == 401


def kept_up():
    worker.Duties(WorkerStatus(), "tested", [])._keep_up()


def test_upkeep_removes_what_has_expired_and_keeps_what_a_program_still_uses(ada):
    allowed(ada, **API)
    Grant.objects.update(expires=timezone.now())
    kept_up()
    assert not Grant.objects.exists()

    first = connected(ada, **API)
    second = refreshed(first["refresh_token"]).json()
    AccessToken.objects.update(expires=timezone.now() - timedelta(days=29))
    kept_up()
    third = refreshed(second["refresh_token"]).json()
    assert api(third["access_token"]).status_code == 200
    assert refreshed(first["refresh_token"]).status_code == 400  # still known as one that was used

    AccessToken.objects.update(expires=timezone.now() - timedelta(days=31))
    RefreshToken.objects.exclude(revoked=None).update(revoked=timezone.now() - timedelta(days=31))
    kept_up()
    assert not AccessToken.objects.exists() and not RefreshToken.objects.exists()


def test_a_refreshed_token_reaches_no_further(ada):
    first = connected(ada, scope="runs:read", **API)
    assert refreshed(first["refresh_token"], scope="runs:read policy:write").status_code == 400


def test_a_connection_that_is_revoked_ends_all_its_tokens(ada):
    got = connected(ada, **API)
    ada.client.post(reverse("web:revoke", args=[Token.objects.get().pk]))
    assert api(got["access_token"]).status_code == 401
    assert refreshed(got["refresh_token"]).status_code == 400


def test_so_does_the_end_of_the_membership(ada):
    got = connected(ada, **API)
    Membership.objects.get(user=ada.user).delete()
    assert api(got["access_token"]).status_code == 401


def test_a_program_ends_its_own_token(ada):
    got = connected(ada, **API)
    told = {"token": got["access_token"], "client_id": PROGRAM}
    assert Client().post(reverse("oauth2_provider:revoke-token"), told).status_code == 200
    assert api(got["access_token"]).status_code == 401


def test_connecting_anew_ends_what_was_before(ada):
    before = connected(ada, **API)
    connected(ada, scope="runs:read", **API)
    assert api(before["access_token"]).status_code == 401
    assert Token.objects.filter(revoked_at=None).get().scopes == ["runs:read"]


def test_a_session_that_one_organizations_provider_opened_ends_no_connection_in_another(ada):
    before = connected(ada, **API)
    other = MembershipFactory(user=ada.user, role="administrator").organization
    provider = IdentityProvider.objects.create(
        organization=other, name="Company", issuer="https://id.example.org"
    )
    session, through = ada.client.session, {"user": ada.user.pk, "provider": provider.pk, "sid": "", "at": 0}
    session[sessions.THROUGH] = through | {"organization": other.pk}
    session.save()
    answer = pressed(ada, *shown(ada))
    assert answer.status_code == 400 and "another organization" in answer.content.decode()
    assert api(before["access_token"]).status_code == 200

    Token.objects.update(revoked_at=timezone.now())
    assert "code" in allowed(ada)


def test_who_finds_a_browser_open_connects_nothing_that_goes_on_without_it(ada):
    session = ada.client.session
    session[CONFIRMED_AT] = int(time.time()) - 10_000
    session.save()
    answer = pressed(ada, *shown(ada))
    assert answer.status_code == 403 and reverse("web:confirm") in answer.content.decode()
    assert not Token.objects.exists()


def test_who_does_not_press_allow_connects_nothing(ada):
    page = ada.client.get(reverse("oauth2_provider:authorize"), asked())
    form = {name: field for name, field in page.context["form"].initial.items() if field}
    answer = ada.client.post(page.request["PATH_INFO"], form)
    assert "error=access_denied" in answer["Location"] and not Token.objects.exists()


def test_what_is_allowed_is_the_organization_that_the_page_named(ada):
    """In another tab the person has gone to another organization of theirs since."""
    page, form = shown(ada)
    other = OrganizationFactory(name="zzz")
    MembershipFactory(organization=other, user=ada.user, role="administrator")
    ada.client.post(reverse("web:choose"), {"organization": other.pk})
    answer = pressed(ada, page, form)
    assert answer.status_code == 400 and "another organization" in answer.content.decode()
    assert not Token.objects.exists()


def test_who_may_not_issue_tokens_connects_no_program(ada):
    Membership.objects.filter(user=ada.user).update(role="viewer")
    page = ada.client.get(reverse("oauth2_provider:authorize"), asked())
    form = {name: field for name, field in page.context["form"].initial.items() if field}
    answer = ada.client.post(page.request["PATH_INFO"], {**form, "allow": "Allow"})
    assert answer.status_code == 400 and not Token.objects.exists()


def test_a_program_cannot_ask_not_to_ask(ada):
    connected(ada)
    answer = ada.client.get(reverse("oauth2_provider:authorize"), asked(approval_prompt="auto"))
    assert answer.status_code == 400


def test_a_stranger_is_asked_to_sign_in_first(document):
    answer = Client().get(reverse("oauth2_provider:authorize"), asked())
    assert answer["Location"].startswith("/sign-in/?next=")


def test_a_document_that_names_another_program_is_refused(ada, document):
    document["client_id"] = "https://client.example.org/other.json"
    ada.client.get(reverse("oauth2_provider:authorize"), asked())
    assert not Application.objects.exists()


def test_programs_read_where_to_go(document):
    described = Client().get("/.well-known/oauth-authorization-server").json()
    assert described["issuer"] == SITE
    assert described["code_challenge_methods_supported"] == ["S256"]
    assert described["grant_types_supported"] == ["authorization_code", "refresh_token"]
    assert described["client_id_metadata_document_supported"] is True
    assert described["authorization_response_iss_parameter_supported"] is True
    for path in ("mcp", "mcp/projects/atlas", "api"):
        found = Client().get(f"/.well-known/oauth-protected-resource/{path}").json()
        assert found["resource"] == f"{SITE}/{path}" and found["authorization_servers"] == [SITE]
    assert Client().get("/.well-known/oauth-protected-resource/admin").status_code == 404
    assert Client().get("/.well-known/oauth-protected-resource").json()["resource"] == f"{SITE}/mcp"


@pytest.mark.parametrize(
    "origin", ["https://x;frame-ancestors *", "https://x y", "https://x\n", "data:", "https://*"]
)
def test_the_address_of_a_program_writes_nothing_else_into_the_policy_of_the_page(origin):
    assert csp.with_forms_to(origin) == csp.POLICY
    assert "form-action 'self' http://[::1]:99;" in csp.with_forms_to("http://[::1]:99")


# Beside one another


def test_a_code_is_worth_nothing_once_its_person_has_connected_the_program_anew(ada, monkeypatch):
    """Between the looking at the code and the making of the tokens."""
    code = allowed(ada, **API)["code"]
    usual = oauth.Validator.save_bearer_token

    def late(self, *args, **kwargs):
        monkeypatch.setattr(oauth.Validator, "save_bearer_token", usual)
        assert "access_token" in connected(ada)
        return usual(self, *args, **kwargs)

    monkeypatch.setattr(oauth.Validator, "save_bearer_token", late)
    answer = redeemed(code, **API)
    assert (answer.status_code, json.loads(answer.content)["error"]) == (400, "invalid_grant")
    assert AccessToken.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_what_a_refresh_makes_while_its_person_connects_the_program_anew_is_ended_too(ada, monkeypatch):
    made, go_on, usual = Event(), Event(), oauth.OAuth2Validator.save_bearer_token
    first = connected(ada, **API)

    def held(self, *args, **kwargs):
        answer = usual(self, *args, **kwargs)
        made.set()
        assert go_on.wait(10)
        return answer

    def in_thread(work, *args, **kwargs):
        try:
            return work(*args, **kwargs)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr(oauth.OAuth2Validator, "save_bearer_token", held)
        refresh = pool.submit(in_thread, refreshed, first["refresh_token"])
        assert made.wait(10)
        monkeypatch.setattr(oauth.OAuth2Validator, "save_bearer_token", usual)
        anew = pool.submit(in_thread, allowed, ada)
        wait([anew], timeout=0.5)
        go_on.set()
        assert "code" in anew.result()
        access = refresh.result().json()["access_token"]
    assert api(access).status_code == 401
    assert not AccessToken.objects.exists() and not RefreshToken.objects.filter(revoked=None).exists()
