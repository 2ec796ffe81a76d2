"""The API keeps to its own description, whoever asks and whatever they send.

schemathesis makes requests from the OpenAPI document, such as fit it and such as do not, and holds each
answer against it: no 5xx, no status, header, type or shape that is not described.
"""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from common.sealed import seal
from groups.models import Group, GroupMember, Project, Role, RoutingExample, Token
from groups.routing import learn
from groups.scopes import SCOPES
from memory.models import Memory
from policy.models import Capability, CapabilityRule, Grant, ToolBinding
from runs.models import Approval, Run, WebhookDelivery, WebhookEndpoint
from tests.acting import start
from tests.factories import MembershipFactory
from tests.integration.api_client import Api
from tests.scripted import call, in_order, say

pytestmark = [pytest.mark.django_db, pytest.mark.filterwarnings("ignore")]

DOCUMENT = Path(__file__).parents[1] / "data" / "openapi.yaml"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
ROLES = ("admin", "approver", "member", "robot", "nobody")
PARTS = 8  # of the operations, so that several processes share them
NOT_MADE = {"channels", "proposed"}  # things that `known` has none of
MAIL = {"to": ["ines@example.org"], "subject": "x", "body": "x"}


@pytest.fixture(scope="module")
def operations() -> list[Any]:
    document = schemathesis.openapi.from_path(DOCUMENT)
    document.app = get_wsgi_application()
    return [found.ok() for found in document.get_all_operations()]


@pytest.fixture
def headers(world: SimpleNamespace) -> dict[str, dict[str, str]]:
    """Each role's, as the demo makes them."""
    org = world.organization
    people = {role: MembershipFactory(organization=org).user for role in ROLES[:4] if role != "member"}
    people["member"] = world.user
    people["admin"].is_superuser = True
    people["admin"].save()
    for name, role in (("approver", "decider"), ("robot", "decider"), ("admin", "administrator")):
        people[name].memberships.update(role=role)
    given = {"nobody": {}} | {role: Api(user, org).headers for role, user in people.items()}
    # what a request writes is undone, so that each one would note that its token is in use
    Token.objects.update(last_used_at=timezone.now() + timedelta(days=1))
    return given


@pytest.fixture
def known(world: SimpleNamespace, ask: Any) -> dict[str, Any]:
    """What there is, by the name of the field or the part of the path that leads to it."""
    mine = {"organization": world.organization}
    capability = Capability.objects.create(**mine, name="send_email")
    CapabilityRule.objects.create(**mine, capability=capability, effect="require_approval")
    ToolBinding.objects.create(**mine, capability=capability, pattern="mail_*")
    ask(in_order(call(("send_email", MAIL)), say("Sent.")))
    driven = start(user=world.user, project=world.project, goal="x", driver="external")
    granted = {"project": world.project, "granted_by": world.user, "max_uses": 1}
    Grant.objects.create(**mine, **granted, tool="http_get", any_arguments=True)
    Token.objects.issue(world.organization, world.user, scopes=list(SCOPES))
    learn(world.organization.pk, world.group.pk, "Prices", by=world.user)
    Memory.objects.create(**mine, project=world.project, type="archival", content="Prices are 5.")
    hook = {"url": "https://93.184.216.34/", "events": ["run.failed"], "sealed_secret": seal("whsec_")}
    endpoint = WebhookEndpoint.objects.create(**mine, **hook)
    WebhookDelivery.objects.create(**mine, endpoint=endpoint, event="run.failed", payload={})
    first = {
        part: [model.objects.filter(**mine).latest("pk").pk]
        for part, model in {
            "approvals": Approval, "bindings": ToolBinding, "capabilities": Capability, "grants": Grant,
            "rules": CapabilityRule, "groups": Group, "members": GroupMember, "examples": RoutingExample,
            "memories": Memory, "projects": Project, "roles": Role, "tokens": Token,
            "webhooks": WebhookEndpoint, "deliveries": WebhookDelivery,
        }.items()
    }  # fmt: skip
    runs = [Run.objects.exclude(pk=driven).get().pk, driven]
    fields = {
        "project": [world.project.slug], "group": first["groups"], "role": first["roles"],
        "capability": ["send_email"], "tool": ["send_email"], "name": ["send_email", "x"], "call_id": ["4.0"],
        "run": runs, "query": ["prices"], "id": ["mia", world.project.pk], "memories": [first["memories"]],
        "url": [hook["url"]], "events": [hook["events"]],
    }  # fmt: skip
    return {**first, "runs": runs, "fields": fields}


@pytest.fixture(autouse=True)
def one_connection() -> Iterator[None]:
    """The test's own transaction outlives each request."""
    ends = (request_started, request_finished)
    for signal in ends:
        signal.disconnect(close_old_connections)
    yield
    for signal in ends:
        signal.connect(close_old_connections)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is awaited and nothing refused for being much."""
    monkeypatch.setattr("runs.api.external_views.PATIENCE", 0)
    monkeypatch.setattr("runs.api.patience.Awaited.come", come_at_once)
    monkeypatch.setattr("runs.api.stream.LONGEST_SECONDS", 0.0)
    monkeypatch.setattr("django.conf.settings.API_PER_MINUTE", 0)
    monkeypatch.setattr("django.conf.settings.API_PER_MINUTE_UNKNOWN", 0)


async def come_at_once(awaited: Any) -> None:
    """Nothing works off what waits."""


def filled(value: Any, fields: dict[str, list[Any]], choose: Any) -> Any:
    """The generated value with things that exist where it names any."""
    if isinstance(value, dict):
        return {
            name: choose(fields[name]) if name in fields else filled(inner, fields, choose)
            for name, inner in value.items()
        }
    return value


def made_real(case: Any, known: dict[str, Any], choose: Any) -> None:
    parts = [part for part in case.operation.path.split("/") if part]
    for name in case.path_parameters or {}:
        before = parts[parts.index(f"{{{name}}}") - 1]
        case.path_parameters[name] = choose(known.get(before) or known["fields"].get(name))
    case.body = filled(case.body, known["fields"], choose)
    case.query = filled(case.query, known["fields"], choose)


def broken(operation: Any, headers: dict[str, dict[str, str]], known: Any, examples: int) -> Iterator[str]:
    """What goes wrong with an operation, the first time it does."""
    both = [operation.as_strategy(generation_mode=mode) for mode in GenerationMode]

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(*both), st.sampled_from([True, True, False]), st.data())
    def holds(case: Any, real: bool, data: Any) -> None:
        if real:
            made_real(case, known, lambda several: data.draw(st.sampled_from(several)))
        given_headers = dict(case.headers or {})
        for role in ROLES:
            case.headers = given_headers | headers[role]
            with transaction.atomic():
                case.call_and_validate(checks=CHECKS)
                transaction.set_rollback(True)

    try:
        holds()
    except (Exception, FailureGroup) as error:
        yield f"{operation.method.upper()} {operation.path}\n{error}"


def check(operations: list[Any], headers: Any, known: dict[str, Any], examples: int) -> None:
    found = [words for operation in operations for words in broken(operation, headers, known, examples)]
    assert not found, "\n\n".join(found)


def test_every_answer_to_every_role_is_one_that_is_described(operations, headers, known):
    check(operations, headers, known, examples=1)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_answer_to_many_requests_is_one_that_is_described(operations, headers, known, part):
    check(operations[part::PARTS], headers, known, examples=20)


def test_what_a_stream_sends_is_as_described(operations, headers, known):
    streams = [operation for operation in operations if operation.path.endswith("/stream/")]
    assert len(streams) == 2
    for operation in streams:
        asked = {"path_parameters": {"id": known["runs"][0]}, "query": {"last_event_id": "run_unknown:1"}}
        answer = operation.Case(**asked, headers=headers["member"]).call_and_validate(checks=CHECKS)
        assert b"event: resync" in answer.content


def test_every_body_says_that_it_takes_no_other_fields_and_takes_none(operations, headers, known):
    schemas = operations[0].schema.raw_schema["components"]["schemas"]
    with_body = [each for each in operations if "requestBody" in each.definition.raw]
    first = {name: found[0] for name, found in known.items() if isinstance(found, list)}
    weekly = {"project": known["fields"]["project"][0], "goal": "x", "cron": "0 9 * * 1", "time_zone": "UTC"}
    made = Client().post("/api/schedules/", weekly, "application/json", headers=headers["member"])
    assert made.status_code == 201, made.content
    first |= {"tool-calls": "4.0", "jobs": known["runs"][0], "schedules": made.json()["id"]}
    loose, taken = [], []
    for each in with_body:
        body = each.definition.raw["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        if schemas[body.rpartition("/")[2]]["additionalProperties"] is not False:
            loose.append(each.label)
        parts = each.path.strip("/").split("/")
        if NOT_MADE & set(parts) and "{id}" in parts:
            continue  # of these there is none to ask about
        path = "/".join(first[parts[at - 1]] if part[0] == "{" else part for at, part in enumerate(parts))
        sent = {"data": '{"no_such_field": 1}', "content_type": "application/json"}
        answer = Client().generic(each.method.upper(), f"/{path}/", **sent, headers=headers["admin"])
        if answer.status_code != 422 or b"/no_such_field" not in answer.content:
            taken.append((each.label, answer.status_code, answer.content[:200]))
    assert (loose, taken) == ([], [])
    assert len(with_body) > 35
