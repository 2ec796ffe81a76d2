"""What a thread waits for its person to say: approvals and questions, as AG-UI's interrupts; and the answers.

An approval is decided by the person who is signed in and by nobody else: a program's token decides nothing
here. Whether they may, of which arguments, and in a confirmed session or not, the decision itself asks.
"""

from dataclasses import dataclass
from typing import Any

from common import redact
from common.api.errors import Problem
from common.links import link
from groups.actors import Actor, Via
from runs.actions import decide
from runs.actions.message import message
from runs.actions.signal import offered
from runs.agui.inputs import Resumed
from runs.agui.translating import tool_call_id
from runs.api import access
from runs.api.refusals import as_problems
from runs.gate import repeats
from runs.models import Approval, Run, RunEvent, Wait
from runs.models.choices import ACTIVE, ApprovalStatus, EventType, RunStatus, WaitKind

JSON = dict[str, Any]

NO_REASON = "no reason given"
KINDS = (WaitKind.INPUT, WaitKind.APPROVAL)


class Refused(Exception):
    """What becomes a RUN_ERROR: nothing of the input has been done, or only what came before."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True)
class Open:
    """An interrupt as AG-UI has it, and what it is in Deputy."""

    shown: JSON
    approval: Approval | None = None
    wait: Wait | None = None


def paused(run: Run) -> bool:
    """Whether nothing of the tree goes on, and somebody is waited for."""
    active = Run.objects.filter(root=run.root_id, status__in=ACTIVE)
    if active.exclude(status=RunStatus.WAITING).exists():
        return False
    return Wait.objects.filter(run__in=active, resolved_at=None, kind__in=KINDS).exists()


def of(actor: Actor, run: Run) -> list[Open]:
    """What of the tree the actor sees waiting; of approvals they do not see, that there is one."""
    waits = Wait.objects.filter(run__root=run.root_id, resolved_at=None, kind__in=KINDS)
    pending = access.approvals(actor).filter(run__root=run.root_id, status=ApprovalStatus.PENDING)
    seen = {(one.run_id, one.correlation_key): one for one in pending}
    found = []
    for wait in waits.select_related("run", "tool_call").order_by("id"):
        approval = seen.get((wait.run_id, wait.correlation_key))
        found.append(_question(run, wait) if wait.kind == WaitKind.INPUT else _approval(run, wait, approval))
    return found


def _approval(run: Run, wait: Wait, approval: Approval | None) -> Open:
    if approval is None:
        elsewhere = {"id": wait.pk, "reason": "deputy:waits", "message": "Somebody else has to decide."}
        return Open(_placed(run, wait, elsewhere))
    digest = approval.arguments_digest
    schema = {
        "type": "object",
        "properties": {
            "approved": {"type": "boolean"},
            "argumentsDigest": {"const": digest, "description": "Of the arguments that you have seen."},
            "reason": {"type": "string"},
            "editedArgs": {"type": "object", "description": "Other arguments, all of them."},
        },
        "required": ["approved", "argumentsDigest"],
    }
    told: JSON = {
        "id": approval.pk,
        "reason": "tool_call",
        "message": redact.shown(approval.explanation) or f"{approval.tool_call.tool} waits for a decision.",
        "responseSchema": schema,
        "expiresAt": approval.expires_at.isoformat() if approval.expires_at else None,
        "metadata": {
            "tool": approval.tool_call.tool,
            "effect": approval.effect,
            "argumentsDigest": digest,
            "page": link("web:approval", approval.pk),
        },
    }
    return Open(_placed(run, wait, told), approval=approval)


def _question(run: Run, wait: Wait) -> Open:
    asked = RunEvent.objects.filter(
        run=wait.run_id, type=EventType.TOOL_WAITS, payload__correlation_key=wait.correlation_key
    )
    if wait.correlation_key.startswith(repeats.PREFIX):
        return Open(_placed(run, wait, _needs(wait, asked.last())))
    answer: JSON = {"type": "string"}
    if choices := offered(wait.run_id, wait.correlation_key):
        answer["examples"] = choices
    told: JSON = {
        "id": wait.pk,
        "reason": "input_required",
        "message": redact.shown(asked.values_list("payload__question", flat=True).last() or ""),
        "responseSchema": {"type": "object", "properties": {"answer": answer}, "required": ["answer"]},
        "expiresAt": wait.expires_at.isoformat() if wait.expires_at else None,
    }
    return Open(_placed(run, wait, told), wait=wait)


def _needs(wait: Wait, asked: RunEvent | None) -> JSON:
    """What a call needs first is given on a page of Deputy's; no answer here does."""
    said = asked.payload if asked else {}
    return {
        "id": wait.pk,
        "reason": "deputy:needs",
        "message": redact.shown(str(said.get("question", ""))),
        "expiresAt": wait.expires_at.isoformat() if wait.expires_at else None,
        "metadata": {"page": said.get("link", "")},
    }


def _placed(run: Run, wait: Wait, told: JSON) -> JSON:
    if wait.tool_call is not None:
        told["toolCallId"] = tool_call_id(wait.run_id, wait.tool_call.call_id)
    if wait.run_id != run.pk:
        told["subagentRunId"] = wait.run_id
    return {name: value for name, value in told.items() if value is not None}


def resume(actor: Actor, run: Run, said: tuple[Resumed, ...]) -> None:
    """Answer what is open. Raises Refused: nothing is done unless all of it is spoken of."""
    known = {one.shown["id"]: one for one in of(actor, run)}
    missing = sorted(set(known) - {one.interrupt_id for one in said})
    if missing:
        raise Refused(
            "INTERRUPTS_MISSING", f"resume speaks of all that is open; missing: {', '.join(missing)}."
        )
    wanted = [(known[one.interrupt_id], one) for one in said if one.interrupt_id in known and one.resolved]
    unknown = [one.interrupt_id for one in said if one.interrupt_id not in known]
    if not all(_was_open(actor, run, id) for id in unknown):
        raise Refused("NO_SUCH_INTERRUPT", "resume speaks of an interrupt that this thread never had.")
    if actor.via != Via.SESSION and any(found.approval for found, _ in wanted):
        raise Refused("PERSON_ONLY", "Only a person who is signed in decides here; a token does not.")
    try:
        for found, one in wanted:
            _answer(actor, found, one.payload)
    except Problem as problem:
        raise Refused(problem.problem["code"], problem.problem["detail"]) from None


def _was_open(actor: Actor, run: Run, id: str) -> bool:
    """Whether it was decided or answered elsewhere meanwhile: then what is said of it does no harm."""
    if access.approvals(actor).filter(run__root=run.root_id, pk=id).exists():
        return True
    return Wait.objects.filter(run__root=run.root_id, pk=id).exists()


def _answer(actor: Actor, found: Open, payload: Any) -> None:
    """Raises Problem, Refused."""
    if found.approval is not None:
        _decide(actor, found.approval, payload)
    elif found.wait is not None:
        answer = payload.get("answer") if isinstance(payload, dict) else payload
        if not isinstance(answer, str):
            raise Refused("INVALID", "A question's payload is {answer: text}.")
        with as_problems():
            message(found.wait.run_id, answer, actor, found.wait.correlation_key)
    else:
        raise Refused("NOT_ENTITLED", "Somebody else has to decide this.")


def _decide(actor: Actor, approval: Approval, payload: Any) -> None:
    said = payload if isinstance(payload, dict) else {}
    approved, arguments = said.get("approved"), said.get("editedArgs")
    digest, reason = said.get("argumentsDigest"), said.get("reason") or ""
    fits = isinstance(approved, bool) and isinstance(arguments, dict | None)
    if not fits or not isinstance(digest, str | None) or not isinstance(reason, str):
        raise Refused(
            "INVALID", "An approval's payload is {approved, argumentsDigest, reason?, editedArgs?}."
        )
    with as_problems():
        if approved:
            decide.approve(approval.pk, actor, digest, reason, arguments)
        else:
            decide.reject(approval.pk, actor, digest, reason or NO_REASON)
