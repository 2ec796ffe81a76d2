"""How far a token reaches: every address has a scope, and a token has those it was given."""

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from common.api.permissions import needed_scope
from common.api.views import ApiView
from groups.scopes import BY_NAME, SCOPES
from tests.factories import MembershipFactory
from tests.integration.api_client import Api, problem

OPEN_TO_ALL = {"api-schema", "api-docs"}  # they tell nothing of anybody's things


def views(resolver=None, prefix=""):
    """(name, view class, its arguments, method) of every address below /api/."""
    for entry in (resolver or get_resolver()).url_patterns:
        path = prefix + str(entry.pattern).lstrip("^")
        if isinstance(entry, URLResolver):
            yield from views(entry, path)
        elif isinstance(entry, URLPattern) and path.startswith("api/") and entry.name:
            for method in getattr(entry.callback, "actions", None) or {"get": None}:
                yield entry.name, entry.callback, method


ADDRESSES = [found for found in views() if found[0] not in OPEN_TO_ALL]


def scope_of(callback, method):
    return needed_scope(callback.cls(**callback.initkwargs), method.upper())


@pytest.mark.parametrize(
    ("name", "callback", "method"), ADDRESSES, ids=lambda part: getattr(part, "__name__", part)
)
def test_every_address_has_a_scope_of_the_list(name, callback, method):
    assert issubclass(callback.cls, ApiView)
    assert scope_of(callback, method) in SCOPES


def test_every_scope_of_the_list_opens_something():
    asked = {scope_of(callback, method) for _, callback, method in ADDRESSES}

    assert asked == set(SCOPES) - BY_NAME  # these say whose words a token's are


def test_an_address_without_a_scope_would_be_seen():
    class Forgotten(ApiView):
        pass

    with pytest.raises(AttributeError, match="area"):
        needed_scope(Forgotten(), "GET")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path", ["runs/", "approvals/", "groups/", "policy/rules/", "memories/", "tools/", "tokens/"]
)
def test_reading_one_thing_opens_no_other(path):
    member = MembershipFactory()
    area = {"policy/rules/": "policy", "memories/": "memory", "tools/": "runs"}.get(path, path.strip("/"))
    for scope in SCOPES:
        answer = Api(member.user, member.organization, scopes=[scope]).get(path)
        expected = (200,) if scope == f"{area}:read" else (403, "SCOPE_MISSING")
        assert expected == (200,) if answer.status_code == 200 else problem(answer) == expected, scope
