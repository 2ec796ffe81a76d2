"""What policy must know of the tools when rules are saved and questions simulated."""

from collections.abc import Iterable

from policy.terms import ToolInfo
from policy.tools import ToolFacts
from runs.tools import toolbox
from runs.tools.base import Tool


def of_organization(organization_id: str) -> Iterable[ToolFacts]:
    """The organization's tools, also those that are suspended."""
    return [ToolFacts(info(tool), tool.parameters) for tool in toolbox.current(organization_id).values()]


def info(tool: Tool) -> ToolInfo:
    return ToolInfo(tool.name, tool.risk_level, tool.capabilities)  # type: ignore[arg-type]
