"""A call of an outside agent as it stands."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from common.canonical import canonical, digest
from runs.models import Approval, Run, RunEvent, ToolCall, Wait
from runs.models.choices import ApprovalStatus, CallStatus, EventType, WaitKind

DECIDED = (ApprovalStatus.APPROVED, ApprovalStatus.REJECTED)
NAMED_HERE = "mcp-"  # begins the ids of calls that came over MCP without one of their own
LOST = {
    "code": "RUN_ENDED",
    "message": "The run ended while the call was under way; what it did is not known.",
}


@dataclass(frozen=True)
class WaitsFor:
    """What an open call waits for: a `child_run`, an `approval`, the answer to a `question`, a word."""

    kind: str
    correlation_key: str
    expires_at: datetime | None
    child_run: str | None = None
    approval: str | None = None
    question: str | None = None


@dataclass(frozen=True)
class Look:
    """A call as it stands. `arguments` are the ones that ran or will run; `open`: its answer is to come."""

    run: str
    user_id: int
    call_id: str
    name: str
    arguments: dict[str, Any]
    status: str
    result: Any
    error: dict[str, Any] | None
    open: bool
    waits_for: WaitsFor | None


def look(run: Run, call_id: str) -> Look:
    """The call now. Raises ToolCall.DoesNotExist."""
    call = ToolCall.objects.select_related("run").get(run=run, call_id=call_id)
    lost = call.ended_at is None and call.run.ended_at is not None
    return Look(
        run=call.run_id,
        user_id=call.run.user_id,
        call_id=call.call_id,
        name=call.tool,
        arguments=call.effective_arguments,
        status=CallStatus.UNKNOWN.value if lost else call.status,
        result=call.result,
        error=LOST if lost else call.error,
        open=call.ended_at is None and not lost,
        waits_for=waits_for(call),
    )


def same_again(run_id: str, name: str, arguments: dict[str, Any]) -> str | None:
    """The id of a call of this run with the same words that is open, or was decided about lately.

    A client that timed out and asks again means that call: it gets its result, or its rejection, and nobody
    is asked a second time within ASKED_AGAIN_SECONDS. The same holds for a call over MCP that has ended
    meanwhile, until its client has been told how.
    """
    lately = Now() - timedelta(seconds=settings.ASKED_AGAIN_SECONDS)
    decided = Q(ended_at__gt=lately, approvals__status__in=DECIDED)
    untold = Q(ended_at__gt=lately, told_at=None, call_id__startswith=NAMED_HERE)
    same = ToolCall.objects.filter(run_id=run_id, request_digest=digest(name, canonical(arguments)))
    found = same.filter(Q(ended_at=None) | decided | untold).order_by("-id")
    return found.values_list("call_id", flat=True).first()


def told(run_id: str, call_id: str) -> None:
    """Remember that the client knows how the call ended: the same words from now on mean another call."""
    ended = ToolCall.objects.filter(run_id=run_id, call_id=call_id, told_at=None, ended_at__isnull=False)
    ended.update(told_at=Now())


def waits_for(call: ToolCall) -> WaitsFor | None:
    """The open wait of the call, if it has one."""
    wait = Wait.objects.filter(run_id=call.run_id, tool_call=call, resolved_at=None).order_by("id").last()
    if wait is None:
        return None
    return WaitsFor(
        wait.kind,
        wait.correlation_key,
        wait.expires_at,
        child_run=wait.child_run_id,
        approval=_approval(call) if wait.kind == WaitKind.APPROVAL else None,
        question=_question(wait) if wait.kind == WaitKind.INPUT else None,
    )


def _approval(call: ToolCall) -> str | None:
    pending = Approval.objects.filter(tool_call=call, status=ApprovalStatus.PENDING)
    return pending.values_list("pk", flat=True).first()


def _question(wait: Wait) -> str | None:
    asked = RunEvent.objects.filter(
        run_id=wait.run_id, type=EventType.TOOL_WAITS, payload__correlation_key=wait.correlation_key
    )
    return asked.values_list("payload__question", flat=True).last()
