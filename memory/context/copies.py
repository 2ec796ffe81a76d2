"""What is handed out: copies. Changing one changes nothing stored (ruling 31)."""

from dataclasses import dataclass

from .models import PageKind, Visibility

FOUND_AT_MOST = 20


@dataclass(slots=True)
class SegmentCopy:
    segment_id: str
    name: str
    description: str
    type: str
    permission: str
    position: int = 0
    next_index: int = 1

    @property
    def root_index(self) -> str:
        return f"{self.segment_id}-0"


@dataclass(slots=True)
class PageCopy:
    """`parent` is the parent's index, None for a root. In a view, `detail` is empty where folded."""

    index: str
    kind: str
    parent: str | None
    position: int
    name: str
    description: str = ""
    detail: str = ""
    visibility: str = Visibility.EXPANDED
    opened_at: int = 0
    child_count: int = 0
    source: str = ""

    @property
    def segment_id(self) -> str:
        return segment_of(self.index)

    @property
    def is_root(self) -> bool:
        return self.parent is None

    @property
    def is_contents(self) -> bool:
        return self.kind == PageKind.CONTENTS

    @property
    def is_expanded(self) -> bool:
        return self.visibility == Visibility.EXPANDED


def segment_of(index: str) -> str:
    """`usr` of `usr-3`."""
    return index.rpartition("-")[0]


def number_of(index: str) -> int:
    """3 of `usr-3`."""
    return int(index.rpartition("-")[2])
