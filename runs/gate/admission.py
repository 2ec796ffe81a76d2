"""Ask policy about a call from outside its run's step: for an edit, a simulation, an outside agent."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, QuerySet

from policy.cache import LiveBoundary
from policy.terms import Decision
from runs.gate.approvals import Begun
from runs.gate.provenance import of_run
from runs.log.log import read
from runs.log.state import fold
from runs.models import OutboundCall, Run, ToolCall
from runs.models.choices import TERMINAL, CallStatus, RunStatus
from runs.tools.base import Tool
from runs.tools.call import Admitted, Gate, Refused, Stopped


@dataclass(frozen=True)
class Asked:
    """Policy's answer about these arguments. `refused` is None where an approval can let the call pass.
    `tool` is then as it is now.
    """

    effect: str
    idempotency_key: str
    refused: Refused | None = None
    decision: Decision | None = None  # policy's, where it came to be asked
    tool: Tool | None = None


def gate_of(run: Run, live: LiveBoundary | None = None) -> Gate:
    """The gate as the run stands before it now. `live`: the boundary of its user, where it was just read."""
    whose = (run.organization_id, run.project_id, run.group_id, run.user_id)
    gate = Gate.open(*whose, run.delegated_permissions, live, run.roles_above, run.groups_above)
    gate.trace = lambda tool, arguments: of_run(run, gate.declared).facts(tool, arguments)
    return gate


def ask_again(run: Run, call: ToolCall, arguments: dict[str, Any], live: LiveBoundary | None = None) -> Asked:
    """What policy says about the call with other arguments, for the agent that asked for it."""
    gate = gate_of(run, live)
    role_id = role_of(run, call)
    said = gate.admit(gate.agent(call.agent, role_id), call.tool, arguments, (run.pk, call.call_id))
    if isinstance(said, Refused):
        return Asked("deny", "", said, said.decision)
    effect = said.decision.effect if isinstance(said, Stopped) else "allow"
    return Asked(effect, said.idempotency_key, None, said.decision, said.tool)


def ask_about(run: Run, call: ToolCall, live: LiveBoundary | None = None) -> Asked:
    """What policy says now about the call as it would run."""
    return ask_again(run, call, call.effective_arguments, live)


def leaving(outbound_id: int, run_id: str, call_id: str, arguments: dict[str, Any]) -> Tool | None:
    """The tool of a call that was admitted and waits to leave, where policy lets it pass at this moment too;
    None where it does not, where the call was dropped, or its run goes on no more.
    """
    calls = ToolCall.objects.filter(run_id=run_id, call_id=call_id, run__status=RunStatus.RUNNING)
    return _leaving(calls.filter(Exists(OutboundCall.objects.filter(pk=outbound_id))), arguments)


def leaves(tool_call_id: str, attempt: int, arguments: dict[str, Any]) -> Tool | None:
    """The same of a call of an outside agent that this attempt carries out."""
    calls = ToolCall.objects.filter(pk=tool_call_id, attempt=attempt)
    return _leaving(calls.exclude(run__status__in=TERMINAL), arguments)


def _leaving(calls: QuerySet[ToolCall], arguments: dict[str, Any]) -> Tool | None:
    calls = calls.select_related("run").filter(status=CallStatus.RUNNING)
    call = calls.first()
    if call is None:
        return None
    run, gate = call.run, gate_of(call.run)
    begun = Begun(run.organization_id, run.pk, call.call_id, call.tool, arguments)
    agent = gate.agent(call.agent, role_of(run, call))
    said = gate.admit(agent, call.tool, arguments, (run.pk, call.call_id), begun.satisfies)
    if not isinstance(said, Admitted) or said.decision.grant_id:  # another's use has to be counted
        return None
    return said.tool if calls.exists() else None  # weighing it may have taken a minute


def role_of(run: Run, call: ToolCall) -> str | None:
    """The role in which the call was asked for, by the seat of whoever asked."""
    if call.role_id:
        return call.role_id
    asked = fold(read(run.pk)).calls.get(call.call_id)  # calls of before seats were recorded
    return (asked.role_id if asked else None) or run.role_id
