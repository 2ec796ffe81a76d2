"""A view's changes on their way into the log: a text the run keeps anyway is not written there again.

Goal and context stand in `run.created`, a call's arguments and result on its ToolCall row. In the event
such a text is a reference {text, at, length}: `goal`, `context`, `4.0` (the result of that call, as text)
or `4.0/detail` (an argument of it).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from common.canonical import canonical
from memory.context import Change
from memory.context.changes import part
from memory.context.layers import parts

KEPT_WHOLE = 512  # characters of a text that is not worth a reference
REFERENCE = {"text", "at", "length"}
CUT = {"text", "at", "lengths"}

Lookup = Callable[[str], str]


def of_result(result: Any) -> str:
    """A call's result as the agent reads it."""
    return result if isinstance(result, str) else canonical(result)


def of_arguments(call_id: str, arguments: Mapping[str, Any]) -> dict[str, str]:
    """The long texts among a call's arguments, by their reference."""
    return {
        f"{call_id}/{name}": value
        for name, value in arguments.items()
        if isinstance(value, str) and len(value) > KEPT_WHOLE
    }


def packed(changes: Sequence[Change], texts: Mapping[str, str]) -> list[Change]:
    """The changes as an event keeps them; `texts` by their reference."""
    return [_packed({**change, **_packed_parts(change, texts)}, texts) for change in changes]


def unpacked(changes: Sequence[Change], lookup: Lookup) -> list[Change]:
    """The changes as they were made."""
    whole = [_unpacked(change, lookup) for change in changes]
    for change in whole:
        if isinstance(change.get("details"), dict):
            change["details"] = _details(change["index"], **change["details"])
    return whole


def references(value: Any) -> Iterator[str]:
    """The texts that packed changes refer to."""
    if isinstance(value, dict):
        if value.keys() in (REFERENCE, CUT):
            yield value["text"]
        else:
            for inner in value.values():
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def _packed(value: Any, texts: Mapping[str, str]) -> Any:
    if isinstance(value, str) and len(value) > KEPT_WHOLE:
        return _reference(value, texts) or value
    if isinstance(value, dict):
        return {name: _packed(inner, texts) for name, inner in value.items()}
    return [_packed(inner, texts) for inner in value] if isinstance(value, list) else value


def _packed_parts(change: Change, texts: Mapping[str, str]) -> Change:
    """A list made with its parts: where the text is and how long each part is."""
    details = change.get("details")
    if not details:
        return {}
    pieces = [made["detail"] for made in details]
    found = _reference("".join(pieces), texts)
    if (
        found is None
        or _details(change["index"], texts[found["text"]][found["at"] :], _lengths(pieces)) != details
    ):
        return {}
    return {"details": {"text": found["text"], "at": found["at"], "lengths": _lengths(pieces)}}


def _reference(words: str, texts: Mapping[str, str]) -> dict[str, Any] | None:
    for name, text in texts.items():
        at = text.find(words)
        if at >= 0:
            return {"text": name, "at": at, "length": len(words)}
    return None


def _lengths(pieces: Sequence[str]) -> list[int]:
    return [len(piece) for piece in pieces]


def _unpacked(value: Any, lookup: Lookup) -> Any:
    if isinstance(value, dict):
        if value.keys() == REFERENCE:
            return lookup(value["text"])[value["at"] : value["at"] + value["length"]]
        if value.keys() == CUT:
            return {"text": lookup(value["text"])[value["at"] :], "lengths": value["lengths"]}
        return {name: _unpacked(inner, lookup) for name, inner in value.items()}
    return [_unpacked(inner, lookup) for inner in value] if isinstance(value, list) else value


def _details(index: str, text: str, lengths: Sequence[int]) -> list[Change]:
    pieces, at = [], 0
    for length in lengths:
        pieces.append(text[at : at + length])
        at += length
    return [part(index, n, *words) for n, words in enumerate(parts(pieces))]
