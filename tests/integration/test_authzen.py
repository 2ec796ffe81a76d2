"""AuthZEN Authorization API 1.0: the standard's own vectors, and what Deputy promises beside them."""

import json
from pathlib import Path

import pytest
from django.test import Client

from groups.models import AgentInstance
from policy.models import Capability, CapabilityRule, OutsideEntity, ToolBinding
from runs.models import Run
from tests.factories import MembershipFactory, OrganizationFactory, ProjectFactory, RoleFactory

from .api_client import Api, permit, problem

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
    """Each line of the file with a name of its own; nothing where the files are not there."""
    file = VECTORS / name
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return [
        pytest.param(json.loads(line), id=f"{n}-{json.loads(line)['id']}") for n, line in enumerate(lines)
    ]


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


@pytest.mark.parametrize("vector", [*vectors("suite.jsonl"), *vectors("scenario.jsonl")])
def test_a_vector_of_the_standard_is_answered_as_it_says(records, pep, vector):
    for _ in range(2 if vector.get("repeat") else 1):
        response = ask(pep, vector)
        assert response.status_code in accepted(vector), response.content
        if response.status_code == 401:
            assert response.headers["WWW-Authenticate"]
        if vector.get("x_request_id"):
            assert response.headers["X-Request-ID"] == "7f3c"
        if response.status_code == 200:
            check(vector, response.json(), pages_of(pep, vector, response.json()))
