"""No answer that is somebody's is kept by a proxy, taken for another type, or opened in a page as a file."""

import re
from functools import partial

import pytest
from django.test import Client
from django.urls import get_resolver

from groups.models import Token
from groups.scopes import SCOPES
from tests.admin_world import client_of, objects_of, permit_all, superuser, tenant

pytestmark = pytest.mark.django_db
SHOWN = re.compile(
    r"text/(html|plain|event-stream)|application/(json|problem\+json|a2a\+json|vnd\.oai\.openapi)\b"
)
SCRIPTS = ("/sw.js", "/admin/jsi18n/")  # Deputy's own
PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>|\(\?P<(\w+)>(?:[^()]|\([^()]*\))*\)")


def addresses(patterns, made, before="/"):
    for one in patterns:
        path = before + re.sub(r"^\^|\$$|\\Z$", "", str(one.pattern))
        if hasattr(one, "url_patterns"):
            yield from addresses(one.url_patterns, made, path)
        else:
            yield PARAMETER.sub(partial(value, made, path), path)


def value(made, path, parameter):
    """An id that there is, where the address says of what it is."""
    by_kind = {
        "runs": made.run, "talk": made.run, "approvals": made.approval, "schedules": made.schedule,
        "groups": made.group, "projects": made.project, "roles": made.role, "tokens": made.token,
        "channels": made.channel, "webhooks": made.webhook, "deliveries": made.delivery,
        "rules": made.rule, "grants": made.grant, "ag-ui": made.project, "a2a": made.project,
    }  # fmt: skip
    if admin := re.match(r"/admin/(\w+)/(\w+)/", path):
        row = objects_of(made).get("_".join(admin.groups()))
        return str(row.pk) if row is not None else "1"
    if "call_id" in parameter[0]:
        return made.call.call_id
    for part in reversed(path.split("<")[0].strip("/^(?P").split("/")):
        if part in by_kind:
            return str(by_kind[part].pk)
    return "x"


@pytest.fixture
def made():
    made = tenant()
    made.project.published = True
    made.project.save()
    return made


def test_no_answer_is_kept_taken_for_another_type_or_opened(made):
    root, person = client_of(superuser(made)), client_of(permit_all(made.user))
    _, secret = Token.objects.issue(made.organization, made.user, scopes=list(SCOPES))
    program = Client(headers={"Authorization": f"Token {secret}"})
    found, opened = [], 0
    for path in sorted(set(addresses(get_resolver().url_patterns, made))):
        readers = {"root": root, "program": program, "nobody": Client()}
        if not path.startswith(("/admin/", "/api/")):
            readers = {"root": root, "person": person, "nobody": Client()}
        for who, client in readers.items():
            client.raise_request_exception = False
            answer = client.get(path)
            opened += answer.status_code == 200
            found += [(who, path, said) for said in odd(path, answer)]
    assert found == [] and opened > 250


def odd(path, answer):
    kept, kind = answer.headers.get("Cache-Control", ""), answer.headers.get("Content-Type", "")
    if answer.status_code == 500:
        yield "broken"
    if not any(word in kept for word in ("private", "no-store")):
        yield f"kept: {kept}"
    if answer.headers.get("X-Content-Type-Options") != "nosniff":
        yield "may be taken for another type"
    attached = answer.headers.get("Content-Disposition", "").startswith("attachment")
    if answer.status_code == 200 and not attached and not SHOWN.match(kind) and path not in SCRIPTS:
        yield f"opened: {kind}"
