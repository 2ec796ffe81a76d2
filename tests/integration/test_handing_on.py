"""Handing on to the next run, and taking up again a run that was let go of."""

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from memory.models import Memory
from runs.context import prompts
from runs.execution import executor
from runs.log import claimed
from runs.log import log as run_log
from runs.models import Run
from tests.acting import message
from tests.scripted import by_role, call, in_order, say

from .helpers import chain_holds, types

ESCALATE = call(("escalate_to_group", {"goal": "Compare prices"}))
QUESTION = call(("ask_user", {"question": "Which year?"}))


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(executor, "kept", claimed.Kept())
    monkeypatch.setattr(claimed, "kept", executor.kept)


@pytest.mark.django_db
def test_a_parent_that_cannot_go_on_does_not_cost_its_child_the_end(ask, monkeypatch):
    prepare = prompts.prepare

    def breaks_the_second_time(at_hand):
        if at_hand.kind == "personal" and at_hand.state.steps == 1:
            raise ZeroDivisionError
        prepare(at_hand)

    monkeypatch.setattr(prompts, "prepare", breaks_the_second_time)
    play = by_role(
        Personal_agent=[ESCALATE, say("ok")], researcher=[say("E")], analyst=[say("P")], lead=[say("D")]
    )
    with pytest.raises(ZeroDivisionError):
        ask(play)

    child, parent = Run.objects.get(kind="group"), Run.objects.get(kind="personal")
    assert (child.status, child.output) == ("completed", "D")
    assert types(child).count("run.completed") == 1
    assert Memory.objects.filter(source_run_id=child.pk, type="archival", original="output").count() == 1
    assert (parent.status, types(parent)[-2:]) == ("running", ["wait.completed", "run.resumed"])
    assert chain_holds(child)
    assert chain_holds(parent)


@pytest.mark.django_db
def test_an_escalation_costs_so_many_statements(ask):
    def play():
        members = {"researcher": [say("E")], "analyst": [say("P")], "lead": [say("D")]}
        return by_role(Personal_agent=[ESCALATE, say("ok")], **members)

    ask(play())  # what is kept from one run to the next is there
    with CaptureQueriesContext(connection) as asked:
        run = ask(play())

    assert run.status == "completed"
    statements = [query["sql"] for query in asked if not query["sql"].startswith(("SAVEPOINT", "RELEASE"))]
    # one reads the actor's membership, at the door; one for each prompt reads the standing approvals
    assert len(statements) <= 34, "\n".join(sql[:200] for sql in statements)


@pytest.mark.django_db(transaction=True)
def test_what_this_process_has_folded_it_does_not_read_again(ask, monkeypatch):
    run = ask(in_order(QUESTION, say("In 2024.")))
    seen, read = run.last_seq, run_log.read
    asked = []
    monkeypatch.setattr(run_log, "read", lambda run_id, after=0: asked.append(after) or read(run_id, after))
    message(run.pk, "2024", author="mia")
    executor.run(run.pk)

    run.refresh_from_db()
    assert (run.status, run.output) == ("completed", "In 2024.")
    assert asked == [seen]  # what came since, which the answer is
    assert chain_holds(run)


@pytest.mark.django_db(transaction=True)
def test_what_a_rolled_back_step_had_folded_is_not_kept(ask, monkeypatch):
    run = ask(in_order(QUESTION, say("In 2024.")), drive=False)
    monkeypatch.setattr(executor.crash, "point", lambda name: 1 / 0 if name == "before_commit" else None)
    with pytest.raises(ZeroDivisionError):
        executor.run(run.pk)

    assert executor.kept.take(run_log.RunLog(**{**dict.fromkeys(run_log.COLUMNS), "id": run.pk})) is None


@pytest.mark.django_db(transaction=True)
def test_a_step_that_was_rolled_back_leaves_prepared_statements_in_order(ask):
    for _ in range(4):  # until everything is prepared
        ask(in_order(say("ok")))
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        Run.objects.update(goal="never")
        _ = 1 / 0

    assert ask(in_order(say("ok"))).status == "completed"
