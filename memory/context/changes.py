"""The shapes of a change: JSON that says what happened to a view, and is enough to do it again.

Every one carries `op`, `view` and `seq` (the view's version after it); pages are named by index.

    open             segments, pages: a whole view, the first change of its life
    add_segment      segment_id name description type permission position
    remove_segment   segment_id
    set_permission   segment_id permission
    create_detail    index parent position name description detail visibility source
    create_contents  index parent position name description visibility source,
                     details [pages made inside it], children [moves into it]
    update           index and those of name, description, detail that are new
    expand, hide     index
    move             index to parent position count: `to` is the index it has now; when that is in
                     another segment, its descendants have the count - 1 numbers after it
    remove           index
    fold             pages [{index, name}] budget tokens_before tokens_after
"""

from dataclasses import asdict
from typing import Any, Protocol, TypeVar

from .copies import PageCopy, SegmentCopy, number_of, segment_of
from .errors import ContextError
from .models import PageKind, Visibility

Change = dict[str, Any]


class OutOfOrder(ContextError):
    """A change was applied to a view that is not at the version before it."""


class Store(Protocol):
    """Somewhere a change can be done: the database (ContextSystem) or memory (Tree)."""

    def apply(self, change: Change) -> None: ...


S = TypeVar("S", bound=Store)


def apply_change(view: S, change: Change) -> S:
    """Do a recorded change again; in order, from an empty view on, this rebuilds any moment of it.

    Raises OutOfOrder when a change before it is missing or it was applied already.
    """
    view.apply(change)
    return view


def opening(segments: list[SegmentCopy], pages: list[PageCopy]) -> Change:
    return {
        "op": "open",
        "segments": [asdict(segment) for segment in segments],
        "pages": [asdict(page) for page in pages],
    }


def creation(page: PageCopy) -> Change:
    """The change that makes this page; for one inside a list's `details`, too."""
    change: Change = {
        "op": f"create_{page.kind}",
        "index": page.index,
        "parent": page.parent,
        "position": page.position,
        "name": page.name,
        "description": page.description,
        "visibility": str(page.visibility),
        "source": page.source,
    }
    if page.kind == PageKind.DETAIL:
        change["detail"] = page.detail
    return change


def part(above: str, n: int, name: str, description: str, detail: str) -> Change:
    """The n-th folded page made inside the list `above` together with it."""
    index = f"{segment_of(above)}-{number_of(above) + 1 + n}"
    hidden = Visibility.HIDDEN.value
    page = PageCopy(index, PageKind.DETAIL.value, above, n, name, description, detail, hidden)
    return creation(page)


def created(change: Change, seq: int) -> PageCopy:
    """The page a creation makes."""
    return PageCopy(
        index=change["index"],
        kind=change["op"].removeprefix("create_"),
        parent=change["parent"],
        position=change["position"],
        name=change["name"],
        description=change["description"],
        detail=change.get("detail", ""),
        visibility=change["visibility"],
        opened_at=seq,
        source=change["source"],
    )


def check_order(version: int, change: Change) -> None:
    if change["op"] == "open" and version == 0:
        return
    if change["op"] == "open" or change["seq"] != version + 1:
        raise OutOfOrder(f"change {change['seq']} does not follow version {version}")
