"""Waiting holds nothing, and whatever is waited for arrives once."""

import pytest

from runs.actions.signal import SignalRefused
from runs.execution import executor
from runs.models import Run, Wait
from tests.acting import message, signal

from ..scripted import call, in_order, say
from .helpers import chain_holds, payload, types

pytestmark = pytest.mark.django_db

QUESTION = call(("ask_user", {"question": "Which year?"}))


def answered(run, content="2026", **key):
    delivered = message(run.pk, content, "mia", **key)
    executor.run(run.pk)
    run.refresh_from_db()
    return delivered


def test_a_question_parks_the_run_and_the_answer_resumes_it(ask):
    run = ask(in_order(QUESTION, say("In 2026 it was 5.")))
    assert (run.status, run.waiting_reason, run.lease_expires_at) == ("waiting", "input", None)
    assert payload(run, "tool.waits")["question"] == "Which year?"

    assert answered(run).state == "delivered"
    assert (run.status, run.output) == ("completed", "In 2026 it was 5.")
    assert payload(run, "tool.completed")["result"] == {"answer": "2026", "author": "mia"}
    assert chain_holds(run)


def test_a_message_without_a_question_is_heard_with_the_next_reply(ask):
    def play(messages, facts):
        heard = [m.content for m in messages if m.role == "user"]
        if len(heard) == 1:  # what the person says while the model is speaking
            message(Run.objects.latest("created_at").pk, "in euro please", "mia")
            return say("5 dollars")
        return say(f"answering: {heard[-1]}")

    run = ask(play)

    assert run.output == "answering: in euro please"
    assert types(run).count("message.created") == 4


def test_two_questions_are_answered_one_by_one_by_their_keys(ask):
    two = call(("ask_user", {"question": "Year?"}), ("ask_user", {"question": "Place?"}))
    run = ask(in_order(two, say("done")))
    keys = list(Wait.objects.filter(run=run).order_by("id").values_list("correlation_key", flat=True))
    assert len(keys) == 2

    answered(run, "Rome", correlation_key=keys[1])
    assert run.status == "waiting"
    answered(run, "2026")
    assert (run.status, run.output) == ("completed", "done")


def test_a_message_with_an_unknown_key_is_refused_naming_the_open_ones(ask):
    run = ask(in_order(QUESTION))

    with pytest.raises(SignalRefused, match=r"open: input-4\.0"):
        message(run.pk, "2026", "mia", correlation_key="nonsense")


def test_a_signal_that_comes_early_is_kept_until_the_run_waits_for_it(ask):
    run = ask(in_order(QUESTION, say("done")), drive=False)
    # events: created, message, started, the reply is the fourth: its first call is 4.0
    assert signal(run.pk, "input-4.0", {"answer": "2026"}).state == "kept"

    executor.run(run.pk)
    run.refresh_from_db()
    assert (run.status, run.output) == ("completed", "done")
    assert "run.waiting" not in types(run)
    assert payload(run, "tool.completed")["result"] == {"answer": "2026"}


def test_the_same_signal_again_changes_nothing_and_another_payload_is_refused(ask):
    run = ask(in_order(QUESTION, say("done")))
    key = Wait.objects.get(run=run).correlation_key
    assert signal(run.pk, key, {"answer": 1}).state == "delivered"
    before = types(run)

    assert signal(run.pk, key, {"answer": 1}).state == "duplicate"
    with pytest.raises(SignalRefused) as refused:
        signal(run.pk, key, {"answer": 2})
    assert refused.value.code == "SIGNAL_DIFFERS"
    assert types(run) == before


@pytest.mark.parametrize("answer", [0, False, "", [], None])
def test_a_signal_may_carry_any_json(ask, answer):
    run = ask(in_order(QUESTION, say("done")))
    signal(run.pk, Wait.objects.get(run=run).correlation_key, answer)
    executor.run(run.pk)

    assert payload(run, "tool.completed")["result"] == ({} if answer is None else answer)


@pytest.mark.parametrize("key", ["cap-approval-x", "child-run_x", "review-3.0", "retry-4"])
def test_decisions_and_childrens_ends_cannot_be_signalled(ask, key):
    run = ask(in_order(QUESTION))

    with pytest.raises(SignalRefused) as refused:
        signal(run.pk, key, {})
    assert refused.value.code == "RESERVED_KEY"


def test_an_ended_run_takes_neither_message_nor_signal(ask):
    run = ask(in_order(say("done")))

    for late in (lambda: message(run.pk, "hello", "mia"), lambda: signal(run.pk, "k", {})):
        with pytest.raises(SignalRefused) as refused:
            late()
        assert refused.value.code == "RUN_ENDED"
