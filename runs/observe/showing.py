"""What of a run's log, calls and view a reader is shown. Every door that shows them asks here.

Secrets in it are masked for everybody (common/redact.py). What a person's agent looked up in that person's
memory, wrote there, or keeps in its working memory is for that person alone: colleagues and programs of
others see that it happened. The log itself keeps what was said, and its digests are of that.
"""

from copy import deepcopy
from typing import Any

from common import redact
from memory.context import Tree, layers
from memory.context.copies import PageCopy, segment_of
from runs.models import Run
from runs.models.choices import EventType

PRIVATE = "[private]"
TOOLS = ("memory_", "context_")  # tools of these names handle what is the person's own
PERSON = "usr"  # the segment of a view that is about the person
RESULT_OF = "Result of "  # how the page of a kept result begins (memory/context/layers.py)
SAYS_WHAT = ("arguments", "result", "preview")
SAID_OF_RUN = ("goal", "context", "output", "error")
EDITED = (EventType.APPROVAL_EDITED, EventType.TOOL_APPROVED)  # before 0.2 they did not name their tool
WORDS = ("name", "description", "detail", "details", "pages")  # of a change of working memory


def payload(type: str, said: dict[str, Any], own: bool) -> dict[str, Any]:
    """An event's payload; `own`: for the person the run works for."""
    return dict(redact.masked(said if own else _without_private(type, said)))


def run(found: Run) -> Run:
    """The run, only to be shown from now on: what it says is without secrets."""
    for name in SAID_OF_RUN:
        setattr(found, name, redact.masked(getattr(found, name)))
    return found


def call(tool: str, value: Any, own: bool) -> Any:
    """Arguments, result or error of a call."""
    return redact.masked(value) if own or not is_private(tool) else hidden(value)


def is_private(tool: str) -> bool:
    return tool.startswith(TOOLS)


def hidden(value: Any) -> Any:
    """The value's outline: its fields, and nothing of what they say."""
    if isinstance(value, dict):
        return dict.fromkeys(value, PRIVATE)
    return value if value is None else PRIVATE


def view(tree: Tree, own: bool) -> Tree:
    """A copy of a view without secrets, its pages empty where they are the person's, or of their memory."""
    found = deepcopy(tree)
    for page in found.pages.values():
        private = not own and _is_persons(found, page)
        for name in ("name", "description", "detail"):
            words = getattr(page, name)
            setattr(page, name, PRIVATE if private and words and name != "name" else redact.shown(words))
    return found


def holds_private(tree: Tree, index: str) -> bool:
    """Whether the page, or one below it, is shown to the person alone."""
    below = [page for page in tree.pages.values() if any(one.index == index for one in _line(tree, page))]
    return any(_is_persons(tree, page) for page in below)


def _line(tree: Tree, page: PageCopy) -> list[PageCopy]:
    """The page and those that it stands in, up to the root."""
    line = [page]
    while line[-1].parent is not None:
        line.append(tree.pages[line[-1].parent])
    return line


def _is_persons(tree: Tree, page: PageCopy) -> bool:
    """Whether the page, or one that it stands in, is the person's."""
    line = _line(tree, page)
    if any(one.source == layers.PREFERENCES for one in line):  # wherever its agent has moved it
        return True
    if segment_of(page.index) == PERSON:
        return page.parent is not None and page.name != layers.PERSON
    passed_on = any(one.name == layers.FROM_PARENT for one in line)
    if passed_on and any(one.name == layers.USER for one in line[1:]):
        return page.name != layers.PERSON
    return any(
        one.name.startswith(RESULT_OF) and is_private(one.name.removeprefix(RESULT_OF)) for one in line
    )


def _without_private(type: str, said: dict[str, Any]) -> dict[str, Any]:
    if type == EventType.CONTEXT_CHANGED:
        return {**said, "changes": [_emptied(change) for change in said.get("changes", ())]}
    if type == EventType.MESSAGE_CREATED:
        return (
            {**said, "tool_calls": [_request(one) for one in said["tool_calls"]]}
            if "tool_calls" in said
            else said
        )
    if type == EventType.RUN_CREATED and "inherited" in said:
        persons = [page for page in said["inherited"] if segment_of(page["index"]) == PERSON]
        return {**said, "inherited": [_emptied(one) if one in persons else one for one in said["inherited"]]}
    if type == EventType.WAIT_COMPLETED:
        return _answered(said)
    if is_private(str(said.get("tool", ""))) or (type in EDITED and "tool" not in said):
        return _outlined(said)
    return said


def _outlined(said: dict[str, Any]) -> dict[str, Any]:
    """Of an error, whose words quote what was wrong, its code stays."""
    found = {name: hidden(said[name]) for name in SAYS_WHAT if said.get(name) is not None}
    if isinstance(error := said.get("error"), dict):
        found["error"] = {**hidden(error), **{name: error[name] for name in ("code",) if name in error}}
    return {**said, **found}


def _answered(said: dict[str, Any]) -> dict[str, Any]:
    """What a decider put in place of the arguments stands in tool.approved, which says of which tool."""
    came = said.get("payload")
    if not isinstance(came, dict) or came.get("arguments") is None:
        return said
    return {**said, "payload": {**came, "arguments": hidden(came["arguments"])}}


def _emptied(change: dict[str, Any]) -> dict[str, Any]:
    return {name: PRIVATE if name in WORDS and value else value for name, value in change.items()}


def _request(one: dict[str, Any]) -> dict[str, Any]:
    if not is_private(one["name"]):
        return one
    return {**one, **{name: hidden(one[name]) for name in ("arguments", "problem") if name in one}}
