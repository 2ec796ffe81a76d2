"""What policy must know of the tools when rules are saved and questions simulated."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from jsonschema import ValidationError

from policy.provenance.infer import UNKNOWN_TOOL, Declaration
from policy.tools import ToolFacts
from runs.tools import checking, toolbox
from runs.tools.base import Tool


def of_organization(organization_id: str) -> Iterable[ToolFacts]:
    """The organization's tools, also those that are suspended."""
    return [
        ToolFacts(tool.info, tool.parameters, tool.stated, partial(_check, tool))
        for tool in toolbox.current(organization_id).values()
    ]


def _check(tool: Tool, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Iterable[ValidationError]:
    """As a call's arguments are checked: within a time, and by no expression of an outsider's."""
    try:
        return checking.errors(tool.checker(dict(schema)), arguments)
    except (checking.TooMuchWork, *checking.UNUSABLE):
        return [ValidationError("The tool's schema cannot be applied to this.")]


def declaration(tool: Tool | None, corrections: Mapping[str, Mapping[str, Any]]) -> Declaration:
    """The same, as the organization's admins corrected it; of a tool that is gone, the worst."""
    if tool is None:
        return UNKNOWN_TOOL
    change = corrections.get(tool.name)
    return tool.stated if change is None else tool.stated.corrected(change)
