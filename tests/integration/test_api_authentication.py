"""Who may speak to the API, and in whose organization."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from groups.models import Token
from tests.factories import MembershipFactory, OrganizationFactory, ProjectFactory
from tests.integration.api_client import Api, problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(world):
    return Api(world.user, world.organization)


def in_session(user, **options):
    client = Client(**options)
    client.force_login(user)
    return client


def test_nobody_gets_in_without_a_name(client):
    response = client.get("/api/runs/")

    assert problem(response) == (401, "UNAUTHENTICATED")
    assert response.headers["WWW-Authenticate"].startswith("Token")


def test_a_token_opens_its_own_organization(api, world):
    assert [each["id"] for each in api.get("projects/").json()["results"]] == [world.project.id]


@pytest.mark.parametrize(
    "header", ["Token dpt_wrong", "Token", "Token  ", "Bearer dpt_wrong", "Token \u00ff"]
)
def test_a_wrong_token_is_refused(client, header):
    assert problem(client.get("/api/runs/", headers={"Authorization": header})) == (401, "BAD_TOKEN")


@pytest.mark.parametrize(
    "change",
    [
        {"revoked_at": timezone.now()},
        {"expires_at": timezone.now() - timedelta(seconds=1)},
    ],
)
def test_a_token_that_is_revoked_or_too_old_is_refused(api, change):
    Token.objects.filter(pk=api.token.pk).update(**change)

    assert problem(api.get("runs/")) == (401, "BAD_TOKEN")


def test_a_token_is_worth_nothing_once_its_owner_is_locked_out(api, world):
    world.user.is_active = False
    world.user.save()

    assert problem(api.get("runs/")) == (401, "BAD_TOKEN")


def test_a_token_is_worth_nothing_once_its_owner_has_left(api, world):
    world.membership.active = False
    world.membership.save()

    assert problem(api.get("runs/")) == (403, "NOT_A_MEMBER")


def test_a_token_cannot_be_pointed_at_another_organization(api, world):
    other = MembershipFactory(user=world.user).organization
    response = api.client.get("/api/runs/", headers={**api.headers, "X-Organization": other.slug})

    assert problem(response) == (403, "NOT_A_MEMBER")


def test_the_use_of_a_token_is_noted_once_a_minute(api, django_assert_num_queries):
    api.get("projects/")
    first = Token.objects.get(pk=api.token.pk).last_used_at
    assert first is not None

    api.get("projects/")
    assert Token.objects.get(pk=api.token.pk).last_used_at == first

    Token.objects.filter(pk=api.token.pk).update(last_used_at=first - timedelta(seconds=61))
    api.get("projects/")
    assert Token.objects.get(pk=api.token.pk).last_used_at >= first


def test_a_token_for_reading_starts_nothing(world):
    api = Api(world.user, world.organization, scopes=["runs:read"])

    assert api.get("runs/").status_code == 200
    assert problem(api.post("runs/", {"project": world.project.slug, "goal": "x"})) == (403, "SCOPE_MISSING")


def test_a_token_for_running_decides_nothing_not_even_by_signal(world, ask):
    api = Api(world.user, world.organization, scopes=["runs:read", "runs:write"])
    run = ask(lambda messages, facts: None, drive=False)
    body = {"correlation_key": "cap-approval-x", "payload": {"approved": True}}

    assert problem(api.post(f"runs/{run.pk}/signal/", body)) == (403, "SCOPE_MISSING")


def test_a_session_serves_as_well(world):
    assert in_session(world.user).get("/api/runs/").status_code == 200


def test_a_session_writes_only_with_its_csrf_token(world):
    client = in_session(world.user, enforce_csrf_checks=True)
    body = {"project": world.project.slug, "goal": "x"}

    assert problem(client.post("/api/runs/", body, content_type="application/json")) == (403, "CSRF_FAILED")


def test_who_belongs_nowhere_is_told_so(django_user_model):
    client = in_session(django_user_model.objects.create(username="stranger"))

    assert problem(client.get("/api/runs/")) == (403, "NOT_A_MEMBER")


def test_who_is_in_several_organizations_names_one(world):
    second = ProjectFactory(organization=MembershipFactory(user=world.user).organization)
    client = in_session(world.user)

    refused = client.get("/api/projects/")
    assert problem(refused) == (400, "ORGANIZATION_MISSING")
    assert second.organization.slug in refused.json()["detail"]
    answer = client.get("/api/projects/", headers={"X-Organization": second.organization.slug})
    assert [each["id"] for each in answer.json()["results"]] == [second.id]


def test_an_organization_one_is_not_in_cannot_be_told_from_none(world):
    client = in_session(world.user)
    there = client.get("/api/projects/", headers={"X-Organization": OrganizationFactory().slug})
    nowhere = client.get("/api/projects/", headers={"X-Organization": "nowhere"})

    assert there.json() == nowhere.json()
    assert problem(there) == (403, "NOT_A_MEMBER")
