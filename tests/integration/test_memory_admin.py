"""The page 'Deposited knowledge'."""

import json
import tempfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from groups.models import Membership
from memory import exchange
from memory.deposit import GroupResult, deposit
from memory.models import DepositedKnowledge, Memory
from memory.write import memory_write
from runs.models import Run
from tests.factories import permit
from tests.memory_world import Place, place

pytestmark = pytest.mark.django_db
LIST = "admin:memory_depositedknowledge_changelist"
MANAGEMENT = {"revisions-TOTAL_FORMS": 0, "revisions-INITIAL_FORMS": 0}


@pytest.fixture
def here() -> Place:
    return place("here")


@pytest.fixture
def curator(here, client):
    user = here.agent.user
    user.is_staff = True
    user.save()
    Membership.objects.create(organization=here.organization, user=user)
    permit(user, "curate_memory")
    client.force_login(user)
    return user


def deposited(where: Place, run: str, output: str, review: bool = False) -> Memory:
    (id,) = deposit(
        GroupResult(
            run, where.organization.id, where.project.id, where.group.id, output=output, review=review
        )
    )
    return Memory.objects.get(id=id)


def act(client, action: str, *memories: Memory):
    chosen = {"action": action, "_selected_action": [memory.id for memory in memories]}
    return client.post(reverse(LIST), chosen, follow=True)


def status(memory: Memory) -> str:
    return Memory.objects.get(id=memory.id).status


def listed(response) -> set[str]:
    return {memory.id for memory in response.context["cl"].result_list}


def test_a_curator_sees_their_organizations_knowledge_and_no_others(here, curator, client):
    mine = deposited(here, "run_1", "ours")
    theirs = deposited(place("there"), "run_2", "theirs")
    memory_write("private", here.history, type="episodic")
    assert listed(client.get(reverse(LIST))) == {mine.id}
    address = reverse("admin:memory_depositedknowledge_change", args=[theirs.id])
    assert client.get(address).status_code == 404
    act(client, "retract", theirs)
    assert status(theirs) == "active"


def test_a_membership_of_some_projects_shows_only_these(here, curator, client):
    deposited(here, "run_1", "ours")
    everyones = memory_write("everyone's", here.organization_wide, type="archival")
    Membership.objects.update(projects=[here.other_project.id])
    assert listed(client.get(reverse(LIST))) == {everyones.id}


def test_it_is_filtered_by_project_group_state_and_run(here, curator, client):
    first = deposited(here, "run_1", "one")
    waits = deposited(here, "run_2", "two", review=True)
    for run in ("run_1", "run_2"):
        Run.objects.create(
            id=run, root_id=run, organization=here.organization, project=here.project, group=here.group,
            user=here.agent.user, kind="group", goal="g",
        )  # fmt: skip
    everyones = memory_write("everyone's", here.organization_wide, type="archival")
    for query, found in (
        ({"project": here.project.id}, {first.id, waits.id}),
        ({"project": "-"}, {everyones.id}),
        ({"group": here.group.id}, {first.id, waits.id}),  # by the group of the run that left it
        ({"group": here.other_group.id}, set()),
        ({"status__exact": "pending_review"}, {waits.id}),
        ({"q": "run_1"}, {first.id}),
        ({"q": "everyone"}, {everyones.id}),
    ):
        assert listed(client.get(reverse(LIST), query)) == found, query


def test_approve_retract_restore_promote_and_merge(here, curator, client):
    waits = deposited(here, "run_1", "one", review=True)
    act(client, "approve", waits)
    assert status(waits) == "active"
    act(client, "retract", waits)
    assert status(waits) == "retracted"
    act(client, "restore", waits)
    other = deposited(here, "run_2", "two")
    act(client, "merge", waits, other)
    assert (status(waits), status(other)) == ("active", "superseded")
    act(client, "promote", waits)
    assert DepositedKnowledge.objects.get(project=None).source_run_id == "run_1"
    refused = act(client, "approve", waits)
    assert "the memory is superseded" in refused.content.decode()


def test_without_the_permission_there_is_no_action(here, curator, client):
    memory = deposited(here, "run_1", "one")
    permit(curator, "view_memory")
    assert act(client, "retract", memory).status_code in (200, 403)
    assert status(memory) == "active"


def test_an_edit_is_kept_in_the_history(here, curator, client):
    memory = deposited(here, "run_1", "one")
    address = reverse("admin:memory_depositedknowledge_change", args=[memory.id])
    client.post(address, {"content": "better", "importance": "0.5"} | MANAGEMENT)
    memory.refresh_from_db()
    assert (memory.content, memory.source_run_id) == ("better", "run_1")
    assert memory.revisions.get().before == {"content": "Group Run Result: one"}
    assert "Group Run Result: one" in client.get(address).content.decode()


def test_a_member_of_some_projects_is_refused_the_whole_organizations_in_words(here, curator, client):
    """Saving it, and merging it with what is a project's, were errors of the server."""
    mine = deposited(here, "run_1", "one")
    everyones = memory_write("known", here.organization_wide, type="archival")
    Membership.objects.filter(user=curator).update(projects=[here.project.id])
    for chosen in ([everyones, mine], [mine, everyones]):
        assert "whole organization" in act(client, "merge", *chosen).content.decode()
    address = reverse("admin:memory_depositedknowledge_change", args=[everyones.id])
    assert client.get(address).status_code == 200
    assert client.post(address, {"content": "mine", "importance": "0.5"} | MANAGEMENT).status_code == 403
    everyones.refresh_from_db()
    assert (everyones.content, status(everyones), status(mine)) == ("known", "active", "active")


def test_what_is_too_long_to_keep_is_refused_in_words(here, curator, client):
    memory = deposited(here, "run_1", "one")
    address = reverse("admin:memory_depositedknowledge_change", args=[memory.id])
    answer = client.post(address, {"content": "x" * 300_000, "importance": "0.5"} | MANAGEMENT)
    assert answer.status_code == 200 and "characters" in answer.context["errors"][0][0]


def upload(client, *rows: object):
    lines = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    file = SimpleUploadedFile("knowledge.jsonl", lines.encode())
    address = reverse("admin:memory_depositedknowledge_import")
    return client.post(address, {"format": "0", "import_file": file, "resource": "0"})


def confirm(client, response):
    form = response.context["confirm_form"]
    address = reverse("admin:memory_depositedknowledge_process_import")
    return client.post(address, form.initial, follow=True)


def test_import_writes_nothing_before_it_is_confirmed(here, curator, client):
    row = {"organization": "here", "project": "atlas", "content": "三月三日发布", "metadata": {"topic": "x"}}
    dry = upload(client, row)
    assert not DepositedKnowledge.objects.exists()
    assert "三月三日发布" in dry.content.decode()
    confirm(client, dry)
    memory = DepositedKnowledge.objects.get()
    assert (memory.content, memory.scope, memory.metadata) == (
        "三月三日发布",
        here.project_wide,
        {"topic": "x"},
    )


def test_only_the_file_that_was_looked_at_is_imported_and_removed(
    here, curator, client, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    other = tmp_path / "somebody_elses"
    other.write_text(json.dumps({"organization": "here", "project": "atlas", "content": "planted"}))
    dry = upload(client, {"organization": "here", "project": "atlas", "content": "looked at"})
    form = dry.context["confirm_form"]
    own = form.initial["import_file_name"]
    for forged in ({"import_file_name": str(other)}, {"import_file_name": "gone"}, {"format": "9"}):
        form.initial = {
            **dry.context["confirm_form"].initial,
            "import_file_name": own,
            "format": "0",
            **forged,
        }
        assert "Choose the file once more" in confirm(client, dry).content.decode()
    assert other.exists() and not DepositedKnowledge.objects.exists()


def test_what_was_exported_edited_and_imported_again_is_an_edit(here, curator, client):
    memory = deposited(here, "run_1", "one")
    exported = client.post(
        reverse("admin:memory_depositedknowledge_export"),
        {"format": "0", "resource": "0", **{f"knowledgeresource_{name}": "on" for name in EXPORTED}},
    )
    (row,) = [json.loads(line) for line in exported.content.decode().splitlines()]
    assert row["metadata"]["source_run_id"] == "run_1"
    row["content"] = "better"
    row["metadata"]["deposited_at"] = "forged"
    confirm(client, upload(client, row))
    memory.refresh_from_db()
    assert memory.content == "better"
    assert memory.metadata["deposited_at"] != "forged"
    assert memory.revisions.count() == 1


EXPORTED = ("id", "organization", "project", "content", "metadata", "importance", "expires_at", "status")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("{", "line 1"),
        ("[1]", "line 1: not an object"),
        ({"organization": "there", "project": "atlas", "content": "x"}, "no project there/atlas"),
        ({"organization": "here", "project": "atlas", "content": " "}, "content is empty"),
        ({"organization": "here", "project": "atlas", "content": "x", "expires_at": "soon"}, "expires_at"),
        ({"source_run_id": "run_9", "content": "x"}, "unknown field"),
    ],
)
def test_a_bad_line_is_shown_in_the_dry_run_and_nothing_is_written(here, curator, client, row, why):
    place("there")
    good = {"organization": "here", "project": "atlas", "content": "good"}
    response = upload(client, row, good)
    assert why in response.content.decode()
    assert not DepositedKnowledge.objects.exists()


def test_what_a_file_holds_is_shown_as_text_before_it_is_confirmed(here, curator, client):
    row = {"organization": "here", "project": "atlas", "content": "<script>alert(1)</script>"}
    page = upload(client, row).content.decode()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_a_file_that_holds_too_much_or_what_nobody_keeps_is_refused_with_its_line(
    here, curator, client, monkeypatch
):
    monkeypatch.setattr(exchange, "MOST_ROWS", 2)
    row = {"organization": "here", "project": "atlas", "content": "one"}
    assert "line 3: a file has at most 2 rows" in upload(client, row, row, row).content.decode()
    for kept_by_nobody in ("\ud800", "\0"):
        refused = upload(client, {**row, "content": kept_by_nobody})
        assert refused.status_code == 200 and "line 1: " in refused.content.decode()
    confirm(client, upload(client, json.dumps({**row, "content": "a\u2028b"}, ensure_ascii=False)))
    assert DepositedKnowledge.objects.get().content == "a\u2028b"
