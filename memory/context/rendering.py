"""A view as text: one line a page, the words of what is open beneath it (ruling 32).

Every line of a page's words is indented deeper than the page's own line, so no text, wherever it
came from, can pass itself off as another page.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from .copies import PageCopy, SegmentCopy

DEEPEST_INDENT = 16  # deeper pages name their parent instead, or a long chain would be all spaces
LEGEND = (
    "Your working memory is the tree of pages below. A line is `- [index] name: description`; "
    "`+` instead of `-` marks a folded page: context_expand opens it, context_hide folds it again."
)


@dataclass(frozen=True)
class Section:
    """One segment's part of the prompt."""

    segment_id: str
    type: str
    text: str


@dataclass(frozen=True)
class Rendered:
    """The view as the agent reads it. `tokens` is an estimate; `indexes` are the pages shown, in order."""

    sections: tuple[Section, ...]
    indexes: tuple[str, ...]
    tokens: int

    @property
    def text(self) -> str:
        return "\n".join(section.text for section in self.sections)

    def section(self, segment_id: str) -> str:
        """The text of one segment, empty if there is none of that id."""
        return next((part.text for part in self.sections if part.segment_id == segment_id), "")


def render(segments: Iterable[SegmentCopy], pages: Iterable[PageCopy]) -> Rendered:
    """`pages` are the visible ones, in any order."""
    ordered = in_order(segments, pages)
    sections = tuple(
        Section(
            segment.segment_id,
            segment.type,
            "\n".join(block(page, depth) for page, depth in walk),
        )
        for segment, walk in ordered
    )
    indexes = tuple(page.index for _, walk in ordered for page, _ in walk)
    tokens = -(-sum(weight(section.text) + 1 for section in sections) // 4)
    return Rendered(sections, indexes, tokens)


def in_order(
    segments: Iterable[SegmentCopy], pages: Iterable[PageCopy]
) -> list[tuple[SegmentCopy, list[tuple[PageCopy, int]]]]:
    """Each segment with its pages and their depths, parents before children."""
    children: dict[str | None, list[PageCopy]] = {}
    roots: dict[str, PageCopy] = {}
    for page in pages:
        if page.parent is None:
            roots[page.segment_id] = page
        else:
            children.setdefault(page.parent, []).append(page)
    for siblings in children.values():
        siblings.sort(key=lambda page: page.position)
    return [
        (segment, _walk(roots[segment.segment_id], children))
        for segment in sorted(segments, key=lambda segment: segment.position)
        if segment.segment_id in roots
    ]


def _walk(root: PageCopy, children: dict[str | None, list[PageCopy]]) -> list[tuple[PageCopy, int]]:
    walk, waiting = [], [(root, 0)]
    while waiting:
        page, depth = waiting.pop()
        walk.append((page, depth))
        if page.is_expanded:
            waiting.extend((child, depth + 1) for child in reversed(children.get(page.index, ())))
    return walk


def block(page: PageCopy, depth: int) -> str:
    """The page's lines."""
    indent = "  " * min(depth, DEEPEST_INDENT)
    mark = "-" if page.is_expanded else "+"
    notes = f" ({page.child_count} pages)" if page.is_contents and not page.is_expanded else ""
    if depth > DEEPEST_INDENT:
        notes += f" (in {page.parent})"
    title = f"{page.name}: {page.description}" if page.description else page.name
    first, *rest = title.splitlines() or [""]
    lines = [f"{indent}{mark} [{page.index}] {first}{notes}", *(f"{indent}  {line}" for line in rest)]
    if page.is_expanded:
        lines += [f"{indent}    {line}" for line in page.detail.splitlines()]
    return "\n".join(lines)


def weight(text: str) -> int:
    """Quarters of a token, estimated: four ASCII characters make a token, any other one by itself."""
    plain = len(text.encode("ascii", "ignore"))
    return plain + 4 * (len(text) - plain)
