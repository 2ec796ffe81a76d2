"""AgentContext: the only door between an agent and its working memory (seed 002).

Every operation asks `check_permission` first, under the lock its write will need. What is handed out
are copies; what is done is handed back as a change, for the run's event `context.changed`.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import cast

from .changes import Change
from .copies import FOUND_AT_MOST, PageCopy, SegmentCopy
from .errors import PermissionDenied
from .models import PageKind, SegmentPermission, SegmentType
from .rendering import Rendered
from .system import ContextSystem
from .tree import Tree


class PermissionLevel(IntEnum):
    READ = 0
    WRITE = 1
    SYSTEM = 2


# Folding and opening change what is seen, not what is written: a read, as the matrix has it (ruling 26).
REQUIRED_LEVEL = {
    "getSegment": PermissionLevel.READ,
    "listSegments": PermissionLevel.READ,
    "getPage": PermissionLevel.READ,
    "getChildren": PermissionLevel.READ,
    "getParent": PermissionLevel.READ,
    "getAncestors": PermissionLevel.READ,
    "findPage": PermissionLevel.READ,
    "expandDetails": PermissionLevel.READ,
    "hideDetails": PermissionLevel.READ,
    "updatePage": PermissionLevel.WRITE,
    "movePage": PermissionLevel.WRITE,
    "removePage": PermissionLevel.WRITE,
    "createPage": PermissionLevel.WRITE,
    "createDetailPage": PermissionLevel.WRITE,
    "createContentsPage": PermissionLevel.WRITE,
    "addSegment": PermissionLevel.SYSTEM,
    "removeSegment": PermissionLevel.SYSTEM,
    "setPermission": PermissionLevel.SYSTEM,
}

GRANTED_LEVEL = {
    SegmentPermission.READ_ONLY: PermissionLevel.READ,
    SegmentPermission.READ_WRITE: PermissionLevel.WRITE,
    SegmentPermission.SYSTEM_MANAGED: PermissionLevel.SYSTEM,
}


class AgentContext:
    """One agent's hands on its view. A mutating operation returns its change, JSON-ready."""

    def __init__(self, system: ContextSystem) -> None:
        self.__system = system

    @classmethod
    def reading(cls, tree: Tree) -> "AgentContext":
        """The same door before a view in memory, which can be read and not written."""
        return cls(cast(ContextSystem, tree))

    def check_permission(self, index: str, operation: str) -> None:
        """Raises NotFound, or PermissionDenied saying what the page's segment does not allow."""
        segment = self.__system.get_segment_by_page_index_internal(index)
        is_system_root = segment.type == SegmentType.SYSTEM and index == segment.root_index
        if operation == "hideDetails" and is_system_root:
            raise PermissionDenied(
                f"cannot hide system prompt root page {index}: "
                "agent must remain constrained by system prompts"
            )
        required = REQUIRED_LEVEL.get(operation, PermissionLevel.SYSTEM)
        if GRANTED_LEVEL[SegmentPermission(segment.permission)] < required:
            raise PermissionDenied(
                f"permission denied: operation '{operation}' on {index} requires higher permission"
            )

    # Segments

    def get_segment(self, segment_id: str) -> SegmentCopy:
        segment = self.__system.get_segment(segment_id)
        self.check_permission(segment.root_index, "getSegment")
        return segment

    def list_segments(self) -> list[SegmentCopy]:
        segments = self.__system.list_segments()
        for segment in segments:
            self.check_permission(segment.root_index, "listSegments")
        return segments

    # What a page shows

    def update_page(
        self,
        index: str,
        name: str | None = None,
        description: str | None = None,
        detail: str | None = None,
    ) -> Change:
        """New words for a page; what is left out stays."""
        with self.__system.writing():
            self.check_permission(index, "updatePage")
            return self.__system.update_page_internal(index, name, description, detail)

    def expand_details(self, index: str) -> Change:
        with self.__system.writing():
            self.check_permission(index, "expandDetails")
            return self.__system.expand_details_internal(index)

    def hide_details(self, index: str) -> Change:
        with self.__system.writing():
            self.check_permission(index, "hideDetails")
            return self.__system.hide_details_internal(index)

    # Where a page stands

    def move_page(self, source: str, target: str, position: int | None = None) -> Change:
        """The change's `to` is the page's index from now on: it differs in another segment."""
        with self.__system.writing(source, target):
            self.check_permission(source, "movePage")
            self.check_permission(target, "movePage")
            return self.__system.move_page_internal(source, target, position)

    def remove_page(self, index: str) -> Change:
        with self.__system.writing():
            self.check_permission(index, "removePage")
            return self.__system.remove_page_internal(index)

    def create_detail_page(self, name: str, description: str, detail: str, parent_index: str) -> Change:
        """The change's `index` is the new page's."""
        with self.__system.writing():
            self.check_permission(parent_index, "createPage")
            return self.__system.add_page(parent_index, PageKind.DETAIL, name, description, detail)

    def create_contents_page(
        self, name: str, description: str, parent_index: str, children: Sequence[str] = ()
    ) -> Change:
        """`children` are moved under the new page, in their order; each must be movable (ruling 29)."""
        with self.__system.writing(parent_index, *children):
            self.check_permission(parent_index, "createPage")
            for child in children:
                self.check_permission(child, "movePage")
            return self.__system.add_page(
                parent_index, PageKind.CONTENTS, name, description, children=children
            )

    # Reading

    def get_page(self, index: str) -> PageCopy:
        self.check_permission(index, "getPage")
        return self.__system.get_page(index)

    def get_children(self, index: str) -> list[PageCopy]:
        self.check_permission(index, "getChildren")
        return self.__system.get_children(index)

    def get_parent(self, index: str) -> PageCopy | None:
        """None for a root."""
        self.check_permission(index, "getParent")
        return self.__system.get_parent(index)

    def get_ancestors(self, index: str) -> list[PageCopy]:
        """From the parent up to the root."""
        self.check_permission(index, "getAncestors")
        return self.__system.get_ancestors(index)

    def find_page(self, query: str, limit: int = FOUND_AT_MOST) -> list[PageCopy]:
        """Pages whose name or description holds `query`, in whatever case (ruling 28)."""
        found = self.__system.find_page(query, limit)
        for root in {f"{page.segment_id}-0" for page in found}:
            self.check_permission(root, "findPage")
        return found

    def render(self) -> Rendered:
        """The view as it stands in the prompt."""
        return self.__system.render()
