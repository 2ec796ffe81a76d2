"""Rules that keep runs true, one by one (docs/guarantees.md); test_model_of_runs has all of them together."""

from multiprocessing import get_context

import pytest
from django.db import transaction

from common import notifications
from common.db import own_connection
from runs.execution import executor
from runs.execution.executor import Taken, take, transact
from runs.log.log import Fenced, RunLog
from runs.models import Approval, Run, ToolCall
from runs.models.choices import EventType
from runs.workers import sweep
from tests.acting import approve, cancel
from tests.factories import MembershipFactory, permit
from tests.scripted import call, in_order, say

from .helpers import events

DOWN = call(("escalate_to_group", {"goal": "Compare prices"}))
LETTER = {"to": ["a@example.com"], "subject": "Hello", "body": "Text"}
SEND = call(("send_email", LETTER))


@pytest.mark.django_db
def test_a_call_is_known_by_its_message_and_place_whatever_a_provider_calls_it(ask):
    two = call(("list_available_groups", {}), ("memory_search", {"query": "price"}))
    run = ask(in_order(two, two, say("done")))

    seqs = [e.seq for e in run.events.filter(type="message.created", payload__tool_calls__0__isnull=False)]
    wanted = {f"{seq}.{place}" for seq in seqs for place in (0, 1)}
    assert (set(run.calls.values_list("call_id", flat=True)), len(wanted)) == (wanted, 4)
    assert len(set(run.calls.values_list("idempotency_key", flat=True))) == 4


@pytest.mark.django_db
def test_what_was_asked_for_keeps_its_digest_and_what_was_approved_has_a_key_of_its_own(ask, world):
    decider = MembershipFactory(organization=world.organization).user
    decider = permit(decider, "decide_approval")
    run = ask(in_order(SEND, say("done")))
    asked = run.calls.get()
    approval = Approval.objects.get(run=run)
    approve(approval.pk, decider, arguments=LETTER | {"subject": "Other"})
    executor.run(run.pk)

    made = run.calls.get()
    assert made.request_digest == asked.request_digest
    assert made.idempotency_key != asked.idempotency_key
    (called,) = [payload for type, payload in events(run) if type == "tool.called"]
    assert called["idempotency_key"] == made.idempotency_key
    assert approval.correlation_key == f"cap-approval-{asked.idempotency_key}"


@pytest.mark.django_db
def test_a_child_is_made_only_by_the_worker_that_holds_its_parent(ask):
    run = ask(in_order(), drive=False)
    entered = take(Taken(run.pk), True)
    cancel(run.pk)

    with pytest.raises(Fenced):
        transact(entered.claimed, DOWN, True)
    assert not Run.objects.filter(parent_run=run).exists()
    assert not ToolCall.objects.filter(run=run).exists()


@pytest.mark.django_db(transaction=True)
def test_hints_go_out_after_the_commit_and_never_without_one(ask, monkeypatch):
    run = ask(in_order(), drive=False)
    sent = []
    monkeypatch.setattr(notifications, "send", lambda channel, payload="": sent.append((channel, payload)))
    with transaction.atomic():
        log = RunLog.lock(run.pk)
        log.append(EventType.MEMORY_WRITTEN)
        log.flush()
        assert sent == []
        transaction.set_rollback(True)
    assert sent == []

    cancel(run.pk)
    assert set(sent) == {("deputy_events", run.pk)}


@pytest.mark.django_db(transaction=True)
def test_the_hint_a_process_sends_last_still_goes_out():
    with own_connection() as listener:
        listener.execute("LISTEN deputy_test")
        process = get_context("fork").Process(target=notifications.send, args=("deputy_test", "the last"))
        process.start()
        process.join()

        assert [heard.payload for heard in listener.notifies(timeout=0.0)] == ["the last"]


@pytest.mark.django_db(transaction=True)
def test_one_process_sweeps_at_a_time(world):
    with own_connection() as other:
        other.execute("SELECT pg_advisory_lock(%s)", [sweep.ADVISORY_LOCK])
        assert sweep.sweep().busy
        other.execute("SELECT pg_advisory_unlock(%s)", [sweep.ADVISORY_LOCK])
    assert not sweep.sweep().busy
