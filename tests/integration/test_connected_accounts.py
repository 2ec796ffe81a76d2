"""Calls that go to an MCP server in a person's own name: over real HTTP, with a real authorization server."""

import contextlib
import json
import threading
from urllib.parse import parse_qs, parse_qsl, urlsplit

import anyio
import httpx2
import pytest
from django.core.exceptions import ValidationError
from django.db import connections
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from common import csp, sealed
from common.outbound import Fetched
from groups.models import Change, Membership
from runs.actions import mcp, mcp_tasks
from runs.execution import executor
from runs.models import Approval, ConnectedAccount, McpServer, McpTask, Run, ToolCall, Wait
from runs.outbound import errands
from runs.tools.mcp import accounts as authorizations
from runs.tools.mcp import client as mcp_client
from runs.tools.mcp import transport
from runs.web import account_views
from runs.workers import tasks
from tests.acting import approve, request_call
from tests.authorization_server import AuthorizationServer
from tests.factories import MembershipFactory
from tests.integration.helpers import events
from tests.integration.outside import Outside, work_off
from tests.integration.test_mcp_servers import FIND, Site
from tests.scripted import call, say

pytestmark = pytest.mark.django_db
SHARED = {"Authorization": "Bearer the-shared-one", "X-Shared": "yes"}


@pytest.fixture(scope="module")
def crm_site(tmp_path_factory):
    with Site(tmp_path_factory.mktemp("crm")) as site:
        yield site


@pytest.fixture
def provider(crm_site, settings):
    """The authorization server of the CRM, which takes its tokens at once."""

    def know(tokens):
        crm_site.behave(FIND, tokens=tokens, protected=found.protected)

    found = AuthorizationServer(know)
    found.protected = {
        "resource": crm_site.url,
        "authorization_servers": [found.issuer],
        "scopes_supported": ["crm"],
    }
    know({})
    crm_site.book.with_suffix(".heads").unlink(missing_ok=True)
    settings.MCP_ALLOW = [f"127.0.0.1:{crm_site.port}", f"127.0.0.1:{found.port}"]
    settings.PUBLIC_URL = "http://testserver"
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def crm(world, provider, crm_site):
    """Acts as the person, with shared headers from the time before, and its tool accepted."""
    server = McpServer(organization=world.organization, name="crm", url=crm_site.url, as_person=True)
    server.client_id = "deputy"
    server.keep_headers(SHARED)
    server.full_clean(exclude=["problem"])
    server.save()
    crm_site.behave(FIND, tokens={"": "nobody"}, protected=provider.protected)  # lists to anybody
    assert mcp.refresh(server) == ""
    mcp.accept(server.tools.all(), world.user)
    provider.on_change({})
    server.refresh_from_db()
    crm_site.book.with_suffix(".heads").unlink(missing_ok=True)
    return server


@pytest.fixture
def mia(world):
    """Mia's browser."""
    browser = Client()
    browser.force_login(world.user)
    return browser


def finding(tool="crm.find_customer"):
    asked = call((tool, {"name": "Ada"}))
    return lambda messages, facts: say("Found.") if messages[-1].role == "tool" else asked


def begin(browser, server, run=""):
    """Where the person is sent."""
    answer = browser.post(reverse("web:connect_account", args=[server.pk]), {"run": run})
    assert answer.status_code == 302
    return answer["Location"]


def connect(browser, server, provider, run=""):
    """The whole way, by the person's own browser; the answer to where they come back."""
    return browser.get(provider.agree(begin(browser, server, run)))


def go_on(world, server, run):
    """What the queue's task does after somebody has connected, and then the run's worker."""
    tasks.repeat_calls(world.organization.pk, str(world.user.pk), authorizations.need(server.pk))
    executor.run(run.pk)
    run.refresh_from_db()
    return run


def heads(site):
    kept = site.book.with_suffix(".heads")
    return [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []


def said(answer):
    return " ".join(str(one) for one in answer.wsgi_request._messages)


# The way


def test_a_call_waits_for_the_persons_account_and_goes_on_by_itself(world, crm, crm_site, provider, mia, ask):
    run = ask(finding())
    assert (run.status, run.waiting_reason) == ("waiting", "input") and crm_site.calls == []
    waits = dict(events(run))["tool.waits"]
    page = mia.get(waits["link"])
    assert page.status_code == 200 and f"form-action 'self' {provider.issuer}" in page[csp.HEADER]
    assert waits["link"] in waits["question"] and waits["link"].endswith(f"?run={run.pk}")
    assert reverse("web:account", args=[crm.pk]) in mia.get(f"/talk/{run.pk}/").content.decode()

    address = begin(mia, crm, run.pk)
    asked = {name: value for name, (value,) in parse_qs(urlsplit(address).query).items()}
    assert asked["code_challenge_method"] == "S256" and asked["resource"] == crm_site.url
    assert asked["redirect_uri"] == f"http://testserver{reverse('web:account_callback', args=[crm.pk])}"
    assert asked["scope"] == "crm" and "the-shared-one" not in address
    assert mia.get(provider.agree(address))["Location"] == f"/talk/{run.pk}/"

    go_on(world, crm, run)
    assert (run.status, run.output) == ("completed", "Found.")
    assert [one["by"] for one in crm_site.calls] == ["ada"]
    called = [payload for type, payload in events(run) if type == "tool.called"]
    assert called[-1]["as_person"] == {"user": "mia", "server": "crm"}
    sent = heads(crm_site)
    assert not any("x-shared" in one or "the-shared-one" in one.get("authorization", "") for one in sent)
    account = ConnectedAccount.objects.get()
    token = sealed.unseal(account.sealed_access)
    log = json.dumps([events(run), list(Change.objects.values("before", "after", "label"))], default=str)
    assert token not in log and sealed.unseal(account.sealed_refresh) not in log and token in provider.tokens
    assert token not in account.sealed_access

    again = ask(finding())
    assert again.status == "completed" and len(crm_site.calls) == 2


def test_my_access_shows_it_and_disconnecting_revokes_it(world, crm, crm_site, provider, mia, ask):
    assert "Connect" in mia.get("/settings/").content.decode()
    connect(mia, crm, provider)
    assert "Disconnect" in mia.get("/settings/").content.decode()
    account = ConnectedAccount.objects.get()
    other = Client()
    other.force_login(MembershipFactory(organization=world.organization).user)
    assert other.post(reverse("web:disconnect_account", args=[crm.pk])).status_code == 404

    mia.post(reverse("web:disconnect_account", args=[crm.pk]))
    assert ask(finding()).waiting_reason == "input"  # not used from then on, revoked or not
    tasks.revoke_account(account.pk)
    assert provider.tokens == {} and not ConnectedAccount.objects.exists()
    assert [form["token_type_hint"] for path, form, _ in provider.asked if path == "/revoke"] == [
        "refresh_token"
    ]


def test_it_is_always_the_account_of_whom_the_run_works_for(world, crm, crm_site, provider, mia, ask):
    """Not the approver's, and not another member's: those who are connected lend nobody theirs."""
    from policy.models import CapabilityRule

    CapabilityRule.objects.create(
        organization=world.organization, tool="crm.find_customer", effect="require_approval"
    )
    approver = MembershipFactory(organization=world.organization, role="administrator").user
    browser = Client()
    browser.force_login(approver)
    provider.user = "the approver"
    connect(browser, crm, provider)

    run = ask(finding())
    assert run.waiting_reason == "approval"  # policy is asked before anybody has to connect
    approve(Approval.objects.get().pk, approver)
    executor.run(run.pk)
    run.refresh_from_db()
    assert run.waiting_reason == "input" and crm_site.calls == []

    provider.user = "mia there"
    connect(mia, crm, provider)
    assert go_on(world, crm, run).status == "completed"
    assert [one["by"] for one in crm_site.calls] == ["mia there"] and Approval.objects.count() == 1


def test_a_member_of_a_group_acts_as_the_person_too(world, crm, crm_site, provider, mia, ask):
    from runs.tools.base import ESCALATE

    def play(messages, facts):
        if facts["kind"] == "personal":
            asked = call((ESCALATE, {"goal": "Find Ada", "group_id": world.group.pk}))
            return say("Done.") if messages[-1].role == "tool" else asked
        if facts["role"] == "researcher" and messages[-1].role != "tool":
            return call(("crm.find_customer", {"name": "Ada"}))
        return say("DECISION: found")

    provider.user = "mia there"
    run = ask(play)
    child = Run.objects.get(parent_run=run)
    assert child.waiting_reason == "input"
    assert reverse("web:account", args=[crm.pk]) in mia.get(f"/talk/{run.pk}/").content.decode()
    connect(mia, crm, provider)
    go_on(world, crm, child)
    run.refresh_from_db()
    assert run.status == "completed" and [one["by"] for one in crm_site.calls] == ["mia there"]


def test_an_outside_agents_call_waits_and_goes_on(world, crm, crm_site, provider, mia):
    outside = Outside(world)
    request_call(outside.run.pk, "1", "crm.find_customer", {"name": "Ada"})
    work_off()
    waiting = outside.look("1")
    assert (waiting.status, waiting.waits_for.kind) == ("waiting", "input")
    assert reverse("web:account", args=[crm.pk]) in waiting.waits_for.question
    connect(mia, crm, provider)
    tasks.repeat_calls(world.organization.pk, str(world.user.pk), authorizations.need(crm.pk))
    work_off()
    assert outside.look("1").status == "succeeded" and [one["by"] for one in crm_site.calls] == ["ada"]


# Tokens


def test_a_token_is_refreshed_before_it_expires_and_rotates(world, crm, crm_site, provider, mia, ask):
    provider.seconds = 30
    connect(mia, crm, provider)
    first = ConnectedAccount.objects.get()
    assert ask(finding()).status == "completed"
    now = ConnectedAccount.objects.get()
    assert now.sealed_refresh != first.sealed_refresh and now.pk == first.pk
    assert [form["grant_type"] for form in provider.granted()] == ["authorization_code", "refresh_token"]
    assert all(form["resource"] == crm_site.url for form in provider.granted())


def test_a_token_that_is_refused_is_refreshed_once_and_else_asked_for_anew(
    world, crm, crm_site, provider, mia, ask
):
    connect(mia, crm, provider)
    provider.on_change({})  # the server has forgotten the token; a new one it takes
    provider.tokens = {}
    assert ask(finding()).status == "completed" and len(crm_site.calls) == 1

    provider.refreshing.clear()  # the person has withdrawn it at the provider
    provider.tokens = {}
    provider.on_change({})
    run = ask(finding())
    assert run.waiting_reason == "input" and crm_site.calls == []
    assert not ConnectedAccount.objects.exists()
    connect(mia, crm, provider)
    assert go_on(world, crm, run).status == "completed" and len(crm_site.calls) == 1


def test_a_server_that_takes_no_token_makes_the_call_wait_and_never_spin(
    world, crm, crm_site, provider, mia, ask
):
    provider.on_change = lambda tokens: None
    connect(mia, crm, provider)
    run = ask(finding())
    assert run.waiting_reason == "input" and len(provider.granted()) == 2
    connect(mia, crm, provider)
    assert go_on(world, crm, run).waiting_reason == "input" and crm_site.calls == []
    keys = set(Wait.objects.filter(run=run).values_list("correlation_key", flat=True))
    assert len(keys) == 2


def test_an_authorization_server_that_is_away_fails_the_call_and_keeps_the_account(
    world, crm, provider, mia, ask
):
    provider.seconds = 30
    connect(mia, crm, provider)
    provider.down = True
    run = ask(finding())
    assert run.status == "completed" and ToolCall.objects.get(run=run).error["code"] == "OAUTH_AWAY"
    assert ConnectedAccount.objects.exists()


def test_a_token_that_cannot_be_read_any_more_is_asked_for_anew(world, crm, provider, mia, ask, settings):
    connect(mia, crm, provider)
    ConnectedAccount.objects.update(sealed_access=sealed.seal("x")[:-4] + "AAA=")
    assert ask(finding()).waiting_reason == "input" and not ConnectedAccount.objects.exists()


def test_a_call_that_may_have_acted_is_not_made_again(crm, monkeypatch):
    """A 401 says that nothing was done where it is the answer to the call, not where it comes after it."""
    answers = []
    monkeypatch.setattr(
        transport, "fetch", lambda address, **how: Fetched(address, answers.pop(0), {}, "", 0, False, ())
    )
    called, said = '{"method": "tools/call"}', '{"method": "notifications/initialized"}'

    def failure(*sent):
        guarded = transport.Guarded(1, (), {}, {})
        for content, status in sent:
            answers.append(status)
            request = httpx2.Request("POST", crm.url, content=content)
            anyio.run(guarded.handle_async_request, request)
        return type(mcp_client.explained(crm, guarded, ValueError()))

    assert failure((said, 401)) is failure((said, 200), (called, 401)) is mcp_client.Unauthorized
    assert failure((called, 200), (said, 401)) is mcp_client.McpError
    assert failure((called, 500), (said, 401)) is mcp_client.McpError


# What ends it


CHANGES = {
    "url": lambda server, site: setattr(server, "url", site.url.replace("/mcp", "/other")),
    "client": lambda server, site: setattr(server, "client_id", "another"),
    "token endpoint": lambda server, site: setattr(server, "token_endpoint", f"{server.issuer}/elsewhere"),
    "resource": lambda server, site: setattr(server, "resource", "https://elsewhere.example"),
    "off and on": lambda server, site: setattr(server, "as_person", False),
}


def test_what_a_token_was_made_for_is_all_that_it_is_sent_to(world, crm, crm_site, provider, mia, ask):
    """However the server was changed: by saving it, or past the model."""
    was = {
        name: getattr(crm, name) for name in ("url", "client_id", "token_endpoint", "resource", "as_person")
    }
    for what, change in CHANGES.items():
        connect(mia, crm, provider)
        crm_site.book.with_suffix(".heads").unlink(missing_ok=True)
        change(crm, crm_site)
        crm.save()
        assert not ConnectedAccount.objects.exists(), what

        McpServer.objects.filter(pk=crm.pk).update(**was)
        crm.refresh_from_db()
        connect(mia, crm, provider)
        change(crm, crm_site)
        changed = {name: getattr(crm, name) for name in was}
        McpServer.objects.filter(pk=crm.pk).update(**changed)
        assert not authorizations.usable(McpServer.objects.get(pk=crm.pk), world.user.pk).exists(), what
        if crm.as_person:
            with pytest.raises(authorizations.NotConnected):
                authorizations.calling(crm, world.user.pk, lambda token: pytest.fail("sent"))
        assert heads(crm_site) == [], what
        McpServer.objects.filter(pk=crm.pk).update(**was)
        crm.refresh_from_db()
        ConnectedAccount.objects.all().delete()


def test_nobody_collects_tokens_and_the_client_secret_by_moving_where_they_are_revoked(
    world, crm, provider, mia
):
    """However the address was changed: by saving the server, or past the model."""
    moved = {"revocation_endpoint": f"{provider.issuer}/elsewhere"}
    for past_the_model in (False, True):
        crm.refresh_from_db()
        crm.revocation_endpoint = f"{provider.issuer}/revoke"
        crm.save()
        crm.keep_secret("s3cret")
        crm.save()
        connect(mia, crm, provider)
        if past_the_model:
            McpServer.objects.filter(pk=crm.pk).update(**moved)
        else:
            crm.refresh_from_db()
            crm.revocation_endpoint = moved["revocation_endpoint"]
            crm.save()
            crm.refresh_from_db()
            assert crm.sealed_secret == ""
        for account in ConnectedAccount.objects.all():
            ConnectedAccount.objects.filter(pk=account.pk).update(ended_at=timezone.now())
            tasks.revoke_account(account.pk)
        assert "/elsewhere" not in [path for path, _, _ in provider.asked]


def test_a_server_that_moves_forgets_its_endpoints_and_the_client_secret(world, crm):
    crm.keep_secret("s3cret")
    crm.save()
    crm.url = "https://elsewhere.example/mcp"
    crm.save()
    crm.refresh_from_db()
    assert (crm.issuer, crm.token_endpoint, crm.sealed_secret, crm.header_names) == ("", "", "", [])


def test_a_call_goes_on_when_the_server_takes_the_shared_headers_again(world, crm, crm_site, ask):
    run = ask(finding())
    crm.as_person = False
    crm.save()
    crm_site.behave(FIND)
    assert mcp.refresh(crm) == ""
    executor.run(run.pk)
    run.refresh_from_db()
    assert run.status == "completed" and len(crm_site.calls) == 1
    called = [payload for type, payload in events(run) if type == "tool.called"]
    assert "as_person" in called[0] and "as_person" not in called[1]


def test_it_ends_with_the_membership(world, crm, provider, mia):
    for leave in (lambda one: (setattr(one, "active", False), one.save()), lambda one: one.delete()):
        membership = Membership.objects.get(user=world.user)
        membership.active = True
        membership.save()
        connect(mia, crm, provider)
        account = ConnectedAccount.objects.get()
        leave(membership)
        assert not authorizations.usable(crm, world.user.pk).exists()
        tasks.revoke_account(account.pk)
        assert not ConnectedAccount.objects.exists() and provider.tokens == {}


# Attacks on the way


def test_answers_that_are_not_the_one_that_was_asked_for_connect_nothing(world, crm, provider, mia, caplog):
    back = reverse("web:account_callback", args=[crm.pk])
    other = Client()
    other.force_login(MembershipFactory(organization=world.organization).user)
    another = McpServer.objects.create(
        organization=world.organization, name="other", url="https://other.example/mcp", as_person=True,
        client_id="deputy", issuer="https://as.example", authorization_endpoint="https://as.example/a",
        token_endpoint="https://as.example/t",
    )  # fmt: skip
    elsewhere = reverse("web:account_callback", args=[another.pk])

    def fresh():
        return dict(parse_qsl(urlsplit(provider.agree(begin(mia, crm))).query))

    def without(name):
        return {key: value for key, value in fresh().items() if key != name}

    def with_code_of_another():
        """Whose verifier the code was made for is in the same browser, in another flow."""
        return {**fresh(), "code": fresh()["code"]}

    def begun_by_another():
        told, session = fresh(), mia.session
        session[account_views.STATES] = {
            told["state"]: {**session[account_views.STATES][told["state"]], "user": 0}
        }
        session.save()
        return told

    attacks = [
        ("unknown or used state", mia, back, lambda: {**fresh(), "state": "made-up"}),
        ("unknown or used state", other, back, fresh),
        ("begun by somebody else", mia, back, begun_by_another),
        (
            "answer of another authorization server",
            mia,
            back,
            lambda: {**fresh(), "iss": "https://evil.example"},
        ),
        ("answer of another authorization server", mia, back, lambda: without("iss")),
        ("answer for another server", mia, elsewhere, fresh),
        ("it refuses: invalid_grant", mia, back, with_code_of_another),
        ("no code", mia, back, lambda: without("code")),
        ("the authorization server refused", mia, back, lambda: {**fresh(), "error": "access_denied"}),
    ]
    for why, browser, address, told in attacks:
        caplog.clear()
        answer = browser.get(address, told())
        assert answer["Location"] == "/settings/", why
        assert f"was refused: {why}" in caplog.text and not ConnectedAccount.objects.exists(), why

    good = provider.agree(begin(mia, crm))
    mia.get(good)
    kept = ConnectedAccount.objects.get().sealed_access
    mia.get(good)  # replayed
    assert ConnectedAccount.objects.get().sealed_access == kept and "unknown or used state" in caplog.text

    begun = begin(mia, crm)
    crm.client_id = "another"
    crm.save()
    mia.get(provider.agree(begun))
    assert "the server has changed meanwhile" in caplog.text and not ConnectedAccount.objects.exists()
    assert "<b>" not in caplog.text and "secret words" not in caplog.text


def test_no_way_leads_out_of_deputy(world, crm, provider, mia):
    for run in ("https://evil.example", "//evil.example", "run_0", "../../x"):
        assert connect(mia, crm, provider, run)["Location"] == "/settings/"
    assert Client().get(reverse("web:account", args=[crm.pk])).status_code in (302, 403)
    assert mia.get(reverse("web:connect_account", args=[crm.pk])).status_code == 405
    stranger = Client()
    stranger.force_login(MembershipFactory().user)
    assert stranger.get(reverse("web:account", args=[crm.pk])).status_code == 404


BAD_TOKENS = {
    "no bearer": {"token_type": "DPoP"},
    "no token": {"access_token": None},
    "a line break": {"access_token": "a\r\nX-Evil: 1"},
    "not text": {"access_token": {"a": 1}},
}


def test_tokens_that_cannot_be_sent_are_not_kept(crm, provider, mia):
    for what, answer in BAD_TOKENS.items():
        provider.answer = answer
        assert connect(mia, crm, provider)["Location"] == "/settings/"
        assert not ConnectedAccount.objects.exists(), what


def test_servers_that_say_of_themselves_what_is_not_theirs_are_not_believed(world, crm, crm_site, provider):
    own = {**provider.protected}
    lies = {
        "describes another address": {"protected": {"resource": "https://other.example/mcp"}},
        "names no authorization server": {"protected": {"authorization_servers": []}},
        "calls itself otherwise": {"metadata": {"issuer": "https://evil.example"}},
        "without PKCE": {"metadata": {"code_challenge_methods_supported": ["plain"]}},
        "without token_endpoint": {"metadata": {"token_endpoint": None}},
        "names an authorization server that is refused": {
            "protected": {"authorization_servers": ["http://10.0.0.1"]}
        },
        "is refused": {"metadata": {"authorization_endpoint": "javascript:alert(1)"}},
        "does not describe itself": {"down": True},
        "not start with https": {"metadata": {"token_endpoint": "http://93.184.216.34/token"}},
        "private": {"metadata": {"token_endpoint": "http://127.0.0.1:1/token"}},
    }
    for why, lie in lies.items():
        provider.protected.update({**own, **lie.get("protected", {})})
        provider.metadata, provider.down = lie.get("metadata", {}), lie.get("down", False)
        provider.on_change({})
        McpServer.objects.filter(pk=crm.pk).update(issuer="", token_endpoint="", authorization_endpoint="")
        problem = mcp.refresh(McpServer.objects.get(pk=crm.pk))
        assert why in problem or "public" in problem, (why, problem)
        assert McpServer.objects.get(pk=crm.pk).issuer == ""


def test_settings_that_lead_nowhere_are_refused(world, crm):
    for change, field in (
        ({"client_id": ""}, "client_id"),
        ({"token_endpoint": ""}, "token_endpoint"),
        ({"token_endpoint": "http://93.184.216.34/t"}, "token_endpoint"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "authorization_endpoint"),
        ({"issuer": "", "token_endpoint": "", "authorization_endpoint": "", "sealed_secret": "x"}, "issuer"),
    ):
        crm.refresh_from_db()
        for name, value in change.items():
            setattr(crm, name, value)
        with pytest.raises(ValidationError) as refused:
            crm.full_clean()
        assert field in refused.value.message_dict


def test_a_client_secret_goes_to_the_token_endpoint_alone(world, crm, crm_site, provider, mia):
    crm.keep_secret("s3cret")
    crm.save()
    address = begin(mia, crm)
    mia.get(provider.agree(address))
    ((_, form, header),) = [one for one in provider.asked if one[0] == "/token"]
    assert header.startswith("Basic ") and "client_secret" not in form and "s3cret" not in address
    assert ConnectedAccount.objects.exists()


def test_a_list_that_is_told_to_people_only_is_read_in_the_name_of_who_asks(world, crm, provider, mia):
    assert "connect your own account" in mcp.refresh(crm, world.user)
    connect(mia, crm, provider)
    crm.refresh_from_db()
    assert mcp.refresh(crm, world.user) == ""
    assert mcp.refresh(McpServer.objects.get(pk=crm.pk)) == ""  # each hour, in the same name
    mia.post(reverse("web:disconnect_account", args=[crm.pk]))
    assert "connect your own account" in mcp.refresh(McpServer.objects.get(pk=crm.pk))


# Two at once


@pytest.mark.django_db(transaction=True)
def test_two_workers_refresh_a_token_once(world, crm, crm_site, provider, mia):
    """A refresh token is good for one use: whoever comes second finds what the first one got."""
    connect(mia, crm, provider)
    ConnectedAccount.objects.update(expires_at=timezone.now())
    both = threading.Barrier(2)
    found = []

    def work():
        try:
            server = McpServer.objects.get(pk=crm.pk)
            both.wait(10)
            found.append(authorizations.bearer(server, world.user.pk))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 2 and len(set(found)) == 1 and found[0] in provider.tokens
    assert [form["grant_type"] for form in provider.granted()].count("refresh_token") == 1


def test_a_task_is_asked_about_in_the_persons_name_and_goes_on_once_they_have_connected_again(
    world, crm, crm_site, provider, mia, ask
):
    def look():
        task = McpTask.objects.get()
        with contextlib.suppress(errands.Later):
            mcp_tasks.poll(task.pk, task.generation)

    connect(mia, crm, provider)
    crm_site.say(task={})
    run = ask(finding())
    assert run.waiting_reason == "signal" and [one["by"] for one in crm_site.calls] == ["ada"]
    look()
    (token,) = provider.tokens
    assert crm_site.asked[-1]["authorization"] == f"Bearer {token}"

    provider.tokens, provider.refreshing = {}, {}
    provider.on_change({})
    look()
    executor.run(run.pk)
    run.refresh_from_db()
    assert run.waiting_reason == "input" and not ConnectedAccount.objects.exists()
    connect(mia, crm, provider)
    crm_site.say(task={})
    assert go_on(world, crm, run).waiting_reason == "signal"
    done = {"content": [{"type": "text", "text": "Ada, at last"}]}
    crm_site.say(task={"status": "completed", "result": done})
    look()
    executor.run(run.pk)
    run.refresh_from_db()
    assert run.status == "completed" and crm_site.calls == []  # since they connected again: it was not called
    assert ToolCall.objects.get(run=run).result == {"text": "Ada, at last"}
