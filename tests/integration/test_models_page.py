"""Keys of models: an organization's own win over the environment, for its runs alone, and are told nobody."""

import asyncio
import json
import logging
from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError
from django.urls import reverse

from common.db import rows
from groups.models import Change, Role
from runs.actions import models
from runs.execution import executor
from runs.models import (
    ModelKey,
    ModelPrice,
    ModelProvider,
    OutboundCall,
    OutboundTarget,
    Run,
    RunEvent,
    TriedModel,
)
from runs.observe import cost
from runs.providers import guarded, keys, registry
from runs.providers.base import Message, ModelSettings, ProviderError
from runs.providers.chat import OPENAI_BASE_URL, ChatProvider
from runs.workers import tasks
from tests.acting import start
from tests.admin_world import client_of, person, superuser, tenant, url
from tests.factories import MembershipFactory, OrganizationFactory, permit, permit_all
from tests.integration.test_outbound_calls import carry
from tests.model_server import Answer, ModelServer, says

pytestmark = pytest.mark.django_db(transaction=True)

KEY, OTHER = "sk-own-0123456789abcdef", "sk-env-fedcba9876543210"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for provider in registry.BUILT_IN.values():
        for variable in (*provider.variables, provider.address):
            monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def made():
    found = tenant()
    ModelKey.objects.all().delete()
    Change.objects.all().delete()
    return found


@pytest.fixture
def root(made):
    """An administrator of all projects."""
    return client_of(permit_all(person(made, "ada", is_staff=True)))


def own(organization, provider="compatible", key=KEY, base_url=""):
    row = ModelKey(organization=organization, provider=provider, base_url=base_url)
    row.keep_key(key)
    row.save()
    return row


def allow(settings, server):
    settings.MODEL_ALLOW = (server.base_url.split("/")[2],)


def provider_of(organization, model):
    return registry.get(model, keys.of(organization.pk, model))[0]


# Which key counts


def test_an_own_key_wins_over_the_environment_and_for_nobody_else(monkeypatch, made):
    monkeypatch.setenv("OPENAI_API_KEY", OTHER)
    own(made.organization, "openai")
    elsewhere = OrganizationFactory()
    assert provider_of(made.organization, "openai:x").api_key == KEY
    assert provider_of(elsewhere, "openai:x") == ChatProvider(OPENAI_BASE_URL, OTHER)


def test_the_environments_key_never_goes_to_an_address_an_organization_has_set(monkeypatch, made):
    monkeypatch.setenv("OPENAI_API_KEY", OTHER)
    monkeypatch.setenv("DEPUTY_MODEL_API_KEY", OTHER)
    for provider in ("openai", "compatible"):
        own(made.organization, provider, key="", base_url="https://models.example.org/v1")
        found = provider_of(made.organization, f"{provider}:x")
        assert (found.api_key, found.base_url) == ("", "https://models.example.org/v1")
        assert found.allow == frozenset()  # past the guard


def test_a_key_that_cannot_be_read_is_said_and_the_environments_is_not_taken_instead(
    monkeypatch, made, settings
):
    monkeypatch.setenv("OPENAI_API_KEY", OTHER)
    own(made.organization, "openai")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another", []
    with pytest.raises(ProviderError, match="enter it again") as caught:
        provider_of(made.organization, "openai:x")
    assert caught.value.code == "MODEL_REFUSED"


def test_every_provider_that_may_be_set_is_looked_up():
    assert set(keys.PROVIDERS) == set(ModelProvider.values) == set(registry.BUILT_IN)


def test_an_operators_own_provider_is_asked_without_any_of_it(made):
    assert keys.of(made.organization.pk, "scripted:x") is None
    assert keys.of("", "openai:x") is None


# Runs


def test_a_run_asks_by_its_organizations_key_and_its_failures_pause_nobody_else(made, settings, monkeypatch):
    with ModelServer(says("We charge 12."), says("Again 12.")) as server:
        allow(settings, server)
        own(made.organization, base_url=server.base_url)
        monkeypatch.setenv("DEPUTY_MODEL_API_KEY", OTHER)
        monkeypatch.setenv("DEPUTY_MODEL_BASE_URL", "http://127.0.0.1:9/v1")
        settings.DEPUTY_MODEL = "compatible:tiny"
        run = start(user=made.user, project=made.project, goal="What do they charge?")
        tasks.advance(run)
        (call,) = OutboundCall.objects.filter(run=run)
        assert call.target == f"{made.organization.pk}/compatible:tiny"
        assert call.host == server.base_url.split("/")[2]
        carry()
        tasks.resume(run)
    assert Run.objects.get(pk=run).output == "We charge 12."
    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.received[0].body["model"] == "tiny"


def test_a_server_of_an_organizations_own_that_fails_opens_its_own_circuit(made, settings):
    with ModelServer(Answer({"error": {"message": "down"}}, status=503)) as server:
        allow(settings, server)
        own(made.organization, base_url=server.base_url)
        settings.DEPUTY_MODEL = "compatible:tiny"
        tasks.advance(start(user=made.user, project=made.project, goal="What do they charge?"))
        carry()
    assert [one.target for one in OutboundTarget.objects.all()] == [f"{made.organization.pk}/compatible:tiny"]


def test_a_worker_without_carriers_asks_by_the_organizations_key_too(made, settings):
    with ModelServer(says("We charge 12.")) as server:
        allow(settings, server)
        own(made.organization, base_url=server.base_url)
        settings.DEPUTY_MODEL = "compatible:tiny"
        run = start(user=made.user, project=made.project, goal="What do they charge?")
        executor.run(run)
    assert Run.objects.get(pk=run).output == "We charge 12."
    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"


# Where an organization may send Deputy


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:11434/v1", "http://169.254.169.254/latest", "http://[::1]:80/", "ftp://a.example/",
     "https://user:word@models.example.org/", "http://localhost:8000/v1", "no address"],
)  # fmt: skip
def test_an_address_that_is_not_public_is_refused_when_it_is_set(made, address):
    row = ModelKey(organization=made.organization, provider="compatible", base_url=address)
    with pytest.raises(ValidationError):
        row.clean()


def test_a_name_that_leads_inside_by_the_time_it_is_asked_is_refused_then(made):
    with ModelServer(says("Secrets of the inside")) as server:
        own(made.organization, base_url=server.base_url)  # past the form, as if its name had led elsewhere
        provider = provider_of(made.organization, "compatible:x")
        with pytest.raises(ProviderError, match="not public") as caught:
            provider.complete([Message("user", "hello")], (), ModelSettings("x", timeout=10))
        assert (caught.value.code, caught.value.retryable) == ("MODEL_REFUSED", False)
    assert server.received == []


def test_the_operator_may_allow_a_server_inside(made, settings):
    with ModelServer(says("hello")) as server:
        allow(settings, server)
        ModelKey(organization=made.organization, provider="compatible", base_url=server.base_url).clean()
        own(made.organization, base_url=server.base_url)
        how = ModelSettings("x", timeout=10)
        reply = provider_of(made.organization, "compatible:x").complete([Message("user", "hi")], (), how)
    assert reply.content == "hello"


def test_a_name_with_one_address_inside_is_refused_whole(monkeypatch):
    found = [(2, 1, 6, "", ("93.184.216.34", 80)), (2, 1, 6, "", ("10.0.0.1", 80))]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: found)
    with pytest.raises(ProviderError, match="not public"):
        asyncio.run(guarded.addresses_of("models.example.org", 80, ()))


def test_providers_of_their_own_address_are_asked_nowhere_else(made):
    row = ModelKey(
        organization=made.organization, provider="anthropic", base_url="https://models.example.org"
    )
    with pytest.raises(ValidationError, match="its own address"):
        row.clean()


def test_another_address_drops_the_key_that_was_meant_for_the_old_one(made, root):
    row = own(made.organization, base_url="https://one.example.org/v1")
    where = url("runs_modelkey_change", row.pk)
    root.post(where, {"base_url": "https://one.example.org/v2", "key": ""})
    assert ModelKey.objects.get().sealed_key == row.sealed_key
    page = root.post(where, {"base_url": "https://two.example.org/v1", "key": ""}, follow=True)
    assert ModelKey.objects.get().sealed_key == "" and "its key is gone" in page.content.decode()
    root.post(where, {"base_url": "https://three.example.org/v1", "key": "sk-new-for-three"})
    assert keys.of(made.organization.pk, "compatible:x").api_key == "sk-new-for-three"


def test_going_back_to_the_usual_place_takes_a_key_or_nothing_is_kept(made, root):
    row = own(made.organization, base_url="https://one.example.org/v1")
    answer = root.post(url("runs_modelkey_change", row.pk), {"base_url": "", "key": ""})
    assert answer.status_code == 200 and "Enter a key or an address" in answer.content.decode()
    assert ModelKey.objects.get().base_url == "https://one.example.org/v1"


# Who sets keys, and who sees them


def test_a_key_is_set_on_a_page_and_shown_nowhere(made, root, caplog):
    caplog.set_level(logging.DEBUG)
    body = {"organization": made.organization.pk, "provider": "openai", "base_url": "", "key": f" {KEY}\n"}
    assert root.post(url("runs_modelkey_add"), body).status_code == 302
    row = ModelKey.objects.get()
    assert keys.of(made.organization.pk, "openai:x").api_key == KEY
    pages = [
        url("runs_models"), url("runs_modelkey_changelist"), url("runs_modelkey_change", row.pk),
        url("runs_modelkey_history", row.pk), url("groups_change_changelist"),
    ]  # fmt: skip
    for page in pages:
        html = root.get(page).content.decode()
        assert KEY not in html and row.sealed_key not in html, page
    change = Change.objects.get(model="runs.modelkey")
    assert change.after["sealed_key"] == "(secret)" and KEY not in json.dumps(change.after)
    assert KEY not in caplog.text
    assert KEY not in str(rows("SELECT * FROM runs_modelkey"))
    assert KEY not in repr(keys.of(made.organization.pk, "openai:x"))


def test_a_key_with_a_space_in_it_is_refused_without_being_shown(made, root):
    body = {"organization": made.organization.pk, "provider": "openai", "key": "sk-a b"}
    answer = root.post(url("runs_modelkey_add"), body)
    assert answer.status_code == 200 and "sk-a b" not in answer.content.decode()
    assert not ModelKey.objects.exists()


@pytest.mark.parametrize("kind", ["of one project", "a decider", "of another organization"])
def test_nobody_else_sets_a_key_or_tries(made, kind):
    elsewhere = tenant("Elsewhere", "elsewhere")
    user = person(None, "eve", is_staff=True)
    where = elsewhere.organization if kind == "of another organization" else made.organization
    some = [made.project.pk] if kind == "of one project" else None
    MembershipFactory(organization=where, user=user, projects=some)
    permit(user, "runs.decide_approval") if kind == "a decider" else permit_all(user)
    client, row = client_of(user), own(made.organization, "openai")
    body = {"organization": made.organization.pk, "provider": "google", "key": KEY}
    client.post(url("runs_modelkey_add"), body)
    client.post(url("runs_modelkey_change", row.pk), {"key": "sk-of-eve"})
    client.post(url("runs_models_try"), {"organization": made.organization.pk, "model": "local"})
    assert ModelKey.objects.filter(organization=made.organization).count() == 1
    assert keys.of(made.organization.pk, "openai:x").api_key == KEY
    assert not TriedModel.objects.filter(organization=made.organization).exists()


# The page


def test_the_page_says_where_each_key_comes_from_and_what_nobody_answers_for(made, root, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", OTHER)
    monkeypatch.setenv("ANTHROPIC_API_KEY", OTHER)
    own(made.organization, "openai")
    Role.objects.filter(pk=made.role.pk).update(model="nobody:x")
    html = root.get(url("runs_models")).content.decode()
    assert "set here; wins over the environment" in html
    assert "from the environment" in html and "missing" in html
    assert "nobody:x" in html and "Nobody answers for it." in html and made.role.name in html
    assert OTHER not in html and KEY not in html


def test_prices_are_set_from_the_page_and_runs_say_what_they_have_cost(made, root, settings):
    with ModelServer(says("We charge 12.")) as server:
        allow(settings, server)
        own(made.organization, base_url=server.base_url)
        settings.DEPUTY_MODEL = "compatible:tiny"
        run = start(user=made.user, project=made.project, goal="What do they charge?")
        executor.run(run)
    spent = RunEvent.objects.get(run=run, payload__role="assistant").payload["usage"]
    assert spent["input_tokens"] and spent["output_tokens"]
    assert cost.of_run(run) == cost.Cost((), sum(spent.values()))
    where, page = url("runs_modelprice_add"), root.get(url("runs_models")).content.decode()
    assert f"{where}?model=compatible%3Atiny&amp;organization={made.organization.pk}" in page
    body = {"organization": made.organization.pk, "model": "compatible:tiny", "currency": "EUR"}
    for wrong in ({"input_price": "-1"}, {"currency": "euro"}, {"output_price": "1e99"}):
        root.post(where, {**body, "input_price": "2.5", "output_price": "10", **wrong})
    assert not ModelPrice.objects.filter(organization=made.organization, model="compatible:tiny").exists()

    root.post(where, {**body, "input_price": "2.5", "output_price": "10"})

    expected = (Decimal("2.5") * spent["input_tokens"] + 10 * spent["output_tokens"]) / 1_000_000
    assert cost.of_run(run).amounts == (("EUR", expected),)
    assert "2.5 in, 10 out, EUR" in root.get(url("runs_models")).content.decode()
    assert f"{cost.of_run(run).said}" in root.get(url("runs_run_change", run)).content.decode()
    ModelPrice.objects.filter(model="compatible:tiny").update(organization=OrganizationFactory())
    assert cost.of_run(run).amounts == ()  # another's prices are not this one's


def test_small_amounts_are_said_with_digits_that_tell_something():
    said = {amount: cost.Cost((("USD", Decimal(amount)),), 0).said for amount in ("0", "12.346", "0.000123")}
    assert list(said.values()) == ["0.00 USD", "12.35 USD", "0.00012 USD"]


def test_a_try_asks_shows_and_records(made, root, settings):
    with ModelServer(says("Yes, I am here.")) as server:
        allow(settings, server)
        own(made.organization, base_url=server.base_url)
        body = {"organization": made.organization.pk, "model": "compatible:tiny"}
        assert root.get(url("runs_models_try")).status_code == 405
        page = root.post(url("runs_models_try"), body, follow=True).content.decode()
    assert "compatible:tiny answered within" in page and "Yes, I am here." in page
    assert len(server.received) == 1 and server.received[0].headers["authorization"] == f"Bearer {KEY}"
    change = Change.objects.get(model="runs.triedmodel")
    assert (change.by, change.after["model"], change.after["error"]) == ("ada", "compatible:tiny", "")
    assert "compatible:tiny" in models.answering(made.organization.pk)
    form = root.get(url("groups_role_change", made.role.pk)).content.decode()
    assert '<option value="compatible:tiny">' in form


def test_a_try_that_fails_says_what_to_change_and_no_key(made, root, settings):
    echo = Answer({"error": {"message": f"bad key {KEY}"}}, status=401)
    with ModelServer(echo) as server:
        allow(settings, server)
        own(made.organization, base_url=server.base_url)
        body = {"organization": made.organization.pk, "model": "compatible:tiny"}
        page = root.post(url("runs_models_try"), body, follow=True).content.decode()
    assert "did not answer" in page and "Look at the key" in page and KEY not in page
    assert KEY not in str(list(TriedModel.objects.values_list())) + str(list(Change.objects.values_list()))
    assert "compatible:tiny" not in models.answering(made.organization.pk)


def test_a_server_that_says_the_key_back_is_not_quoted(made, root, settings):
    with ModelServer(says(f"Your key is {KEY}.")) as server:
        allow(settings, server)
        own(made.organization, base_url=server.base_url)
        body = {"organization": made.organization.pk, "model": "compatible:tiny"}
        page = root.post(url("runs_models_try"), body, follow=True).content.decode()
    assert "Your key is [key]" in page and KEY not in page


def test_tries_have_a_pace(made, root):
    body = {"organization": made.organization.pk, "model": "local"}
    pages = [root.post(url("runs_models_try"), body, follow=True).content.decode() for _ in range(14)]
    assert "answered within" in pages[0]
    assert any("Too many tries" in page for page in pages)  # a minute may have ended among them


def test_a_superuser_tries_for_an_organization_they_do_not_belong_to(made):
    client = client_of(superuser())
    body = {"organization": made.organization.pk, "model": "local"}
    client.post(url("runs_models_try"), body)
    assert TriedModel.objects.get().organization == made.organization


def test_a_role_may_name_a_model_that_only_the_organizations_key_reaches(made):
    role = Role.objects.get(pk=made.role.pk)
    role.model = "openai:gpt-5"
    assert "model" in role.unknown_names()
    own(made.organization, "openai")
    assert "model" not in role.unknown_names()


# A run that failed of its model


def test_a_failed_run_names_role_model_and_page_and_can_be_run_again(made, settings):
    settings.DEPUTY_MODEL = "openai:gpt-5"
    user = permit(made.user, "runs.start_run")
    run = start(user=user, project=made.project, goal="What do they charge?")
    executor.run(run)
    assert Run.objects.get(pk=run).error["code"] == "MODEL_REFUSED"
    client = client_of(user)
    html = client.get(reverse("web:conversation", args=[run])).content.decode()
    assert "openai:gpt-5" in html and "DEPUTY_MODEL" in html and reverse("web:again", args=[run]) in html
    assert reverse("admin:runs_models") not in html  # for who may open it
    client = client_of(permit_all(user))
    user.is_staff = True
    user.save()
    for page in (reverse("web:conversation", args=[run]), url("runs_run_change", run)):
        assert reverse("admin:runs_models") in client.get(page).content.decode()
    assert RunEvent.objects.filter(run=run).exists()
