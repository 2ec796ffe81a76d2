"""A misspelt tool, model or role in a safety setting is refused, or told of wherever somebody looks."""

import json

import pytest
from django.core.exceptions import ValidationError

from groups.models import CustomRole, Membership, Role
from policy import unknown
from policy.models import Capability, CapabilityRule, Grant, ToolBinding, ToolDeclaration
from tests.admin_world import client_of, person, superuser, url
from tests.factories import RoleFactory, permit_all
from tests.integration.api_client import Api, problem

pytestmark = pytest.mark.django_db

MEANT = "There is no tool 'send_emial'. Did you mean send_email?"
TYPO = "send_emial"


@pytest.fixture
def manager(made):
    return permit_all(person(made, "manager", is_staff=True))


@pytest.fixture
def api(manager, made):
    return Api(manager, made.organization)


def settings_of(made):
    """Each setting with a misspelt tool: (field, row)."""
    mine = {"organization": made.organization}
    return [
        ("allowed_tools", Role(**mine, name="a", allowed_tools=[TYPO])),
        ("denied_tools", Role(**mine, name="b", denied_tools=["send_email", TYPO])),
        ("delegable_tools", Role(**mine, name="c", delegable_tools=[TYPO])),
        ("allowed_tools", Membership(**mine, user=superuser(), allowed_tools=[TYPO])),
        ("denied_tools", Membership(**mine, user=superuser(username="x"), denied_tools=[TYPO])),
        ("tool", CapabilityRule(**mine, tool=TYPO, effect="deny")),
        ("pattern", ToolBinding(**mine, capability=made.capability, pattern=TYPO)),
        ("tool", ToolDeclaration(**mine, tool=TYPO)),
        (
            "tool",
            Grant(
                **mine, project=made.project, granted_by=made.user, tool=TYPO, any_arguments=True, max_uses=1
            ),
        ),
    ]


def test_a_misspelt_tool_is_refused_with_what_may_be_meant(made):
    for field, row in settings_of(made):
        with pytest.raises(ValidationError) as refused:
            row.full_clean()
        assert refused.value.message_dict[field] == [MEANT], row


def test_it_is_accepted_where_it_is_said_to_be_not_known_yet(made):
    for _, row in settings_of(made):
        if hasattr(row, "not_known_yet"):
            row.not_known_yet = True
            row.full_clean()


def test_a_model_nobody_answers_for_is_refused(made):
    with pytest.raises(ValidationError) as refused:
        Role(organization=made.organization, name="x", model="opnai:gpt-5").full_clean()
    assert "Nobody answers for the model 'opnai:gpt-5'" in str(refused.value)
    Role(organization=made.organization, name="x", model="local").full_clean()


def test_a_member_role_nobody_has_defined_is_refused_among_deciders(made, api):
    """A rule that names it asks for people whom there are not, until somebody makes a role of that name."""
    asks = {"tool": "send_email", "effect": "require_approval"}
    said = "There is no member role 'adminstrator'. Did you mean administrator?"
    answer = api.post("policy/rules/", {**asks, "deciders": ["role:adminstrator"]})
    assert problem(answer) == (422, "INVALID")
    assert said in [error["detail"] for error in answer.json()["errors"]]
    body = {**asks, "deciders": ["role:adminstrator", "role:decider"], "not_known_yet": True}
    made_up = CapabilityRule.objects.get(pk=api.post("policy/rules/", body).json()["id"])
    assert made_up.unknown_names() == {"deciders": [said]}

    role = CustomRole.objects.create(organization=made.organization, name="board")
    known = CapabilityRule(organization=made.organization, **asks, deciders=["role:board", "run.user"])
    known.full_clean()
    known.save()
    CustomRole.objects.filter(pk=role.pk).update(name="trustees")
    known.effect = "deny"
    known.full_clean()  # the name was there: it keeps nobody from making the rule stricter
    assert known.unknown_names() == {"deciders": ["There is no member role 'board'."]}
    known.deciders += ["role:other"]
    with pytest.raises(ValidationError, match="There is no member role 'other'") as refused:
        known.full_clean()
    assert "board" not in str(refused.value)


def test_the_api_says_it_at_the_field(made, api):
    def patched(path, body):
        raw = {"data": json.dumps(body), "content_type": "application/json"}
        return api.client.patch(f"/api/{path}", headers=api.headers, **raw)

    role = RoleFactory(organization=made.organization)
    grant = {"project": made.project.pk, "tool": TYPO, "any_arguments": True, "max_uses": 1}
    for answer in (
        api.post("roles/", {"name": "x", "denied_tools": [TYPO]}),
        patched(f"roles/{role.pk}/", {"allowed_tools": [TYPO]}),
        api.post("policy/rules/", {"tool": TYPO, "effect": "deny"}),
        patched(f"policy/rules/{made.rule.pk}/", {"tool": TYPO}),
        api.post("policy/bindings/", {"pattern": TYPO, "capability": "payment"}),
        api.post("policy/grants/", grant),
    ):
        assert problem(answer) == (422, "INVALID")
        assert MEANT in [error["detail"] for error in answer.json()["errors"]]
    accepted = {"tool": TYPO, "effect": "deny", "not_known_yet": True}
    assert api.post("policy/rules/", accepted).json()["not_known_yet"] is True


def test_the_admin_says_it_in_the_form_and_above_what_is_there(made, manager):
    browser = client_of(manager)
    fields = {
        "organization": made.organization.pk, "name": "Scout", "allowed_tools_open": "on",
        "delegable_tools_open": "on", "denied_tools": TYPO,
    }  # fmt: skip
    page = browser.post(url("groups_role_add"), fields).content.decode()
    assert "Did you mean send_email?" in page
    assert browser.post(url("groups_role_add"), {**fields, "not_known_yet": "on"}).status_code == 302

    page = browser.get(url("groups_role_change", Role.objects.get(name="Scout").pk)).content.decode()
    assert "Did you mean send_email?" in page


def test_a_pattern_that_fits_nothing_is_kept_and_warned_of(made, manager):
    binding = ToolBinding(organization=made.organization, capability=made.capability, pattern="pay_*")
    binding.full_clean()
    binding.save()
    fits = ToolBinding(organization=made.organization, capability=made.capability, pattern="send_*")
    fits.save()

    assert fits.unknown_names() == {}
    page = client_of(manager).get(url("policy_toolbinding_change", binding.pk)).content.decode()
    assert "No tool there is fits" in page


def test_the_health_page_and_the_deployment_check_list_what_is_unknown(made):
    before = len(unknown.check())
    Role.objects.create(organization=made.organization, name="Scout", denied_tools=[TYPO])
    Capability.objects.create(organization=made.organization, name="other")

    (new,) = [said.msg for said in unknown.check() if "Scout" in said.msg]
    assert len(unknown.check()) == before + 1
    assert new == f"role Scout: {MEANT}"
    assert "Did you mean send_email?" in client_of(superuser()).get(url("runs_health")).content.decode()


def test_looking_at_many_settings_asks_for_the_tools_once(made, django_assert_max_num_queries):
    for number in range(20):
        Role.objects.create(organization=made.organization, name=f"r{number}", denied_tools=[TYPO])

    with django_assert_max_num_queries(10):
        assert len(unknown.everywhere()) > 20
