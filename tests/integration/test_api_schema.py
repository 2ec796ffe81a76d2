"""The OpenAPI document is valid, complete and changes only on purpose."""

import io
from pathlib import Path

import pytest
import yaml
from django.core.management import call_command

KEPT = Path(__file__).parents[1] / "data" / "openapi.yaml"


@pytest.fixture(scope="module")
def generated():
    out = io.StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=out)
    return out.getvalue()


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


def test_every_operation_says_what_it_is_for_and_which_problems_it_has(generated):
    for name, operation in operations(yaml.safe_load(generated)):
        assert operation["summary"], name
        if name != "get /api/schema/":
            assert operation["responses"].keys() >= {"401", "403"}, name


def test_every_problem_is_a_problem(generated):
    document = yaml.safe_load(generated)
    for name, operation in operations(document):
        for status, answer in answers(document, operation):
            if status >= "400":
                assert list(answer["content"]) == ["application/problem+json"], (name, status)
                assert answer["content"]["application/problem+json"]["examples"], (name, status)


def test_a_problem_that_several_operations_have_is_written_once(generated):
    document = yaml.safe_load(generated)
    problems = [answer for _, each in operations(document) for status, answer in each["responses"].items()
                if status >= "400" and "$ref" not in answer]  # fmt: skip
    assert len(problems) == len({str(answer) for answer in problems})


def test_every_tag_is_named_and_the_server_too(generated):
    document = yaml.safe_load(generated)
    used = {tag for _, operation in operations(document) for tag in operation["tags"]}
    assert {tag["name"] for tag in document["tags"]} == used and document["servers"][0]["url"] == "/"


def test_the_document_and_its_pages_need_nobody_elses_server(client, db):
    assert client.get("/api/schema/").status_code == 200
    page = client.get("/api/docs/")
    assert page.status_code == 200
    links = [part.split('"')[0] for part in page.content.decode().split('src="')[1:]]
    assert links
    assert all(link.startswith(("/static/", "/api/docs/?script")) for link in links), links
