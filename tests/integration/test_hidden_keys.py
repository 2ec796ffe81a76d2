"""What is masked stays hidden: in forms, searches, exports, headings, and where a text is cut."""

import json

import pytest
from django.urls import reverse

from common import redact
from groups import routing
from groups.models import RoutingExample
from memory import curate, own
from memory.errors import MemoryRefused
from memory.exchange import KnowledgeResource
from memory.models import Memory
from memory.scope import Scope
from memory.write import memory_write
from policy.models import CapabilityRule
from runs.actions import schedule as schedules
from runs.actions.start import CannotStart
from runs.models import Approval, Schedule
from tests.acting import at_the_pages
from tests.admin_world import client_of, drive, person, superuser, url
from tests.factories import GroupFactory
from tests.integration.api_client import Api
from tests.integration.test_private import KEYS, RIGHTS, told
from tests.scripted import by_role, call, say

pytestmark = pytest.mark.django_db

KEY = KEYS["GitHub's"]
TEXT = f"Deploy with {KEY} on Monday.\nThen tell everybody."


def test_a_curators_form_shows_no_key_and_keeps_it(made):
    where = Scope(made.organization.pk, project_id=made.project.pk)
    known = memory_write(TEXT, where, type="archival", metadata={"token": KEY, "place": "Rome"})
    curator = person(
        made, "cleo", "memory.curate_memory", "memory.view_memory", "memory.change_depositedknowledge",
        is_staff=True,
    )  # fmt: skip
    client, page = client_of(curator), url("memory_depositedknowledge_change", known.pk)

    shown = client.get(page)
    assert KEY not in told(shown) and redact.MASK in told(shown)
    fields = shown.context["adminform"].form.initial
    as_shown = {"content": fields["content"].replace("\n", "\r\n"), "expires_at_0": "", "expires_at_1": ""}
    inline = {"revisions-TOTAL_FORMS": 0, "revisions-INITIAL_FORMS": 0}
    assert client.post(page, {**as_shown, **inline, "importance": 0.9}).status_code == 302
    known.refresh_from_db()
    assert (known.content, known.importance) == (TEXT, 0.9)

    other = as_shown["content"].replace("Deploy", "Log in")
    refused = client.post(page, {**as_shown, **inline, "content": other, "importance": 0.9})
    assert "anew, or leave it out" in told(refused)
    assert (
        client.post(page, {**as_shown, **inline, "content": "Deploy.", "importance": 0.9}).status_code == 302
    )
    assert Memory.objects.get(pk=known.pk).content == "Deploy."
    assert KEY not in told(client.get(page)) and KEY not in told(
        client.get(url("memory_depositedknowledge_changelist"))
    )


def test_over_the_api_too(made):
    where = Scope(made.organization.pk, user_id=made.user.pk)
    mine = memory_write(TEXT, where, type="episodic", metadata={"token": KEY, "place": "Rome"})
    actor = at_the_pages(made.user, made.organization.pk)

    curate.edit(mine.pk, actor, content=redact.shown(TEXT), metadata={"token": redact.MASK, "place": "Oslo"})
    mine.refresh_from_db()
    assert (mine.content, mine.metadata["token"], mine.metadata["place"]) == (TEXT, KEY, "Oslo")
    for moved in ({"content": f"{redact.shown(TEXT)}!"}, {"metadata": {"place": redact.MASK}}):
        with pytest.raises(MemoryRefused, match="a key is hidden"):
            curate.edit(mine.pk, actor, **moved)

    client = client_of(made.user)
    assert KEY not in told(client.get(reverse("web:known")))
    client.post(reverse("web:correct", args=[mine.pk]), {"content": redact.shown(TEXT).replace("\n", "\r\n")})
    assert Memory.objects.get(pk=mine.pk).content == TEXT
    said = client.post(reverse("web:correct", args=[mine.pk]), {"content": f"No: {redact.MASK}"}, follow=True)
    assert "leave it out" in told(said)


def test_no_export_holds_a_key_and_an_import_of_it_loses_none(made):
    where = Scope(made.organization.pk, project_id=made.project.pk)
    known = memory_write(TEXT, where, type="archival", metadata={"token": KEY})
    memory_write(TEXT, Scope(made.organization.pk, user_id=made.user.pk), type="episodic")
    lines = KnowledgeResource(user=superuser()).export()

    assert KEY not in json.dumps(lines.dict) and redact.MASK in json.dumps(lines.dict)
    assert KEY not in json.dumps(list(own.exported(made.user, made.organization.pk)))
    (row,) = (one for one in lines.dict if one["id"] == known.pk)
    curate.edit(known.pk, None, content=row["content"], metadata=row["metadata"])  # as its import does
    known.refresh_from_db()
    assert (known.content, known.metadata["token"]) == (TEXT, KEY)


def test_a_schedules_form_shows_no_key_and_keeps_it(made):
    actor = at_the_pages(made.user, made.organization.pk)
    said = {"project": made.project, "goal": TEXT, "time_zone": "UTC", "cron": "0 9 * * 1"}
    schedule = schedules.create(actor, said)
    client = client_of(made.user)

    for page in ("web:schedule", "web:edit_schedule"):
        assert KEY not in told(client.get(reverse(page, args=[schedule.pk]))), page
    assert KEY not in told(Api(made.user, made.organization).get(f"schedules/{schedule.pk}/"))
    schedules.change(schedule.pk, actor, {"goal": redact.shown(TEXT).replace("\n", "\r\n"), "most_runs": 3})
    kept = Schedule.objects.get(pk=schedule.pk)
    assert (kept.goal, kept.most_runs) == (TEXT, 3)
    with pytest.raises(CannotStart, match="anew, or leave it out"):
        schedules.change(schedule.pk, actor, {"goal": f"{redact.shown(TEXT)} Now."})


def test_no_search_of_the_admin_finds_what_is_masked(made):
    run = drive(made, f"Deploy with {KEY}", by_role(Personal_agent=[say("ok")]))
    where = Scope(made.organization.pk, project_id=made.project.pk)
    known = memory_write(TEXT, where, type="archival")
    client = client_of(superuser())

    for name, pk in (("runs_run", run.pk), ("memory_depositedknowledge", known.pk)):
        for words, found in (
            ("deploy", True), (f"deploy {KEY[:7]}", False), (KEY[4:12], False), (f'"with {KEY[:5]}"', False),
            ("redac", False), ("", True),
        ):  # fmt: skip
            page = client.get(url(f"{name}_changelist"), {"q": words})
            assert (pk in {one.pk for one in page.context["cl"].result_list}) == found, (name, words)
    assert [
        one.pk for one in client.get(url("runs_run_changelist"), {"q": run.pk}).context["cl"].result_list
    ] == [run.pk]


def test_no_key_is_told_where_a_text_is_cut_or_marked(made):
    key = KEYS["OpenAI's"]
    where = Scope(made.organization.pk, project_id=made.project.pk)
    memory_write(f"In Rome the proj takes {key}. It has windows.", where, type="archival")
    api = Api(made.user, made.organization)

    found = api.get("memories/search/", query="proj Rome", project=made.project.pk).json()["results"]
    assert "**Rome**" in found[0]["snippet"] and "Ab12Cd34" not in json.dumps(found)


def test_where_a_value_came_from_shows_no_end_of_a_key(made):
    rule = {"tool": "send_email", "effect": "require_approval", "name": "mail is looked at"}
    CapabilityRule.objects.create(organization=made.organization, **rule)
    where = Scope(made.organization.pk, project_id=made.project.pk)
    memory_write(f"Of {KEY} {'x ' * 45}write to zoe@private.example about it", where, type="archival")
    replies = [
        call(("memory_search", {"query": "write"})),
        call(("send_email", {"to": ["zoe@private.example"], "subject": "s", "body": "b"})),
    ]
    run = drive(made, "Write about it", by_role(Personal_agent=replies))
    approval = Approval.objects.get(run=run)

    origins = told(Api(made.user, made.organization).get(f"approvals/{approval.pk}/origins/"))
    assert "zoe@private.example" in origins and "12Mn34Op56Qr78" not in origins


def test_who_decides_reads_no_key_in_the_goal(made):
    rule = {"tool": "send_email", "effect": "require_approval", "name": "mail is looked at"}
    CapabilityRule.objects.create(organization=made.organization, **rule)
    mail = call(("send_email", {"to": ["zoe@private.example"], "subject": "s", "body": "b"}))
    run = drive(made, f"Use {KEY} and write", by_role(Personal_agent=[mail]))
    approval = Approval.objects.get(run=run)
    lou = person(made, "lou", *RIGHTS, "runs.decide_approval", is_staff=True)
    client = client_of(lou)

    for page in (
        url("runs_approval_changelist"), url("runs_approval_change", approval.pk),
        reverse("web:waiting"), reverse("web:approval", args=[approval.pk]),
        url("runs_run_cancel", run.pk), url("runs_run_fork", run.pk, 1),
    ):  # fmt: skip
        page_said = client.get(page)
        assert KEY not in page_said.content.decode(), page
    assert KEY not in told(Api(lou, made.organization).get(f"approvals/{approval.pk}/"))


def test_what_a_group_has_learnt_shows_no_key(made):
    group = GroupFactory(project=made.project)
    example = routing.learn(made.organization.pk, group.pk, f"Deploy with {KEY}", by=made.user)
    client = client_of(superuser())
    for page in (url("groups_routingexample_changelist"), url("groups_routingexample_change", example.pk)):
        assert KEY not in told(client.get(page)), page
    client.post(url("groups_routingexample_change", example.pk), {"kind": "misfit"})
    assert RoutingExample.objects.get(group=group).goal == f"Deploy with {KEY}"
