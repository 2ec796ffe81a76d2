"""The tools there are, and the decorator that adds one."""

import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from policy.provenance.infer import Declaration
from runs.tools.base import Tool

_tools: dict[str, Tool] = {}

SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    dict: {"type": "object"},
    list: {"type": "array"},
}


def tool(
    *,
    description: str,
    name: str = "",
    parameters: dict[str, Any] | None = None,
    risk_level: str = "low",
    mutating: bool = False,
    supports_parallel: bool = True,
    idempotent: bool = False,
    transactional: bool = False,
    capabilities: tuple[str, ...] = (),
    declared: Declaration | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a tool.

    Its first parameter receives the ToolContext; the others, keyword-only, become the JSON Schema:
    `Annotated[str, "what it is"]` gives a described property, a default makes it optional. `parameters`
    is the schema of a function whose signature does not say it.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        made = Tool(
            name=name or function.__name__,
            description=description,
            parameters=schema_of(function) if parameters is None else parameters,
            function=function,
            risk_level=risk_level,
            mutating=mutating,
            supports_parallel=supports_parallel,
            idempotent=idempotent,
            transactional=transactional,
            capabilities=capabilities,
            declared=declared,
        )
        if made.name in _tools and _tools[made.name].function.__module__ != function.__module__:
            raise ValueError(f"two tools are called {made.name}")
        _tools[made.name] = made
        return function

    return register


def get(name: str) -> Tool | None:
    """The tool of this name, or None."""
    return all_tools().get(name)


def all_tools() -> dict[str, Tool]:
    """Every registered tool by name."""
    from runs.tools import builtin  # noqa: F401 - importing it registers them

    return _tools


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The JSON Schema of a function's keyword-only parameters."""
    hints = get_type_hints(function, include_extras=True)
    properties: dict[str, Any] = {}
    required = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            continue
        properties[parameter.name] = schema_of_type(hints[parameter.name])
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return {**schema, "additionalProperties": False}


def schema_of_type(hint: Any) -> dict[str, Any]:
    """The JSON Schema of one type hint. Raises TypeError for what tools do not use."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        inner = schema_of_type(arguments[0])
        for note in arguments[1:]:
            inner |= {"description": note} if isinstance(note, str) else note
        return inner
    if origin in (Union, types.UnionType):
        return schema_of_type(next(a for a in arguments if a is not types.NoneType))
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": schema_of_type(arguments[0])}
    if hint in SCALARS or origin in SCALARS:
        return dict(SCALARS[hint if hint in SCALARS else origin])
    raise TypeError(f"no JSON Schema for {hint!r}")
