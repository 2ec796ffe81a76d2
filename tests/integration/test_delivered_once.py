"""A signal or a message is delivered once, whoever else comes at the same moment."""

import pytest
from django.db import connection

from runs.actions import park
from runs.actions.signal import SignalRefused
from runs.execution import executor
from runs.models import Run, Wait
from tests.acting import message, signal
from tests.at_once import Beside, at_once, until_blocked
from tests.auditor import audit
from tests.scripted import call, in_order, say

from .helpers import payload, types

pytestmark = pytest.mark.django_db(transaction=True)

MANY = 50
QUESTION = call(("ask_user", {"question": "Which year?"}))
KEY = "input-4.0"  # events: created, message, started, the reply is the fourth


@pytest.fixture
def asking(ask):
    return ask(in_order(QUESTION, say("done")))


def completed(run):
    """Drive the run to its end, and audit it."""
    executor.run(run.pk)
    run.refresh_from_db()
    assert (run.status, run.output) == ("completed", "done")
    assert types(run).count("wait.completed") == types(run).count("tool.completed") == 1
    assert audit(run.organization_id) == []


def test_of_fifty_signals_at_once_one_is_delivered(asking):
    told = at_once(*[lambda: signal(asking.pk, KEY, {"answer": "2026"}).state] * MANY)

    assert sorted(told) == ["delivered", *["duplicate"] * (MANY - 1)]
    completed(asking)
    assert payload(asking, "tool.completed")["result"] == {"answer": "2026"}


def test_of_fifty_different_signals_at_once_one_is_taken_and_the_others_are_refused(asking):
    told = at_once(*[lambda n=n: signal(asking.pk, KEY, {"answer": n}).state for n in range(MANY)])

    assert told.count("delivered") == 1
    assert [refused.code for refused in told if isinstance(refused, SignalRefused)] == ["SIGNAL_DIFFERS"] * 49
    completed(asking)
    assert payload(asking, "tool.completed")["result"] == {"answer": told.index("delivered")}


def test_of_fifty_early_signals_at_once_one_is_kept(ask):
    run = ask(in_order(QUESTION, say("done")), drive=False)
    told = at_once(*[lambda: signal(run.pk, KEY, {"answer": "2026"}).state] * MANY)

    assert sorted(told) == [*["duplicate"] * (MANY - 1), "kept"]
    completed(run)
    assert "run.waiting" not in types(run)


def test_of_fifty_messages_at_once_one_answers_and_all_are_heard(asking):
    told = at_once(*[lambda n=n: message(asking.pk, f"word {n}", "mia").state for n in range(MANY)])

    assert sorted(told) == ["delivered", *["kept"] * (MANY - 1)]
    completed(asking)
    heard = asking.events.filter(type="message.created", payload__role="user", seq__gt=2)
    assert {event.payload["content"] for event in heard} == {f"word {n}" for n in range(MANY)}
    assert heard.count() == MANY


@pytest.mark.parametrize("come", [signal, message])
def test_what_comes_while_the_run_parks_wakes_it(ask, monkeypatch, come):
    """The worker holds the run's row and is about to commit its wait: the other waits for the row."""
    run = ask(in_order(QUESTION, say("done")), drive=False)
    words = (KEY, {"answer": "2026"}) if come is signal else ("2026", "mia")
    coming = []

    def parked(*arguments):
        coming.append(Beside(lambda: come(run.pk, *words).state))
        until_blocked(coming[0])
        assert not coming[0].done
        real(*arguments)

    real = park.park
    monkeypatch.setattr(park, "park", parked)
    executor.run(run.pk)

    assert coming[0].result() == "delivered"
    assert Run.objects.get(pk=run.pk).status == "pending"
    completed(run)


def test_what_was_not_committed_was_not_delivered(asking):
    """Whoever signals dies before the commit: nothing has happened, and the same signal comes again."""
    connection.set_autocommit(False)
    signal(asking.pk, KEY, {"answer": "2026"})
    connection.rollback()
    connection.set_autocommit(True)
    assert Wait.objects.get(run=asking).resolved_at is None

    assert signal(asking.pk, KEY, {"answer": "2026"}).state == "delivered"
    completed(asking)
