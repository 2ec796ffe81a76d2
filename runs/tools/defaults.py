"""What a tool's schema states for what a call leaves out: at the top, in objects, in the items of lists."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from runs.tools import schemas

DEEPEST = 8  # a schema may refer to itself
STEPS = 200_000  # and to itself in many places, once for each item of a list


class TooMuchWork(ValueError):
    """The schema states more than is looked at."""


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
    """The value with them. A default that says nothing (null, no, an empty text, list or object) is none.
    Raises TooMuchWork.
    """
    return _Filling(schema).filled(schema, value, 0)


class _Filling:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root, self.left = root, STEPS

    def filled(self, schema: Any, value: Any, depth: int) -> Any:
        if depth > DEEPEST:
            return value
        parts = list(self.parts(schema, 0))
        if isinstance(value, list):
            return self.list_filled(parts, value, depth)
        if not isinstance(value, Mapping):
            return value
        found = self.others_filled(parts, value, depth)
        for part in parts:
            for name, inner in _properties(part):
                given = found.get(name, self.default(inner))
                if name in found or given is not None:
                    said = self.filled(inner, given, depth + 1)
                    if name in found or (said not in ("", [], {}) and said is not False):
                        found[name] = said
        return found

    def list_filled(self, parts: list[Mapping[str, Any]], value: list[Any], depth: int) -> list[Any]:
        items: Any = next((part["items"] for part in parts if "items" in part), {})
        first: Any = next((part["prefixItems"] for part in parts if "prefixItems" in part), [])
        of = [*(first if isinstance(first, list) else []), *[items] * len(value)]
        return [self.filled(schema, inner, depth + 1) for schema, inner in zip(of, value, strict=False)]

    def others_filled(
        self, parts: list[Mapping[str, Any]], value: Mapping[str, Any], depth: int
    ) -> dict[str, Any]:
        """Those of an object whose names the schema leaves open."""
        known = {name for part in parts for name, _ in _properties(part)}
        schemas = [part.get("additionalProperties") for part in parts]
        schemas += [inner for part in parts for _, inner in _properties(part, "patternProperties")]
        found = dict(value)
        for name in found.keys() - known:
            for schema in schemas:
                found[name] = self.filled(schema, found[name], depth + 1)
        return found

    def default(self, schema: Any) -> Any:
        return next((part["default"] for part in self.parts(schema, 0) if "default" in part), None)

    def parts(self, schema: Any, depth: int) -> Iterator[Mapping[str, Any]]:
        """The schema, what it refers to within its root, and what it puts together or leaves a choice of."""
        if not isinstance(schema, Mapping) or depth > DEEPEST:
            return
        self.left -= 1
        if not self.left:
            raise TooMuchWork("the defaults of its tool's schema are too many to be looked at")
        yield schema
        if isinstance(reference := schema.get("$ref"), str):
            referred: Any = None
            with suppress(LookupError):
                referred = schemas.target(self.root, reference)
            yield from self.parts(referred, depth + 1)
        for keyword in ("allOf", "anyOf", "oneOf"):
            inner = schema.get(keyword)
            for part in inner if isinstance(inner, list) else ():
                yield from self.parts(part, depth + 1)


def _properties(part: Mapping[str, Any], keyword: str = "properties") -> list[tuple[str, Any]]:
    known = part.get(keyword)
    return list(known.items()) if isinstance(known, Mapping) else []
