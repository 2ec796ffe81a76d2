"""How a run that Deputy drives ends: complete with what it leaves behind, or fail."""

from datetime import timedelta

from groups import routing
from memory.deposit import GroupResult, deposit, remember_outcome
from memory.scope import Scope
from runs.actions import cancel, finish
from runs.context import messages
from runs.gate.opening import open_gate
from runs.log.claimed import ClaimedRun
from runs.log.clocks import stood_still
from runs.log.log import RunLog
from runs.log.next_step import Fail
from runs.models.choices import EventType, MessageType, RunKind, RunStatus
from runs.queue import put


def past_deadline(log: RunLog) -> Fail | None:
    """The wall clock budget, by the database's clock; waiting for people does not use it up."""
    if not too_late(log, 0):
        return None
    return Fail("BUDGET_SECONDS", "The run used up its budget of time.")


def too_late(log: RunLog, seconds: float) -> bool:
    """Whether the run's time will be over in so many seconds; waiting for people does not use it up."""
    then = log.now + timedelta(seconds=seconds)
    if log.deadline is None or then < log.deadline:
        return False
    return then >= log.deadline + timedelta(seconds=stood_still(log.id)[0])


def complete(claimed: ClaimedRun, log: RunLog, output: str | None) -> None:
    """The run is done: what it learnt stays, its parent hears of it."""
    if claimed.kind == RunKind.GROUP and claimed.group_id:
        leave_knowledge(claimed, log, output)
    elif output:
        scope = Scope(log.organization_id, user_id=log.user_id, project_id=log.project_id)
        remember_outcome(log.id, scope, claimed.state.goal, output, log.also)
    log.set(usage=claimed.state.usage)
    ending = finish.Ending(RunStatus.COMPLETED, output=output, tokens=claimed.state.tokens)
    finish.end(log, claimed.parent, ending)


def fail(claimed: ClaimedRun, log: RunLog, code: str, message: str) -> None:
    """The run cannot go on; what it has started below ends with it."""
    claimed.flush()  # what is to be cancelled has to be there
    cancel.cancel_below(log.id, "Group run cancelled")
    error = {"code": code, "message": message}
    log.set(usage=claimed.state.usage)
    ending = finish.Ending(RunStatus.FAILED, error=error, tokens=claimed.state.tokens)
    finish.end(log, claimed.parent, ending)
    cancel.close_open(log.id, message)


def leave_knowledge(claimed: ClaimedRun, log: RunLog, output: str | None) -> None:
    """Episodic entries of the group, then the deposit (ruling 25), then the goal as a routing example."""
    assert claimed.group_id is not None  # noqa: S101
    found = messages.sections(output or "")
    decisions = found["DECISION"] or closing_decision(claimed, output)
    review = open_gate(claimed).live.review_deposits
    written = deposit(
        GroupResult(
            run_id=log.id,
            organization_id=log.organization_id,
            project_id=log.project_id,
            group_id=claimed.group_id,
            output=output,
            decisions=tuple(decisions),
            evidence=tuple(found["EVIDENCE"]),
            todos=tuple(found["TODO"]),
            review=review,
            goal=claimed.state.goal,
        )
    )
    pending = {memory_id: reason for memory_id, reason in written.items() if reason}
    log.append(
        EventType.MEMORY_DEPOSITED,
        {"memories": list(written), "review": review} | ({"pending": pending} if pending else {}),
    )
    if written and not review:
        turn = put.in_background(log.organization_id)
        put.enqueue_task("join_duplicates", *written, beside=log.also, turn=turn)
    lesson = routing.lesson(log.organization_id, claimed.group_id, claimed.state.goal, log.id)
    log.also += [lesson] if lesson else []


def closing_decision(claimed: ClaimedRun, output: str | None) -> list[str]:
    """A lead's closing words are the decision even without the word."""
    said = claimed.state.last_said
    return [output] if output and said and said.message_type == MessageType.DECISION else []
