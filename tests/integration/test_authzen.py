"""AuthZEN Authorization API 1.0: the standard's own vectors, and what Deputy promises beside them."""

import base64
import json
from pathlib import Path

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from groups.models import AgentInstance, Membership
from policy.models import Capability, CapabilityRule, OutsideEntity, ToolBinding
from runs.models import Run
from runs.tools import registry
from runs.tools.mcp import definitions
from tests.factories import MembershipFactory, OrganizationFactory, ProjectFactory, RoleFactory

from .api_client import Api, permit, problem
from .test_decisions import TO

pytestmark = pytest.mark.django_db

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "data" / "standards" / "authzen"
ARCHIVED = 'has(resource.properties.status) && resource.properties.status == "archived"'
ADMIN = 'has(subject.properties.role) && subject.properties.role == "admin"'
RULES = (
    ("record:read", 'subject.id in ["alice", "bob"]'),
    ("record:write", f'subject.id == "alice" && !({ARCHIVED})'),
    ("record:write", f"{ADMIN} && {ARCHIVED}"),
    (
        "record:delete",
        'subject.id == "alice" && has(action.properties.soft) && action.properties.soft == true',
    ),
)


def vectors(name):
    """Each line of the file, by a name of its own."""
    lines = (VECTORS / name).read_text("utf-8").splitlines()
    return {f"{n}-{json.loads(line)['id']}": json.loads(line) for n, line in enumerate(lines)}


def declare(organization, type_, identifier, **properties):
    made = OutsideEntity(organization=organization, type=type_, identifier=identifier, properties=properties)
    made.full_clean()
    made.save()
    return made


def allow(organization, tool, condition="", **more):
    made = CapabilityRule(
        organization=organization,
        tool=tool,
        condition=condition,
        **{"effect": "allow", "not_known_yet": True} | more,
    )
    made.full_clean()
    made.save()
    return made


class Pep:
    """A policy enforcement point with a token of its own."""

    def __init__(self, user, organization):
        self.api = Api(user, organization)

    def send(self, path, body=None, raw=None, method="POST", content_type="application/json", **headers):
        data = json.dumps(body) if raw is None else raw
        headers = {"Authorization": f"Bearer {self.api.secret}", **headers}
        client = Client(raise_request_exception=False)
        return client.generic(method, path, data, content_type=content_type, headers=headers)

    def evaluate(self, subject, action, resource, **more):
        body = {"subject": subject, "action": action, "resource": resource, **more}
        return self.send("/access/v1/evaluation", body)

    def decides(self, *asked, **more):
        response = self.evaluate(*asked, **more)
        assert response.status_code == 200, response.content
        return response.json()["decision"], response.json()["context"]["reason_code"]

    def finds(self, what, **body):
        response = self.send(f"/access/v1/search/{what}", body)
        assert response.status_code == 200, response.content
        return [found.get("id", found.get("name")) for found in response.json()["results"]]


@pytest.fixture
def records(world):
    """The fixture of the conformance suite: alice, bob the admin, two records, three actions."""
    for name in ("alice", "bob"):
        MembershipFactory(organization=world.organization, user__username=name)
    declare(world.organization, "user", "bob", role="admin")
    declare(world.organization, "record", "record-1", status="active")
    declare(world.organization, "record", "record-2", status="archived")
    for tool, condition in RULES:
        allow(world.organization, tool, condition)
    return world


@pytest.fixture
def pep(world):
    return Pep(permit(world.user, "policy.view_capabilityrule"), world.organization)


def user(name, **properties):
    return {"type": "user", "id": name, **({"properties": properties} if properties else {})}


def record(number, **properties):
    return {"type": "record", "id": f"record-{number}", **({"properties": properties} if properties else {})}


def act(name, **properties):
    return {"name": name, **({"properties": properties} if properties else {})}


# the standard's vectors


def ask(pep, vector):
    headers = {"X-Request-ID": "7f3c"} if vector.get("x_request_id") else {}
    if vector.get("credentials") == "absent":
        headers["Authorization"] = ""
    elif vector.get("credentials") == "invalid":
        headers["Authorization"] = "Bearer dpt_wrong"
    return pep.send(
        vector["path"],
        vector.get("request"),
        raw=vector.get("raw_body"),
        method=vector.get("method", "POST"),
        content_type=vector.get("content_type", "application/json"),
        **headers,
    )


def accepted(vector):
    return vector["status"] if isinstance(vector["status"], list) else [vector["status"]]


def check(vector, said, pages):
    expected = vector.get("expect", {})
    if "decision" in expected:
        assert said["decision"] is expected["decision"]
    if "evaluations" in expected:
        assert [one["decision"] for one in said["evaluations"]] == [
            one["decision"] for one in expected["evaluations"]
        ]
    if "results" in expected:
        found = [one for page in pages for one in page["results"]]
        missing = [one for one in expected["results"] if one not in found]
        assert not missing
        assert vector["expect_mode"] == "superset" or len(found) == len(expected["results"])


def pages_of(pep, vector, said):
    pages = [said]
    while vector.get("follow_pages") and pages[-1].get("page", {}).get("next_token"):
        page = {**vector["request"]["page"], "token": pages[-1]["page"]["next_token"]}
        pages.append(ask(pep, {**vector, "request": {**vector["request"], "page": page}}).json())
    return pages


@pytest.mark.skipif(not VECTORS.exists(), reason="the standard's vectors are not here")
@pytest.mark.parametrize("file", ["suite.jsonl", "scenario.jsonl"])
def test_every_vector_of_the_standard_is_answered_as_it_says(records, pep, file):
    wrong = {}
    for name, vector in vectors(file).items():
        try:
            answered(pep, vector)
        except AssertionError as error:
            wrong[name] = str(error)[:300]
    assert wrong == {}


def answered(pep, vector):
    for _ in range(2 if vector.get("repeat") else 1):
        response = ask(pep, vector)
        assert response.status_code in accepted(vector), response.content
        if response.status_code == 401:
            assert response.headers["WWW-Authenticate"]
        if vector.get("x_request_id"):
            assert response.headers["X-Request-ID"] == "7f3c"
        if response.status_code == 200:
            check(vector, response.json(), pages_of(pep, vector, response.json()))


# a handful of the same that need no file


def test_rules_decide_by_what_the_caller_says_of_subject_action_and_resource(records, pep):
    assert pep.decides(user("alice"), act("write"), record(1)) == (True, "rule_allow")
    assert pep.decides(user("bob"), act("write"), record(1)) == (False, "no_rule")
    assert pep.decides(user("alice"), act("write"), {"type": "record", "id": "new"}) == (True, "rule_allow")
    archived = {"type": "record", "id": "new", "properties": {"status": "archived"}}
    assert pep.decides(user("alice"), act("write"), archived) == (False, "no_rule")
    assert pep.decides(user("alice"), act("delete", soft=True), record(1)) == (True, "rule_allow")
    assert pep.decides(user("alice"), act("delete", soft=False), record(1)) == (False, "no_rule")


def test_what_the_organization_declared_stands_over_what_the_caller_says(records, pep):
    assert pep.decides(user("alice"), act("write"), record(2, status="active")) == (False, "no_rule")
    assert pep.decides(user("bob", role="nobody"), act("write"), record(2)) == (True, "rule_allow")


@pytest.mark.parametrize("type_", ["user", "identity"])  # COAZ's word for the same person
def test_so_it_does_of_a_user_by_whichever_type_they_are_asked_about(records, pep, type_):
    declare(records.organization, "user", "mia", role="reader")
    mia = {"type": type_, "id": "mia", "properties": {"role": "admin"}}
    assert pep.decides(mia, act("write"), record(2)) == (False, "no_rule")
    bob = {"type": type_, "id": "bob", "properties": {"role": "nobody"}}
    assert pep.decides(bob, act("write"), record(2)) == (True, "rule_allow")


def test_what_no_rule_names_is_denied(records, pep):
    assert pep.decides(user("alice"), act("burn"), record(1)) == (False, "no_rule")
    assert pep.decides(user("alice"), act("read"), {"type": "spaceship", "id": "1"}) == (False, "no_rule")
    assert pep.decides(user("nobody"), act("read"), record(1)) == (False, "unknown_subject")
    assert pep.decides({"type": "spaceship", "id": "1"}, act("read"), record(1)) == (False, "unknown_subject")


def test_an_approval_that_a_rule_asks_for_is_no_permission(records, pep):
    allow(records.organization, "record:print", effect="require_approval")

    assert pep.decides(user("alice"), act("print"), record(1)) == (False, "rule_require_approval")


def test_a_condition_that_cannot_be_evaluated_denies(records, pep):
    allow(records.organization, "record:move", 'resource.properties.owner == "alice"')

    assert pep.decides(user("alice"), act("move"), record(1)) == (False, "rule_condition_error")


def test_a_rule_of_one_project_does_not_speak_of_outside_actions(records, pep):
    allow(records.organization, "record:burn", project=records.project)

    assert pep.decides(user("alice"), act("burn"), record(1)) == (False, "no_rule")


def test_a_capability_bound_by_a_pattern_with_a_colon_brings_its_rules(records, pep):
    capability = Capability.objects.create(organization=records.organization, name="records")
    CapabilityRule.objects.create(
        organization=records.organization,
        capability=capability,
        effect="deny",
        condition='resource.id == "record-2"',
    )
    catch_all = ToolBinding.objects.create(
        organization=records.organization, pattern="*", capability=capability
    )
    assert pep.decides(user("alice"), act("read"), record(2)) == (True, "rule_allow")
    catch_all.pattern = "record:*"
    catch_all.save()
    assert pep.decides(user("alice"), act("read"), record(2)) == (False, "rule_deny")


def test_a_users_own_limits_hold_for_outside_actions_too(records, pep):
    limited = records.organization.memberships.get(user__username="alice")
    limited.denied_tools = ["record:read"]
    limited.save()

    assert pep.decides(user("alice"), act("read"), record(1)) == (False, "boundary_denied")


def test_a_type_with_a_colon_is_denied_because_its_actions_would_have_two_meanings(records, pep):
    allow(records.organization, "record:x:read")

    assert pep.decides(user("alice"), act("x:read"), record(1)) == (True, "rule_allow")
    asked = pep.decides(user("alice"), act("read"), {"type": "record:x", "id": "1"})
    assert asked == (False, "unknown_resource")


# Deputy's own tools


def project(world):
    return {"type": "project", "id": world.project.slug}


def test_a_tool_is_decided_as_the_gate_would_decide_its_call(world, pep):
    asked = pep.evaluate(user("mia"), act("send_email", arguments=TO), project(world)).json()

    assert asked["decision"] is False
    assert (asked["context"]["effect"], asked["context"]["unlockable"]) == ("require_approval", True)
    assert pep.decides(user("mia"), act("memory_search", arguments={"query": "x"}), project(world))[0]
    assert not Run.objects.exists()


def test_properties_never_loosen_what_is_decided_of_a_tool(world, pep):
    CapabilityRule.objects.create(
        organization=world.organization, tool="send_email", effect="allow", condition=ADMIN
    )
    wanted = {"allowed_tools": ["send_email"], "role": "admin"}
    subject = user("mia", role="admin", delegated_permissions=wanted)

    asked = pep.decides(subject, act("send_email", arguments=TO, role="admin"), project(world))
    assert asked == (False, "rule_condition_error")


def test_no_tool_can_have_the_name_of_an_outside_action():
    assert not registry.NAME.fullmatch("record:read")
    assert not definitions.NAME.fullmatch("record:read")


def test_coaz_asks_about_a_tool_by_its_name(world, pep):
    tool = {"type": "tool", "id": "memory_search"}
    called = act("tools/call", arguments={"query": "x"})
    identity = {"type": "identity", "id": "mia"}

    assert pep.decides(identity, called, tool, context={"agent": "some-client"})[0] is True
    unknown = pep.decides(identity, called, tool, context={"agent": "agt_00000000000000000000000000"})
    assert unknown == (False, "unknown_subject")
    ProjectFactory(organization=world.organization)
    assert pep.decides(identity, called, tool) == (False, "unknown_resource")
    assert pep.decides(identity, called, tool, context={"project": world.project.slug})[0] is True


def test_searches_find_who_where_and_what_of_tools(world, pep):
    agent = AgentInstance.objects.filter(organization=world.organization).first()
    search = act("memory_search")
    assert pep.finds("subject", subject={"type": "user"}, action=search, resource=project(world)) == ["mia"]
    found = pep.finds("subject", subject={"type": "agent"}, action=search, resource=project(world))
    assert agent.pk in found
    found = pep.finds("resource", subject=user("mia"), action=search, resource={"type": "project"})
    assert found == [world.project.pk]
    found = pep.finds("action", subject=user("mia"), resource=project(world))
    assert "memory_search" in found and "send_email" not in found


@pytest.mark.parametrize("how", ["left", "account closed"])
def test_nobody_is_decided_for_who_has_left_or_whose_account_is_closed(records, pep, how):
    allow(records.organization, "record:see")
    bob = Membership.objects.get(user__username="bob")
    theirs = AgentInstance.objects.create(
        organization=records.organization,
        user=bob.user,
        role=RoleFactory(organization=records.organization),
    )
    as_subjects = (user("bob"), {"type": "identity", "id": "bob"}, {"type": "agent", "id": theirs.pk})
    assert all(pep.decides(one, act("see"), record(1))[0] for one in as_subjects)
    if how == "left":
        Membership.objects.filter(pk=bob.pk).update(active=False)
    else:
        type(bob.user).objects.filter(pk=bob.user_id).update(is_active=False)

    assert [pep.decides(one, act("see"), record(1)) for one in as_subjects] == [
        (False, "unknown_subject")
    ] * 3
    found = pep.finds("subject", subject={"type": "user"}, action=act("see"), resource=record(1))
    assert "bob" not in found and "alice" in found


# who may ask what


def test_only_oneself_is_asked_about_without_the_right_to_see_rules(records):
    mia = Pep(records.user, records.organization)
    allow(records.organization, "record:see")

    assert mia.decides(user("mia"), act("see"), record(1)) == (True, "rule_allow")
    for somebody in (user("alice"), user("nobody"), {"type": "customer", "id": "1"}):
        assert problem(mia.evaluate(somebody, act("see"), record(1))) == (403, "NOT_ENTITLED")
    assert mia.finds("subject", subject={"type": "user"}, action=act("see"), resource=record(1)) == ["mia"]
    assert mia.finds("resource", subject=user("mia"), action=act("see"), resource={"type": "record"}) == []


def test_another_organizations_rules_entities_and_members_are_not_seen(records):
    other = OrganizationFactory()
    stranger = MembershipFactory(organization=other, user__username="eve").user
    theirs = Pep(permit(stranger, "policy.view_capabilityrule"), other)

    assert theirs.decides(user("alice"), act("read"), record(1)) == (False, "unknown_subject")
    assert theirs.decides(user("eve"), act("read"), record(1)) == (False, "no_rule")
    assert theirs.decides(user("eve"), act("memory_search"), project(records)) == (False, "unknown_resource")
    assert theirs.finds("subject", subject={"type": "user"}, action=act("read"), resource=record(1)) == []
    assert theirs.finds("action", subject=user("eve"), resource=record(1)) == []


def test_an_agent_or_role_of_another_organization_is_unknown(world, pep):
    role = RoleFactory()

    assert pep.decides({"type": "role", "id": role.pk}, act("read"), record(1)) == (False, "unknown_subject")


def test_a_token_needs_the_scope(world):
    pep = Pep(world.user, world.organization)
    pep.api = Api(world.user, world.organization, scopes=["runs:read"])

    assert problem(pep.evaluate(user("mia"), act("read"), record(1))) == (403, "SCOPE_MISSING")


def test_a_session_does_not_do_in_place_of_a_token(world):
    client = Client()
    client.force_login(world.user)
    response = client.post("/access/v1/evaluation", "{}", content_type="application/json")

    assert (response.status_code, response.headers["WWW-Authenticate"]) == (401, 'Token realm="deputy"')


# what is malformed


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("evaluations", {"evaluations": {}}),
        ("evaluations", {"options": {"evaluations_semantic": ["execute_all"]}, "evaluations": [{}]}),
        ("evaluations", {"evaluations": [{}] * 201}),
        ("evaluation", {"context": "now"}),
        ("evaluation", {"subject": {"type": "user", "id": "mia", "properties": []}}),
        ("search/subject", {"page": {"limit": -1}}),
        ("search/subject", {"page": {"limit": True}}),
        ("search/subject", {"page": {"token": "?"}}),
        ("search/subject", {"page": {"token": base64.urlsafe_b64encode(b"[" * 50_000).decode()}}),
        ("search/subject", {"page": {"token": 5}}),
    ],
)
def test_what_cannot_be_read_is_400_and_says_where(world, pep, path, more):
    body = {"subject": user("mia"), "action": act("read"), "resource": record(1), **more}
    response = pep.send(f"/access/v1/{path}", body, **{"X-Request-ID": "1"})

    assert problem(response) == (400, "BAD_REQUEST")
    assert response.json()["errors"][0]["pointer"].startswith("/")
    assert response.headers["X-Request-ID"] == "1"


@pytest.mark.parametrize("item", [None, 5, {"subject": "alice"}, {"resource": {"type": "record"}}])
def test_an_item_that_cannot_be_asked_is_denied_and_the_others_are_answered(records, pep, item):
    good = {"resource": record(1)}
    body = {"subject": user("alice"), "action": act("read"), "evaluations": [item, good]}
    said = pep.send("/access/v1/evaluations", body).json()["evaluations"]

    assert [one["decision"] for one in said] == [False, True]
    assert said[0]["context"]["reason_code"] == "BAD_REQUEST"


def test_an_item_does_not_inherit_the_properties_of_what_it_replaces(records, pep):
    body = {
        "subject": user("alice"),
        "action": act("delete", soft=True),
        "resource": record(1),
        "evaluations": [{}, {"action": {"name": "delete"}}],
    }
    said = pep.send("/access/v1/evaluations", body).json()["evaluations"]

    assert [one["decision"] for one in said] == [True, False]


def test_pages_hold_each_result_once(records, pep):
    body = {"subject": {"type": "user"}, "action": act("read"), "resource": record(1)}
    page, found = {"limit": 1}, []
    for _ in range(5):
        said = pep.send("/access/v1/search/subject", {**body, "page": page}).json()
        found += [one["id"] for one in said["results"]]
        if not said["page"]["next_token"]:
            break
        page = {"limit": 1, "token": said["page"]["next_token"]}

    assert found == ["alice", "bob"]
    assert said["page"]["next_token"] == ""


def test_a_long_search_ends_after_a_number_of_candidates_and_goes_on_from_there(records, pep, monkeypatch):
    monkeypatch.setattr("runs.api.authzen_views.MOST_LOOKED_AT", 1)
    body = {"subject": {"type": "user"}, "action": act("read"), "resource": record(1)}
    said = pep.send("/access/v1/search/subject", body).json()

    assert [one["id"] for one in said["results"]] == ["alice"]
    said = pep.send("/access/v1/search/subject", {**body, "page": {"token": said["page"]["next_token"]}})
    assert [one["id"] for one in said.json()["results"]] == ["bob"]


# the metadata


def test_the_metadata_name_every_endpoint_and_nothing_without_value(client, db, settings):
    settings.PUBLIC_URL = "https://deputy.example.com"
    said = client.get("/.well-known/authzen-configuration").json()

    assert said == {
        "policy_decision_point": "https://deputy.example.com",
        "access_evaluation_endpoint": "https://deputy.example.com/access/v1/evaluation",
        "access_evaluations_endpoint": "https://deputy.example.com/access/v1/evaluations",
        "search_subject_endpoint": "https://deputy.example.com/access/v1/search/subject",
        "search_resource_endpoint": "https://deputy.example.com/access/v1/search/resource",
        "search_action_endpoint": "https://deputy.example.com/access/v1/search/action",
    }
    tenant = client.get("/.well-known/authzen-configuration/atlas").json()
    assert tenant == {**said, "policy_decision_point": "https://deputy.example.com/atlas"}


# what an organization declares


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"type": "project"}, "itself"),
        ({"type": "a:b"}, "colon"),
        ({"properties": []}, "object"),
        ({"properties": "x"}, "object"),
    ],
)
def test_an_entity_that_could_mean_two_things_is_refused(world, wrong, said):
    fields = {"type": "record", "identifier": "1", "properties": {"a": 1}, **wrong}
    with pytest.raises(ValidationError, match=said):
        OutsideEntity(organization=world.organization, **fields).full_clean()
