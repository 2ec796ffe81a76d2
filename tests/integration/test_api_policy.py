"""POST /api/policy/evaluate/: an AuthZEN evaluation that also says why."""

import pytest

from groups.models import AgentInstance
from policy.models import CapabilityRule
from runs.models import Run
from tests.factories import GroupFactory, MembershipFactory, ProjectFactory, RoleFactory

from .api_client import Api, permit, problem
from .test_decisions import TO, decider

pytestmark = pytest.mark.django_db

PATH = "policy/evaluate/"


@pytest.fixture
def evaluate(world):
    """Ask as mia, or as another user of her organization."""

    def _evaluate(user=None, subject=None, tool="send_email", arguments=TO, resource=None, **more):
        body = {
            "subject": subject or {"type": "user", "id": "mia"},
            "action": {"name": tool, "properties": {"arguments": arguments}},
            "resource": resource or {"type": "project", "id": world.project.slug},
            **more,
        }
        return Api(user or world.user, world.organization).post(PATH, body)

    return _evaluate


@pytest.fixture
def rule(world):
    return CapabilityRule.objects.create(
        organization=world.organization, tool="send_email", effect="require_human", name="mail is checked"
    )


def test_it_decides_and_says_why_and_who_could_unlock_it(evaluate, rule, world):
    decider(world, name="zoe")
    response = evaluate(context={"time": "now"})

    assert response.status_code == 200
    said = response.json()
    assert said["decision"] is False
    reasons = said["context"]
    assert reasons["reason"] == "Tool 'send_email' requires a person's approval: mail is checked"
    assert (reasons["effect"], reasons["reason_code"]) == ("require_human", "rule_require_human")
    assert (reasons["rule"], reasons["unlockable"], reasons["may_decide"]) == (rule.pk, True, ["zoe"])
    assert {
        "layer": "rule",
        "id": rule.pk,
        "name": "mail is checked",
        "spoke": True,
        "why": "require_human",
    } in (reasons["considered"])
    assert not Run.objects.exists()


def test_what_may_run_is_true(evaluate):
    said = evaluate(tool="memory_search", arguments={"query": "x"}).json()
    assert (said["decision"], said["context"]["reason_code"]) == (True, "risk_default")


def test_problems_of_the_arguments_are_part_of_the_answer(evaluate):
    said = evaluate(arguments={"to": 1}).json()

    assert (said["decision"], said["context"]["reason_code"]) == (False, "invalid_arguments")
    assert [found["path"] for found in said["context"]["problems"]] == ["/", "/", "/to"]


def test_a_groups_member_is_asked_about_by_role(evaluate, world):
    role = world.group.members.get(role__name="analyst").role
    given = {"allowed_tools": ["http_get"], "denied_tools": []}
    said = evaluate(
        subject={"type": "role", "id": role.pk, "properties": {"delegated_permissions": given}},
        resource={"type": "group", "id": world.group.pk},
    ).json()

    assert said["context"]["reason_code"] == "delegated_not_allowed"
    assert said["context"]["delegated_permissions"] == given


def test_about_others_only_those_ask_who_may_see_rules(evaluate, world):
    ben = MembershipFactory(organization=world.organization, user__username="ben").user
    agent = AgentInstance.objects.create(
        organization=world.organization, role=RoleFactory(organization=world.organization), user=ben
    )
    about = ({"type": "user", "id": "ben"}, {"type": "agent", "id": agent.pk})
    for subject in about:
        assert problem(evaluate(subject=subject)) == (403, "NOT_ENTITLED")

    mia = permit(world.user, "view_capabilityrule")
    for subject in about:
        assert evaluate(mia, subject=subject).status_code == 200


def test_what_is_elsewhere_does_not_exist(evaluate, world):
    mia = permit(world.user, "view_capabilityrule")
    role, stranger = RoleFactory(), MembershipFactory(user__username="stranger")
    assert stranger
    for subject in (
        {"type": "user", "id": "stranger"},
        {"type": "role", "id": role.pk},
        {"type": "agent", "id": "agt_none"},
        {"type": "user", "id": "mia", "properties": {"role": role.pk}},
    ):
        assert problem(evaluate(mia, subject=subject)) == (404, "SUBJECT_NOT_FOUND")
    for resource in (
        {"type": "project", "id": ProjectFactory().pk},
        {"type": "group", "id": GroupFactory().pk},
    ):
        assert problem(evaluate(mia, resource=resource)) == (404, "RESOURCE_NOT_FOUND")


def test_rules_of_projects_one_does_not_see_are_not_told(evaluate, rule, world):
    other = ProjectFactory(organization=world.organization)
    hidden = CapabilityRule.objects.create(
        organization=world.organization, project=other, tool="send_email", effect="deny", name="secret plan"
    )

    def told():
        return {line["id"] for line in evaluate().json()["context"]["considered"]}

    assert hidden.pk in told()
    world.membership.projects = [world.project.pk]
    world.membership.save()
    assert rule.pk in told()
    assert hidden.pk not in told()


@pytest.mark.parametrize(
    "change",
    [
        {"subject": {"type": "robot", "id": "x"}},
        {"subject": {"type": "user"}},
        {"subject": {"type": "user", "id": "mia", "properties": {"delegated_permissions": {"allowed": []}}}},
        {"action": {"name": "send_email", "properties": {"arguments": []}}},
        {"resource": "atlas"},
        {"extra": 1},
    ],
)
def test_a_body_that_does_not_fit_is_refused(evaluate, change):
    assert problem(evaluate(**change)) == (422, "INVALID")


def test_nobody_asks_anonymously(client, db):
    assert client.post(f"/api/{PATH}", {}, content_type="application/json").status_code == 401
