"""Pages on other origins call the API where the setting names them, with a token and never with a session."""

import pytest
from django.test import Client

from groups.models import Token
from tests.factories import MembershipFactory

pytestmark = pytest.mark.django_db

HERE, THERE = "https://app.example.com", "https://evil.example.com"


@pytest.fixture(autouse=True)
def _named(settings):
    settings.CORS_ALLOWED_ORIGINS = [HERE]


def preflight(path, origin):
    return Client().options(
        path,
        headers={
            "Origin": origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type,idempotency-key",
        },
    )


def test_a_named_origin_may_send_a_token():
    answer = preflight("/api/runs/", HERE)
    assert answer.status_code == 200
    assert answer["Access-Control-Allow-Origin"] == HERE
    assert {"authorization", "idempotency-key"} <= set(answer["Access-Control-Allow-Headers"].split(", "))
    assert "Access-Control-Allow-Credentials" not in answer
    member = MembershipFactory()
    _, secret = Token.objects.issue(member.organization, member.user)
    listed = Client().get("/api/runs/", headers={"Origin": HERE, "Authorization": f"Token {secret}"})
    assert listed.status_code == 200 and listed["Access-Control-Allow-Origin"] == HERE


@pytest.mark.parametrize(("path", "origin"), [("/api/runs/", THERE), ("/", HERE), ("/admin/", HERE)])
def test_another_origin_and_another_page_get_no_leave(path, origin):
    assert "Access-Control-Allow-Origin" not in preflight(path, origin)
    assert "Access-Control-Allow-Origin" not in Client().get(path, headers={"Origin": origin})
