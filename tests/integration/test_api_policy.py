"""What policy would say, over HTTP."""

import pytest

from policy.models import Capability, CapabilityRule
from runs.models import Run, ToolCall
from tests.factories import MembershipFactory, ProjectFactory, RoleFactory
from tests.integration.api_client import Api, permit, problem

pytestmark = pytest.mark.django_db

MAIL = {"to": ["ines@example.org"], "subject": "Prices", "body": "5"}


@pytest.fixture
def api(world):
    return Api(world.user, world.organization)


@pytest.fixture
def rule(world):
    capability = Capability.objects.create(organization=world.organization, name="send_email")
    return CapabilityRule.objects.create(
        organization=world.organization,
        capability=capability,
        effect="require_human",
        condition="size(to) > 1",
        name="Mail to several",
    )


def asked(api, world, **fields):
    return api.post(
        "policy/evaluate/",
        {"project": world.project.slug, "tool": "send_email", "arguments": MAIL, **fields},
    )


def test_a_question_is_answered_with_its_reasons(api, world, rule):
    answer = asked(api, world).json()
    assert (answer["effect"], answer["rule"], answer["unlockable"]) == ("require_approval", None, True)

    several = {**MAIL, "to": ["a@example.org", "b@example.org"]}
    answer = asked(api, world, arguments=several).json()
    assert (answer["effect"], answer["rule"], answer["capability"]) == (
        "require_human",
        rule.pk,
        "send_email",
    )
    assert [each["id"] for each in answer["considered"] if each["spoke"] and each["layer"] == "rule"] == [
        rule.pk
    ]


def test_a_question_changes_nothing(api, world, rule):
    asked(api, world)

    assert not ToolCall.objects.exists()
    assert not Run.objects.exists()


def test_one_may_ask_about_a_role_and_about_what_was_passed_on(api, world):
    role = RoleFactory(organization=world.organization, denied_tools=["send_email"])
    assert asked(api, world, role=role.pk).json()["effect"] == "deny"

    passed_on = {"allowed_tools": ["http_get"], "denied_tools": []}
    assert asked(api, world, delegated_permissions=passed_on).json()["effect"] == "deny"


def test_asking_about_others_takes_a_permission(api, world):
    member = MembershipFactory(
        organization=world.organization, user__username="otto", denied_tools=["send_email"]
    )
    assert problem(asked(api, world, user="otto")) == (403, "NOT_ENTITLED")

    permit(world.user, "view_membership")
    assert asked(api, world, user="otto").json()["effect"] == "deny"
    assert problem(asked(api, world, user=MembershipFactory().user.username)) == (422, "INVALID")
    assert member.user.username == "otto"


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"tool": "none"}, "/tool"),
        ({"role": "rol_none"}, "/role"),
        ({"group": "grp_none"}, "/group"),
        ({"arguments": {**MAIL, "to": 5}}, "/arguments/to"),
        ({"delegated_permissions": {"allowed_tools": ["x"], "more": 1}}, "/delegated_permissions/more"),
    ],
)
def test_a_question_about_what_is_not_there_points_to_it(api, world, fields, pointer):
    answer = asked(api, world, **fields)

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_a_question_about_another_organizations_project_is_not_found(api, world):
    assert problem(asked(api, world, project=ProjectFactory().slug)) == (404, "PROJECT_NOT_FOUND")


def test_rules_can_be_looked_up(api, rule):
    (shown,) = api.get("policy/rules/", capability="send_email", effect="require_human").json()["results"]

    assert (shown["id"], shown["name"], shown["condition"]) == (rule.pk, "Mail to several", "size(to) > 1")
    assert api.get(f"policy/rules/{rule.pk}/").json() == shown
    assert api.get("policy/rules/", effect="deny").json()["results"] == []
