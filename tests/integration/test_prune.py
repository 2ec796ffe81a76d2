"""`manage.py prune`: what old runs said goes, that they happened stays and can still be proved."""

from datetime import timedelta
from io import StringIO

import pytest
from django.apps import apps
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from memory.context.models import ContextView
from memory.models import Memory
from runs.actions import prune
from runs.execution import executor
from runs.execution.outside_agents import OutsideRefused
from runs.log import log
from runs.log.state import fold
from runs.log.verify import verify
from runs.models import Approval, Run, RunEvent, ToolCall
from tests.acting import approve, complete
from tests.admin_world import client_of, superuser, url
from tests.factories import permit
from tests.integration.api_client import Api
from tests.integration.test_decisions import decider
from tests.scripted import by_role, call, say

pytestmark = pytest.mark.django_db

CANARY = "canary-words"
# where knowledge and its lineage stay, or what an organization is
STAYS = {"memory_memory", "groups_routingexample"}


@pytest.fixture
def done(ask, world):
    """A completed run with a group below it, whose every text holds the canary; kept for 30 days."""
    world.organization.retention_days = 30
    world.organization.save()
    note = {"parent": "usr-0", "name": CANARY, "description": CANARY, "detail": CANARY}
    return ask(
        by_role(
            Personal_agent=[
                call(("no_such_tool", {"x": CANARY}), ("context_create_detail", note), content=CANARY),
                call(("escalate_to_group", {"goal": CANARY, "context": CANARY})),
                say(CANARY),
            ],
            researcher=[say(f"EVIDENCE: {CANARY}")],
            analyst=[call(("memory_search", {"query": CANARY})), say(f"PROPOSAL: {CANARY}")],
            lead=[say(f"DECISION: {CANARY} for six euro a seat")],  # says something: it waits for no curator
        ),
        goal=CANARY,
        context=CANARY,
        session_key="s",
    )


def age(run, days=31):
    """Let the run's tree have ended so many days ago."""
    Run.objects.filter(root_id=run.root_id).update(ended_at=timezone.now() - timedelta(days=days))


def run_prune(*arguments):
    said = StringIO()
    call_command("prune", *arguments, stdout=said)
    return said.getvalue()


def tables_with(word):
    """The tables in which any row holds the word in any column."""
    found = set()
    with connection.cursor() as cursor:
        for model in apps.get_models():
            table = model._meta.db_table
            cursor.execute(f'SELECT EXISTS (SELECT FROM "{table}" t WHERE t::text LIKE %s)', [f"%{word}%"])
            found |= {table} if cursor.fetchone()[0] else set()
    return found


def test_nothing_an_old_run_said_is_left_in_any_table_but_knowledge(done, world):
    assert {"runs_run", "runs_runevent", "runs_toolcall"} <= tables_with(CANARY)
    assert ContextView.objects.exists()
    age(done)

    said = run_prune()

    assert tables_with(CANARY) <= STAYS
    assert not ContextView.objects.exists()
    assert f"{world.organization.slug}: 2 runs with {RunEvent.objects.count()} events pruned" in said


def test_nor_are_arguments_that_a_decider_has_changed(ask, world):
    world.organization.retention_days = 30
    world.organization.save()
    mail = {"to": [f"{CANARY}@friends.example"], "subject": CANARY, "body": CANARY}
    run = ask(by_role(Personal_agent=[call(("send_email", mail)), say("Done.")]))
    changed = {**mail, "body": f"{CANARY} once more"}
    edited = approve(Approval.objects.get(run=run).pk, decider(world), arguments=changed)
    assert Approval.objects.get(pk=edited.replaces_id).arguments == mail
    executor.run(run.pk)
    age(run)
    run_prune()
    assert tables_with(CANARY) <= STAYS


def test_a_pruned_log_still_proves_what_happened(done):
    before = list(RunEvent.objects.order_by("id").values_list("seq", "type", "agent", "created_at", "digest"))
    age(done)
    run_prune()

    verdict = verify(done.pk)
    assert (verdict.broken, verdict.pruned, verdict.status) == ("", True, "completed")
    assert before == list(
        RunEvent.objects.order_by("id").values_list("seq", "type", "agent", "created_at", "digest")
    )
    said = StringIO()
    call_command("verify_run", done.pk, stdout=said)
    assert said.getvalue().endswith("events, whole, pruned\n")


def test_tampering_with_a_pruned_log_is_found(done):
    age(done)
    run_prune()
    third = RunEvent.objects.get(run=done, seq=3)
    for change in ({"type": "run.failed"}, {"agent": "x"}, {"payload": {"v": 1, "pruned": "0" * 64}}):
        kept = {name: getattr(third, name) for name in change}
        RunEvent.objects.filter(pk=third.pk).update(**change)
        assert verify(done.pk).seq == 3, change
        RunEvent.objects.filter(pk=third.pk).update(**kept)
    RunEvent.objects.filter(pk=third.pk).delete()
    assert "event 3 is missing" in verify(done.pk).broken


def test_a_single_event_cannot_be_hidden_as_pruned(done):
    third = RunEvent.objects.get(run=done, seq=3)
    RunEvent.objects.filter(pk=third.pk).update(payload=prune.pruned(third.payload))

    assert "is pruned, its run is not" in verify(done.pk).broken


def test_a_dry_run_says_what_would_go_and_changes_nothing(done, world):
    age(done)
    before = tables_with(CANARY)

    said = run_prune("--dry-run")

    assert f"2 runs with {RunEvent.objects.count()} events would be pruned" in said
    assert tables_with(CANARY) == before
    assert not Run.objects.exclude(pruned_at=None).exists()


@pytest.mark.parametrize("what", ["young", "child goes on", "session goes on", "review", "kept", "other"])
def test_what_is_not_touched(done, world, ask, what):
    age(done)
    child = Run.objects.get(parent_run=done)
    if what == "young":
        age(done, days=29)
    elif what == "child goes on":
        Run.objects.filter(pk=child.pk).update(status="pending", ended_at=None)
    elif what == "session goes on":
        ask(lambda messages, facts: say("x"), drive=False, session_key="s")
    elif what == "review":
        Memory.objects.filter(source_run_id=child.pk).update(status="pending_review")
    elif what == "kept":
        type(world.organization).objects.update(retention_days=None)
    else:
        assert "There is no organization" in str(refusal("--organization", "nobody"))

    if what != "other":
        run_prune()

    assert Run.objects.get(pk=done.pk).goal == CANARY
    assert Run.objects.get(pk=done.pk).pruned_at is None


def test_a_session_that_goes_on_while_prune_is_at_work_keeps_its_turns(done, ask, monkeypatch):
    age(done)
    looked_for = prune.candidates

    def candidates(organization):
        for root_id in looked_for(organization):
            ask(lambda messages, facts: say("x"), drive=False, session_key="s")
            yield root_id

    monkeypatch.setattr(prune, "candidates", candidates)
    run_prune()

    assert Run.objects.get(pk=done.pk).goal == CANARY
    assert done.events.filter(payload__content=CANARY).exists()


def refusal(*arguments):
    with pytest.raises(CommandError) as refused:
        run_prune(*arguments)
    return refused.value


def test_it_goes_on_where_it_was_stopped_and_a_second_time_does_nothing(done, ask, monkeypatch):
    runs = [done, *(ask(lambda messages, facts: say("x")) for _ in range(4))]
    for run in runs:
        age(run)
    monkeypatch.setattr(prune, "BATCH", 2)
    monkeypatch.setattr(prune, "PIECE", 3)

    assert ": 6 runs" in run_prune()
    assert ": 0 runs with 0 events pruned" in run_prune()
    assert not [run for run in runs if verify(run.pk).broken]


def test_the_pages_of_a_pruned_run_open(done, world):
    age(done)
    run_prune()
    client = client_of(superuser())

    page = client.get(url("runs_run_change", done.pk))
    assert "was removed for its age" in page.content.decode()
    assert client.get(url("runs_run_change", done.pk) + "?at=last").status_code in (200, 404)
    for stem, thing in (("runevent", RunEvent.objects.first()), ("toolcall", ToolCall.objects.first())):
        assert client.get(url(f"runs_{stem}_change", thing.pk)).status_code == 200
    for name in ("runs_decisions", "runs_run_changelist", "runs_decisions_export"):
        assert client.get(url(name)).status_code == 200


def test_the_log_of_a_pruned_run_can_be_folded(done):
    age(done)
    run_prune()
    state = fold(log.read(done.pk))
    assert (state.pruned, state.ended, state.messages) == (True, "run.completed", [])


def test_a_pruned_run_is_neither_gone_on_with_nor_asked_again(done, world):
    age(done)
    run_prune()
    permit(world.user, "runs.start_run", "runs.view_run")
    world.user.is_staff = True
    world.user.save()
    client = client_of(world.user)
    refused = Api(world.user, world.organization).post(f"runs/{done.pk}/fork/", {"seq": 2})
    assert (refused.status_code, refused.json()["code"]) == (409, "NOT_A_POINT")
    for door in (
        reverse("admin:runs_run_fork", args=[done.pk, 2]),
        reverse("admin:runs_run_again", args=[done.pk]),
        reverse("web:go_on", args=[done.pk]),
        reverse("web:again", args=[done.pk]),
    ):
        page = client.post(door, {"content": "Go on."}, follow=True)
        assert "was removed for its age: start a new run" in page.content.decode(), door
    assert Run.objects.filter(parent_run=None).count() == 1


def test_a_pruned_run_is_no_part_of_the_conversation_any_more(done, ask):
    age(done)
    run_prune()
    seen = []

    def play(messages, facts):
        seen.extend(message.content for message in messages)
        return say("Hello.")

    ask(play, goal="Good morning", session_key="s")
    assert "Good morning" in seen
    assert not [text for text in seen if prune.GONE in text]


def test_a_pruned_run_of_an_outside_agent_has_ended_for_it(ask, world):
    run = ask(lambda messages, facts: say("x"), drive=False, driver="external")
    complete(run.pk, "done")
    world.organization.retention_days = 1
    world.organization.save()
    age(run)
    run_prune()

    with pytest.raises(OutsideRefused) as refused:
        complete(run.pk, "done again")
    assert refused.value.code == "RUN_ENDED"


def test_ended_sign_in_sessions_go(db):
    for days in (-1, 1):
        Session.objects.create(session_key=f"s{days}", expire_date=timezone.now() + timedelta(days=days))

    assert "1 ended sign-in sessions would be removed" in run_prune("--dry-run")
    assert "1 ended sign-in sessions removed" in run_prune()
    assert [session.session_key for session in Session.objects.all()] == ["s1"]
