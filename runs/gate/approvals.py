"""Approvals inside a step: ask for one, see whether one holds, use it up, tell the agent of a refusal.

Deciding is runs/actions/decide.py.
"""

import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings

from common import ids
from common.canonical import canonical, digest
from common.db import execute, row
from groups.models import Project
from groups.today import AT_ONCE
from policy import grants as standing
from policy.authority import About
from policy.checker import approval_key
from policy.evaluate import grantable
from policy.models import Grant, GrantUse
from policy.terms import Decision
from runs.gate import demands
from runs.log import tool_calls, waits
from runs.log.log import RunLog
from runs.log.state import Call, State
from runs.models import Approval
from runs.models.choices import ApprovalStatus, CallStatus, EventType, WaitKind, WaitOutcome
from runs.queue import put
from runs.tools.base import Tool
from runs.tools.call import Admitted, Stopped, idempotency_key

if TYPE_CHECKING:
    from runs.log.claimed import ClaimedRun


@dataclass
class Held:
    """The approval of these very arguments that a call comes with, if it comes with one.

    Whether it satisfies what policy demands is asked now, not when it was given: the rule may have become
    stricter, who decided may not be entitled any more, and the tool's name may have been given to another.
    `why` then says why it does not.
    """

    approval_id: str | None = None
    row_id: str = ""  # of the call
    arguments_digest: str = ""  # as it was approved
    arguments: dict[str, Any] = field(default_factory=dict)
    about: About | None = None
    allow_self_approval: bool = False
    why: str = ""

    def satisfies(self, decision: Decision, tool: Tool) -> bool:
        if self.approval_id is None or self.about is None:
            return False
        if self.arguments_digest != digest_of_call(tool, self.arguments):
            self.why = ELSEWHERE
            return False
        allowed = self.allow_self_approval and allows_self_approval(self.about.project_id)
        demand = demands.of_decision(decision, allowed)
        counted = demands.counted(self.approval_id, self.arguments_digest, demand, self.about)
        self.why = "" if counted.enough else counted.why
        return counted.enough


def allows_self_approval(project_id: str | None) -> bool:
    """Whether the project lets its people decide about their own runs by now: what a call is weighed by may
    have taken a while.
    """
    return Project.objects.filter(pk=project_id, allow_self_approval=True).exists()


NOTHING = Held()
ELSEWHERE = "whom it reaches has changed since it was asked for"
ASKED_AGAIN = " Asked again: "  # from here on an explanation says why an earlier decision does not count
APPROVED = """
SELECT a.id, a.tool_call_id, project.allow_self_approval, a.arguments_digest,
    r.organization_id, r.project_id, r.user_id
FROM runs_toolcall c JOIN runs_approval a ON a.tool_call_id = c.id
JOIN runs_run r ON r.id = c.run_id JOIN groups_project project ON project.id = r.project_id
WHERE c.run_id = %s AND c.call_id = %s AND a.status = 'approved' AND {}
ORDER BY a.id DESC LIMIT 1
"""
HELD = APPROVED.format("a.consumed_at IS NULL")
# Not on an attempt that was interrupted, of which somebody has said since that it is to be made again.
SPENT = APPROVED.format("""a.consumed_at IS NOT NULL AND NOT EXISTS (
    SELECT FROM runs_wait w WHERE w.run_id = c.run_id AND w.tool_call_id = c.id AND w.kind = 'review'
        AND w.resolved_at > a.consumed_at)""")
OPEN = """
SELECT (SELECT count(*) FROM (
            SELECT FROM runs_approval WHERE run_id = %s AND status = 'pending' LIMIT %s) a),
       (SELECT count(*) FROM (
            SELECT FROM runs_approval WHERE organization_id = %s AND status = 'pending' LIMIT %s) b),
       (SELECT count(*) FROM (
            SELECT FROM runs_approval a JOIN runs_run r ON r.id = a.run_id
            WHERE a.organization_id = %s AND a.status = 'pending' AND r.user_id = %s LIMIT %s) c)
"""
WATCH = "INSERT INTO runs_approvalwatch (approval_id, organization_id) VALUES (%s, %s)"
CONSUME = "UPDATE runs_approval SET consumed_at = %s WHERE id = %s"


def digest_of_call(tool: Tool, arguments: dict[str, Any]) -> str:
    """What an approval is bound to, beside its run and call: the tool, the arguments, and whom it reaches."""
    whom = [tool.reaches] if tool.reaches else []
    return digest(tool.name, canonical(arguments), *whom)


def correlation_key(idempotency_key: str, asked_before: int = 0) -> str:
    """`cap-approval-{key}`; with a number when the same call has to be asked about again."""
    return approval_key(idempotency_key) + (f"-{asked_before + 1}" if asked_before else "")


def held(run_id: str, call: Call, arguments: dict[str, Any]) -> Held:
    """The unused approval of this call with these arguments, if there is one."""
    if call.wait_kind != WaitKind.APPROVAL:
        return NOTHING
    return _found(HELD, run_id, call.call_id, arguments)


def _found(sql: str, run_id: str, call_id: str, arguments: dict[str, Any]) -> Held:
    found = row(sql, [run_id, call_id])
    if found is None:
        return NOTHING
    approval_id, row_id, allow_self_approval, digest, *about = found
    return Held(approval_id, row_id, digest, arguments, About(*about), allow_self_approval)


@dataclass
class Begun:
    """What let a call begin: the approval that was spent on it, or its use of a standing one.

    It is asked about again when the call runs later or once more, because decisions may have become void.
    """

    organization_id: str
    run_id: str
    call_id: str
    tool: str
    arguments: dict[str, Any]
    held: Held = field(default_factory=Held)

    def satisfies(self, decision: Decision, tool: Tool) -> bool:
        self.held = _found(SPENT, self.run_id, self.call_id, self.arguments)
        return self.held.satisfies(decision, tool) or (grantable(decision) and self._granted())

    def _granted(self) -> bool:
        key = idempotency_key(self.run_id, self.call_id, self.tool, self.arguments)
        return standing.used_by(self.organization_id, key)


def too_many(log: RunLog) -> str:
    """Why no further approval may be asked for, in words for the agent; empty where one may."""
    most_here, most = settings.OPEN_APPROVALS, settings.OPEN_APPROVALS_ALL
    organization, most_theirs = log.organization_id, settings.OPEN_APPROVALS_PERSON
    asked = [log.id, most_here, organization, most, organization, log.user_id, most_theirs]
    here, everywhere, theirs = row(OPEN, asked)
    if here >= most_here:
        return (
            f"{here} calls of this run wait for a decision already; not more than {most_here} may. Wait "
            "until some are decided, and ask for fewer at once."
        )
    if theirs >= most_theirs:
        return (
            f"{theirs} calls of this person's runs wait for a decision; at most {most_theirs} may. Try later."
        )
    if everywhere >= most:
        return f"{everywhere} calls of the organization wait for a decision; at most {most} may. Try later."
    return ""


def request(
    claimed: "ClaimedRun",
    call: Call,
    stopped: Stopped,
    record: dict[str, Any],
    held: Held = NOTHING,
) -> None:
    """Stop the call at the gate: approval, wait and event in the step's transaction.

    An approval it came with that does not suffice any more is superseded; the new one says why.
    """
    log = claimed.log
    assert log is not None  # noqa: S101
    decision = stopped.decision
    row_id = tool_calls.open_call(log, call, stopped.arguments, stopped.idempotency_key, CallStatus.WAITING)
    explanation = decision.message
    if held.approval_id:
        unused = {"status": ApprovalStatus.SUPERSEDED, "consumed_at": None}
        Approval.objects.filter(pk=held.approval_id).update(**unused)
        explanation = f"{decision.message}.{ASKED_AGAIN}{held.why}."
    asked_before = Approval.objects.filter(tool_call_id=row_id).count() if call.wait_kind else 0
    key = correlation_key(stopped.idempotency_key, asked_before)
    seconds = decision.timeout or settings.APPROVAL_SECONDS
    approval = Approval(
        id=ids.approval_id(),
        organization_id=log.organization_id,
        run_id=log.id,
        tool_call_id=row_id,
        capability=decision.capability or "",
        effect=decision.effect,
        rule=decision.rule_id or decision.reason_code,
        explanation=explanation,
        arguments_digest=digest_of_call(stopped.tool, stopped.arguments),
        correlation_key=key,
        requested_at=log.now,
        expires_at=log.now + timedelta(seconds=seconds),
        deciders_needed=decision.deciders_needed,
        deciders=[list(names) for names in decision.deciders],
        replaces_id=held.approval_id,
        on_expiry=decision.on_expiry,
    )
    approval.save(force_insert=True)
    watch(approval)
    claimed.append(
        EventType.TOOL_REQUIRES_APPROVAL,
        {
            "call_id": call.call_id,
            "tool": call.tool,
            "arguments": stopped.arguments,
            "approval": approval.pk,
            "correlation_key": key,
            "effect": decision.effect,
            "decision": record,
            "message": explanation,
            "on_expiry": decision.on_expiry,
            "expires_at": approval.expires_at.isoformat() if approval.expires_at else None,
        },
        agent=call.agent,
    )
    waits.open_wait(
        log,
        waits.NewWait(WaitKind.APPROVAL, key, tool_call_id=row_id, expires_at=approval.expires_at),
    )
    claimed.absorb()
    put.enqueue_task("notify", approval.pk, turn=put.for_people(approval.organization_id))


def watch(approval: Approval) -> None:
    """Have it watched until it is decided (runs/notices/watch.py), from the transaction that asks: who asks
    is heard, whatever stops right after it.
    """
    execute(WATCH, [approval.pk, approval.organization_id])


def consume(log: RunLog, approval_id: str | None) -> None:
    """An approval is spent on the call it lets through."""
    if approval_id:
        log.also.append((CONSUME, [log.now, approval_id]))


def use_grant(log: RunLog, admitted: Admitted) -> bool:
    """Count this call as a use of the grant that let it pass. False when the grant has no use left or
    counts no more, and where others held its row for more than a moment, so that the gate is asked again.

    The grant's row is locked, so that two calls cannot both have its last use.
    """
    if not admitted.decision.grant_id:
        return True
    began = time.monotonic()
    grant = Grant.objects.select_for_update(no_key=True).get(pk=admitted.decision.grant_id)
    if time.monotonic() - began > AT_ONCE:
        return False
    used = grant.uses.exclude(idempotency_key=admitted.idempotency_key).count()
    if grant.revoked_at or (grant.max_uses is not None and used >= grant.max_uses):
        return False
    if (grant.expires_at and grant.expires_at <= log.now) or standing.void([grant]):
        return False
    GrantUse.objects.get_or_create(
        grant=grant,
        idempotency_key=admitted.idempotency_key,
        defaults={"organization_id": log.organization_id},
    )
    return True


def rejected_before(state: State, call: Call, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """The error of a call of this run with the same arguments that somebody has rejected already."""
    wanted = canonical(arguments)
    for other in state.calls.values():
        if other.call_id == call.call_id or other.tool != call.tool or other.error is None:
            continue
        asked = [one for one in (other.arguments, other.effective_arguments) if one is not None]
        if other.error.get("code") == REJECTED_CODE and wanted in map(canonical, asked):
            return other.error
    return None


def reject_again(claimed: "ClaimedRun", call: Call, stopped: Stopped, error: dict[str, Any]) -> None:
    """A call that was rejected in this run is not asked about again: it gets the same rejection."""
    assert claimed.log is not None  # noqa: S101
    requested = CallStatus.REQUESTED
    tool_calls.open_call(claimed.log, call, stopped.arguments, stopped.idempotency_key, requested)
    tool_calls.close_call(claimed.log, call.call_id, CallStatus.REJECTED, error=error)
    payload = {"call_id": call.call_id, "tool": call.tool, "error": error}
    claimed.append(EventType.TOOL_REJECTED, payload, agent=call.agent)


REJECTED_CODE = "APPROVAL_REJECTED"
REFUSALS = {
    WaitOutcome.REJECTED.value: (
        EventType.TOOL_REJECTED,
        CallStatus.REJECTED,
        REJECTED_CODE,
        "Rejected by {by}: {reason}",
    ),
    WaitOutcome.EXPIRED.value: (
        EventType.TOOL_EXPIRED,
        CallStatus.EXPIRED,
        "APPROVAL_EXPIRED",
        "Nobody decided about '{tool}' in time. This is not a rejection.",
    ),
    WaitOutcome.CANCELLED.value: (
        EventType.TOOL_FAILED,
        CallStatus.CANCELLED,
        "APPROVAL_CANCELLED",
        "The request for an approval of '{tool}' was withdrawn. This is not a rejection.",
    ),
    WaitOutcome.SUPERSEDED.value: (
        EventType.TOOL_FAILED,
        CallStatus.CANCELLED,
        "APPROVAL_SUPERSEDED",
        "The request for an approval of '{tool}' no longer applies. This is not a rejection.",
    ),
}


def record_decision(claimed: "ClaimedRun", call: Call) -> None:
    """A decision has come: an approved call goes through the gate again, any other ends with an error."""
    log = claimed.log
    assert log is not None  # noqa: S101
    if call.outcome == WaitOutcome.APPROVED:
        payload = {
            "call_id": call.call_id,
            "tool": call.tool,
            "by": call.payload.get("by"),
            "approval": call.payload.get("approval"),
            "person": call.payload.get("person", False),
        }
        if call.payload.get("arguments") is not None:
            payload["arguments"] = call.payload["arguments"]
        claimed.append(EventType.TOOL_APPROVED, payload, agent=call.agent)
        return
    type, status, code, words = REFUSALS[call.outcome]
    told = {"by": "a person", "reason": "no reason given", **call.payload, "tool": call.tool}
    error = {"code": code, "message": words.format(**{k: told[k] for k in ("by", "reason", "tool")})}
    tool_calls.close_call(log, call.call_id, status, error=error)
    claimed.append(type, {"call_id": call.call_id, "tool": call.tool, "error": error}, agent=call.agent)
