"""Whatever is put into an address or a form of the admin: 400 for what cannot be kept, and never a 500."""

import base64
import json
import re
from itertools import cycle
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from tests.admin_pages import OTHERS, PAGES, address_of, things_of
from tests.admin_world import client_of, superuser, tenant, url

pytestmark = pytest.mark.django_db

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "robustness" / "json_bodies.jsonl"
IMPOSSIBLE = ("\x00", "a\x00b", "\x00' OR 1=1--")
HOSTILE = (
    "",
    " ",
    "'",
    '"',
    "\\",
    "%",
    "%00",
    "%s",
    "' OR 1=1--",
    "<script>",
    "{{x}}",
    "../../etc/passwd",
    "-1",
    "0",
    "9" * 30,
    "-" + "9" * 30,
    "1e999",
    "NaN",
    "None",
    "null",
    "true",
    "[]",
    "{}",
    "1,2,3",
    "\ufffe",
    "\u202e",
    "\x01",
    "\x7f",
    "\r\nX: y",
    "x" * 5000,
    "2026-13-45",
    "9999999-01-01",
    "run_",
    "run_" + "z" * 26,
    "id__exact",
    "-1.-2.99",
    "a.b.c",
    "__all__",
    "٣",
    "ﬀ",
    "𝟙",
)
PARAMETERS = (
    "q",
    "o",
    "p",
    "page",
    "all",
    "e",
    "_popup",
    "_to_field",
    "_changelist_filters",
    "next",
    "group",
    "asked",
    "level",
    "id__exact",
    "pk__in",
    "status__exact",
    "created_at__gte",
    "user__id__exact",
    "project__id__exact",
    "organization__id__exact",
    "status__isnull",
    "events",
    "children",
    "at",
    "agent",
    "v",
    "last_event_id",
    "goal",
    "project",
    "user",
    "tool",
    "rule",
    "since",
    "until",
    "effect",
    "run",
    "before",
    "arguments",
    "kind__in",
)
NAME = re.compile(r'name="([A-Za-z_][\w.-]{0,60})"|[?&](?:amp;)?([A-Za-z_]\w{0,60})=')


@pytest.fixture
def things():
    made = tenant()
    return {**things_of(made), "root": superuser(made)}


@pytest.fixture
def root(things):
    client = client_of(things["root"])
    client.raise_request_exception = False
    return client


def pages(things):
    """Name, method and address of every page."""
    for name in PAGES:
        method = OTHERS[name][0] if name in OTHERS else "get"
        yield name, method, address_of(name, things)


def parameters(client, address):
    """What the page itself speaks of, and what any may be asked."""
    answer = client.get(address)
    if answer.streaming or answer.status_code != 200:
        return PARAMETERS
    found = {one or other for one, other in NAME.findall(answer.content.decode())}
    return sorted({*PARAMETERS, *found} - {"csrfmiddlewaretoken"})


def broken(client, things, hostile, chosen, one_of=1, turn=0):
    """(page, parameter, value) of each that answered with a 500. Of `one_of` parameters one is asked, in each
    turn another.
    """
    values, found = cycle(hostile), []
    for number, (name, method, address) in enumerate(pages(things)):
        if not chosen(name):
            continue
        for parameter in list(parameters(client, address))[(number + turn) % one_of :: one_of]:
            value = next(values)
            answer = getattr(client, method)(address, {parameter: value})
            if answer.status_code >= 500:
                found.append((name, parameter, value[:80], answer.status_code))
    return found


def test_no_form_fails_at_json_without_end(client):
    answer = client.post(reverse("mfa_login_webauthn"), {"credential": "[" * 100_000})
    assert answer.status_code == 400 and "cannot be read" in answer.content.decode()


def test_no_page_looks_for_what_no_database_keeps(things, root):
    found = set()
    for name, _method, address in pages(things):
        for value in IMPOSSIBLE:
            answers = [
                root.get(address, {"q": value}),
                root.get(address, {value: "x"}),
                root.post(address, {"x": value}),
            ]
            found |= {(name, answer.status_code) for answer in answers if answer.status_code != 400}

    assert found == set()


@pytest.mark.parametrize(
    "address",
    [
        "/sign-in/?next=%00",
        "/admin/runs/run/api/change/?x=%00",
        "/admin/runs/run/?q=%00/api/",
        "/admin/runs/run/%00/change/",
        "/admin/%00/",
        "/i18n/setlang/?next=a%00",
        "/?x=%00",
        "/admin/jsi18n/?x=%00",
        "/admin/autocomplete/?term=%00",
    ],
)
def test_nor_does_any_other_address(address, root):
    assert root.get(address).status_code in (400, 404)


@pytest.mark.parametrize("name", ["sessionid", "csrftoken", "messages", "django_language", "deputy_known"])
def test_a_cookie_is_read_as_strictly(name):
    client = Client(raise_request_exception=False)
    client.cookies[name] = "x"
    client.cookies[name].set(name, "a\x00b", "a\x00b")

    assert client.get("/admin/").status_code == 400


def test_a_form_with_an_impossible_character_is_refused_and_says_so(root, settings):
    answer = root.post(url("runs_run_ask"), {"goal": "a\x00b"})

    assert answer.status_code == 400
    assert "This request cannot be read" in answer.content.decode()


@pytest.mark.slow
def test_lists_stand_whatever_is_put_into_a_parameter_of_theirs(things, root):
    def listed(name):
        return name.endswith("changelist") or name in OTHERS

    assert broken(root, things, HOSTILE, listed, 5) == []


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(6))
def test_so_does_every_page(things, root, turn):
    hostile = HOSTILE[turn:] + HOSTILE[:turn]
    assert broken(root, things, hostile, lambda name: True, 3, turn) == []


def test_no_form_fails_at_a_key_that_is_none(things, root):
    """As everywhere, but for each parameter whose value Django takes without looking at it."""
    asked = {}
    for name, _method, address in pages(things):
        if name.endswith(("_change", "_delete")):
            asked[name] = root.get(address, {"_to_field": ""}).status_code
        elif name.endswith("_add"):
            keys = [key for key in parameters(root, address) if not key.startswith("_")]
            asked[name] = root.get(address, dict.fromkeys(keys, "None")).status_code
            asked[f"{name}, sent"] = root.post(address, dict.fromkeys(keys, "None")).status_code

    assert len(asked) > 80
    assert [name for name, status in asked.items() if status >= 500] == []


@pytest.mark.skipif(not DATA.exists(), reason="the data of hostile bodies is not here")
def test_so_does_it_with_bodies_that_broke_others(things, root):
    lines = [json.loads(line) for line in DATA.read_text().splitlines()]
    texts = [base64.b64decode(line["body_b64"]).decode("latin-1")[:500] for line in lines]
    hostile = [text for text in texts if "\x00" not in text]
    assert len(hostile) > 200

    assert broken(root, things, hostile, lambda name: name.endswith("changelist"), 8) == []


@pytest.mark.parametrize("path", ["/nothing/", "/admin/nothing/", "/admin/runs/run/run_x/change/"])
def test_what_is_not_there_has_deputys_own_page(root, path):
    answer = root.get(path)

    assert answer.status_code == 404
    assert "Nothing is here" in answer.content.decode() and "Deputy" in answer.content.decode()


def test_so_has_what_somebody_may_not_do(things):
    client = client_of(things["auth_user"])
    things["auth_user"].is_staff = True
    things["auth_user"].save()
    answer = client.get(url("runs_health"))

    assert answer.status_code == 403
    assert "You may not do this" in answer.content.decode()


def test_so_has_a_form_without_its_token(things):
    client = Client(enforce_csrf_checks=True)
    client.force_login(things["root"])
    answer = client.post(url("runs_run_ask"), {"goal": "x"})

    assert answer.status_code == 403
    assert "The form was not accepted" in answer.content.decode()


def test_every_answer_names_where_scripts_may_come_from(root):
    for path in ("/admin/", "/sign-in/", "/nothing/", "/api/runs/", "/api/docs/", "/healthz"):
        policy = root.get(path).headers["Content-Security-Policy"]
        scripts = re.search(r"script-src ([^;]*)", policy)[1]
        assert "'unsafe-inline'" not in scripts and "'self'" in scripts
        assert "frame-ancestors 'none'" in policy and "object-src 'none'" in policy


def test_no_template_has_a_script_in_it():
    inline = re.compile(r"<script(?![^>]*\bsrc=)|\son[a-z]+=|javascript:", re.IGNORECASE)
    own = Path(__file__).resolve().parents[2] / "templates"
    tag = re.compile(r"{%.*?%}")  # Django's own; `with one=…` is no attribute
    found = [path.name for path in own.rglob("*.html") if inline.search(tag.sub(" ", path.read_text()))]

    assert found == []
