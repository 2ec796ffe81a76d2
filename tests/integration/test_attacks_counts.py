"""Ways to make so many of a thing that others wait: at each door one gets as many as fit, and is told so."""

import pytest
from django.db.models.functions import Now
from django.test import Client, override_settings
from django.urls import reverse

from groups.models import Token
from tests.factories import AgentFactory, permit_all
from tests.integration.api_client import Api, problem

pytestmark = pytest.mark.django_db
FEW = {"TOKENS": 2, "WEBHOOKS": 1, "RULES": 1, "GRANTS": 1, "PREFERENCES": 1}
HOOK = {"url": "https://8.8.8.8/hook", "events": ["run.failed"]}
RULE = {"tool": "send_email", "effect": "require_human"}
GRANT = {"tool": "send_email", "arguments": {"to": ["a@example.org"]}, "max_uses": 5}
PREFERENCE = {"kind": "preference", "content": "Answers in German, please."}


@pytest.fixture
def api(world):
    permit_all(world.user)
    AgentFactory(organization=world.organization, user=world.user)
    return Api(world.user, world.organization)


@override_settings(**FEW)
def test_of_each_thing_as_many_are_added_as_fit(api, world):
    for path, body, code in (
        ("tokens/", {"name": "more"}, "TOO_MANY_TOKENS"),
        ("webhooks/", HOOK, "INVALID"),
        ("policy/rules/", RULE, "INVALID"),
        ("policy/grants/", {"project": world.project.slug, **GRANT}, "INVALID"),
        ("memories/", PREFERENCE, "too_many_preferences"),
    ):
        assert api.post(path, body).status_code == 201, path
        refused = api.post(path, body)
        assert problem(refused) == (422, code), path
        assert "already" in refused.content.decode() or "first" in refused.content.decode(), path


@override_settings(TOKENS=1)
def test_no_other_door_issues_a_token_more(api, world):
    said = {"name": "more", "scopes": ["runs:read"], "days": 30}
    browser = Client()
    permit_all(world.user)
    world.user.is_staff = True
    world.user.save()
    browser.force_login(world.user)
    page = browser.post(reverse("web:issue"), said)
    assert page.status_code == 422 and "revoke some first" in page.content.decode()
    form = {"organization": world.organization.pk, "user": world.user.pk, **said}
    page = browser.post(reverse("admin:groups_token_add"), form)
    assert page.status_code == 200 and "revoke some first" in page.content.decode()
    assert Token.objects.filter(user=world.user).count() == 1

    Token.objects.filter(user=world.user).update(revoked_at=Now())
    assert browser.post(reverse("web:issue"), said).status_code == 200
    assert Token.objects.filter(user=world.user).count() == 2
