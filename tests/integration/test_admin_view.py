"""What an agent sees, on its run's page: now, at any event, and whose."""

import re
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.context.agent_view import view_at
from runs.models import Run, RunEvent
from tests.admin_world import client_of, drive, person, superuser, tenant, url
from tests.scripted import by_role, call, say

pytestmark = pytest.mark.django_db

EVIL = """<script>alert(1)</script>"'`><img src=x onerror=alert(2)>"""


@pytest.fixture
def client(made):
    return client_of(person(made, "lou", "runs.view_run", is_staff=True))


def page(client, run, **query):
    answer = client.get(url("runs_run_change", run.pk, **query))
    assert answer.status_code == 200
    return answer.content.decode()


def shown(client, run, **query):
    """The view's text on the page, as a reader has it."""
    block = r'<div class="dp-text dp-code dp-context-at">(.*?)</div>'
    parts = re.findall(block, page(client, run, **query), re.S)
    return unescape("\n".join(parts))


def test_the_view_now_is_the_agents_own(made, client):
    assert shown(client, made.run, at="last") == view_at(made.run.pk).rendered.text


def test_the_panel_is_closed_until_somebody_asks_and_costs_nothing_closed(made, client, monkeypatch):
    asked = []
    monkeypatch.setattr("runs.admin.context_at.view_at", lambda *args: asked.append(args) or view_at(*args))

    closed = page(client, made.run)
    with CaptureQueriesContext(connection) as without:
        page(client, made.run, agent="agt_nobody")
    assert asked == []
    with CaptureQueriesContext(connection) as opened:
        page(client, made.run, at="last")

    assert "Show its pages as they are now" in closed
    assert "dp-context-at" not in closed
    assert asked == [(made.run.pk, None, None)]
    assert len(without) < len(opened) <= len(without) + 9


def test_each_event_leads_to_the_view_after_it(made, client):
    last = RunEvent.objects.filter(run=made.run).order_by("-seq").first()
    links = re.findall(r'class="dp-link dp-view" href="([^"]+)"', page(client, made.run, events=500))

    assert len(links) == last.seq
    for link in links:
        assert link.startswith("?events=500&amp;at=")
        answer = client.get(url("runs_run_change", made.run.pk) + unescape(link).partition("#")[0])
        assert answer.status_code == 200
        assert "after event" in answer.content.decode()


def test_an_earlier_view_is_as_it_was(made, client):
    note = {"parent": "task-0", "name": "Prices", "detail": "what rivals charge"}
    run = drive(made, "Note it", by_role(Personal_agent=[call(("context_create_detail", note)), say("ok")]))
    changed = RunEvent.objects.filter(run=run, type="context.changed").latest("seq").seq

    assert "what rivals charge" in shown(client, run, at=changed)
    assert "what rivals charge" not in shown(client, run, at=changed - 1)
    assert shown(client, run, at=changed) == view_at(run.pk, changed).rendered.text


def test_each_member_of_a_group_has_a_view(world, ask):
    run = ask(
        by_role(
            Personal_agent=[call(("escalate_to_group", {"goal": "g"})), say("ok")],
            researcher=[say("EVIDENCE: 5")],
            analyst=[say("PROPOSAL: 6")],
            lead=[say("DECISION: 6")],
        )
    )
    child = Run.objects.get(parent_run=run)
    client = client_of(person(world, "lou", "runs.view_run", is_staff=True))
    members = {m["role"]: m["agent"] for m in RunEvent.objects.get(run=child, seq=1).payload["members"]}
    opened = page(client, child, at="last")
    spoke = RunEvent.objects.get(run=child, type="message.created", agent=members["analyst"])

    assert "<strong>lead</strong>" in opened  # who had the last word; the others are a link away
    for role in ("researcher", "analyst"):
        assert f'href="?at=last&amp;agent={members[role]}#context-at">{role}</a>' in opened
    assert f'href="?at={spoke.seq}&amp;agent={members["analyst"]}#context-at"' in opened
    for agent in members.values():
        assert shown(client, child, at="last", agent=agent) == view_at(child.pk, None, agent).rendered.text
    assert "researcher: EVIDENCE: 5" in shown(client, child, at=spoke.seq, agent=members["analyst"])
    assert "lead: DECISION" not in shown(client, child, at=spoke.seq, agent=members["analyst"])


@pytest.mark.parametrize(
    "query", [{"at": "first"}, {"at": "-1"}, {"at": "9" * 30}, {"at": "last", "agent": "agt_nobody"}]
)
def test_what_there_is_not_is_not_found(made, client, query):
    assert client.get(url("runs_run_change", made.run.pk, **query)).status_code == 404


def test_the_view_of_another_organizations_run_is_not_found(made, client):
    other = tenant("Their secret", "rival")

    for run in (other.run, other.child):
        answer = client.get(url("runs_run_change", run.pk, at="last"))
        assert answer.status_code == 404
        assert "Their secret" not in answer.content.decode()


def test_an_agent_of_another_run_is_not_shown_in_this_one(made, client):
    other = tenant("Their secret", "rival")
    agent = RunEvent.objects.get(run=other.child, seq=1).payload["members"][0]["agent"]

    assert client.get(url("runs_run_change", made.child.pk, at="last", agent=agent)).status_code == 404


def test_what_the_view_holds_is_shown_as_text():
    evil = tenant(EVIL, "evil")
    client = client_of(superuser(evil))

    for run in (evil.run, evil.child):
        opened = page(client, run, at="last")
        assert "<script>alert" not in opened and "<img src=x" not in opened
        assert "<script>alert(1)</script>" in shown(client, run, at="last")


def test_characters_that_hide_others_are_spelled_out(made, client):
    run = drive(made, "Say\u202eit", by_role(Personal_agent=[say("ok")]))

    assert "Say⟨U+202E⟩it" in shown(client, run, at="last")
