"""Decide an approval: approve, with other arguments if need be, or reject with a reason."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from common.canonical import NotJson, normalise
from common.db import Statement, execute, from_json, jsonb, row
from groups.current import holds
from groups.models import Membership
from groups.models.organizations import MembershipKind
from policy.cache import LIVE_BOUNDARY_OF, live_boundary_of
from policy.models import Grant
from runs.gate import admission
from runs.gate.approvals import arguments_digest
from runs.gate.deciders import PERMISSION, own_run_excluded
from runs.log import waits
from runs.log.log import RunGone, RunLog
from runs.models import Approval
from runs.models.choices import ApprovalEffect, ApprovalStatus, WaitOutcome

# The approval, locked, and what its project and organization say of who decides: in one statement, and not by
# the ORM, which takes longer to write it than the server to answer.
FIELDS = Approval._meta.concrete_fields
ASKED = f"""
SELECT {", ".join(f"a.{field.column}" for field in FIELDS)}, place.allow_self_approval,
    {LIVE_BOUNDARY_OF.format("a.organization_id", "%s", "place.id")},
    EXISTS (SELECT FROM runs_wait w WHERE w.run_id = a.run_id AND w.correlation_key = a.correlation_key
            AND w.resolved_at IS NULL)
FROM runs_approval a JOIN groups_project place ON place.id = %s
WHERE a.id = %s FOR NO KEY UPDATE OF a
"""  # noqa: S608 - the names of our own columns

# One word of each decider about the same arguments: the last.
WORD = """
INSERT INTO runs_approvaldecision
    (organization_id, approval_id, user_id, arguments_digest, approved, as_human, reason)
VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (approval_id, user_id, arguments_digest)
DO UPDATE SET approved = EXCLUDED.approved, as_human = EXCLUDED.as_human, reason = EXCLUDED.reason
"""
CONCLUDE = """
UPDATE runs_approval SET status = %s, decided_at = %s, decided_by_id = %s, decided_as_human = %s, reason = %s,
    edited_arguments = %s, arguments_digest = %s
WHERE id = %s
"""


class DecisionRefused(Exception):
    """The decision cannot be taken, and nothing has changed.

    `code`: NOT_ENTITLED, HUMAN_ONLY, OWN_RUN, ALREADY_DECIDED, EXPIRED, REASON_MISSING,
    REASON_INVALID, INVALID_ARGUMENTS, POLICY_DENIES, GRANT_REFUSED.
    """

    def __init__(self, code: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.details = code, message, details or {}


@dataclass(frozen=True)
class Remember:
    """Make a standing approval of calls like this one: same values of `fixed` arguments, or any.

    It ends at `until`, after `uses`, or both; one of the two is needed.
    """

    fixed: tuple[str, ...] = ()
    any_arguments: bool = False
    until: datetime | None = None
    uses: int | None = None


@dataclass(frozen=True)
class Decider:
    """One who would decide. `kind` is of the membership that sees the project, None without one."""

    kind: str | None
    own_run: bool
    allow_self_approval: bool  # of the project


def approve(
    approval_id: str,
    by: Any,
    reason: str = "",
    arguments: dict[str, Any] | None = None,
    remember: Remember | None = None,
) -> Approval:
    """Let the call run, with `arguments` in place of the ones asked for when given.

    Where several deciders are needed the approval stays pending until the last. The same decision
    again answers alike. Raises DecisionRefused, Approval.DoesNotExist.
    """
    return _decide(approval_id, by, True, storable(reason), arguments, remember)


def reject(approval_id: str, by: Any, reason: str) -> Approval:
    """Refuse the call; the agent is told the reason. Raises DecisionRefused, Approval.DoesNotExist."""
    if not reason.strip():
        raise DecisionRefused("REASON_MISSING", "A rejection needs a reason: the agent is told it.")
    return _decide(approval_id, by, False, storable(reason), None, None)


def storable(reason: str) -> str:
    """The reason without blanks around it. Raises DecisionRefused for text the database cannot keep."""
    try:
        return str(normalise(reason.strip()))
    except NotJson as error:
        raise DecisionRefused("REASON_INVALID", f"The reason cannot be kept: {error}") from None


def _decide(
    approval_id: str,
    by: Any,
    approved: bool,
    reason: str,
    arguments: dict[str, Any] | None,
    remember: Remember | None,
) -> Approval:
    with transaction.atomic():
        log = lock_run(approval_id)
        approval, decider, waited_for = _asked(log, approval_id, by)
        human = _entitled(approval, by, decider)
        if approval.status != ApprovalStatus.PENDING:
            return _again(approval, approved, arguments)
        if approval.expires_at and approval.expires_at <= log.now:
            raise DecisionRefused("EXPIRED", "The time to decide is over.")
        if approved and arguments is not None:
            _edit(approval, arguments, human)
        if remember and approved:
            _grant(approval, by, remember, reason, log.now)
        word = _word(approval, by, approved, human, reason)
        if approval.deciders_needed == 1:
            log.also.append(word)
        else:
            execute(*word)
            if approved and _approvals_count(approval) < approval.deciders_needed:
                approval.save()
                return approval
        _conclude(log, approval, by, approved, human, reason, waited_for)
        waits.flush_and_enqueue(log)
    return approval


def lock_run(approval_id: str) -> RunLog:
    """Lock the run that waits for the approval. Raises Approval.DoesNotExist."""
    try:
        return RunLog.lock_of("runs_approval", approval_id)
    except RunGone:
        raise Approval.DoesNotExist(approval_id) from None


def _asked(log: RunLog, approval_id: str, by: Any) -> tuple[Approval, Decider, bool]:
    """The approval, locked after its run; `by` as one who decides it; and whether its wait is open."""
    asked = row(ASKED, [by.pk, log.project_id, approval_id])
    *values, allow_self_approval, found, waited_for = asked
    approval = Approval.from_db("default", [field.attname for field in FIELDS], values)
    approval.edited_arguments = from_json(approval.edited_arguments)
    live = live_boundary_of(found, log.project_id)
    kind = live.kind if live and live.boundary else None
    return approval, Decider(kind, by.pk == log.user_id, allow_self_approval), waited_for


def _edit(approval: Approval, arguments: dict[str, Any], human: bool) -> None:
    """Put the new arguments, their digest and their key in place; policy is asked about them."""
    try:
        arguments = normalise(arguments)
    except NotJson as error:
        raise DecisionRefused("INVALID_ARGUMENTS", f"The arguments are not JSON: {error}") from None
    asked = admission.ask_again(approval.run, approval.tool_call, arguments)
    if asked.refused:
        code = "POLICY_DENIES" if asked.refused.decision else "INVALID_ARGUMENTS"
        raise DecisionRefused(code, asked.refused.message, asked.refused.details)
    if asked.effect == ApprovalEffect.REQUIRE_HUMAN and not human:
        raise DecisionRefused("HUMAN_ONLY", "With these arguments only a person can decide.")
    call = approval.tool_call
    call.effective_arguments, call.idempotency_key = arguments, asked.idempotency_key
    call.save(update_fields=["effective_arguments", "idempotency_key"])
    approval.edited_arguments = arguments
    approval.arguments_digest = arguments_digest(call.tool, arguments)


def _grant(approval: Approval, by: Any, remember: Remember, reason: str, now: datetime) -> None:
    """A standing approval, made with the one at hand. Never for what a person, or several, have to decide."""
    if approval.effect == ApprovalEffect.REQUIRE_HUMAN:
        raise DecisionRefused("GRANT_REFUSED", "What a person has to decide cannot be allowed in advance.")
    if approval.deciders_needed > 1:
        raise DecisionRefused(
            "GRANT_REFUSED", "What several people have to decide, one cannot allow in advance."
        )
    if remember.until is None and remember.uses is None:
        raise DecisionRefused(
            "GRANT_REFUSED", "A standing approval needs an end: a time or a number of uses."
        )
    if remember.until is not None and remember.until <= now:
        raise DecisionRefused("GRANT_REFUSED", "The time of a standing approval is over before it began.")
    arguments = approval.tool_call.effective_arguments
    missing = [name for name in remember.fixed if name not in arguments]
    if missing:
        raise DecisionRefused("GRANT_REFUSED", f"The call has no argument {', '.join(missing)}.")
    if bool(remember.fixed) == remember.any_arguments:
        raise DecisionRefused(
            "GRANT_REFUSED", "Say which arguments must stay the same, or that any may be used; not both."
        )
    Grant.objects.create(
        organization_id=approval.organization_id,
        project_id=approval.run.project_id,
        tool=approval.tool_call.tool,
        arguments={} if remember.any_arguments else {name: arguments[name] for name in remember.fixed},
        any_arguments=remember.any_arguments,
        reason=reason,
        granted_by=by,
        expires_at=remember.until,
        max_uses=remember.uses,
    )


def _word(approval: Approval, by: Any, approved: bool, human: bool, reason: str) -> Statement:
    """The statement that writes down what this person said of these arguments."""
    about = [approval.organization_id, approval.pk, by.pk, approval.arguments_digest]
    return WORD, [*about, approved, human, reason]


def _approvals_count(approval: Approval) -> int:
    """How many deciders have approved exactly these arguments."""
    words = approval.decisions.filter(approved=True, arguments_digest=approval.arguments_digest)
    if approval.effect == ApprovalEffect.REQUIRE_HUMAN:
        words = words.filter(as_human=True)
    return words.count()


def _conclude(
    log: RunLog, approval: Approval, by: Any, approved: bool, human: bool, reason: str, waited_for: bool
) -> None:
    """The decision stands: it resolves the run's wait, in this transaction."""
    approval.status = ApprovalStatus.APPROVED if approved else ApprovalStatus.REJECTED
    approval.decided_at = log.now
    approval.decided_by = by
    approval.decided_as_human = human
    approval.reason = reason
    decided = [str(approval.status), log.now, by.pk, human, reason]
    edited = [jsonb(approval.edited_arguments), approval.arguments_digest]
    log.also.append((CONCLUDE, [*decided, *edited, approval.pk]))
    outcome = WaitOutcome.APPROVED if approved else WaitOutcome.REJECTED
    payload = {
        "approval": approval.pk,
        "by": by.get_username(),
        "reason": reason,
        "arguments": approval.edited_arguments,
    }
    if waited_for:
        waits.resolve_open(log, approval.correlation_key, outcome.value, payload, approval.tool_call_id)


def _again(approval: Approval, approved: bool, arguments: dict[str, Any] | None) -> Approval:
    """The same decision again is answered as the first was; another one is refused (ruling 10)."""
    same = approval.status == (ApprovalStatus.APPROVED if approved else ApprovalStatus.REJECTED)
    if same and (arguments is None or arguments == approval.edited_arguments):
        return approval
    who = f" by {approval.decided_by}" if approval.decided_by else ""
    raise DecisionRefused("ALREADY_DECIDED", f"The request has already been {approval.status}{who}.")


def entitled(approval: Approval, by: Any) -> bool:
    """Whether `by` decides as a person. Raises DecisionRefused when they may not decide (design 5)."""
    run, project = approval.run, approval.run.project
    membership = Membership.objects.seeing(by, project)
    kind = membership.kind if membership else None
    return _entitled(approval, by, Decider(kind, by.pk == run.user_id, project.allow_self_approval))


def _entitled(approval: Approval, by: Any, decider: Decider) -> bool:
    if decider.kind is None or not holds(by, approval.organization_id, PERMISSION):
        raise DecisionRefused("NOT_ENTITLED", "You may not decide approvals of this project.")
    human = decider.kind == MembershipKind.HUMAN
    if approval.effect == ApprovalEffect.REQUIRE_HUMAN and not human:
        raise DecisionRefused("HUMAN_ONLY", "Only a person can decide this; a service account cannot.")
    strict = own_run_excluded(decider.allow_self_approval, approval.effect, approval.deciders_needed)
    if decider.own_run and strict:
        raise DecisionRefused("OWN_RUN", "You cannot decide this for your own run; somebody else has to.")
    return human
