"""A view in memory: what a run starts with before anything is stored, and any past moment of one."""

from collections.abc import Iterable
from dataclasses import replace

from . import changes, checks
from .changes import Change, check_order
from .copies import FOUND_AT_MOST, PageCopy, SegmentCopy, number_of, segment_of
from .errors import page_not_found, segment_not_found
from .models import PageKind, SegmentPermission, SegmentType, Visibility
from .rendering import Rendered, render


class Tree:
    """Segments and pages by id. Deterministic: equal changes give equal trees. Not a door: no rights."""

    def __init__(self) -> None:
        self.version = 0
        self.segments: dict[str, SegmentCopy] = {}
        self.pages: dict[str, PageCopy] = {}
        self._children: dict[str, list[str]] = {}

    @classmethod
    def replay(cls, recorded: Iterable[Change]) -> "Tree":
        """The view after these changes, in their order."""
        tree = cls()
        for change in recorded:
            tree.apply(change)
        return tree

    # Building the tree a run starts with

    def add_segment(
        self,
        segment_id: str,
        name: str,
        description: str,
        type: SegmentType,
        permission: SegmentPermission,
    ) -> str:
        """The index of the new segment's root."""
        change = {
            "op": "add_segment",
            "segment_id": segment_id,
            "name": name,
            "description": description,
            "type": str(type),
            "permission": str(permission),
            "position": len(self.segments),
        }
        self.apply({**change, "seq": self.version + 1})
        return self.segments[segment_id].root_index

    def add_page(
        self,
        parent: str,
        kind: PageKind,
        name: str,
        description: str = "",
        detail: str = "",
        visibility: Visibility = Visibility.EXPANDED,
        source: str = "",
    ) -> str:
        """The index of the new page, the last of its parent's."""
        segment = self.segments[segment_of(parent)]
        index = f"{segment.segment_id}-{segment.next_index}"
        position = len(self._children[parent])
        page = PageCopy(
            index,
            kind.value,
            parent,
            position,
            checks.name(name),
            checks.text(description, "description"),
            checks.text(detail, "detail"),
            visibility.value,
            source=source,
        )
        self.apply({**changes.creation(page), "seq": self.version + 1})
        return index

    def opening(self) -> Change:
        """The whole tree as one change."""
        return changes.opening(list(self.segments.values()), list(self.pages.values()))

    # Reading: what the stored view offers for it, so that the same door stands before both

    def children(self, index: str) -> list[PageCopy]:
        return [replace(self.pages[child]) for child in self._children[index]]

    def list_segments(self) -> list[SegmentCopy]:
        return [
            replace(segment) for segment in sorted(self.segments.values(), key=lambda found: found.position)
        ]

    def get_segment(self, segment_id: str) -> SegmentCopy:
        if segment_id not in self.segments:
            raise segment_not_found(segment_id)
        return replace(self.segments[segment_id])

    def get_segment_by_page_index_internal(self, index: str) -> SegmentCopy:
        return replace(self.segments[self._page(index).segment_id])

    def get_page(self, index: str) -> PageCopy:
        return replace(self._page(index))

    def get_children(self, index: str) -> list[PageCopy]:
        self._page(index)
        return self.children(index)

    def get_parent(self, index: str) -> PageCopy | None:
        parent = self._page(index).parent
        return self.get_page(parent) if parent else None

    def get_ancestors(self, index: str) -> list[PageCopy]:
        found = []
        while (parent := self.get_parent(index)) is not None:
            found.append(parent)
            index = parent.index
        return found

    def find_page(self, query: str, limit: int = FOUND_AT_MOST) -> list[PageCopy]:
        words = checks.text(query, "query").strip().casefold()
        if not words:
            return []
        order = {segment.segment_id: segment.position for segment in self.segments.values()}
        found = sorted(
            (
                page
                for page in self.pages.values()
                if words in page.name.casefold() or words in page.description.casefold()
            ),
            key=lambda page: (order[page.segment_id], number_of(page.index)),
        )
        return [replace(page) for page in found[: max(limit, 0)]]

    def _page(self, index: str) -> PageCopy:
        if index not in self.pages:
            raise page_not_found(index)
        return self.pages[index]

    def visible(self) -> list[PageCopy]:
        """Roots and what expanded pages hold, without the words of what is folded."""
        shown = [self.pages[segment.root_index] for segment in self.segments.values()]
        for page in shown:  # grows while it is walked
            if page.is_expanded:
                shown.extend(self.pages[child] for child in self._children[page.index])
        return [replace(page, detail=page.detail if page.is_expanded else "") for page in shown]

    def render(self) -> Rendered:
        return render(self.segments.values(), self.visible())

    # Doing a change

    def apply(self, change: Change) -> None:
        check_order(self.version, change)
        getattr(self, f"_{change['op']}")(change)
        self.version = change["seq"]

    def _open(self, change: Change) -> None:
        self.segments = {row["segment_id"]: SegmentCopy(**row) for row in change["segments"]}
        self.pages = {row["index"]: PageCopy(**row) for row in change["pages"]}
        self._children = {index: [] for index in self.pages}
        for page in sorted(self.pages.values(), key=lambda page: page.position):
            if page.parent is not None:
                self._children[page.parent].append(page.index)

    def _add_segment(self, change: Change) -> None:
        fields = ("segment_id", "name", "description", "type", "permission", "position")
        segment = SegmentCopy(**{field: change[field] for field in fields})
        self.segments[segment.segment_id] = segment
        self.pages[segment.root_index] = PageCopy(
            segment.root_index,
            PageKind.CONTENTS,
            None,
            0,
            segment.name,
            segment.description,
            opened_at=change["seq"],
        )
        self._children[segment.root_index] = []

    def _remove_segment(self, change: Change) -> None:
        segment = self.segments.pop(change["segment_id"])
        self._drop(segment.root_index)

    def _set_permission(self, change: Change) -> None:
        self.segments[change["segment_id"]].permission = change["permission"]

    def _create_detail(self, change: Change) -> None:
        page = changes.created(change, change["seq"])
        self.pages[page.index] = page
        self._children[page.index] = []
        self._insert(page, page.parent, page.position)
        self._use_up(page.index)

    def _create_contents(self, change: Change) -> None:
        self._create_detail(change)
        for detail in change.get("details", ()):
            self._create_detail({**detail, "seq": change["seq"]})
        for move in change.get("children", ()):
            self._move(move)

    def _update(self, change: Change) -> None:
        page = self.pages[change["index"]]
        for field in ("name", "description", "detail"):
            setattr(page, field, change.get(field, getattr(page, field)))

    def _expand(self, change: Change) -> None:
        page = self.pages[change["index"]]
        page.visibility, page.opened_at = Visibility.EXPANDED, change["seq"]

    def _hide(self, change: Change) -> None:
        self.pages[change["index"]].visibility = Visibility.HIDDEN

    def _fold(self, change: Change) -> None:
        for folded in change["pages"]:
            self.pages[folded["index"]].visibility = Visibility.HIDDEN

    def _move(self, change: Change) -> None:
        page = self.pages[change["index"]]
        self._take_out(page)
        if change["to"] != change["index"]:
            self._reindex(page, change["to"])
        self._insert(page, change["parent"], change["position"])

    def _remove(self, change: Change) -> None:
        self._take_out(self.pages[change["index"]])
        self._drop(change["index"])

    # Pieces of a change

    def _insert(self, page: PageCopy, parent: str | None, position: int) -> None:
        assert parent is not None  # noqa: S101 - only a segment's own root has none
        self._children[parent].insert(position, page.index)
        page.parent = parent
        self._renumber(parent)

    def _take_out(self, page: PageCopy) -> None:
        assert page.parent is not None  # noqa: S101
        self._children[page.parent].remove(page.index)
        self._renumber(page.parent)

    def _renumber(self, parent: str) -> None:
        siblings = self._children[parent]
        for position, index in enumerate(siblings):
            self.pages[index].position = position
        self.pages[parent].child_count = len(siblings)

    def _subtree(self, index: str) -> list[str]:
        found = [index]
        for page in found:  # grows while it is walked
            found.extend(self._children[page])
        return found

    def _drop(self, index: str) -> None:
        for page in self._subtree(index):
            del self.pages[page], self._children[page]

    def _reindex(self, page: PageCopy, to: str) -> None:
        segment, first = segment_of(to), number_of(to)
        rest = sorted(self._subtree(page.index)[1:], key=number_of)
        renamed = {old: f"{segment}-{first + n}" for n, old in enumerate([page.index, *rest])}
        moved: dict[str, tuple[PageCopy, list[str]]] = {
            old: (self.pages.pop(old), self._children.pop(old)) for old in renamed
        }
        for old, (copy, children) in moved.items():
            copy.index = renamed[old]
            copy.parent = renamed.get(copy.parent or "", copy.parent)
            self.pages[copy.index] = copy
            self._children[copy.index] = [renamed[child] for child in children]
        self._use_up(f"{segment}-{first + len(renamed) - 1}")

    def _use_up(self, index: str) -> None:
        segment = self.segments[segment_of(index)]
        segment.next_index = max(segment.next_index, number_of(index) + 1)
