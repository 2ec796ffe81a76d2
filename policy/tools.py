"""The tools there are, as far as policy must know them. Who has tools registers a source; policy asks it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator, ValidationError

from policy.provenance.infer import UNKNOWN_TOOL, Declaration
from policy.terms import ToolInfo

Check = Callable[[Mapping[str, Any], Mapping[str, Any]], Iterable[ValidationError]]


def _check(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Iterable[ValidationError]:
    return Draft202012Validator(schema).iter_errors(arguments)


@dataclass(frozen=True)
class ToolFacts:
    """A tool's name, risk and declared capabilities, the JSON Schema of its arguments, and what its values
    are worth. `check`: what is wrong with arguments by a part of that schema, which an outsider may have
    written.
    """

    info: ToolInfo
    parameters: Mapping[str, Any]
    declaration: Declaration = UNKNOWN_TOOL
    check: Check = _check

    @property
    def name(self) -> str:
        return self.info.name


Source = Callable[[str], Iterable[ToolFacts]]  # organization id -> its tools

_sources: dict[str, Source] = {}


def register(name: str, source: Source) -> None:
    """Let `source` say which tools an organization has; the same name again replaces it."""
    _sources[name] = source


def tools(organization_id: str) -> dict[str, ToolFacts]:
    """The organization's tools by name; empty where nobody has registered any."""
    return {facts.name: facts for source in _sources.values() for facts in source(organization_id)}
