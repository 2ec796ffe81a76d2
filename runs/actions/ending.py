"""How a run that Deputy drives ends: complete with what it leaves behind, or fail."""

from datetime import timedelta

from groups import routing
from memory.deposit import GroupResult, deposit, remember_outcome
from memory.scope import Scope
from runs import messages, queue
from runs.actions import cancel, finish
from runs.choices import EventType, MessageType, RunKind, RunStatus
from runs.clocks import stood_still
from runs.gates import open_gate
from runs.log import RunLog
from runs.next_step import Fail
from runs.session import Session


def past_deadline(log: RunLog) -> Fail | None:
    """The wall clock budget, by the database's clock; waiting for people does not use it up."""
    if log.deadline is None or log.now < log.deadline:
        return None
    waited, _ = stood_still(log.id)
    if log.now < log.deadline + timedelta(seconds=waited):
        return None
    return Fail("BUDGET_SECONDS", "The run used up its budget of time.")


def complete(session: Session, log: RunLog, output: str | None) -> None:
    """The run is done: what it learnt stays, its parent hears of it."""
    if session.kind == RunKind.GROUP and session.group_id:
        leave_knowledge(session, log, output)
    elif output:
        scope = Scope(log.organization_id, user_id=log.user_id, project_id=log.project_id)
        remember_outcome(log.id, scope, session.state.goal, output, log.also)
    ending = finish.Ending(RunStatus.COMPLETED, output=output, tokens=session.state.tokens)
    finish.end(log, session.parent, ending)


def fail(session: Session, log: RunLog, code: str, message: str) -> None:
    """The run cannot go on; what it has started below ends with it."""
    session.flush()  # what is to be cancelled has to be there
    cancel.cancel_below(log.id, "Group run cancelled")
    error = {"code": code, "message": message}
    ending = finish.Ending(RunStatus.FAILED, error=error, tokens=session.state.tokens)
    finish.end(log, session.parent, ending)
    cancel.close_open(log.id, message)


def leave_knowledge(session: Session, log: RunLog, output: str | None) -> None:
    """Episodic entries of the group, then the deposit (ruling 25), then the goal as a routing example."""
    assert session.group_id is not None  # noqa: S101
    found = messages.sections(output or "")
    decisions = found["DECISION"] or closing_decision(session, output)
    review = open_gate(session).standing.review_deposits
    written = deposit(
        GroupResult(
            run_id=log.id,
            organization_id=log.organization_id,
            project_id=log.project_id,
            group_id=session.group_id,
            output=output,
            decisions=tuple(decisions),
            evidence=tuple(found["EVIDENCE"]),
            todos=tuple(found["TODO"]),
            review=review,
            goal=session.state.goal,
        )
    )
    pending = {memory_id: reason for memory_id, reason in written.items() if reason}
    log.append(
        EventType.MEMORY_DEPOSITED,
        {"memories": list(written), "review": review} | ({"pending": pending} if pending else {}),
    )
    if written and not review:
        queue.enqueue_task("join_duplicates", *written, log=log)
    lesson = routing.lesson(log.organization_id, session.group_id, session.state.goal, log.id)
    log.also += [lesson] if lesson else []


def closing_decision(session: Session, output: str | None) -> list[str]:
    """A lead's closing words are the decision even without the word."""
    said = session.state.last_said
    return [output] if output and said and said.message_type == MessageType.DECISION else []
