"""What a client sends, read: messages and their configuration. Unknown fields are ignored, as A2A wants."""

import json
import re
from dataclasses import dataclass
from typing import Any

from runs.a2a.errors import A2AError, invalid
from runs.tools.a2a.client import HOPS

UNDERSCORE = re.compile(r"_([a-z])")
OWN = ("data", "metadata")
CONTENTS = ("text", "raw", "url", "data")
LONGEST_ID = 200
MOST_HOPS = 1000
MOST_PARTS = 100
TEXT_MODES = ("text/plain", "text/*", "*/*")


@dataclass(frozen=True)
class Sent:
    """A message. `text`: its parts, one after the other; `push`: what its configuration wants to be told;
    `hops`: how many Deputies its task has come through, as the client says.
    """

    message_id: str
    text: str
    context_id: str = ""
    task_id: str = ""
    at_once: bool = False
    history: int | None = None
    push: dict[str, Any] | None = None
    hops: int = 0


def camel(value: Any) -> Any:
    """The value with names as `taskId`, also where a client sends `task_id`: readers of ProtoJSON take both.

    What is a client's own, `data` and `metadata`, stays as it is.
    """
    if isinstance(value, list):
        return [camel(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        UNDERSCORE.sub(lambda found: found[1].upper(), name): one if name in OWN else camel(one)
        for name, one in value.items()
    }


def read(params: dict[str, Any]) -> Sent:
    """A SendMessageRequest. Raises A2AError."""
    message = an_object(params, "message", "message", required=True)
    configuration = an_object(params, "configuration", "configuration")
    if message.get("role") != "ROLE_USER":
        raise invalid("message.role is ROLE_USER in what a client sends.")
    check_output(configuration.get("acceptedOutputModes"))
    return Sent(
        message_id=an_id(message, "messageId", required=True),
        text=text_of(message.get("parts")),
        context_id=an_id(message, "contextId"),
        task_id=an_id(message, "taskId"),
        at_once=a_boolean(configuration, "returnImmediately"),
        history=history_length(configuration.get("historyLength")),
        push=an_object(configuration, "taskPushNotificationConfig", "configuration") or None,
        hops=hops_of(message.get("metadata")),
    )


def hops_of(metadata: Any) -> int:
    """What a Deputy says of the task's way (runs/tools/a2a/client.py). It can only have the task refused."""
    said = metadata.get(HOPS) if isinstance(metadata, dict) else None
    if not isinstance(said, int | float) or isinstance(said, bool) or not 0 <= said <= MOST_HOPS:
        return 0 if said is None else MOST_HOPS
    return int(said)


def an_object(holder: dict[str, Any], name: str, at: str, required: bool = False) -> dict[str, Any]:
    value = holder.get(name)
    if value is None and not required:
        return {}
    if not isinstance(value, dict):
        raise invalid(f"{at if at == name else f'{at}.{name}'} is an object.")
    return value


def an_id(holder: dict[str, Any], name: str, required: bool = False) -> str:
    """A name that the client or Deputy gave; empty where it is left out."""
    value = holder.get(name)
    if value in (None, "") and not required:
        return ""
    if not isinstance(value, str) or not value or len(value) > LONGEST_ID or not value.isprintable():
        raise invalid(f"{name} is a text of 1 to {LONGEST_ID} printable characters.")
    return value


def a_boolean(holder: dict[str, Any], name: str) -> bool:
    value = holder.get(name)
    if value is not None and not isinstance(value, bool):
        raise invalid(f"{name} is true or false.")
    return bool(value)


def history_length(value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 2**31 - 1:
        raise invalid("historyLength is a whole number from 0.")
    return value


def text_of(parts: Any) -> str:
    """What the parts say: texts as they are, data as JSON. Raises A2AError for files."""
    if not isinstance(parts, list) or not 1 <= len(parts) <= MOST_PARTS:
        raise invalid(f"message.parts are 1 to {MOST_PARTS} parts.")
    return "\n".join(_text(part) for part in parts)


def _text(part: Any) -> str:
    there = [name for name in CONTENTS if name in part] if isinstance(part, dict) else []
    if len(there) != 1:
        raise invalid(f"A part has exactly one of {', '.join(CONTENTS)}.")
    (kind,) = there
    if kind in ("raw", "url"):
        raise A2AError("CONTENT_TYPE_NOT_SUPPORTED", "Deputy takes texts and data here, no files.")
    if kind == "data":
        return json.dumps(part["data"], ensure_ascii=False)
    if not isinstance(part["text"], str):
        raise invalid("A part's text is a text.")
    return part["text"]


def check_output(modes: Any) -> None:
    """Raises A2AError where the client can do nothing with text."""
    if modes in (None, []):
        return
    if not isinstance(modes, list) or not all(isinstance(mode, str) for mode in modes):
        raise invalid("acceptedOutputModes is a list of media types.")
    if not set(modes) & set(TEXT_MODES):
        raise A2AError("CONTENT_TYPE_NOT_SUPPORTED", "What Deputy answers is text/plain.")
