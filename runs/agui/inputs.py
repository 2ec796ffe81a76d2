"""RunAgentInput, read. What the standard has and Deputy does not use (`tools`, `state`) is ignored."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from common.api.errors import Problem, invalid

VERSION = "1.0"
LONGEST_ID = 200
MOST_RESUMED = 100
STATUSES = ("resolved", "cancelled")

JSON = dict[str, Any]


@dataclass(frozen=True)
class Resumed:
    """What became of an interrupt: `payload` of one that is `resolved`."""

    interrupt_id: str
    resolved: bool
    payload: Any = None


@dataclass(frozen=True)
class Input:
    """`message_id` and `words` of the last message, where that is the user's."""

    thread_id: str
    run_id: str
    message_id: str = ""
    words: str = ""
    context: str = ""
    resume: tuple[Resumed, ...] = field(default=())


def read(body: Any) -> Input:
    """Raises Problem 422, which points to what is wrong."""
    if not isinstance(body, dict):
        raise invalid("", "invalid", "The body is an object.")
    if body.get("protocolVersion") not in (None, VERSION):
        raise Problem(400, "VERSION_NOT_SUPPORTED", f"Deputy speaks AG-UI {VERSION}.")
    messages = _list(body, "messages", required=True)
    last = messages[-1] if messages else {}
    if not isinstance(last, dict):
        raise invalid(f"/messages/{len(messages) - 1}", "invalid", "A message is an object.")
    spoken = last.get("role") == "user"
    at = f"/messages/{len(messages) - 1}"
    return Input(
        thread_id=_id(body, "threadId"),
        run_id=_id(body, "runId"),
        message_id=_id(last, "id", at) if spoken else "",
        words=_words(last.get("content"), f"{at}/content") if spoken else "",
        context="\n".join(_each(_list(body, "context"), "/context", _context)),
        resume=tuple(_each(_list(body, "resume"), "/resume", _resumed)),
    )


def _each(found: list[Any], at: str, read_one: Callable[[JSON, str], Any]) -> list[Any]:
    for place, one in enumerate(found):
        if not isinstance(one, dict):
            raise invalid(f"{at}/{place}", "invalid", "This is an object.")
    return [read_one(one, f"{at}/{place}") for place, one in enumerate(found)]


def _id(holder: JSON, name: str, at: str = "") -> str:
    value = holder.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_ID or not value.isprintable():
        raise invalid(f"{at}/{name}", "invalid", f"A text of 1 to {LONGEST_ID} printable characters.")
    return value


def _list(body: JSON, name: str, required: bool = False) -> list[Any]:
    value = body.get(name)
    if value is None and not required:
        return []
    if not isinstance(value, list):
        raise invalid(f"/{name}", "invalid", "A list.")
    if name == "resume" and len(value) > MOST_RESUMED:
        raise invalid(f"/{name}", "invalid", f"At most {MOST_RESUMED} at once.")
    return value


def _words(content: Any, at: str) -> str:
    """A text, or the texts of its parts. Raises Problem for files."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise invalid(at, "invalid", "A text, or a list of parts.")
    for part in content:
        if not (isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)):
            raise invalid(at, "unsupported", "Deputy takes texts here, no files.")
    return "\n".join(part["text"] for part in content)


def _context(one: JSON, at: str) -> str:
    for name in ("description", "value"):
        if not isinstance(one.get(name), str):
            raise invalid(f"{at}/{name}", "invalid", "A text.")
    return f"{one['description']}: {one['value']}"


def _resumed(one: JSON, at: str) -> Resumed:
    if one.get("status") not in STATUSES:
        raise invalid(f"{at}/status", "invalid", f"One of {', '.join(STATUSES)}.")
    return Resumed(_id(one, "interruptId", at), one["status"] == "resolved", one.get("payload"))
