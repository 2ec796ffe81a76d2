"""Decide an approval: approve, with other arguments if need be, or reject with a reason.

Every decision names the digest of the arguments it is about, so that nobody decides what they have not seen.
Who may decide, and how many have to, is what policy says of these arguments now (runs/gate/demands.py).
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.conf import settings
from django.db import transaction

from common import ids, redact
from common.canonical import NotJson, normalise, same
from common.columns import Columns
from common.db import Statement, execute, row
from common.limits import TooMany
from groups import today
from groups.actors import MEMBER, Actor, member_of
from groups.changes import TakesConfirmation, TakesSecond
from groups.models import Membership
from policy import grants
from policy.authority import (
    About,
    Demand,
    NotAllowed,
    Verb,
    may,
    may_act_as_person,
    may_decide,
    may_take,
    seats,
    speaks,
)
from policy.cache import LIVE_BOUNDARY_OF, LiveBoundary, live_boundary_of
from policy.models import Grant
from policy.terms import Decision
from runs.gate import admission, demands
from runs.gate.approvals import ASKED_AGAIN, ELSEWHERE, digest_of_call, watch
from runs.log import waits
from runs.log.log import RunGone, RunLog
from runs.models import Approval, McpTask, RemoteTask, Run, ToolCall
from runs.models.choices import ApprovalStatus, EventType, WaitOutcome
from runs.queue import put
from runs.tools.base import Tool

# The approval, locked, and all that its decision depends on: in one statement, and not by the ORM, which
# takes longer to write it than the server to answer. The membership is the decider's; the boundary is that
# of the run's user.
APPROVAL, RUN, CALL = Columns(Approval, "a"), Columns(Run, "r"), Columns(ToolCall, "c")
ASKED = f"""
SELECT project.allow_self_approval,
    EXISTS (SELECT FROM runs_wait w WHERE w.run_id = a.run_id AND w.correlation_key = a.correlation_key
            AND w.resolved_at IS NULL),
    {LIVE_BOUNDARY_OF.format("r.organization_id", "r.user_id", "r.project_id")},
    {APPROVAL.sql}, {RUN.sql}, {CALL.sql}, {MEMBER}
FROM runs_approval a JOIN runs_run r ON r.id = a.run_id JOIN runs_toolcall c ON c.id = a.tool_call_id
JOIN groups_project project ON project.id = r.project_id
LEFT JOIN groups_membership m ON m.organization_id = r.organization_id AND m.user_id = %s AND m.active
LEFT JOIN groups_customrole custom ON custom.id = m.custom_role_id
WHERE a.id = %s FOR NO KEY UPDATE OF a
"""  # noqa: S608 - the names of our own columns

ASKED_ANEW = f".{ASKED_AGAIN}{ELSEWHERE}."

# One word of each decider about the same arguments: the last.
WORD = """
INSERT INTO runs_approvaldecision
    (organization_id, approval_id, user_id, arguments_digest, approved, as_human, reason, via, token_id, chat)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (approval_id, user_id, arguments_digest)
DO UPDATE SET approved = EXCLUDED.approved, as_human = EXCLUDED.as_human, reason = EXCLUDED.reason,
    via = EXCLUDED.via, token_id = EXCLUDED.token_id, chat = EXCLUDED.chat, created_at = clock_timestamp()
"""
CONCLUDE = """
UPDATE runs_approval SET status = %s, decided_at = %s, decided_by_id = %s, decided_as_human = %s, reason = %s
WHERE id = %s
"""


class DecisionRefused(Exception):
    """The decision cannot be taken, and nothing has changed.

    `code`: NOT_ENTITLED, SCOPE_MISSING, HUMAN_ONLY, CONFIRM_FIRST, OWN_RUN, DIGEST_MISSING, CHANGED,
    ALREADY_DECIDED, EXPIRED, REASON_MISSING, REASON_INVALID, INVALID_ARGUMENTS, POLICY_DENIES, BEGUN,
    GRANT_REFUSED.
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
class Said:
    """One decision as it is taken: by whom, and what."""

    actor: Actor
    approved: bool
    reason: str

    @property
    def shown_reason(self) -> str:
        """As lists, exports and mails show it: without keys. The log, and so the agent, has the words."""
        return redact.shown(self.reason)

    @property
    def as_person(self) -> bool:
        """Whether a person sits there, so that it counts where only a person's decision does."""
        try:
            may_act_as_person(self.actor)
        except NotAllowed:
            return False
        return True


@dataclass
class Asked:
    """The approval, locked after its run, and what its decision depends on."""

    log: RunLog
    approval: Approval
    allow_self_approval: bool
    waited_for: bool
    live: LiveBoundary | None  # of the run's user
    membership: Membership | None  # of the decider, as it is today

    @property
    def about(self) -> About:
        return About(self.log.organization_id, self.log.project_id, self.log.user_id)

    @cached_property
    def answer(self) -> admission.Asked:
        """What policy says now about the call as it would run."""
        return admission.ask_about(self.approval.run, self.approval.tool_call, self.live)

    @property
    def digest(self) -> str:
        """What is to be decided about, as it would run now: the same arguments may go to somebody else than
        when it was asked for.
        """
        approval, tool = self.approval, self.answer.tool
        if tool is None:
            return approval.arguments_digest
        return digest_of_call(tool, approval.tool_call.effective_arguments)

    @property
    def pending(self) -> bool:
        return self.approval.status == ApprovalStatus.PENDING

    def stored(self) -> Demand:
        """What was demanded when it was asked for, or last looked at."""
        return demands.of_approval(self.approval, self.allow_self_approval)

    def demand(self) -> Demand:
        """What policy demands now for the arguments that would run; kept on the row, which shows it.

        Where policy denies them meanwhile the gate says so when the call comes before it again.
        """
        decision = self.answer.decision
        if decision is None or decision.effect == "deny":
            return self.stored()
        demand = demands.of_decision(decision, self.allow_self_approval)
        demand_is(self.approval, demand, decision)
        return demand


def demand_is(approval: Approval, demand: Demand, decision: Decision) -> None:
    """Keep what is demanded on the approval, for those who are shown it."""
    named = [list(names) for names in demand.deciders]
    wanted = (demand.effect, demand.deciders_needed, named)
    if (approval.effect, approval.deciders_needed, approval.deciders) == wanted:
        return
    approval.effect, approval.deciders_needed, approval.deciders = wanted
    if decision.unlockable:
        approval.rule, approval.explanation = decision.rule_id or decision.reason_code, decision.message
    approval.save(update_fields=["effect", "deciders_needed", "deciders", "rule", "explanation"])


def approve(
    approval_id: str,
    actor: Actor,
    digest: str | None,
    reason: str = "",
    arguments: dict[str, Any] | None = None,
    remember: Remember | None = None,
) -> Approval:
    """Let the call run. `digest`: of the arguments the actor has seen, as the approval names it.

    With other `arguments` the approval is replaced by one about these, which has a demand of its own; the
    actor's decision counts in it if they may take it (ruling 41). Returns the approval that stands now:
    pending as long as further deciders are needed. The same decision again answers alike. Raises
    DecisionRefused, Approval.DoesNotExist.
    """
    return _decide(approval_id, Said(actor, True, storable(reason)), digest, arguments, remember)


def reject(approval_id: str, actor: Actor, digest: str | None, reason: str) -> Approval:
    """Refuse the call; the agent is told the reason. Raises DecisionRefused, Approval.DoesNotExist."""
    if not reason.strip():
        raise DecisionRefused("REASON_MISSING", "A rejection needs a reason: the agent is told it.")
    return _decide(approval_id, Said(actor, False, storable(reason)), digest)


def storable(reason: str) -> str:
    """The reason without blanks around it. Raises DecisionRefused for text the database cannot keep."""
    try:
        return str(normalise(reason.strip()))
    except NotJson as error:
        raise DecisionRefused("REASON_INVALID", f"The reason cannot be kept: {error}") from None


def _decide(
    approval_id: str,
    said: Said,
    digest: str | None,
    arguments: dict[str, Any] | None = None,
    remember: Remember | None = None,
) -> Approval:
    if not digest:
        message = "Say which arguments you decide about: arguments_digest, as the approval names it."
        raise DecisionRefused("DIGEST_MISSING", message)
    with transaction.atomic():
        asked = _asked(lock_run(approval_id), approval_id, said.actor)
        said = _today(said, asked)
        demand = asked.demand() if asked.pending else asked.stored()
        _check_entitled(said.actor, demand, asked.about)
        if not asked.pending:
            return _again(asked.approval, said, digest, arguments)
        if asked.digest == asked.approval.arguments_digest:
            return _decided(asked, said, digest, demand, arguments, remember)
        _ask_anew(asked)
    raise DecisionRefused("CHANGED", "Whom it reaches has changed since you saw it: look again.")


def _decided(
    asked: Asked,
    said: Said,
    digest: str,
    demand: Demand,
    arguments: dict[str, Any] | None,
    remember: Remember | None,
) -> Approval:
    if digest != asked.approval.arguments_digest:
        raise DecisionRefused("CHANGED", "It has changed since you saw it: look again.")
    if asked.approval.expires_at and asked.approval.expires_at <= asked.log.now:
        raise DecisionRefused("EXPIRED", "The time to decide is over.")
    if said.approved and arguments is not None:
        demand = _edit(asked, arguments, said.actor)
        if demands.refusal(said.actor, demand, asked.about):
            asked.log.flush()
            return asked.approval
    if remember and said.approved:
        _grant(asked, said, demand, remember)
    return _say(asked, said, demand)


def _ask_anew(asked: Asked) -> None:
    """Bind the approval to whom its call reaches now: what was said of it before counts no more."""
    approval = asked.approval
    approval.arguments_digest = asked.digest
    approval.explanation = f"{approval.explanation.partition(f'.{ASKED_AGAIN}')[0]}{ASKED_ANEW}"
    approval.save(update_fields=["arguments_digest", "explanation"])
    put.enqueue_task("notify", approval.pk)


def _today(said: Said, asked: Asked) -> Said:
    """By the actor as they are now that the run is locked: a membership that has ended meanwhile is none, nor
    is one in another organization than the door was of, and a token that was revoked reaches nothing.
    """
    then, now = said.actor.membership, asked.membership
    theirs = now if then is not None and now is not None and then.pk == now.pk else None
    return replace(said, actor=today.since(replace(said.actor, membership=theirs)))


def _say(asked: Asked, said: Said, demand: Demand) -> Approval:
    """Write the decision down; conclude where it suffices."""
    log, approval = asked.log, asked.approval
    as_person = said.as_person
    _check_may_take(said.actor, demand)
    word = _word(approval, said, as_person)
    if demand.deciders_needed == 1:
        log.also.append(word)
    else:
        execute(*word)
        if said.approved:
            counted = demands.counted(approval.pk, approval.arguments_digest, demand, asked.about)
            if not counted.enough:
                log.flush()
                return approval
    _conclude(asked, said, as_person)
    waits.flush_and_enqueue(log)
    return approval


def _check_may_take(actor: Actor, demand: Demand) -> None:
    try:
        may_take(actor, demand)
    except NotAllowed as refused:
        raise DecisionRefused(refused.code, refused.message) from None


def lock_run(approval_id: str) -> RunLog:
    """Lock the run that waits for the approval. Raises Approval.DoesNotExist."""
    try:
        return RunLog.lock_of("runs_approval", approval_id)
    except RunGone:
        raise Approval.DoesNotExist(approval_id) from None


def _asked(log: RunLog, approval_id: str, actor: Actor) -> Asked:
    """The approval, locked after its run, and what its decision by the actor depends on."""
    user = actor.user
    decider = user.pk if getattr(user, "is_active", False) else None
    allow_self_approval, waited_for, live, *values = row(ASKED, [decider, approval_id])
    rest = iter(values)
    approval, run, call, membership = APPROVAL.take(rest), RUN.take(rest), CALL.take(rest), member_of(rest)
    assert approval is not None and run is not None and call is not None  # noqa: S101 - joined by their keys
    approval.run, approval.tool_call = run, call
    boundary = live_boundary_of(live, run.project_id)
    return Asked(log, approval, allow_self_approval, waited_for, boundary, membership)


def _edit(asked: Asked, arguments: dict[str, Any], actor: Actor) -> Demand:
    """Replace the approval by one about these arguments, with the demand policy has for them (ruling 41).

    The wait keeps its key. Whoever decided the old one decides anew.
    """
    old, log = asked.approval, asked.log
    try:
        arguments = normalise(arguments)
    except NotJson as error:
        raise DecisionRefused("INVALID_ARGUMENTS", f"The arguments are not JSON: {error}") from None
    if not same(arguments, old.tool_call.effective_arguments) and _begun_elsewhere(old.tool_call):
        raise DecisionRefused(
            "BEGUN", "Whom it reaches is at work on it as it stands: approve that, or reject it."
        )
    answer = admission.ask_again(old.run, old.tool_call, arguments, asked.live)
    if answer.refused or answer.decision is None or answer.tool is None:
        refused = answer.refused
        assert refused is not None  # noqa: S101
        code = "POLICY_DENIES" if refused.decision else "INVALID_ARGUMENTS"
        raise DecisionRefused(code, refused.message, refused.details)
    demand = demands.of_decision(answer.decision, asked.allow_self_approval)
    asked.approval = _replace(asked, answer.tool, arguments, demand, answer.decision)
    call = old.tool_call
    call.effective_arguments, call.idempotency_key = arguments, answer.idempotency_key
    call.save(update_fields=["effective_arguments", "idempotency_key"])
    asked.approval.tool_call = call
    log.append(
        EventType.APPROVAL_EDITED,
        {
            "call_id": call.call_id,
            "tool": call.tool,
            "approval": asked.approval.pk,
            "replaces": old.pk,
            "by": str(actor),
            "arguments": arguments,
            "effect": demand.effect,
            "deciders_needed": demand.deciders_needed,
        },
        agent=call.agent,
    )
    return demand


def _begun_elsewhere(call: ToolCall) -> bool:
    """Whether somebody else's server or agent has made a task of the call: that goes on with the arguments it
    was given, whatever is approved afterwards.
    """
    about = {"run_id": call.run_id, "call_id": call.call_id}
    return any(tasks.objects.filter(**about).exists() for tasks in (McpTask, RemoteTask))


def _replace(
    asked: Asked, tool: Tool, arguments: dict[str, Any], demand: Demand, decision: Decision
) -> Approval:
    """The new approval, pending, in place of the old one."""
    old, log = asked.approval, asked.log
    before = old.edited_arguments if old.edited_arguments is not None else old.tool_call.effective_arguments
    Approval.objects.filter(pk=old.pk).update(
        status=ApprovalStatus.SUPERSEDED, decided_at=log.now, replaced_arguments=before
    )
    seconds = decision.timeout or settings.APPROVAL_SECONDS
    ends = [log.now + timedelta(seconds=seconds), *([old.expires_at] if old.expires_at else [])]
    new = Approval(
        id=ids.approval_id(),
        organization_id=old.organization_id,
        run_id=old.run_id,
        tool_call_id=old.tool_call_id,
        capability=decision.capability or old.capability,
        effect=demand.effect,
        rule=(decision.rule_id or decision.reason_code) if decision.unlockable else old.rule,
        explanation=decision.message if decision.unlockable else old.explanation,
        arguments_digest=digest_of_call(tool, arguments),
        correlation_key=old.correlation_key,
        requested_at=log.now,
        expires_at=min(ends),
        deciders_needed=demand.deciders_needed,
        deciders=[list(names) for names in demand.deciders],
        on_expiry=decision.on_expiry if decision.unlockable else old.on_expiry,
        edited_arguments=arguments,
        replaces_id=old.pk,
    )
    new.save(force_insert=True)
    watch(new)
    if demand.takes_person or demand.deciders_needed > 1:
        put.enqueue_task("notify", new.pk)
    return new


def _grant(asked: Asked, said: Said, demand: Demand, remember: Remember) -> None:
    """A standing approval, made with the one at hand. Never for what a person, or several, have to decide;
    and it takes the right to make one, as at its own address.
    """
    approval, now = asked.approval, asked.log.now
    try:
        may(said.actor, Verb.GRANT, asked.about)
    except NotAllowed as refused:
        raise DecisionRefused(refused.code, refused.message) from None
    if demand.takes_person:
        raise DecisionRefused("GRANT_REFUSED", "What a person has to decide cannot be allowed in advance.")
    if not demand.grantable:
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
    grant = Grant(
        organization_id=approval.organization_id,
        project_id=asked.log.project_id,
        tool=approval.tool_call.tool,
        arguments={} if remember.any_arguments else {name: arguments[name] for name in remember.fixed},
        # What the call did not have, such as a blind copy, nobody has seen.
        free=None if remember.any_arguments else sorted(grants.said(arguments) - {*remember.fixed}),
        any_arguments=remember.any_arguments,
        reason=said.shown_reason,
        expires_at=remember.until,
        max_uses=remember.uses,
    )
    grant.made_by(said.actor)
    try:
        grant.check_room()
        grant.save(force_insert=True)
    except TooMany as refused:
        raise DecisionRefused("GRANT_REFUSED", refused.messages[0]) from None
    except TakesSecond:
        message = "A standing approval takes a second person here: propose it under Standing approvals."
        raise DecisionRefused("GRANT_REFUSED", message) from None
    except TakesConfirmation:
        message = "Confirm first that it is you: a standing approval approves calls in advance."
        raise DecisionRefused("CONFIRM_FIRST", message) from None


def _word(approval: Approval, said: Said, as_person: bool) -> Statement:
    """The statement that writes down what this actor said of these arguments."""
    actor = said.actor
    about = [approval.organization_id, approval.pk, actor.user_id, approval.arguments_digest]
    return WORD, [
        *about,
        said.approved,
        as_person,
        said.shown_reason,
        actor.via.value,
        actor.token_id,
        actor.chat,
    ]


def _conclude(asked: Asked, said: Said, as_person: bool) -> None:
    """The decision stands: it resolves the run's wait, in this transaction."""
    log, approval = asked.log, asked.approval
    approval.status = ApprovalStatus.APPROVED if said.approved else ApprovalStatus.REJECTED
    approval.decided_at = log.now
    approval.decided_by = said.actor.user
    approval.decided_as_human = as_person
    approval.reason = said.shown_reason
    decided = [str(approval.status), log.now, said.actor.user_id, as_person, said.shown_reason]
    log.also.append((CONCLUDE, [*decided, approval.pk]))
    outcome = WaitOutcome.APPROVED if said.approved else WaitOutcome.REJECTED
    payload = {
        "approval": approval.pk,
        "by": _by(asked, said),
        "person": speaks(said.actor),
        "reason": said.reason,
        "arguments": approval.edited_arguments,
    }
    if asked.waited_for:
        waits.resolve_open(log, approval.correlation_key, outcome.value, payload, approval.tool_call_id)


def _by(asked: Asked, said: Said) -> str:
    """Who decided, and in whose place where it was a stand-in."""
    places = seats(said.actor, asked.stored(), asked.about)
    if said.actor.membership is None or said.actor.membership.pk in places:
        return str(said.actor)
    absent = Membership.objects.filter(pk__in=places).select_related("user").order_by("pk")
    return f"{said.actor}, for {', '.join(str(one.user) for one in absent)}"


def _again(approval: Approval, said: Said, digest: str, arguments: dict[str, Any] | None) -> Approval:
    """The same decision again is answered as the first was; another one is refused (ruling 10)."""
    newer = _newer(approval)
    if newer is not None:
        if said.approved and arguments is not None and same(arguments, newer.edited_arguments):
            return newer
        message = f"Its arguments were changed: look at {newer.pk}, which is about the new ones."
        raise DecisionRefused("CHANGED", message, {"approval": newer.pk})
    if digest != approval.arguments_digest:
        raise DecisionRefused("CHANGED", "It has changed since you saw it: look again.")
    alike = approval.status == (ApprovalStatus.APPROVED if said.approved else ApprovalStatus.REJECTED)
    if alike and (arguments is None or same(arguments, approval.edited_arguments)):
        return approval
    who = f" by {approval.decided_by}" if approval.decided_by else ""
    raise DecisionRefused("ALREADY_DECIDED", f"The request has already been {approval.status}{who}.")


def _newer(approval: Approval) -> Approval | None:
    """The approval that was made in place of this one."""
    same_call = Approval.objects.filter(tool_call_id=approval.tool_call_id)
    return same_call.filter(replaces_id=approval.pk).order_by("-id").first()


def check_entitled(approval: Approval, actor: Actor) -> None:
    """Raises DecisionRefused when the actor may not decide the approval as it is demanded."""
    run = approval.run
    about = About(run.organization_id, run.project_id, run.user_id)
    demand = demands.of_approval(approval, run.project.allow_self_approval)
    _check_entitled(actor, demand, about)
    _check_may_take(actor, demand)


def _check_entitled(actor: Actor, demand: Demand, about: About) -> None:
    try:
        may_decide(actor, demand, about)
    except NotAllowed as refused:
        raise DecisionRefused(refused.code, refused.message) from None
