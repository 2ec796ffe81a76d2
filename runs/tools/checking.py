"""How a call's arguments are checked against their tool's schema: within a time, whatever either holds.

A schema and arguments that are harmless alone can take hours together: `uniqueItems` over many objects, or
`anyOf` over thousands of values for each item of a list.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.protocols import Validator
from referencing.exceptions import Unresolvable

from common.canonical import canonical
from policy.cel_names import alike

VALUES = ("const", "default", "enum", "examples")  # no schemas
PROTOTYPE = "__proto__"
SECONDS = 2.0  # for one call's arguments
MOST_ERRORS = 50  # kept of what is wrong with them

# What a schema may do when it is applied: refer to itself without end, or to what is not in it (by an `$id`
# of a part), or divide numbers that no fraction holds.
UNUSABLE = (RecursionError, Unresolvable, ArithmeticError)

_until: ContextVar[float] = ContextVar("deputy_checking_until")


class TooMuchWork(Exception):
    """The arguments cannot be checked in SECONDS."""


def errors(validator: Validator, arguments: Mapping[str, Any]) -> list[ValidationError]:
    """The first of what is wrong with the arguments, by its place. Raises TooMuchWork, and UNUSABLE for a
    schema that cannot be applied to them.
    """
    if _has_prototype(arguments):
        return [
            ValidationError(f"'{PROTOTYPE}' is no name: servers in JavaScript take it for another object's")
        ]
    kept = _until.set(time.monotonic() + SECONDS)
    try:
        found = list(islice(validator.iter_errors(arguments), MOST_ERRORS))
    finally:
        _until.reset(kept)
    return sorted(found, key=lambda error: list(map(str, error.path)))


def _has_prototype(value: Any) -> bool:
    if isinstance(value, Mapping):
        return PROTOTYPE in value or any(map(_has_prototype, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_prototype, value))


def _timed(keyword: Callable[..., Any]) -> Callable[..., Any]:
    """The check of one keyword of a schema, unless the time is over."""

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        if time.monotonic() > _until.get(float("inf")):
            raise TooMuchWork
        return keyword(validator, value, instance, schema)

    return check


def _unique(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """As jsonschema's, which compares each item with each other one."""
    if value and validator.is_type(instance, "array") and len({*map(canonical, instance)}) < len(instance):
        yield ValidationError("it has the same item twice")


def _properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """As usual, and no name is one of these in other letters or signs: some servers take `BCC` for `bcc`."""
    yield from Draft202012Validator.VALIDATORS["properties"](validator, value, instance, schema)
    if validator.is_type(instance, "object"):
        known = {alike(name): name for name in value}
        for name in instance:
            if name not in value and (meant := known.get(alike(name))):
                yield ValidationError(f"'{name}' is not its '{meant}': write it in the same letters")


def extended(keywords: Mapping[str, Callable[..., Any]]) -> Any:
    """A class of validators as Draft 2020-12 has them, within the time, with these keywords of its own."""
    own = {**Draft202012Validator.VALIDATORS, "uniqueItems": _unique, "properties": _properties, **keywords}
    return validators.extend(Draft202012Validator, {name: _timed(check) for name, check in own.items()})


_Own: Any = extended({})


def checker(schema: Mapping[str, Any]) -> Validator:
    """Checks arguments against the schema of a tool that is registered here."""
    made: Validator = _Own(of_one_dialect(schema))
    return made


def of_one_dialect(schema: Any) -> Any:
    """The schema without the names of its parts' dialects, for which jsonschema would take its own class."""
    if isinstance(schema, list):
        return [of_one_dialect(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    parts = {name: part for name, part in schema.items() if not (name == "$schema" and isinstance(part, str))}
    return {name: part if name in VALUES else of_one_dialect(part) for name, part in parts.items()}
