"""Tools as the API shows them, and what policy would say to each in a run."""

from collections.abc import Mapping
from typing import Any

from policy import cache as policy_cache
from policy.evaluate import bind
from policy.models import PolicyVersion
from policy.terms import AgentContext, Binding
from runs.gate.admission import gate_of
from runs.log import log
from runs.log.state import fold
from runs.models import Run
from runs.tools import toolbox
from runs.tools.base import Tool
from runs.tools.call import Beforehand, Gate


def described(organization_id: str) -> list[dict[str, Any]]:
    """Every tool, with the capabilities the organization binds to it."""
    version = PolicyVersion.objects.of(organization_id)
    compiled = policy_cache.compiled(organization_id, version)
    _, tools = toolbox.of(organization_id, version)
    return [_described(tool, compiled.bindings) for tool in usable(tools)]


def decided(run: Run) -> list[dict[str, Any]]:
    """Every tool with the decision the run's present speaker would get, its arguments not yet known."""
    gate = gate_of(run)
    speaker = fold(log.read(run.pk)).speaker
    return decided_for(gate, gate.agent(speaker.agent, speaker.role_id))


def decided_for(gate: Gate, agent: AgentContext) -> list[dict[str, Any]]:
    """The same for any agent before any gate."""
    granted = gate.granted()
    return [
        {
            **_described(tool, gate.policy.bindings),
            "decision": _decision(gate.beforehand(agent, tool, granted)),
        }
        for tool in usable(gate.tools)
    ]


def usable(tools: Mapping[str, Tool]) -> list[Tool]:
    """The tools that can be called, by name."""
    return [tool for _, tool in sorted(tools.items()) if not tool.suspended]


def _described(tool: Tool, bindings: tuple[Binding, ...]) -> dict[str, Any]:
    info = bind(tool.info, bindings)
    return {**{name: getattr(tool, name) for name in SHOWN}, "capabilities": list(info.capabilities)}


SHOWN = ("name", "description", "parameters", "risk_level", "mutating", "idempotent", "supports_parallel")


def _decision(said: Beforehand) -> dict[str, Any]:
    decision = said.decision
    return {
        "effect": decision.effect,
        "reason_code": decision.reason_code,
        "message": decision.message,
        "rule": decision.rule_id,
        "depends_on_arguments": said.depends,
    }
