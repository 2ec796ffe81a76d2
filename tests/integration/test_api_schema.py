"""The OpenAPI document is valid, complete and changes only on purpose."""

import io
import json
import re
from pathlib import Path

import pytest
import yaml
from django.core.management import call_command
from drf_spectacular.generators import SchemaGenerator

from common.api.errors import CODES, TROUBLE, slug
from config import problems
from config.openapi import view
from runs.models.choices import EventType

ROOT = Path(__file__).parents[2]
PARTS = ("common", "config", "groups", "memory", "policy", "runs")
KEPT = Path(__file__).parents[1] / "data" / "openapi.yaml"


@pytest.fixture(scope="module")
def generated():
    out = io.StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=out)
    return out.getvalue()


@pytest.fixture(scope="module")
def document(generated):
    return yaml.load(generated, Loader=yaml.CSafeLoader)


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method} {path}", operation


def answers(document, operation):
    """Its responses by status, with those that it shares with others."""
    shared = document["components"]["responses"]
    for status, answer in operation["responses"].items():
        yield status, shared[answer["$ref"].rpartition("/")[2]] if "$ref" in answer else answer


def test_the_document_is_the_one_that_was_agreed_on(generated):
    assert generated == KEPT.read_text(), "docs/api.md says how to accept a change"


def test_every_property_parameter_and_tag_says_what_it_is(document):
    silent = [
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        for field, about in schema.get("properties", {}).items()
        if "description" not in about and "$ref" not in about
    ]
    silent += [
        f"{name} {parameter['name']}"
        for name, operation in operations(document)
        for parameter in operation.get("parameters", ())
        if "description" not in parameter
    ]
    assert silent == [], "config/openapi/words.py says what properties are"
    assert all(tag["description"] != tag["name"] for tag in document["tags"])


def test_operations_are_named_as_what_a_client_calls(document):
    named = {operation["operationId"] for _, operation in operations(document)}
    assert {"start_run", "cancel_run", "list_runs", "approve_approval", "update_rule"} <= named
    assert not [name for name in named if name.endswith(("_create", "_retrieve", "_list", "_destroy"))]


def test_each_type_of_event_has_a_schema_of_its_own(document):
    schemas = document["components"]["schemas"]
    mapping = schemas["Event"]["discriminator"]["mapping"]
    assert mapping.keys() == set(EventType.values)
    for type, reference in mapping.items():
        assert schemas[reference.rpartition("/")[2]]["properties"]["type"]["enum"] == [type]


def test_every_operation_says_what_it_is_for_and_which_problems_it_has(document):
    for name, operation in operations(document):
        assert operation["summary"], name
        if name != "get /api/schema/":
            assert operation["responses"].keys() >= {"401", "403"}, name


def test_every_problem_is_a_problem(document):
    for name, operation in operations(document):
        for status, answer in answers(document, operation):
            if status >= "400":
                assert list(answer["content"]) == ["application/problem+json"], (name, status)
                assert answer["content"]["application/problem+json"]["examples"], (name, status)


def test_a_problem_that_several_operations_have_is_written_once(document):
    problems = [answer for _, each in operations(document) for status, answer in each["responses"].items()
                if status >= "400" and "$ref" not in answer]  # fmt: skip
    assert len(problems) == len({str(answer) for answer in problems})


def test_every_tag_is_named_and_the_server_too(document):
    used = {tag for _, operation in operations(document) for tag in operation["tags"]}
    assert {tag["name"] for tag in document["tags"]} == used and document["servers"][0]["url"] == "/"


def test_the_document_and_its_pages_need_nobody_elses_server(client, db):
    assert client.get("/api/schema/").status_code == 200
    page = client.get("/api/docs/")
    assert page.status_code == 200
    links = [part.split('"')[0] for part in page.content.decode().split('src="')[1:]]
    assert links
    assert all(link.startswith(("/static/", "/api/docs/?script")) for link in links), links


def codes_of(source):
    """The codes that are written there, where a problem is made."""
    return set(re.findall(r"Problem\(\s*\d{3},\s*\"([A-Za-z_]+)\"", source))


def test_every_code_has_a_page_and_the_problem_points_to_it(document, client, db):
    described = {
        example["value"]["code"]: example["value"]["type"]
        for _, operation in operations(document)
        for status, answer in answers(document, operation)
        if status >= "400"
        for example in answer["content"]["application/problem+json"]["examples"].values()
    }
    sources = [path for part in PARTS for path in (ROOT / part).rglob("*.py")]
    written = {code for path in sources for code in codes_of(path.read_text())}
    known = {*described, *written, *CODES.values(), *(code for code, _ in TROUBLE.values())}
    assert len(written) > 20
    assert known - problems.CODES.keys() == set(), "config/problems.py has a page for each"
    assert all(type == f"/problems/{slug(code)}/" for code, type in described.items())
    page = client.get(described["RUN_ENDED"])
    assert "The run has ended." in page.content.decode()
    assert 'href="run-ended/"' in client.get("/problems/").content.decode()
    assert client.get("/problems/nothing/").status_code == 404


@pytest.mark.django_db
def test_the_description_is_made_once_for_each_language_and_format(client, monkeypatch):
    """It takes seconds, and anybody may ask for it."""
    made = []

    def generate(self, **_):
        made.append(self.api_version)
        return {"openapi": "3.0.3"}

    monkeypatch.setattr(SchemaGenerator, "get_schema", generate)
    monkeypatch.setattr(view, "_made", {})
    asked = [client.get("/api/schema/", query) for query in ({}, {}, {"version": "9"}, {"lang": "xx"})]
    typed = client.get("/api/schema/", headers={"Accept": "application/vnd.oai.openapi; a=1"})
    assert made == [None] and {answer.content for answer in (*asked, typed)} == {b"openapi: 3.0.3\n"}
    assert {answer.status_code for answer in asked} == {200}
    assert json.loads(client.get("/api/schema/?format=json").content) == {"openapi": "3.0.3"}
    assert client.get("/api/schema/", {"lang": "zh-hans"}).status_code == 200
    assert len(made) == 3
