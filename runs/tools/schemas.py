"""The JSON Schema of a tool's arguments, from its function's signature or from a pydantic model."""

import functools
import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    dict: {"type": "object"},
    list: {"type": "array"},
}


def is_model(parameters: Any) -> bool:
    """Whether this is a pydantic model: a class, and not yet a schema."""
    return inspect.isclass(parameters) and hasattr(parameters, "model_json_schema")


def schema_of_model(model: Any) -> dict[str, Any]:
    """The JSON Schema of a pydantic model, which names all that the model takes: nothing that it knows by
    another name comes past what is asked about the one.
    """
    schema: dict[str, Any] = model.model_json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        if "properties" in part:
            part.setdefault("additionalProperties", False)
    return schema


def called_with_model(function: Callable[..., Any], model: Any) -> Callable[..., Any]:
    """The function, called with an instance of the model in place of its fields."""

    @functools.wraps(function, assigned=("__module__", "__name__", "__doc__"))
    def called(context: Any, **arguments: Any) -> Any:
        return function(context, model(**arguments))

    return called


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The JSON Schema of a function's keyword-only parameters."""
    described = function if inspect.isroutine(function) else type(function).__call__
    hints = get_type_hints(described, include_extras=True)
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


def target(root: Any, reference: str) -> Any:
    """What a reference within the schema leads to: `#`, or `#/…`. Raises LookupError."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        raise LookupError(reference)
    found = root
    try:
        for part in reference[2:].split("/"):
            step = part.replace("~1", "/").replace("~0", "~")
            found = found[int(step)] if isinstance(found, list) else found[step]
    except (LookupError, TypeError, ValueError):
        raise LookupError(reference) from None
    return found
