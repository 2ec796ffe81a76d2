"""The tools an agent handles its working memory with: definitions and plain functions.

Each function takes the agent's door and its arguments, as the schema has them, and gives what the model
is told and the changes made. A refusal is a ContextError whose words are meant for the agent.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .agent import AgentContext
from .changes import Change
from .copies import PageCopy, SegmentCopy

Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """`result` is for the model, JSON-ready; each of `changes` is for an event `context.changed`."""

    result: dict[str, Any]
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True)
class ContextTool:
    """`parameters` is a JSON Schema. All are of low risk: they reach nothing but the agent's own view."""

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[AgentContext, Arguments], Outcome]
    risk: str = "low"


def view(context: AgentContext, arguments: Arguments) -> Outcome:
    index = arguments.get("index")
    if index is None:
        shown = context.render()
        return Outcome({"view": shown.text, "tokens": shown.tokens})
    page = context.get_page(index)
    path = [above.name for above in reversed(context.get_ancestors(index))]
    result = {**_line(page), "path": path}
    if page.is_contents:
        result["pages"] = [_line(child) for child in context.get_children(index)]
    else:
        result["detail"] = page.detail
    return Outcome(result)


def segment(context: AgentContext, arguments: Arguments) -> Outcome:
    return Outcome({"segment": _segment(context.get_segment(arguments["segment"]))})


def segments(context: AgentContext, arguments: Arguments) -> Outcome:
    return Outcome({"segments": [_segment(one) for one in context.list_segments()]})


def children(context: AgentContext, arguments: Arguments) -> Outcome:
    return Outcome({"pages": [_line(page) for page in context.get_children(arguments["index"])]})


def parent(context: AgentContext, arguments: Arguments) -> Outcome:
    """None for a root."""
    above = context.get_parent(arguments["index"])
    return Outcome({"parent": _line(above) if above else None})


def ancestors(context: AgentContext, arguments: Arguments) -> Outcome:
    """From the parent up to the root."""
    return Outcome({"pages": [_line(page) for page in context.get_ancestors(arguments["index"])]})


def find(context: AgentContext, arguments: Arguments) -> Outcome:
    found = context.find_page(arguments["query"], arguments.get("limit", 20))
    return Outcome({"pages": [_line(page) for page in found]})


def expand(context: AgentContext, arguments: Arguments) -> Outcome:
    """Opens what is folded above the page, too: else it would be open and still not seen."""
    index = arguments["index"]
    context.check_permission(index, "expandDetails")
    folded = [page.index for page in reversed(context.get_ancestors(index)) if not page.is_expanded]
    opened = [*folded, index]
    changes = tuple(context.expand_details(page) for page in opened)
    return Outcome({"expanded": opened}, changes)


def hide(context: AgentContext, arguments: Arguments) -> Outcome:
    change = context.hide_details(arguments["index"])
    return Outcome({"hidden": change["index"]}, (change,))


def update(context: AgentContext, arguments: Arguments) -> Outcome:
    words = {field: arguments.get(field) for field in ("name", "description", "detail")}
    change = context.update_page(arguments["index"], **words)
    return Outcome({"updated": change["index"]}, (change,))


def create_detail(context: AgentContext, arguments: Arguments) -> Outcome:
    change = context.create_detail_page(
        arguments["name"], arguments.get("description", ""), arguments["detail"], arguments["parent"]
    )
    return Outcome({"index": change["index"]}, (change,))


def create_contents(context: AgentContext, arguments: Arguments) -> Outcome:
    change = context.create_contents_page(
        arguments["name"],
        arguments.get("description", ""),
        arguments["parent"],
        arguments.get("children", ()),
    )
    moved = {move["index"]: move["to"] for move in change.get("children", ())}
    return Outcome({"index": change["index"], "moved": moved}, (change,))


def move(context: AgentContext, arguments: Arguments) -> Outcome:
    change = context.move_page(arguments["index"], arguments["parent"], arguments.get("position"))
    return Outcome({"index": change["to"], "was": change["index"], "pages": change["count"]}, (change,))


def remove(context: AgentContext, arguments: Arguments) -> Outcome:
    change = context.remove_page(arguments["index"])
    return Outcome({"removed": change["index"]}, (change,))


def _line(page: PageCopy) -> dict[str, Any]:
    line = {"index": page.index, "kind": str(page.kind), "name": page.name, "description": page.description}
    return line | {"folded": not page.is_expanded}


def _segment(segment: SegmentCopy) -> dict[str, Any]:
    return {
        "segment": segment.segment_id,
        "name": segment.name,
        "description": segment.description,
        "type": str(segment.type),
        "permission": str(segment.permission),
        "root": segment.root_index,
    }


def _takes(required: tuple[str, ...] = (), **properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


INDEX = _text("The page's index, such as task-3.") | {"pattern": "^[a-z][a-z0-9_]{0,31}-[0-9]{1,9}$"}
SEGMENT = _text("The segment's id, such as task.") | {"pattern": "^[a-z][a-z0-9_]{0,31}$"}
PARENT = INDEX | {"description": "The index of the contents page it goes into, such as task-0."}
NAME = _text("One line, at most 200 characters.") | {"minLength": 1, "maxLength": 200}
DESCRIPTION = _text("What the page is about: it stays visible while the page is folded.")
DETAIL = _text("The page's words: visible while it is expanded.")
POSITION = {"type": "integer", "minimum": 0, "description": "Its place there, from 0; the last if left out."}
CHILDREN = {"type": "array", "items": INDEX, "uniqueItems": True, "description": "Pages to move into it."}
LIMIT = {"type": "integer", "minimum": 1, "maximum": 50, "description": "At most so many; 20 if left out."}
QUERY = _text("Part of a name or description, in any case.") | {"minLength": 1}

TOOLS = (
    ContextTool(
        "context_view",
        "Read your working memory as it stands now, or one page of it without opening it.",
        _takes(index=INDEX),
        view,
    ),
    ContextTool(
        "context_segments",
        "List the segments of your working memory, with what you may do in each.",
        _takes(),
        segments,
    ),
    ContextTool(
        "context_segment",
        "One segment of your working memory: its name, what you may do in it, and its root page.",
        _takes(("segment",), segment=SEGMENT),
        segment,
    ),
    ContextTool(
        "context_children",
        "The pages right below a contents page, folded or not.",
        _takes(("index",), index=INDEX),
        children,
    ),
    ContextTool(
        "context_parent",
        "The page that a page stands in; null for a root.",
        _takes(("index",), index=INDEX),
        parent,
    ),
    ContextTool(
        "context_ancestors",
        "The pages above a page, from its parent up to the root.",
        _takes(("index",), index=INDEX),
        ancestors,
    ),
    ContextTool(
        "context_find",
        "Find pages of your working memory, folded ones too, by name or description.",
        _takes(("query",), query=QUERY, limit=LIMIT),
        find,
    ),
    ContextTool(
        "context_expand",
        "Open a folded page, so that its words or its pages are in your view from now on.",
        _takes(("index",), index=INDEX),
        expand,
    ),
    ContextTool(
        "context_hide",
        "Fold a page you do not need now. Its name and description stay; nothing is lost.",
        _takes(("index",), index=INDEX),
        hide,
    ),
    ContextTool(
        "context_update",
        "Reword a page. What you leave out stays as it is.",
        _takes(("index",), index=INDEX, name=NAME, description=DESCRIPTION, detail=DETAIL),
        update,
    ),
    ContextTool(
        "context_create_detail",
        "Write a new page with words of its own.",
        _takes(
            ("parent", "name", "detail"), parent=PARENT, name=NAME, description=DESCRIPTION, detail=DETAIL
        ),
        create_detail,
    ),
    ContextTool(
        "context_create_contents",
        "Make a new page that holds pages, and move pages into it if you like.",
        _takes(("parent", "name"), parent=PARENT, name=NAME, description=DESCRIPTION, children=CHILDREN),
        create_contents,
    ),
    ContextTool(
        "context_move",
        "Put a page, with all it holds, into another contents page. In another segment its index changes.",
        _takes(("index", "parent"), index=INDEX, parent=PARENT, position=POSITION),
        move,
    ),
    ContextTool(
        "context_remove",
        "Remove a page and everything in it, for good.",
        _takes(("index",), index=INDEX),
        remove,
    ),
)
