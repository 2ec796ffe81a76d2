"""No list of the admin, of the API or of people's pages asks more often because it has more rows."""

import re
from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver, reverse
from django.utils import timezone

from groups.models import GroupMember, Membership, Organization, Token
from groups.scopes import SCOPES
from memory.models import Memory
from policy.models import PolicyVersion
from runs.models import Approval, ApprovalNotice, ModelKey, ScheduledRun
from tests.admin_world import client_of, objects_of, permit_all, registered, superuser, tenant, url
from tests.cloned import clone
from tests.factories import MemberFactory, MembershipFactory
from tests.integration.test_api_queries import make_runs

pytestmark = pytest.mark.django_db
# Of which there is one for each organization, and what is made with others.
ALONE = (Organization, PolicyVersion, ModelKey)
WITH_OTHERS = (Membership, GroupMember, Approval, ApprovalNotice, ScheduledRun)
PAGES = ("home", "conversations", "waiting", "to_decide", "count", "decided", "known", "groups", "schedules",
         "settings", "notices")  # fmt: skip


@pytest.fixture
def made():
    return tenant()


def many(made, count, mark):
    """As many more of all there is."""
    memory = {"organization": made.organization, "user": made.user, "type": "episodic"}
    Memory.objects.bulk_create(Memory(**memory, content=f"{mark}{n}") for n in range(count))
    for _ in range(count):
        MembershipFactory(organization=made.organization)
        MemberFactory(group=made.group, role=made.role)
    for row in objects_of(made).values():
        if not isinstance(row, ALONE + WITH_OTHERS):
            clone(row, count, mark)
    owned = {"organization": made.organization}
    for n, run in enumerate(make_runs(made, count)):
        asked = Approval.objects.get(run=run)
        ApprovalNotice.objects.create(**owned, approval=asked, user=made.user)
        due = made.scheduled.due_at + timedelta(minutes=1 + n + 100 * ord(mark))
        ScheduledRun.objects.create(**owned, schedule=made.schedule, run=run, due_at=due, outcome="started")


def asked(get):
    with CaptureQueriesContext(connection) as captured:
        answer = get()
        if answer.streaming:
            b"".join(answer.streaming_content)
    assert answer.status_code == 200, answer.content[:500]
    return [query["sql"] for query in captured]


def grown(gets, made):
    """The pages that ask more often with more rows."""
    found = []
    for count, mark in ((3, "a"), (12, "b")):
        many(made, count, mark)
        for get in gets.values():
            get()  # what is kept of rules and tools is read anew
        found.append({name: asked(get) for name, get in gets.items()})
    few, lots = found
    return {
        name: (len(few[name]), Counter(sql[:300] for sql in lots[name]).most_common(3))
        for name in gets
        if len(lots[name]) > len(few[name])
    }


def test_of_the_admin(made):
    root = client_of(superuser(made))
    gets = {stem: lambda stem=stem: root.get(url(f"{stem}_changelist")) for stem in registered()}
    gets["index"] = lambda: root.get(url("index"))
    assert grown(gets, made) == {}


def test_of_peoples_pages(made):
    client = client_of(permit_all(made.user))
    gets = {name: lambda name=name: client.get(reverse(f"web:{name}")) for name in PAGES}
    gets["conversation"] = lambda: client.get(reverse("web:conversation", args=[made.run.pk]))
    gets["approval"] = lambda: client.get(reverse("web:approval", args=[made.approval.pk]))
    assert grown(gets, made) == {}


def lists(patterns, before=""):
    """The addresses of the API's lists that take no id."""
    for one in patterns:
        path = before + re.sub(r"[$^]|\\Z", "", str(one.pattern))
        if hasattr(one, "url_patterns"):
            yield from lists(one.url_patterns, path)
        elif "get" in (getattr(one.callback, "actions", None) or {}) and not set("<(") & set(path):
            yield f"/{path}"


def test_of_the_api(made):
    user = permit_all(made.user)
    _, secret = Token.objects.issue(made.organization, user, scopes=list(SCOPES))
    Token.objects.update(last_used_at=timezone.now())
    headers = {"Authorization": f"Token {secret}"}
    client = Client()
    paths = {path for path in lists(get_resolver().url_patterns) if path.startswith("/api/")}
    asking = {"/api/memories/search/": {"query": "a"}, "/api/tools/": {"run": made.run.pk}}
    assert len(paths) > 20
    gets = {path: lambda path=path: client.get(path, asking.get(path, {}), headers=headers) for path in paths}
    for part in ("tree", "children", "events", "tool-calls"):
        gets[part] = lambda part=part: client.get(f"/api/runs/{made.run.pk}/{part}/", headers=headers)
    assert grown(gets, made) == {}
