"""What every real model's format needs: names that fit, text that can be stored, arguments read strictly."""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NoReturn

from common.canonical import NotJson, normalise
from runs.providers.base import Message, ToolRequest, ToolSchema

ALLOWED_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
UNFIT = re.compile(r"[^a-zA-Z0-9_-]")
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
LONGEST_NAME = 200
REPLACEMENT = "\ufffd"


class UnreadableArguments(ValueError):
    """The arguments are no JSON object; the message is written for the model."""


def wire_name(name: str) -> str:
    """`name` where providers take it as it is, else a legible stand-in of at most 64 characters."""
    if ALLOWED_NAME.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:12]
    return f"{UNFIT.sub('_', name)[:51]}_{digest}"


def wire_id(call_id: str) -> str:
    """A call's id as every provider takes it: some refuse the dot in Deputy's `3.0`."""
    return UNFIT.sub("-", call_id)[:64] or "none"


def names_back(tools: Iterable[ToolSchema]) -> dict[str, str]:
    """Wire name -> Deputy's name, for the tools of one call."""
    return {wire_name(tool.name): tool.name for tool in tools}


def own_name(name: str, back: dict[str, str]) -> str:
    """Deputy's name for a tool the model named. An unknown one passes: the door to the tools answers it."""
    return back.get(name, storable(name)[:LONGEST_NAME])


def wire_parameters(tool: ToolSchema) -> dict[str, Any]:
    """The tool's JSON Schema with the two keys that some servers insist on."""
    return {"type": "object", "properties": {}, **tool.parameters}


def storable(text: str) -> str:
    """`text` without what PostgreSQL or UTF-8 cannot hold (NUL, lone surrogates)."""
    return UNSTORABLE.sub(REPLACEMENT, text)


def spoken(message: Message) -> str:
    """A message's text. A named speaker is told in the text: most models never see a name field."""
    content = storable(message.content)
    name = " ".join(storable(message.name).split())
    if message.role != "user" or not name or content.startswith(f"{name}:"):
        return content
    return f"{name}: {content}"


def count(value: object) -> int:
    """A token count as a provider wrote it; 0 for anything that is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return min(max(int(value), 0), 10**9)


def requested(name: str, arguments: object, call_id: object = "", *, truncated: bool = False) -> ToolRequest:
    """A call as the model wrote it; what cannot be read becomes its `problem`, never an exception."""
    identity = storable(call_id)[:LONGEST_NAME] if isinstance(call_id, str) else ""
    if not name:
        return ToolRequest(
            name="", id=identity, problem="The call names no tool. Give a tool name and call again."
        )
    try:
        return ToolRequest(name=name, arguments=read_arguments(arguments), id=identity)
    except UnreadableArguments as error:
        cut = " Your reply was cut off at the output limit: ask for less at once." if truncated else ""
        return ToolRequest(name=name, id=identity, problem=f"{error}{cut}")


def read_arguments(raw: object) -> dict[str, Any]:
    """The JSON object in `raw` (text, or already an object). Nothing at all means no arguments.

    Raises UnreadableArguments: not JSON, not an object, a key twice, NaN or Infinity, too deep, or text
    that cannot be stored.
    """
    value = _parse(raw) if isinstance(raw, str) else raw
    if value is None and not isinstance(raw, str):
        return {}
    if not isinstance(value, dict):
        raise UnreadableArguments(
            f"The arguments must be one JSON object, not {_kind(value)}. Call again with {{…}}."
        )
    try:
        normal = normalise(value)
    except NotJson as error:
        why = storable(str(error))[:300]
        raise UnreadableArguments(f"The arguments cannot be used: {why}. Call again without it.") from None
    except RecursionError:
        raise UnreadableArguments(TOO_DEEP) from None
    assert isinstance(normal, dict)  # noqa: S101 - normalise keeps the type
    return normal


TOO_DEEP = "The arguments are nested too deeply. Call again with a flatter object."


def _parse(text: str) -> Any:
    if not text.strip():
        return {}
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise UnreadableArguments(
            f"The arguments are not valid JSON: {error.msg} at line {error.lineno}, column {error.colno} "
            f"(character {error.pos}), near {_near(text, error.pos)}. Call again with corrected JSON."
        ) from None
    except RecursionError:
        raise UnreadableArguments(TOO_DEEP) from None
    except UnreadableArguments:
        raise
    except ValueError:  # an integer of more digits than Python reads
        raise UnreadableArguments("The arguments hold a number with too many digits. Call again.") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise UnreadableArguments(
            f"The arguments give the key {_quoted(twice)} twice. Call again, each key once."
        )
    return found


def _refuse(constant: str) -> NoReturn:
    raise UnreadableArguments(f"The arguments hold {constant}, which is not a JSON number. Call again.")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise UnreadableArguments(
            f"The arguments hold the number {text[:40]}, which is too large. Call again."
        )
    return number


def _near(text: str, position: int) -> str:
    return _quoted(text[max(position - 20, 0) : position + 20])


def _quoted(text: str) -> str:
    return json.dumps(storable(text)[:80], ensure_ascii=False)


def _kind(value: object) -> str:
    names = {str: "a string", list: "an array", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)
