"""What policy must know of the tools when rules are saved and questions simulated."""

from collections.abc import Iterable

from policy.terms import ToolInfo
from policy.tools import ToolFacts
from runs.tools import registry
from runs.tools.base import Tool


def of_organization(organization_id: str) -> Iterable[ToolFacts]:
    """The registered tools, which every organization has."""
    return [ToolFacts(info(tool), tool.parameters) for tool in registry.all_tools().values()]


def info(tool: Tool) -> ToolInfo:
    return ToolInfo(tool.name, tool.risk_level, tool.capabilities)  # type: ignore[arg-type]
