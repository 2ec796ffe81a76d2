"""An outside agent's calls pass the same gate, and are executed by Deputy."""

from datetime import timedelta

import pytest
from django.utils import timezone

from groups import today
from groups.actors import Actor
from groups.models import Membership, Token
from policy.authority import NotAllowed
from policy.models import CapabilityRule
from runs.execution import external, outside_agents
from runs.execution.outside_agents import OutsideRefused
from runs.log.log import RunLog
from runs.models import Run, RunEvent, ToolCall
from runs.tools.base import ToolContext, ToolError
from runs.workers.sweep import anything_due, sweep
from tests.acting import cancel, complete, fail, request_call

from .helpers import chain_holds, payload, types
from .outside import MAIL, Outside, queued, work_off

pytestmark = pytest.mark.django_db


@pytest.fixture
def counted(add_tool):
    """A tool that leaves the database and counts how often it was run, with which key."""
    keys = []

    @add_tool(name="count", mutating=True)
    def count(run: ToolContext, *, n: int = 0) -> int:
        keys.append(run.idempotency_key)
        return n

    return keys


@pytest.fixture
def outside(world):
    return Outside(world)


def test_a_run_of_an_outside_agent_runs_at_once_and_nobody_claims_it(outside):
    assert (outside.run.status, outside.run.lease_expires_at, outside.run.attempt) == ("running", None, 0)
    assert types(outside.run) == ["run.created", "message.created", "run.started"]
    assert not sweep().any


def test_an_allowed_call_that_leaves_the_database_is_executed_by_a_worker(outside, counted):
    asked = outside.call("c1", "count", work=False, n=7)
    assert (asked.status, asked.open, counted) == ("requested", True, [])

    work_off()
    done = outside.look("c1")
    assert (done.status, done.result, done.open) == ("succeeded", 7, False)
    row = ToolCall.objects.get(call_id="c1")
    assert counted == [row.idempotency_key]
    assert (row.attempt, row.lease_expires_at, row.queued_at) == (1, None, None)
    assert types(outside.run)[3:] == ["message.created", "tool.called", "tool.completed"]
    assert chain_holds(outside.run)


def test_a_call_that_only_touches_the_database_is_done_when_it_was_asked_for(outside):
    found = outside.call("c1", "list_available_groups", work=False)

    assert found.result["groups"][0]["name"] == "Market"
    assert queued() == []


def test_a_denied_call_hears_the_policys_words_and_the_run_goes_on(outside, world):
    CapabilityRule.objects.create(
        organization=world.organization, tool="send_email", effect="deny", name="no mail"
    )

    denied = outside.call("c1", "send_email", **MAIL)
    assert (denied.status, denied.error["code"]) == ("denied", "PERMISSION_DENIED")
    assert denied.error["message"] == payload(outside.run, "tool.blocked")["error"]["message"]
    assert denied.error["message"].startswith("Tool 'send_email' is denied by policy: ")
    assert "no mail" in denied.error["message"]
    assert outside.run.status == "running"


def test_the_users_own_boundary_holds_for_an_outside_agent(outside, world):
    world.membership.denied_tools = ["list_available_groups"]
    world.membership.save()

    assert outside.call("c1", "list_available_groups").status == "denied"


def test_arguments_that_fail_the_schema_come_back_with_their_path(outside):
    wrong = outside.call("c1", "memory_search", query=5)

    assert (wrong.status, wrong.error["code"]) == ("failed", "INVALID_ARGUMENTS")
    assert [e["path"] for e in wrong.error["errors"]] == ["/query"]


def test_an_unknown_tool_fails_its_call(outside):
    assert outside.call("c1", "fly").error["code"] == "UNKNOWN_TOOL"


def test_a_tool_that_fails_says_so(outside, add_tool):
    @add_tool(name="burst")
    def burst(run: ToolContext) -> None:
        raise ToolError("It burst.", "BURST")

    failed = outside.call("c1", "burst")
    assert (failed.status, failed.error) == ("failed", {"code": "BURST", "message": "It burst."})


# identity


def test_the_same_call_again_is_the_same_call(outside, counted):
    first = outside.call("c1", "count", n=1)
    for _ in range(3):
        assert outside.call("c1", "count", n=1) == first

    assert len(counted) == 1
    assert types(outside.run).count("message.created") == 2


@pytest.mark.parametrize(
    ("name", "arguments"), [("count", {"n": 2}), ("count", {}), ("ask_user", {"question": "?"})]
)
def test_a_call_id_that_comes_again_with_other_words_is_refused(outside, counted, name, arguments):
    outside.call("c1", "count", n=1)

    with pytest.raises(OutsideRefused) as refused:
        request_call(outside.run.pk, "c1", name, arguments)
    assert refused.value.code == "CALL_DIFFERS"
    assert len(counted) == 1


@pytest.mark.parametrize("call_id", ["", "x" * 65, "with space", "é", "a\n"])
def test_a_call_id_is_visible_ascii(outside, call_id):
    with pytest.raises(OutsideRefused) as refused:
        request_call(outside.run.pk, call_id, "ask_user", {"question": "?"})
    assert refused.value.code == "BAD_CALL_ID"


def test_the_longest_call_id_may_be_refused_in_two_runs(world):
    long = "x" * 64

    assert [Outside(world).call(long, "fly").status for _ in range(2)] == ["failed", "failed"]


def test_two_runs_may_use_the_same_call_id(world, counted):
    assert [Outside(world).call("c1", "count", n=n).result for n in (1, 2)] == [1, 2]
    assert len(set(counted)) == 2


# questions


def test_a_question_waits_for_the_person_and_its_answer_is_the_result(outside, world):
    from tests.acting import message

    asked = outside.call("q", "ask_user", question="Which colour?")
    assert (asked.open, asked.waits_for.kind, asked.waits_for.question) == (True, "input", "Which colour?")
    assert (outside.run.status, outside.run.waiting_reason) == ("waiting", "input")

    message(outside.run.pk, "Green", author="mia")
    work_off()
    answered = outside.look("q")
    assert (answered.status, answered.result["answer"]) == ("succeeded", "Green")
    assert outside.run.status == "running"
    assert types(outside.run)[-4:] == ["message.created", "wait.completed", "run.resumed", "tool.completed"]


def test_an_answer_that_came_before_the_question_is_its_result_at_once(outside):
    from tests.acting import signal

    assert signal(outside.run.pk, "input-q", {"answer": "Green"}).state == "kept"

    assert outside.call("q", "ask_user", work=False, question="Which colour?").result == {"answer": "Green"}
    assert outside.run.status == "running"


def test_while_one_call_waits_the_agent_may_make_others(outside, counted):
    outside.call("q", "ask_user", question="Which colour?")
    assert outside.run.status == "waiting"

    assert outside.call("c", "count", work=False).status == "requested"
    assert outside.run.status == "running"
    work_off()
    assert outside.look("c").status == "succeeded"
    assert (outside.run.status, outside.run.waiting_reason) == ("waiting", "input")
    assert chain_holds(outside.run)


# ending


def test_complete_leaves_the_output_and_is_remembered(outside, world):
    outside.call("c1", "list_available_groups")
    complete(outside.run.pk, "  All done.  ")

    outside.run.refresh_from_db()
    assert (outside.run.status, outside.run.output) == ("completed", "All done.")
    assert types(outside.run)[-2:] == ["message.created", "run.completed"]
    complete(outside.run.pk, "All done.")
    with pytest.raises(OutsideRefused) as refused:
        complete(outside.run.pk, "Something else")
    assert refused.value.code == "RUN_ENDED"


def test_a_run_with_open_calls_cannot_be_completed(outside):
    outside.call("q", "ask_user", question="Which colour?")

    with pytest.raises(OutsideRefused) as refused:
        complete(outside.run.pk, "done")
    assert (refused.value.code, refused.value.details) == ("CALLS_OPEN", {"open": ["q"]})
    outside.run.refresh_from_db()
    assert outside.run.status == "waiting"


def test_fail_ends_the_run_in_the_agents_words_and_takes_its_open_calls_along(outside):
    outside.call("q", "ask_user", question="Which colour?")
    fail(outside.run.pk, "I am lost.")

    assert outside.look("q").status == "cancelled"
    assert (outside.run.status, outside.run.error) == (
        "failed",
        {"code": "AGENT_FAILED", "message": "I am lost."},
    )
    fail(outside.run.pk, "I am lost.")
    with pytest.raises(OutsideRefused):
        fail(outside.run.pk, "Something else")


@pytest.mark.parametrize("end", [lambda run: complete(run, "x"), lambda run: fail(run, "x"), cancel])
def test_an_ended_run_takes_no_call_and_still_answers_for_old_ones(outside, counted, end):
    before = outside.call("c1", "count", n=1)
    end(outside.run.pk)

    with pytest.raises(OutsideRefused) as refused:
        request_call(outside.run.pk, "c2", "count", {})
    assert refused.value.code == "RUN_ENDED"
    request_call(outside.run.pk, "c1", "count", {"n": 1})
    assert outside.look("c1") == before


def test_a_run_deputy_drives_takes_no_calls_from_outside(ask):
    from tests.scripted import in_order, say

    run = ask(in_order(say("x")))
    for act in (lambda: request_call(run.pk, "c", "ask_user", {}), lambda: complete(run.pk, "x")):
        with pytest.raises(OutsideRefused) as refused:
            act()
        assert refused.value.code == "NOT_EXTERNAL"


def test_nor_does_it_tell_of_its_own_by_their_words_or_ids(ask):
    from tests.scripted import call, in_order

    asked = {"question": "Which?"}
    run = ask(in_order(call(("ask_user", asked))))
    own = ToolCall.objects.get(run_id=run.pk)
    for call_id in ("c", own.call_id):
        with pytest.raises(OutsideRefused) as refused:
            request_call(run.pk, call_id, "ask_user", asked)
        assert refused.value.code == "NOT_EXTERNAL"


def test_cancelling_the_run_ends_what_waits(outside):
    outside.call("q", "ask_user", question="Which colour?")
    cancel(outside.run.pk, by="mia")

    assert outside.look("q").status == "cancelled"
    assert not outside.look("q").open


def test_a_call_of_a_run_that_was_cancelled_before_a_worker_came_is_never_run(outside, counted):
    outside.call("c1", "count", work=False)
    cancel(outside.run.pk)
    work_off()

    assert (counted, queued(), outside.look("c1").status) == ([], [], "cancelled")


def test_what_a_worker_learns_after_the_end_is_kept_beside_the_log(outside, add_tool):
    @add_tool(name="late", mutating=True)
    def late(run: ToolContext) -> str:
        cancel(run.run_id)
        return "sent"

    lost = outside.call("c1", "late")
    assert (lost.status, lost.open, lost.error["code"]) == ("unknown", False, "RUN_ENDED")
    row = ToolCall.objects.get(call_id="c1")
    assert (row.evidence, row.lease_expires_at) == ({"result": "sent"}, None)
    assert types(outside.run)[-1] == "run.cancelled"


# budgets


def test_calls_count_as_steps_and_the_budget_ends_the_run(outside, counted, settings):
    for n in range(settings.RUN_STEPS):
        outside.call(f"c{n}", "count", n=n)

    with pytest.raises(OutsideRefused) as refused:
        request_call(outside.run.pk, "one-more", "count", {})
    assert refused.value.code == "BUDGET_STEPS"
    outside.run.refresh_from_db()
    assert (outside.run.status, outside.run.error["code"]) == ("failed", "BUDGET_STEPS")
    assert len(counted) == settings.RUN_STEPS


def overdue(run):
    Run.objects.filter(pk=run.pk).update(deadline=timezone.now() - timedelta(minutes=10))


def test_a_call_after_the_deadline_ends_the_run(outside, counted):
    overdue(outside.run)

    with pytest.raises(OutsideRefused) as refused:
        request_call(outside.run.pk, "c", "count", {})
    assert refused.value.code == "BUDGET_SECONDS"
    outside.run.refresh_from_db()
    assert (outside.run.status, counted) == ("failed", [])


def test_a_run_whose_agent_never_comes_back_is_ended_by_the_sweep(outside):
    assert not anything_due()
    overdue(outside.run)

    assert anything_due()
    assert sweep().overdue == 1
    outside.run.refresh_from_db()
    assert (outside.run.status, outside.run.error["code"]) == ("failed", "BUDGET_SECONDS")
    assert not anything_due()


def test_waiting_for_a_person_does_not_use_the_time_up(outside):
    outside.call("q", "ask_user", question="Which colour?")
    overdue(outside.run)

    assert not anything_due()
    assert not sweep().any


# a worker that dies


def die(*_):
    raise KeyboardInterrupt


@pytest.fixture
def interrupted(outside, monkeypatch):
    """A call whose worker died after tool.called; its lease is over."""

    def make(call_id, name, **arguments):
        request_call(outside.run.pk, call_id, name, arguments)
        kill(call_id)

    def kill(call_id):
        with monkeypatch.context() as patch:
            patch.setattr("runs.execution.external.perform", die)
            with pytest.raises(KeyboardInterrupt):
                external.execute(ToolCall.objects.get(call_id=call_id).pk)
        ToolCall.objects.filter(call_id=call_id).update(
            lease_expires_at=timezone.now() - timedelta(minutes=10)
        )

    make.again = kill
    return make


def test_a_killed_workers_call_is_left_alone_while_its_lease_lasts(outside, interrupted, counted):
    interrupted("c1", "count")
    ToolCall.objects.update(lease_expires_at=timezone.now() + timedelta(seconds=9))

    external.execute(ToolCall.objects.get().pk)
    assert (outside.look("c1").status, counted, anything_due()) == ("running", [], False)


def test_an_idempotent_call_of_a_killed_worker_runs_again_with_the_same_key(outside, interrupted, add_tool):
    keys = []

    @add_tool(name="put", mutating=True, idempotent=True)
    def put(run: ToolContext) -> str:
        keys.append(run.idempotency_key)
        return "put"

    interrupted("c1", "put")
    assert anything_due()
    assert sweep().calls == 1
    work_off()

    again = outside.look("c1")
    called = payload(outside.run, "tool.called")
    assert (again.status, again.result, keys) == ("succeeded", "put", [called["idempotency_key"]])
    assert ToolCall.objects.get().attempt == 2


def test_any_other_call_of_a_killed_worker_waits_for_a_persons_word(outside, interrupted, counted):
    interrupted("c1", "count", n=3)
    sweep()
    work_off()

    parked = outside.look("c1")
    assert (parked.status, parked.open, parked.waits_for.kind) == ("unknown", True, "review")
    assert (outside.run.status, outside.run.waiting_reason, counted) == ("waiting", "review", [])
    assert not anything_due()


@pytest.mark.parametrize(
    ("word", "status", "runs"),
    [
        ({"outcome": "succeeded", "result": 3}, "succeeded", 0),
        ({"outcome": "failed"}, "failed", 0),
        ({"outcome": "retry"}, "succeeded", 1),
    ],
)
def test_a_persons_word_settles_it(outside, interrupted, counted, world, word, status, runs):
    from tests.acting import resolve

    from .test_decisions import decider

    interrupted("c1", "count", n=3)
    sweep()
    work_off()
    resolve(outside.run.pk, "c1", by=decider(world), **word)
    work_off()

    assert (outside.look("c1").status, len(counted), outside.run.status) == (status, runs, "running")
    assert chain_holds(outside.run)


@pytest.fixture
def after_the_lock(monkeypatch):
    """Something happens while an action waits for the run, and more than a moment passes."""

    def arrange(happens):
        usual = RunLog._locked.__func__

        def late(cls, *asked):
            found = usual(cls, *asked)
            happens()
            return found

        monkeypatch.setattr(today, "AT_ONCE", 0)

        monkeypatch.setattr(RunLog, "_locked", classmethod(late))

    return arrange


def test_a_word_that_waits_for_its_run_is_of_who_may_say_it_then(
    outside, interrupted, counted, world, after_the_lock
):
    from tests.acting import resolve

    from .test_decisions import decider

    dee = decider(world)
    interrupted("c1", "count", n=3)
    sweep()
    work_off()
    after_the_lock(lambda: Membership.objects.filter(user=dee).update(role="viewer", custom_role=None))
    with pytest.raises(NotAllowed):
        resolve(outside.run.pk, "c1", by=dee, outcome="retry")
    work_off()
    assert (outside.look("c1").status, counted) == ("unknown", [])


@pytest.mark.parametrize("ends", ["revoked", "narrowed", "membership", ""])
def test_a_call_that_waits_for_its_run_comes_by_a_token_that_is_good_then(
    outside, counted, world, after_the_lock, ends
):
    token, _ = Token.objects.issue(world.organization, world.user, scopes=["runs:read", "runs:write"])
    mine = Membership.objects.get(user=world.user, organization=world.organization)
    actor = Actor.of_token(token, mine)
    rows = Token.objects.filter(pk=token.pk)
    happens = {
        "revoked": lambda: rows.update(revoked_at=timezone.now()),
        "narrowed": lambda: rows.update(scopes=["runs:read"]),
        "membership": lambda: Membership.objects.filter(pk=mine.pk).update(active=False),
        "": lambda: None,
    }[ends]
    after_the_lock(happens)
    if ends:
        with pytest.raises(NotAllowed):
            outside_agents.request_call(outside.run.pk, actor, "c9", "count", {"n": 1})
    else:
        outside_agents.request_call(outside.run.pk, actor, "c9", "count", {"n": 1})
    work_off()
    assert len(counted) == (not ends)


def test_a_call_that_keeps_killing_its_workers_is_given_up(outside, interrupted, add_tool):
    @add_tool(name="look")
    def look(run: ToolContext) -> str:
        return "never"

    interrupted("c1", "look")
    for _ in range(external.MAX_CLAIMS - 1):
        sweep()
        interrupted.again("c1")
    sweep()
    work_off()

    assert outside.look("c1").error["code"] == "CRASHED"
    assert outside.run.status == "running"


def test_one_that_may_have_acted_waits_for_a_persons_word_however_often_it_was_tried(
    outside, interrupted, counted, world
):
    from tests.acting import resolve

    from .test_decisions import decider

    ada = decider(world)
    interrupted("c1", "count", n=3)
    for _ in range(external.MAX_CLAIMS):
        sweep()
        work_off()
        assert (outside.look("c1").status, counted) == ("unknown", [])
        now = outside.run.waits.get(kind="review", resolved_at=None).correlation_key
        resolve(outside.run.pk, "c1", "retry", by=ada, correlation_key=now)
        interrupted.again("c1")


def test_a_worker_that_lost_its_call_writes_nothing(outside, add_tool):
    @add_tool(name="slow", idempotent=True)
    def slow(run: ToolContext) -> str:
        if ToolCall.objects.get().attempt == 1:
            ToolCall.objects.update(lease_expires_at=None)
            external.execute(ToolCall.objects.get().pk)
            return "first"
        return "second"

    assert outside.call("c1", "slow").result == "second"
    assert types(outside.run).count("tool.completed") == 1


def test_a_message_of_the_queue_that_was_lost_is_sent_again(outside, counted):
    outside.call("c1", "count", work=False)
    assert not anything_due()
    ToolCall.objects.update(queued_at=timezone.now() - timedelta(minutes=1))

    assert anything_due()
    assert sweep().calls == 1
    work_off()
    assert outside.look("c1").status == "succeeded"


def test_the_same_message_of_the_queue_twice_does_nothing(outside, counted):
    outside.call("c1", "count")
    before = RunEvent.objects.count()

    external.execute(ToolCall.objects.get().pk)
    external.execute("tcl_gone")
    assert (len(counted), RunEvent.objects.count()) == (1, before)
