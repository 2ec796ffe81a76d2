"""What a run does next is a function of its events alone."""

from dataclasses import FrozenInstanceError, replace

import pytest

from runs.log.next_step import Fail, Finish, Over, Park, Recover, Settle, Speak, Start, next_step, output
from runs.log.state import fold

from .logs import Log, member

GROUP = (member("researcher", 0), member("analyst", 1), member("lead", 2, is_lead=True))


def step(log):
    return next_step(fold(log))


def begun(*names):
    """A personal agent has asked for these calls in event 3: their ids are 3.0, 3.1, …"""
    return Log().created().asks_for(*names)


def called(log, call_id):
    return log.add("tool.called", "agt_pa", call_id=call_id, tool="t", arguments={}, idempotency_key="k")


def parked(log, call_id, kind="input", key="key"):
    return log.add("tool.waits", "agt_pa", call_id=call_id, kind=kind, correlation_key=key)


def resolved(log, key="key", outcome="completed", payload=None):
    return log.add("wait.completed", correlation_key=key, outcome=outcome, payload=payload)


# a personal agent


def test_a_new_run_asks_its_model():
    assert isinstance(step(Log().created()), Speak)


def test_a_reply_without_calls_finishes_it():
    assert step(Log().created().says("42")) == Finish("42")


def test_an_empty_reply_is_no_output():
    assert step(Log().created().says("  ")) == Finish(None)


def test_a_word_that_came_while_the_model_spoke_is_answered_first():
    log = Log().created().person("and in euro?").says("42", saw=2)

    assert isinstance(step(log), Speak)


def test_a_word_the_model_had_seen_does_not_keep_the_run():
    log = Log().created().person("and in euro?").says("42", saw=3)

    assert step(log) == Finish("42")


@pytest.mark.parametrize("ending", ["run.completed", "run.failed", "run.cancelled"])
def test_an_ended_run_does_nothing(ending):
    assert step(Log().created().add(ending)) == Over()


# calls


def test_calls_start_in_the_order_they_were_asked_for():
    assert step(begun("a", "b")).call.call_id == "3.0"


def test_a_parked_call_does_not_hold_up_the_next():
    now = step(parked(begun("a", "b"), "3.0"))

    assert isinstance(now, Start)
    assert now.call.call_id == "3.1"


def test_with_every_call_parked_the_run_parks_for_the_first():
    log = parked(parked(begun("a", "b"), "3.0", "child", "c"), "3.1", "input", "i")

    assert step(log) == Park("child")


def test_a_resolved_wait_is_settled_before_anything_new_starts():
    now = step(resolved(parked(begun("a", "b"), "3.0")))

    assert isinstance(now, Settle)
    assert now.call.call_id == "3.0"


def test_the_model_speaks_again_only_when_every_call_has_ended():
    log = begun("a", "b").add("tool.completed", call_id="3.0", result=1)
    assert isinstance(step(log), Start)

    log.add("tool.failed", call_id="3.1", error={"code": "X", "message": "x"})
    assert isinstance(step(log), Speak)


def test_a_call_begun_by_a_worker_that_died_is_recovered_first():
    now = step(called(begun("a", "b"), "3.0"))

    assert isinstance(now, Recover)
    assert [call.call_id for call in now.calls] == ["3.0"]


def test_an_approved_call_stands_before_the_gate_again_with_the_arguments_as_approved():
    log = begun("a").add("tool.requires_approval", call_id="3.0", correlation_key="cap-approval-k")
    assert step(log) == Park("approval")

    now = step(
        resolved(log, "cap-approval-k", "approved").add("tool.approved", call_id="3.0", arguments={"x": 1})
    )
    assert isinstance(now, Start)
    assert now.call.effective_arguments == {"x": 1}


def test_a_signal_nobody_waits_for_changes_nothing():
    assert isinstance(step(resolved(begun("a"), "other")), Start)


def test_the_same_calls_three_times_in_a_row_end_the_run():
    log = Log().created()
    for _ in range(2):
        log.asks_for("a", x=1)
        log.add("tool.completed", call_id=f"{len(log)}.0", result=1)
    assert isinstance(step(log), Speak)

    assert step(log.asks_for("a", x=1)).code == "REPEATED_CALLS"


def test_other_arguments_are_another_call():
    log = Log().created()
    for x in range(4):
        log.asks_for("a", x=x)
        log.add("tool.completed", call_id=f"{len(log)}.0", result=1)

    assert isinstance(step(log), Speak)


# limits


def test_the_step_budget_is_checked_before_the_model_is_asked():
    log = Log().created(steps=1).asks_for("a").add("tool.completed", call_id="3.0", result=1)

    assert step(log).code == "BUDGET_STEPS"


def test_the_last_allowed_reply_still_counts():
    assert step(Log().created(steps=1).says("42")) == Finish("42")


def test_tokens_of_ended_children_count():
    log = begun("escalate_to_group").add(
        "child.created", call_id="3.0", correlation_key="child-r", child_run="r", tokens=900
    )
    state = fold(log)
    assert (state.tokens_left, state.reserved) == (100, 900)

    resolved(log, "child-r", "completed", {"success": True, "result": "", "tokens": 400})
    state = fold(log)
    assert (state.tokens_left, state.reserved) == (600, 0)


def test_a_budget_of_nothing_is_nothing_not_no_limit():
    assert step(Log().created(tokens=0)).code == "BUDGET_TOKENS"


def test_a_model_that_failed_for_good_fails_the_run_with_its_code():
    log = Log().created().add("model.retried", code="MODEL_REFUSED", message="bad key", gave_up=True)

    assert step(log) == Fail("MODEL_REFUSED", "bad key")


def test_a_long_pause_before_the_model_is_asked_again_is_a_wait():
    log = Log().created().add("model.retried", code="X", message="", correlation_key="retry-3")
    assert step(log) == Park("timer")

    assert isinstance(step(resolved(log, "retry-3")), Speak)


# groups


def group_log(max_rounds=3):
    return Log().created("group", GROUP, max_rounds)


def speaker(log):
    return step(log).member.role


def test_a_word_that_came_while_the_lead_spoke_gives_the_lead_one_more_turn():
    log = group_log().says("a", "agt_researcher", "EVIDENCE").says("b", "agt_analyst", "PROPOSAL")
    log.person("and in euro?").says("DECISION: 42", "agt_lead", "DECISION", saw=4)
    assert speaker(log) == "lead"
    log.says("DECISION: 40 euro", "agt_lead", "DECISION", saw=6)
    assert step(log) == Finish("DECISION: 40 euro")


def test_members_speak_by_ordinal_and_the_lead_last():
    log = group_log()
    assert speaker(log) == "researcher"
    assert speaker(log.says("EVIDENCE: x", "agt_researcher", "EVIDENCE")) == "analyst"
    assert speaker(log.says("PROPOSAL: y", "agt_analyst", "PROPOSAL")) == "lead"


def full_round(log, closing):
    log.says("x", "agt_researcher", "EVIDENCE").says("y", "agt_analyst", "EVIDENCE")
    return log.says(f"{closing}: z", "agt_lead", closing)


def test_the_leads_decision_ends_the_run():
    assert step(full_round(group_log(), "DECISION")) == Finish("DECISION: z")


def test_the_lead_may_ask_for_another_round():
    log = full_round(group_log(), "TASK")

    assert (speaker(log), fold(log).round) == ("researcher", 2)


def test_there_are_at_most_max_rounds():
    log = full_round(full_round(group_log(max_rounds=2), "TASK"), "TASK")

    assert step(log) == Finish("TASK: z")


def test_without_a_lead_the_last_speakers_words_are_the_output():
    log = Log().created("group", (member("a", 0), member("b", 1)))

    assert step(log.says("x", "agt_a").says("y", "agt_b")) == Finish("y")


def test_a_word_to_a_group_while_its_last_speaker_works_gives_one_more_turn():
    log = Log().created("group", (member("a", 0), member("b", 1)))
    log.says("x", "agt_a")
    saw = len(log)
    log.person("And Asia?").says("y", "agt_b", saw=saw)

    assert speaker(log) == "b"
    assert step(log.says("y, and Asia", "agt_b")) == Finish("y, and Asia")


def test_a_members_calls_belong_to_its_turn():
    log = group_log().asks_for("memory_search", agent="agt_researcher")
    log.add("tool.completed", call_id="3.0", result=1)

    assert speaker(log) == "researcher"


# the fold


def test_folding_in_two_parts_gives_the_same_state():
    log = full_round(group_log(), "TASK").asks_for("a", agent="agt_researcher")
    whole = fold(log)

    for cut in range(len(log) + 1):
        assert fold(log[cut:], fold(log[:cut])) == whole


def test_an_event_of_an_unknown_type_is_passed_over():
    log = Log().created().add("something.new", x=1).says("42")

    assert output(fold(log)) == "42"


# what is exactly said, and exactly when


def test_the_second_same_batch_still_starts():
    log = Log().created().asks_for("a", x=1)
    log.add("tool.completed", call_id=f"{len(log)}.0", result=1)

    assert isinstance(step(log.asks_for("a", x=1)), Start)


def test_a_run_that_repeats_itself_is_told_how_often_it_asked():
    log = Log().created()
    for _ in range(2):
        log.asks_for("a", x=1)
        log.add("tool.completed", call_id=f"{len(log)}.0", result=1)

    assert step(log.asks_for("a", x=1)) == Fail(
        "REPEATED_CALLS", "The same calls were asked for 3 times in a row."
    )


def test_of_two_waits_that_came_the_first_call_is_settled_first():
    log = parked(parked(begun("a", "b"), "3.0", key="one"), "3.1", key="two")
    resolved(resolved(log, "two"), "one")

    assert step(log).call.call_id == "3.0"


def test_a_reply_that_overran_the_budget_fails_the_run_as_one_that_met_it_does():
    log = Log().created(tokens=1000).says("", tokens=1500, tool_calls=[{"name": "a", "arguments": {}}])
    log.add("tool.completed", call_id="3.0", result=1)

    assert step(log) == Fail("BUDGET_TOKENS", "The run used up its budget of 1000 tokens.")


def test_a_run_without_a_budget_is_not_stopped_by_one():
    log = Log().created()
    log[0].payload["budgets"] = {}

    assert isinstance(step(log), Speak)


@pytest.mark.parametrize("made", [Over(), Park("timer"), Finish("42"), Fail("X", "x"), Recover(())])
def test_a_step_is_a_value_that_nobody_changes_on_its_way(made):
    with pytest.raises(FrozenInstanceError):
        made.reason = "other"
    assert hash(made) == hash(replace(made))


@pytest.mark.parametrize(
    "made", [step(Log().created()), step(begun("a")), step(resolved(parked(begun("a"), "3.0")))]
)
def test_a_step_keeps_the_member_or_the_call_it_was_made_for(made):
    with pytest.raises(FrozenInstanceError):
        made.call = None
