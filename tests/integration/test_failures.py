"""What goes wrong is recorded, told, and strands nobody."""

import json
from asyncio import CancelledError
from datetime import timedelta

import psycopg
import pytest
from django import db
from django.utils import timezone

from runs.execution import executor
from runs.log.claimed import ClaimedRun
from runs.log.log import AlreadyEnded, Fenced, RunLog
from runs.models import Approval, Run, ToolCall, Wait
from runs.providers.base import ProviderError, Reply, ToolRequest, Usage
from runs.workers.sweep import sweep, worker_died
from tests.acting import cancel
from tests.scripted import Scripted, by_role, call, in_order, say

from .helpers import chain_holds, payload, types

pytestmark = pytest.mark.django_db

DOWN = call(("escalate_to_group", {"goal": "Compare prices"}))
BUSY = ProviderError("MODEL_UNAVAILABLE", "503", retryable=True)
HOUR = timedelta(hours=1)
CANARY = "canary-4711-of-a-key"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("runs.execution.executor.time.sleep", lambda seconds: None)


def cannot_be_made():
    """A provider of DEPUTY_PROVIDERS that breaks before it is asked anything."""
    return 1 / 0


def overdue(**which):
    """Let the time of these waits be over."""
    long_ago = timezone.now() - HOUR
    waits = Wait.objects.filter(resolved_at=None, **which)
    return waits.update(expires_at=long_ago, created_at=long_ago - HOUR)


# the model


def test_a_short_pause_is_slept_and_the_failure_recorded(ask):
    run = ask(in_order(BUSY, say("ok")))

    assert (run.status, run.output) == ("completed", "ok")
    retried = payload(run, "model.retried")
    assert (retried["code"], retried["failures"]) == ("MODEL_UNAVAILABLE", 1)


def test_a_long_pause_is_a_timer_that_holds_no_worker(ask):
    wait = ProviderError("MODEL_RATE_LIMITED", "429", retryable=True, retry_after=30)
    run = ask(in_order(wait, say("ok")))
    assert (run.status, run.waiting_reason) == ("waiting", "timer")

    overdue(kind="timer")
    assert sweep().waits == 1
    executor.run(run.pk)
    run.refresh_from_db()
    assert (run.status, run.output) == ("completed", "ok")


def test_a_model_that_stays_away_is_asked_until_the_runs_time_is_over(ask, settings):
    settings.BACKOFF_INLINE_SECONDS = 1000
    settings.RUN_SECONDS = 25
    run = ask(in_order(*[BUSY] * 8))

    assert (run.status, run.error["code"]) == ("failed", "MODEL_UNAVAILABLE")
    assert 5 <= types(run).count("model.retried") <= 7  # the next pause would go beyond its end


def test_a_model_that_says_nothing_four_times_fails_the_run_with_its_code(ask, settings):
    settings.BACKOFF_INLINE_SECONDS = 1000
    silent = ProviderError("MODEL_EMPTY_REPLY", "nothing", retryable=True)
    run = ask(in_order(*[silent] * 4))

    assert (run.status, run.error["code"]) == ("failed", "MODEL_EMPTY_REPLY")
    assert types(run).count("model.retried") == 4


def test_a_refusal_is_not_tried_again(ask):
    run = ask(in_order(ProviderError("MODEL_REFUSED", "bad key")))

    assert (run.status, run.error) == ("failed", {"code": "MODEL_REFUSED", "message": "bad key"})


@pytest.mark.parametrize(
    "raised",
    [
        RuntimeError(f"key={CANARY}"),
        TimeoutError(CANARY),
        CancelledError(),
        SystemExit(2),
        ExceptionGroup("x", [ValueError()]),
    ],
)
def test_a_provider_that_raises_anything_else_fails_the_run_naming_it_and_the_kind_of_error(
    ask, settings, raised
):
    """Its words may hold a key; they are for the log, which masks them."""
    settings.BACKOFF_INLINE_SECONDS = 1000
    run = ask(in_order(*[raised] * 4))

    words = f"The provider 'scripted' failed: {type(raised).__name__}"
    assert (run.status, run.error) == ("failed", {"code": "MODEL_ERROR", "message": words})
    assert (types(run).count("model.retried"), run.crashes) == (4, 0)
    assert CANARY not in json.dumps([event.payload for event in run.events.all()])


def test_a_provider_that_breaks_once_is_asked_again(ask):
    run = ask(in_order(KeyError("choices"), say("ok")))

    assert (run.status, run.output) == ("completed", "ok")
    assert payload(run, "model.retried")["code"] == "MODEL_ERROR"


def test_a_provider_that_cannot_be_made_fails_the_run_naming_it(ask, settings):
    settings.BACKOFF_INLINE_SECONDS = 1000
    settings.DEPUTY_PROVIDERS = {"broken": "tests.integration.test_failures.cannot_be_made"}
    settings.DEPUTY_MODEL = "broken:1"
    run = ask(in_order())

    words = "The provider 'broken' failed: ZeroDivisionError"
    assert (run.status, run.error) == ("failed", {"code": "MODEL_ERROR", "message": words})


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (None, "NoneType is no Reply"),
        (Reply(content=None), "Reply.content is of type NoneType"),
        (Reply("nul \0"), "$.content: text holds a NUL character"),
        (Reply("", ("ask_user",)), "str is no ToolRequest"),
        (Reply("", (ToolRequest("ask_user", "{}"),)), "ToolRequest.arguments is of type str"),
        (
            Reply("", (ToolRequest("ask_user", {"by": HOUR}),)),
            "$.tool_calls[0].arguments.by: timedelta is not JSON",
        ),
        (Reply("ok", usage=Usage(None, 1)), "Usage.input_tokens is of type NoneType"),
    ],
)
def test_a_reply_that_cannot_be_kept_fails_the_run_saying_what_is_wrong_with_it(ask, settings, reply, words):
    settings.BACKOFF_INLINE_SECONDS = 1000
    run = ask(in_order(*[reply] * 4))

    words = f"The provider 'scripted' gave a reply that cannot be used: {words}"
    assert (run.status, run.error) == ("failed", {"code": "MODEL_ERROR", "message": words})


@pytest.mark.parametrize(
    "away", [db.OperationalError("gone"), db.InterfaceError(), psycopg.OperationalError()]
)
def test_a_database_that_is_away_while_a_model_is_asked_is_no_fault_of_the_model(ask, away):
    with pytest.raises(type(away)):
        ask(in_order(away))
    run = Run.objects.get()
    assert (run.status, "model.retried" in types(run)) == ("running", False)


def test_a_model_nobody_knows_fails_the_run_saying_so(ask, settings):
    settings.DEPUTY_MODEL = "nonsense:1"
    run = ask(in_order())

    assert (run.status, run.error["code"]) == ("failed", "MODEL_UNKNOWN")


# children


@pytest.fixture
def parked_child(ask, world):
    """A parent whose child waits for an answer."""
    question = call(("ask_user", {"question": "?"}))
    parent = ask(by_role(Personal_agent=[DOWN, say("so be it")], researcher=[question, say("x")]))
    return parent, Run.objects.get(parent_run=parent)


def error_of(parent):
    executor.run(parent.pk)
    parent.refresh_from_db()
    assert (parent.status, parent.output) == ("completed", "so be it")
    assert chain_holds(parent)
    return ToolCall.objects.get(run=parent).result


def test_a_cancelled_child_wakes_its_parent_which_is_told(parked_child):
    parent, child = parked_child
    cancel(child.pk)

    assert error_of(parent) == {"success": False, "error": "Group run cancelled"}


def test_a_failed_child_wakes_its_parent_which_is_told(parked_child):
    parent, child = parked_child
    held = {"attempt": 9, "lease_expires_at": timezone.now() + HOUR}  # by the worker that will have died
    Run.objects.filter(pk=child.pk).update(status="running", waiting_reason=None, crashes=2, **held)
    worker_died(child.pk, 9, by_itself=True)

    assert error_of(parent)["error"] == "Group run failed: The run took its worker down 3 times."


def test_a_childs_clock_stands_still_while_it_waits_for_a_person(parked_child, settings):
    parent, _ = parked_child
    overdue(kind="child")
    Wait.objects.filter(kind="input").update(created_at=timezone.now() - 3 * HOUR)

    sweep()
    parent.refresh_from_db()
    assert parent.status == "waiting"
    assert Wait.objects.get(kind="child").expires_at > timezone.now()


def test_a_child_that_takes_too_long_is_cancelled_and_its_parent_goes_on(parked_child, settings):
    settings.CHILD_WAIT_SECONDS = 300
    parent, child = parked_child
    Run.objects.filter(pk=child.pk).update(status="running", waiting_reason=None)
    Wait.objects.filter(kind="input").delete()
    overdue(kind="child")

    sweep()
    child.refresh_from_db()
    assert child.status == "cancelled"
    assert error_of(parent) == {
        "success": False,
        "error": f"Group run {child.pk} did not complete within 300000ms",
    }


# cancelling


def test_cancelling_takes_the_whole_tree_and_what_it_waits_for(parked_child):
    parent, child = parked_child
    cancel(parent.pk, by="mia", reason="No longer needed.")

    assert set(Run.objects.values_list("status", flat=True)) == {"cancelled"}
    assert not Wait.objects.filter(resolved_at=None).exists()
    assert payload(parent, "run.cancelled")["error"]["message"] == "Cancelled by mia. No longer needed."
    executor.run(child.pk)
    executor.run(parent.pk)
    assert types(child)[-1] == types(parent)[-1] == "run.cancelled"
    assert chain_holds(parent)
    assert chain_holds(child)


def test_cancelling_again_changes_nothing_and_an_ended_run_cannot_be(parked_child, ask):
    parent, _ = parked_child
    cancel(parent.pk)
    before = types(parent)
    cancel(parent.pk)
    assert types(parent) == before

    done = ask(in_order(say("ok")))
    with pytest.raises(AlreadyEnded):
        cancel(done.pk)


def test_a_worker_whose_run_was_cancelled_writes_nothing_more(ask):
    def play(messages, facts):
        cancel(Run.objects.latest("created_at").pk)
        return say("too late")

    run = ask(play)

    assert (run.status, run.output) == ("cancelled", None)
    assert "too late" not in str(list(run.events.values_list("payload", flat=True)))


# workers


def test_a_worker_that_lost_its_lease_can_write_nothing(ask, django_capture_on_commit_callbacks):
    run = ask(in_order(say("ok")), drive=False)
    from runs.actions.claim import claim

    old = ClaimedRun.load(run.pk, claim(run.pk))
    Run.objects.filter(pk=run.pk).update(lease_expires_at=timezone.now() - HOUR)
    assert sweep().leases == 1
    executor.run(run.pk)

    with pytest.raises(Fenced), old.step():
        pass
    run.refresh_from_db()
    assert (run.status, run.attempt, run.crashes) == ("completed", 2, 0)


def test_a_run_is_claimed_once(ask):
    from runs.actions.claim import claim

    run = ask(in_order(), drive=False)

    assert (claim(run.pk), claim(run.pk)) == (1, None)


def test_a_pending_run_nobody_took_is_queued_again(ask, monkeypatch):
    run = ask(in_order(), drive=False)
    queued = []
    monkeypatch.setattr("runs.workers.sweep.put.enqueue", lambda run_id, turn: queued.append(run_id))
    Run.objects.update(queued_at=timezone.now() - HOUR)

    assert (sweep().requeued, queued) == (1, [run.pk])
    assert sweep().requeued == 0


def test_an_interrupted_call_that_may_be_repeated_runs_again_with_the_same_key(ask, interrupted):
    run, calls = interrupted(idempotent=True)

    executor.run(run.pk)
    run.refresh_from_db()
    assert run.status == "completed"
    assert len(calls) == 1
    assert calls[0] == payload(run, "tool.called")["idempotency_key"]


def test_a_run_that_has_done_a_call_gets_on_however_often_its_worker_died(interrupted):
    run, _ = interrupted(idempotent=True)
    Run.objects.filter(pk=run.pk).update(crashes=2)
    Scripted.play = staticmethod(dies)

    with pytest.raises(KeyboardInterrupt):
        executor.run(run.pk)
    worker_died(run.pk, Run.objects.get().attempt, by_itself=True)
    assert (Run.objects.get().crashes, Run.objects.get().status) == (1, "pending")


def dies(messages, facts):
    raise KeyboardInterrupt


def test_an_interrupted_call_that_may_not_be_repeated_waits_for_word_of_what_happened(interrupted):
    run, calls = interrupted(idempotent=False)

    executor.run(run.pk)
    run.refresh_from_db()
    assert (run.status, run.waiting_reason, calls) == ("waiting", "review", [])
    assert ToolCall.objects.get(run=run).status == "unknown"


@pytest.fixture
def interrupted(ask):
    """A run whose worker died between tool.called and the result."""
    from runs.tools import registry
    from runs.tools.base import ToolContext

    before = dict(registry.all_tools())

    def make(idempotent):
        calls = []

        @registry.tool(name="pay", description="for a test", mutating=True, idempotent=idempotent)
        def pay(run: ToolContext) -> str:
            calls.append(run.idempotency_key)
            if len(calls) == 1 and "dead" not in pay.__dict__:
                pay.dead = True
                calls.clear()
                raise KeyboardInterrupt  # the worker dies here
            return "paid"

        with pytest.raises(KeyboardInterrupt):
            ask(in_order(call(("pay", {})), say("ok")))
        Run.objects.update(lease_expires_at=timezone.now() - HOUR)
        sweep()
        return Run.objects.get(), calls

    yield make
    registry._tools.clear()
    registry._tools.update(before)


def test_locking_a_run_that_is_gone_says_so():
    from runs.log.log import RunGone

    with pytest.raises(RunGone):
        RunLog.lock("run_nonsense")
    assert not Approval.objects.exists()
