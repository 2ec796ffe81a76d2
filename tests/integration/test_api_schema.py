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


def test_the_document_is_the_one_that_was_agreed_on(generated):
    assert generated == KEPT.read_text(), "docs/api.md says how to accept a change"


def test_every_operation_says_what_it_is_for_and_which_problems_it_has(generated):
    for name, operation in operations(yaml.safe_load(generated)):
        assert operation["summary"], name
        if name != "get /api/schema/":
            assert operation["responses"].keys() >= {"401", "403"}, name


def test_every_problem_is_a_problem(generated):
    for name, operation in operations(yaml.safe_load(generated)):
        for status, answer in operation["responses"].items():
            if status >= "400":
                assert list(answer["content"]) == ["application/problem+json"], (name, status)
                assert answer["content"]["application/problem+json"]["examples"], (name, status)


def test_the_document_and_its_pages_need_nobody_elses_server(client, db):
    assert client.get("/api/schema/").status_code == 200
    page = client.get("/api/docs/")
    assert page.status_code == 200
    links = [part.split('"')[0] for part in page.content.decode().split('src="')[1:]]
    assert links
    assert all(link.startswith(("/static/", "/api/docs/?script")) for link in links), links
