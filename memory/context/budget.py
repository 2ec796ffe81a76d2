"""Which pages to fold so that a view fits: the least recently opened detail pages first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .copies import PageCopy, SegmentCopy
from .models import SegmentType, Visibility
from .rendering import block, in_order, weight


@dataclass(frozen=True)
class Folding:
    """`pages` to fold, and the view's tokens before and after.

    `after` above the budget means that nothing is left to fold.
    """

    pages: tuple[PageCopy, ...]
    before: int
    after: int


def choose(segments: Sequence[SegmentCopy], pages: Sequence[PageCopy], budget: int) -> Folding:
    """What to fold of these visible pages. Nothing of a system segment is ever chosen.

    Detail pages go first, then lists, roots last of all; within each, the least recently opened.
    """
    weights = _Weights(segments, pages)
    before = weights.tokens
    chosen: dict[str, PageCopy] = {}
    for page in _candidates(segments, pages):
        if weights.tokens <= budget:
            break
        if weights.saving(page) > 0 and not any(up.index in chosen for up in weights.ancestors(page)):
            weights.hide(page)
            chosen[page.index] = page
    return Folding(tuple(chosen.values()), before, weights.tokens)


def _candidates(segments: Sequence[SegmentCopy], pages: Sequence[PageCopy]) -> list[PageCopy]:
    kept = {segment.segment_id for segment in segments if segment.type == SegmentType.SYSTEM}
    open_pages = [page for page in pages if page.is_expanded and page.segment_id not in kept]
    return sorted(open_pages, key=lambda page: (page.is_root, page.is_contents, page.opened_at))


class _Weights:
    """What each visible page weighs with everything shown beneath it, and what folded."""

    def __init__(self, segments: Sequence[SegmentCopy], pages: Sequence[PageCopy]) -> None:
        self._pages = {page.index: page for page in pages}
        self._whole: dict[str, int] = {}
        self._folded: dict[str, int] = {}
        self._total = 0
        for _, walk in in_order(segments, pages):
            for page, depth in reversed(walk):
                self._add(page, depth)

    def _add(self, page: PageCopy, depth: int) -> None:
        own = weight(block(page, depth)) + 1
        self._total += own
        whole = self._whole[page.index] = self._whole.get(page.index, 0) + own
        folded = replace(page, visibility=Visibility.HIDDEN)
        self._folded[page.index] = weight(block(folded, depth)) + 1
        if page.parent is not None:
            self._whole[page.parent] = self._whole.get(page.parent, 0) + whole

    @property
    def tokens(self) -> int:
        return -(-self._total // 4)

    def saving(self, page: PageCopy) -> int:
        return self._whole[page.index] - self._folded[page.index]

    def ancestors(self, page: PageCopy) -> Iterator[PageCopy]:
        while page.parent is not None:
            page = self._pages[page.parent]
            yield page

    def hide(self, page: PageCopy) -> None:
        saved = self.saving(page)
        self._total -= saved
        for shrunk in (page, *self.ancestors(page)):
            self._whole[shrunk.index] -= saved
