"""What a run has read of the record a call is about: what conditions ask as `read.get_order.status`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from common.canonical import canonical, same

Read = tuple[str, Mapping[str, Any], Any]  # tool, arguments, result


def about(arguments: Mapping[str, Any], read: Iterable[Read]) -> dict[str, Any]:
    """For each tool its latest result that is about the call: the arguments both have a name for are equal.

    Where a tool was asked for several records by a name that the call does not have (`user_id`, of a call
    that says `order_id`), nothing says which is meant, and the tool is left out.
    """
    found: dict[str, Any] = {}
    asked: dict[str, set[str]] = {}
    for tool, looked_up, result in read:
        shared = looked_up.keys() & arguments.keys()
        if all(_same(looked_up[name], arguments[name]) for name in shared):
            found[tool] = result
            asked.setdefault(tool, set()).add("" if shared else canonical(looked_up))
    return dict(_readable({tool: found[tool] for tool in found if len(asked[tool]) == 1}))


def _readable(results: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Without what is nested more deeply than can be read."""
    for tool, result in results.items():
        try:
            yield tool, plain(result)
        except RecursionError:
            continue


def plain(result: Any) -> Any:
    """A result as JSON has it; a text that is JSON is read as that."""
    if isinstance(result, str) and result[:1] in ("{", "["):
        try:
            return json.loads(result)
        except (ValueError, RecursionError):
            return result
    if isinstance(result, Mapping):
        return {str(name): plain(inner) for name, inner in result.items()}
    if isinstance(result, list | tuple):
        return [plain(inner) for inner in result]
    return result if result is None or isinstance(result, bool | int | float | str) else str(result)


def _same(one: Any, other: Any) -> bool:
    """Whether two arguments name one record: they are equal, but for a number that is written as a text. What
    differs in capitals or blanks alone may be another record.
    """
    if {type(one), type(other)} == {int, str}:
        return str(one) == str(other)
    return same(one, other)
