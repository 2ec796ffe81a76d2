"""What is sent to the API is read strictly; what cannot be kept is refused, never a 500."""

import pytest

from runs.models import Run
from tests.integration.api_client import Api, problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(world):
    return Api(world.user, world.organization)


def in_goal(text: bytes) -> bytes:
    return b'{"project": "p", "goal": "' + text + b'"}'


NOT_JSON = {
    "nothing but a blank": b" ",
    "half an object": b'{"goal": ',
    "a trailing comma": b'{"goal": "x",}',
    "two values": b"{} {}",
    "a comment": b"{} // hello",
    "single quotes": b"{'goal': 'x'}",
    "a BOM": b"\xef\xbb\xbf{}",
    "UTF-16": '{"goal": "x"}'.encode("utf-16"),
    "not UTF-8": in_goal(b"\xff\xfe"),
    "an encoded surrogate": in_goal(b"\xed\xa0\x80"),
    "a lone surrogate": in_goal(rb"\ud83d"),
    "surrogates the wrong way round": in_goal(rb"\udc00\ud800"),
    "a NUL": in_goal(rb"\u0000"),
    "a raw NUL": in_goal(b"\x00"),
    "a raw line break in a text": in_goal(b"\n"),
    "a NUL in a key": rb'{"\u0000": 1}',
    "NaN": b'{"goal": NaN}',
    "Infinity": b'{"goal": -Infinity}',
    "a number beyond every float": b'{"goal": 1e999}',
    "a whole number of many digits": b'{"goal": ' + b"9" * 5000 + b"}",
    "a number with a leading zero": b'{"goal": 012}',
    "a key twice": b'{"goal": "a", "goal": "b"}',
    "deep arrays": b"[" * 100_000,
    "deep objects that close": b'{"a":' * 100 + b"1" + b"}" * 100,
}


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_what_is_not_json_that_can_be_kept_is_refused(api, body):
    assert problem(api.raw("runs/", body)) == (400, "MALFORMED_JSON")


WRONG = {
    "an array": (b"[]", ""),
    "a text": (b'"goal"', ""),
    "null": (b"null", ""),
    "no goal": (b'{"project": "x"}', "/goal"),
    "a goal of blanks": (b'{"project": "x", "goal": "  "}', "/goal"),
    "a number for a goal": (b'{"project": "x", "goal": 5}', "/goal"),
    "null for a goal": (b'{"project": "x", "goal": null}', "/goal"),
    "a list for a project": (b'{"project": [], "goal": "x"}', "/project"),
    "a driver there is none of": (b'{"project": "x", "goal": "x", "driver": "me"}', "/driver"),
    "an object for a context": (b'{"project": "x", "goal": "x", "context": {}}', "/context"),
    "an endless goal": (b'{"project": "x", "goal": "' + b"x" * 50_001 + b'"}', "/goal"),
    "a field with a slash": (b'{"project": "x", "goal": "x", "a/b~c": 1}', "/a~1b~0c"),
    "rights of one's own making": (
        b'{"project": "x", "goal": "x", "delegated_permissions": {"allowed_tools": null}}',
        "/delegated_permissions",
    ),
}


@pytest.mark.parametrize(("body", "pointer"), WRONG.values(), ids=WRONG.keys())
def test_what_does_not_fit_is_refused_with_a_pointer_to_it(api, body, pointer):
    response = api.raw("runs/", body)

    assert problem(response) == (422, "INVALID")
    assert pointer in [error["pointer"] for error in response.json()["errors"]]
    assert not Run.objects.exists()


def test_a_body_may_not_be_larger_than_a_megabyte(api, settings):
    assert problem(api.raw("runs/", in_goal(b"x" * settings.BODY_BYTES))) == (413, "BODY_TOO_LARGE")


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/xml",
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded",
        "",
    ],
)
def test_only_json_is_read(api, content_type):
    assert problem(api.raw("runs/", b'{"goal": "x"}', content_type))[0] == 415


def test_json_in_another_encoding_is_refused(api):
    assert problem(api.raw("runs/", b"{}", "application/json; charset=latin-1"))[0] == 415


def test_text_of_every_script_comes_through_as_it_was_sent(api, world):
    goal = "竞品组 \U0001f600 مرحبا e\u0301 \u2028 \ufffe"
    response = api.post("runs/", {"project": world.project.slug, "goal": goal})

    assert response.status_code == 202
    assert api.get(f"runs/{response.json()['id']}/").json()["goal"] == goal


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("runs/", {"statsu": "failed"}),
        ("runs/", {"status": "sleeping"}),
        ("runs/", {"session_key": "a\x00b"}),
        ("runs/", {"limit": "many"}),
        ("runs/", {"limit": "0"}),
        ("runs/", {"limit": "9" * 40}),
        ("tools/", {"tool": "x"}),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(api, path, query):
    assert problem(api.get(path, **query)) == (400, "BAD_QUERY")


@pytest.mark.parametrize("cursor", ["x", "cD0lMDA=", "cD1ydW5fYQBi", "cD1hYmM="])
@pytest.mark.parametrize("path", ["runs/", "groups/"])
def test_a_made_up_cursor_is_refused_like_any_other_part_of_a_query(api, path, cursor):
    assert problem(api.get(path, cursor=cursor)) == (400, "BAD_QUERY")


@pytest.mark.parametrize(
    "path", ["nothing/", "runs/run_x/", "runs/run_%00/", "runs/%ff/", "runs/../../etc/", "runs"]
)
def test_what_is_not_there_is_a_problem_and_no_page(api, path):
    assert problem(api.get(path)) == (404, "NOT_FOUND")


def test_an_address_without_its_slash_is_told_so(api):
    assert "/api/runs/" in api.post("runs", {}).json()["detail"]


def test_a_method_that_is_not_there_names_those_that_are(api):
    response = api.client.delete("/api/runs/", headers=api.headers)

    assert problem(response) == (405, "METHOD_NOT_ALLOWED")
    assert response.headers["Allow"] == "GET, POST, HEAD, OPTIONS"


def test_a_mistake_of_ours_is_a_problem_too(api, monkeypatch):
    monkeypatch.setattr("runs.api.access.runs", lambda membership: 1 / 0)

    assert problem(api.get("runs/")) == (500, "INTERNAL_ERROR")


def test_answers_are_json_whatever_is_asked_for(api):
    response = api.client.get("/api/runs/", headers={**api.headers, "Accept": "text/html"})

    assert response.headers["Content-Type"] == "application/json"
