"""What a tool's schema states for what a call leaves out: at the top, in objects, in the items of lists."""

from collections.abc import Iterator, Mapping
from typing import Any

DEEPEST = 8  # a schema may refer to itself


def stated(schema: Mapping[str, Any]) -> bool:
    """Whether it states any."""
    parts: list[Any] = [schema]
    while parts:
        part = parts.pop()
        if isinstance(part, Mapping):
            if "default" in part:
                return True
            parts += part.values()
        elif isinstance(part, list):
            parts += part
    return False


def filled(schema: Mapping[str, Any], value: Any) -> Any:
    """The value with them. A default that says nothing (null, no, an empty text, list or object) is none."""
    return _filled(schema, value, schema, 0)


def _filled(schema: Any, value: Any, root: Mapping[str, Any], depth: int) -> Any:
    if depth > DEEPEST:
        return value
    parts = list(_parts(schema, root, 0))
    if isinstance(value, list):
        items: Any = next((part["items"] for part in parts if "items" in part), {})
        return [_filled(items, inner, root, depth + 1) for inner in value]
    if not isinstance(value, Mapping):
        return value
    found = dict(value)
    for part in parts:
        for name, inner in _properties(part):
            given = found.get(name, _default(inner, root))
            if name in found or given is not None:
                said = _filled(inner, given, root, depth + 1)
                if name in found or (said not in ("", [], {}) and said is not False):
                    found[name] = said
    return found


def _properties(part: Mapping[str, Any]) -> list[tuple[str, Any]]:
    known = part.get("properties")
    return list(known.items()) if isinstance(known, Mapping) else []


def _default(schema: Any, root: Mapping[str, Any]) -> Any:
    return next((part["default"] for part in _parts(schema, root, 0) if "default" in part), None)


def _parts(schema: Any, root: Mapping[str, Any], depth: int) -> Iterator[Mapping[str, Any]]:
    """The schema, what it refers to within its root, and all of what it puts together."""
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return
    yield schema
    if isinstance(where := schema.get("$ref"), str) and where.startswith("#"):
        found: Any = root
        for step in where[1:].split("/")[1:]:
            found = found.get(step) if isinstance(found, Mapping) else None
        yield from _parts(found, root, depth + 1)
    together = schema.get("allOf")
    for part in together if isinstance(together, list) else ():
        yield from _parts(part, root, depth + 1)
