"""What policy must know of the tools when rules are saved and questions simulated."""

from collections.abc import Iterable, Mapping
from typing import Any

from policy.provenance.infer import UNKNOWN_TOOL, Declaration, infer
from policy.terms import ToolInfo
from policy.tools import ToolFacts
from runs.tools import toolbox
from runs.tools.base import Tool


def of_organization(organization_id: str) -> Iterable[ToolFacts]:
    """The organization's tools, also those that are suspended."""
    return [ToolFacts(info(tool), tool.parameters, stated(tool)) for tool in toolbox.current(organization_id).values()]


def info(tool: Tool) -> ToolInfo:
    return ToolInfo(tool.name, tool.risk_level, tool.capabilities)  # type: ignore[arg-type]


def stated(tool: Tool) -> Declaration:
    """What the tool declares of its values, or what its name, description and schema say of them.

    Whatever a server of somebody else's returns is outside's, its ids too, and its hints never loosen.
    """
    if tool.declared is not None:
        return tool.declared
    if tool.provenance == "outside":
        return infer(tool.name.rpartition(".")[2], tool.description, tool.parameters).of_others(tool.mutating)
    return infer(tool.name, tool.description, tool.parameters, tool.mutating and not tool.transactional)


def declaration(tool: Tool | None, corrections: Mapping[str, Mapping[str, Any]]) -> Declaration:
    """The same, as the organization's admins corrected it; of a tool that is gone, the worst."""
    if tool is None:
        return UNKNOWN_TOOL
    change = corrections.get(tool.name)
    return _kept(tool) if change is None else _kept(tool).corrected(change)


def _kept(tool: Tool) -> Declaration:
    """What it states, worked out once."""
    kept = tool.__dict__.get("stated")
    if kept is None:
        kept = tool.__dict__["stated"] = stated(tool)
    return kept
