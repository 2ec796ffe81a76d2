"""The tools there are, and the decorator that adds one."""

import inspect
import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, get_args

from django.conf import settings
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from common import extensions
from common.extensions import Extension
from policy.provenance.infer import Declaration
from policy.terms import Risk
from runs.tools.base import Tool
from runs.tools.previews import BadPreview, Preview
from runs.tools.schemas import called_with_model, is_model, schema_of, schema_of_model

BUILTIN = "runs.tools.builtin"  # importing it registers the tools that Deputy brings
NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")

_tools: dict[str, Tool] = {}


class BadTool(ValueError):
    """A tool cannot be registered as it is described; the message says what to change."""


def tool(
    *,
    description: str,
    name: str = "",
    parameters: Any = None,
    risk_level: str = "low",
    mutating: bool = False,
    supports_parallel: bool = True,
    idempotent: bool = False,
    transactional: bool = False,
    capabilities: tuple[str, ...] = (),
    declared: Declaration | None = None,
    preview: Preview | None = None,
) -> Callable[[Any], Any]:
    """Register a function, or a class whose objects can be called, as a tool.

    Its first parameter receives the ToolContext; the others, keyword-only, become the JSON Schema:
    `Annotated[str, "what it is"]` gives a described property, a default makes it optional. `parameters`
    is the schema of a function whose signature does not say it, or a pydantic model, of which the
    function then receives an instance as its second argument. `preview` says what a call looks like to
    whoever decides it (runs/tools/previews.py). Raises BadTool.
    """

    def register(subject: Any) -> Any:
        function: Any = subject() if inspect.isclass(subject) else subject
        schema = schema_of(function) if parameters is None else parameters
        if is_model(parameters):
            schema, function = schema_of_model(parameters), called_with_model(function, parameters)
        made = Tool(
            name=name or subject.__name__,
            description=description,
            parameters=schema,
            function=function,
            risk_level=risk_level,
            mutating=mutating,
            supports_parallel=supports_parallel,
            idempotent=idempotent,
            transactional=transactional,
            capabilities=capabilities,
            declared=declared,
            preview=preview,
        )
        add(made)
        return subject

    return register


def built_in() -> list[Tool]:
    """The tools that Deputy brings, by name."""
    return sorted(
        (tool for tool in _tools.values() if tool.function.__module__.startswith("runs.tools.")),
        key=lambda tool: tool.name,
    )


def add(made: Tool) -> None:
    """Register a tool. Raises BadTool."""
    check(made)
    known = _tools.get(made.name)
    if known is not None and _origin(known) != _origin(made):
        raise BadTool(
            f"two tools are called '{made.name}': {_origin(known)} and {_origin(made)} have one each"
        )
    _tools[made.name] = made


def check(made: Tool) -> None:
    """Raises BadTool for what would only show when an agent calls it, or never."""
    if not NAME.fullmatch(made.name):
        raise BadTool(f"'{made.name[:80]}' is no tool's name: lower-case letters, digits and _, at most 64")
    if not made.description.strip():
        raise BadTool(f"'{made.name}' has no description: the model chooses a tool by it")
    if made.risk_level not in get_args(Risk):
        raise BadTool(
            f"'{made.name}' has the risk '{made.risk_level}'; it is one of {', '.join(get_args(Risk))}"
        )
    if made.parameters.get("type") != "object":
        raise BadTool(f"the schema of '{made.name}' does not describe an object")
    try:
        Draft202012Validator.check_schema(made.parameters)
    except SchemaError as error:
        raise BadTool(f"the parameters of '{made.name}' are no JSON Schema: {error.message[:200]}") from None
    if made.preview is not None:
        try:
            made.preview.check(made.parameters)
        except BadPreview as error:
            raise BadTool(f"the preview of '{made.name}' cannot be used: {error}") from None


def get(name: str) -> Tool | None:
    """The tool of this name, or None."""
    return all_tools().get(name)


def all_tools() -> dict[str, Tool]:
    """Every registered tool by name."""
    load()
    return _tools


@cache
def load() -> None:
    """Register the tools that Deputy brings, and those of other packages.

    Raises common.env.BadSetting, in one line, for a package that brings a bad one.
    """
    import_module(BUILTIN)
    for extension in (*extensions.brought("tools"), *extensions.named("DEPUTY_TOOLS", settings.DEPUTY_TOOLS)):
        _take(extension)


def _take(extension: Extension) -> None:
    """A module registers its tools when it is imported; a Tool is registered as it is."""
    found = extension.load()
    if isinstance(found, Tool):
        try:
            add(found)
        except BadTool as error:
            raise extension.refused(str(error)) from error
    elif not isinstance(found, ModuleType) and not callable(found):
        raise extension.refused("that is no module, tool or decorated function")


def _origin(made: Tool) -> str:
    return str(getattr(made.function, "__module__", type(made.function).__module__))
