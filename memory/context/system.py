"""ContextSystem: keeps one view's tree whole. It knows no rights and is never handed to an agent.

Each operation looks at the rows, writes down what is to happen as a change, and does the change. Doing
it again elsewhere (`apply`) gives the same tree. One lock, the view's row, comes first of all.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Length

from . import budget, changes, checks, sql
from .changes import Change
from .copies import FOUND_AT_MOST, PageCopy, SegmentCopy, number_of, segment_of
from .errors import InvalidOperation, NotFound, page_not_found, segment_not_found
from .models import ContextView, Page, PageKind, Segment, SegmentPermission, SegmentType, Visibility
from .rendering import Rendered, render
from .tree import Tree


class ContextSystem:
    """One stored view. An instance is used by one thread at a time."""

    def __init__(self, organization_id: str, view_id: str) -> None:
        self.organization_id = organization_id
        self.view_id = view_id
        self._locked: ContextView | None = None
        self._seen: dict[str, Page] = {}

    # Finding and opening a view

    @classmethod
    def find(
        cls, organization_id: str, project_id: str, owner: str, session_key: str = ""
    ) -> "ContextSystem | None":
        """The view of a run, or of an agent in a session; None while it has none."""
        view = ContextView.objects.filter(
            organization_id=organization_id, project_id=project_id, owner=owner, session_key=session_key
        ).first()
        return cls(organization_id, view.id) if view else None

    @classmethod
    def open(
        cls,
        organization_id: str,
        project_id: str,
        owner: str,
        session_key: str = "",
        tree: Tree | None = None,
    ) -> "tuple[ContextSystem, Change | None]":
        """The view and, if this call made it, the change that did: `tree` stored whole.

        Whoever comes second finds the first one's view, and no change.
        """
        view = ContextView(
            organization_id=organization_id, project_id=project_id, owner=owner, session_key=session_key
        )
        try:
            with transaction.atomic():
                view.save(force_insert=True)
                system = cls(organization_id, view.id)
                tree = tree or Tree()
                return system, system._do(tree.opening(), seq=max(tree.version, 1))
        except IntegrityError:
            found = cls.find(organization_id, project_id, owner, session_key)
            if found is None:
                raise
            return found, None

    # Reading: everything handed out is a copy

    def list_segments(self) -> list[SegmentCopy]:
        return [_segment_copy(segment) for segment in self._segments().order_by("position", "segment_id")]

    def get_segment(self, segment_id: str) -> SegmentCopy:
        return _segment_copy(self._segment(segment_id))

    def get_segment_by_page_index_internal(self, index: str) -> SegmentCopy:
        """The segment the page stands in. Raises NotFound."""
        return _segment_copy(self._row(index).segment)

    def get_page(self, index: str) -> PageCopy:
        page = self._page(index).select_related("parent").first()
        if page is None:
            raise page_not_found(index)
        return _page_copy(page)

    def get_children(self, index: str) -> list[PageCopy]:
        """In the order of their positions."""
        row = self._row(index)
        return [_page_copy(page, parent=index) for page in row.children.order_by("position")]

    def get_parent(self, index: str) -> PageCopy | None:
        """None for a root."""
        parent = self._row(index).parent
        return self.get_page(parent.index) if parent else None

    def get_ancestors(self, index: str) -> list[PageCopy]:
        """From the parent up to the root."""
        row = self._row(index)
        keys = sql.column(sql.ANCESTORS, page=row.pk)
        pages = {page.pk: page for page in Page.objects.filter(pk__in=keys).select_related("parent")}
        return [_page_copy(pages[key]) for key in keys]

    def find_page(self, query: str, limit: int = FOUND_AT_MOST) -> list[PageCopy]:
        """Pages whose name or description holds the text, in whatever case; by segment and number."""
        words = checks.text(query, "query").strip()
        if not words:
            return []
        matching = self._pages().filter(Q(name__icontains=words) | Q(description__icontains=words))
        ordered = matching.select_related("parent").order_by("segment__position", Length("index"), "index")
        return [_page_copy(page) for page in ordered[: max(limit, 0)]]

    def find_source(self, source: str) -> PageCopy | None:
        """The page that came from there, wherever it stands by now."""
        return self.by_source([source]).get(source)

    def by_source(self, sources: Sequence[str]) -> dict[str, PageCopy]:
        """Those of the pages that are there, by where they came from."""
        pages = self._pages().filter(source__in=sources).exclude(source="").select_related("parent")
        return {page.source: _page_copy(page) for page in pages}

    def visible(self) -> list[PageCopy]:
        """Roots and what expanded pages hold, in one query that walks nothing else."""
        found = sql.rows(sql.VISIBLE, organization=self.organization_id, view=self.view_id)
        return [PageCopy(*row) for row in found]

    def render(self) -> Rendered:
        return render(self.list_segments(), self.visible())

    def generate_index(self, segment_id: str) -> str:
        """The index the segment's next page gets."""
        return f"{segment_id}-{self._segment(segment_id).next_index}"

    # Segments

    def add_segment(
        self,
        segment_id: str,
        name: str,
        description: str = "",
        type: SegmentType = SegmentType.CUSTOM,
        permission: SegmentPermission = SegmentPermission.READ_WRITE,
    ) -> Change:
        """A new segment with its root, expanded. An id that was ever used is refused."""
        with self.writing() as view:
            segment_id = checks.segment_id(segment_id)
            if segment_id in view.retired or self._segments().filter(segment_id=segment_id).exists():
                raise InvalidOperation(f"segment id {segment_id} is used: indexes are never given twice")
            return self._do(
                {
                    "op": "add_segment",
                    "segment_id": segment_id,
                    "name": checks.name(name),
                    "description": checks.text(description, "description"),
                    "type": SegmentType(type).value,
                    "permission": SegmentPermission(permission).value,
                    "position": self._segments().count(),
                }
            )

    def remove_segment(self, segment_id: str) -> Change:
        """The segment and all its pages. A system segment stays."""
        with self.writing():
            if self._segment(segment_id).type == SegmentType.SYSTEM:
                raise InvalidOperation(f"segment {segment_id} holds the system prompt and stays")
            return self._do({"op": "remove_segment", "segment_id": segment_id})

    def set_permission(self, segment_id: str, permission: SegmentPermission) -> Change:
        with self.writing():
            self._segment(segment_id)
            permission = SegmentPermission(permission)
            return self._do(
                {"op": "set_permission", "segment_id": segment_id, "permission": permission.value}
            )

    # Pages

    def add_page(
        self,
        parent: str,
        kind: PageKind,
        name: str,
        description: str = "",
        detail: str = "",
        *,
        position: int | None = None,
        visibility: Visibility = Visibility.EXPANDED,
        source: str = "",
        children: Sequence[str] = (),
        parts: Sequence[tuple[str, str, str]] = (),
    ) -> Change:
        """A new page under `parent`, last unless told; the change's `index` is its index.

        A contents page may take over `children` that exist (they are moved), and be made with `parts`:
        folded detail pages (name, description, detail).
        """
        with self.writing():
            above = self._contents(parent)
            segment = above.segment
            page = PageCopy(
                index=f"{segment.segment_id}-{segment.next_index}",
                kind=PageKind(kind).value,
                parent=parent,
                position=checks.place(position, above.child_count),
                name=checks.name(name),
                description=checks.text(description, "description"),
                detail=checks.text(detail, "detail"),
                visibility=Visibility(visibility).value,
                source=checks.text(source, "source"),
            )
            if (children or parts) and not page.is_contents:
                raise InvalidOperation("a detail page holds no pages")
            if page.detail and page.is_contents:
                raise InvalidOperation("a contents page has no detail")
            if len(set(children)) < len(children):
                raise InvalidOperation("a page cannot be moved into a list twice")
            change = changes.creation(page)
            if parts:
                change["details"] = [_part(page.index, n, *part) for n, part in enumerate(parts)]
            return self._do(change, adopting=children)

    def update_page_internal(
        self,
        index: str,
        name: str | None = None,
        description: str | None = None,
        detail: str | None = None,
    ) -> Change:
        """New words; what is None stays. Only a detail page has a detail."""
        with self.writing():
            page = self._row(index)
            change: Change = {"op": "update", "index": index}
            if name is not None:
                change["name"] = checks.name(name)
            if description is not None:
                change["description"] = checks.text(description, "description")
            if detail is not None:
                if page.kind != PageKind.DETAIL:
                    raise InvalidOperation(f"page {index} is a contents page and has no detail")
                change["detail"] = checks.text(detail, "detail")
            return self._do(change)

    def expand_details_internal(self, index: str) -> Change:
        """Open the page; opening an open one makes it the most recently opened."""
        with self.writing():
            self._row(index)
            return self._do({"op": "expand", "index": index})

    def hide_details_internal(self, index: str) -> Change:
        """Fold the page. A system segment's root cannot be folded by anyone."""
        with self.writing():
            page = self._row(index)
            if page.parent_id is None and page.segment.type == SegmentType.SYSTEM:
                raise InvalidOperation(f"page {index} is the root of the system prompt and stays expanded")
            return self._do({"op": "hide", "index": index})

    def move_page_internal(self, source: str, target: str, position: int | None = None) -> Change:
        """Put `source` under the contents page `target`, last unless told.

        In another segment it and what is beneath it get that segment's indexes: the change's `to`.
        """
        with self.writing():
            return self._do(self._plan_move(source, target, position))

    def remove_page_internal(self, index: str) -> Change:
        """The page and everything beneath it."""
        with self.writing():
            if self._row(index).parent_id is None:
                raise InvalidOperation(f"page {index} is a root and cannot be removed")
            return self._do({"op": "remove", "index": index})

    def fold_to_budget(self, tokens: int) -> Change | None:
        """Fold what was opened longest ago until the view is within `tokens`; None if it is.

        The change says what was folded (`pages`) and the view's size before and after.
        """
        with self.writing():
            folding = budget.choose(self.list_segments(), self.visible(), tokens)
            if not folding.pages:
                return None
            return self._do(
                {
                    "op": "fold",
                    "pages": [{"index": page.index, "name": page.name} for page in folding.pages],
                    "budget": tokens,
                    "tokens_before": folding.before,
                    "tokens_after": folding.after,
                }
            )

    def _plan_move(self, source: str, target: str, position: int | None) -> Change:
        page, above = self._row(source), self._contents(target)
        if page.parent_id is None:
            raise InvalidOperation(f"page {source} is a root and cannot be moved")
        if page.pk == above.pk or (page.child_count and self._is_inside(above, page)):
            raise InvalidOperation(f"page {source} cannot be moved under itself: {target} is inside it")
        room = above.child_count - (1 if page.parent_id == above.pk else 0)
        change: Change = {
            "op": "move",
            "index": source,
            "to": source,
            "parent": target,
            "position": checks.place(position, room),
            "count": 1,
        }
        if page.segment_id != above.segment_id:
            segment = above.segment
            change["to"] = f"{segment.segment_id}-{segment.next_index}"
            change["count"] = sql.column(sql.COUNT_SUBTREE, page=page.pk)[0]
        return change

    def _is_inside(self, inner: Page, outer: Page) -> bool:
        return outer.pk in sql.column(sql.ANCESTORS, page=inner.pk)

    # Doing a change

    @contextmanager
    def writing(self, *indexes: str) -> Iterator[ContextView]:
        """The view's row, locked until the transaction ends; whoever else writes waits here.

        The pages of these indexes, if they are there, are read at once.
        """
        if self._locked is not None:
            yield self._locked
            return
        with transaction.atomic():
            view = (
                ContextView.objects.select_for_update(no_key=True)
                .filter(organization_id=self.organization_id, pk=self.view_id)
                .first()
            )
            if view is None:
                raise NotFound(f"view {self.view_id} not found")
            self._locked = view
            try:
                if indexes:
                    wanted = list(filter(checks.is_index, indexes))
                    self._seen = {row.index: row for row in self._rows().filter(index__in=wanted)}
                yield view
            finally:
                self._locked = None
                self._seen.clear()

    def apply(self, change: Change) -> None:
        """Do a recorded change. Raises OutOfOrder unless it is the next one."""
        with self.writing() as view:
            changes.check_order(view.version, change)
            getattr(self, f"_{change['op']}")(change)
            self._seen.clear()
            view.version = change["seq"]
            view.save(update_fields=["version"])

    def _do(self, change: Change, seq: int | None = None, adopting: Sequence[str] = ()) -> Change:
        """Do a new change; `adopting` are pages to move into the one it creates."""
        with self.writing() as view:
            change = {**change, "view": self.view_id, "seq": seq or view.version + 1}
            self.apply(change)
            if adopting:
                change["children"] = [self._adopt(child, change["index"]) for child in adopting]
            return change

    def _adopt(self, child: str, parent: str) -> Change:
        move = self._plan_move(child, parent, None)
        self._move(move)
        self._seen.clear()
        return move

    def _open(self, change: Change) -> None:
        segments = {
            row["segment_id"]: Segment(organization_id=self.organization_id, view_id=self.view_id, **row)
            for row in change["segments"]
        }
        pages = {
            row["index"]: Page(
                organization_id=self.organization_id,
                view_id=self.view_id,
                segment=segments[segment_of(row["index"])],
                **{field: value for field, value in row.items() if field != "parent"},
            )
            for row in change["pages"]
        }
        for row in change["pages"]:
            if row["parent"] is not None:
                pages[row["index"]].parent_id = pages[row["parent"]].pk
        Segment.objects.bulk_create(segments.values())
        Page.objects.bulk_create(pages.values())

    def _add_segment(self, change: Change) -> None:
        fields = ("segment_id", "name", "description", "type", "permission", "position")
        segment = Segment.objects.create(
            organization_id=self.organization_id,
            view_id=self.view_id,
            **{field: change[field] for field in fields},
        )
        root = PageCopy(
            segment.root_index,
            PageKind.CONTENTS.value,
            None,
            0,
            segment.name,
            segment.description,
            opened_at=change["seq"],
        )
        self._new_row(root, segment, None).save(force_insert=True)

    def _remove_segment(self, change: Change) -> None:
        segment = self._segment(change["segment_id"])
        root = self._row(segment.root_index)
        sql.change(sql.DELETE_SUBTREE, page=root.pk)
        self._segments().filter(pk=segment.pk).delete()
        with self.writing() as view:
            view.retired = [*view.retired, segment.segment_id]
            view.save(update_fields=["retired"])

    def _set_permission(self, change: Change) -> None:
        self._segments().filter(segment_id=change["segment_id"]).update(permission=change["permission"])

    def _create_detail(self, change: Change) -> None:
        above = self._row(change["parent"])
        page = changes.created(change, change["seq"])
        parts = [changes.created(part, change["seq"]) for part in change.get("details", ())]
        self._make_room(above, page.position)
        page.child_count = len(parts)
        row = self._new_row(page, above.segment, above.pk)
        Page.objects.bulk_create([row, *(self._new_row(part, above.segment, row.pk) for part in parts)])
        self._count(above, 1)
        self._use_up(above.segment, number_of(page.index) + len(parts))

    def _create_contents(self, change: Change) -> None:
        self._create_detail(change)
        for move in change.get("children", ()):
            self._seen.clear()
            self._move(move)

    def _update(self, change: Change) -> None:
        words = {field: change[field] for field in ("name", "description", "detail") if field in change}
        if words:
            self._page(change["index"]).update(**words)

    def _expand(self, change: Change) -> None:
        self._page(change["index"]).update(visibility=Visibility.EXPANDED, opened_at=change["seq"])

    def _hide(self, change: Change) -> None:
        self._page(change["index"]).update(visibility=Visibility.HIDDEN)

    def _fold(self, change: Change) -> None:
        folded = [page["index"] for page in change["pages"]]
        self._pages().filter(index__in=folded).update(visibility=Visibility.HIDDEN)

    def _move(self, change: Change) -> None:
        page, above = self._row(change["index"]), self._row(change["parent"])
        before = page.parent
        if before is None:
            raise InvalidOperation(f"page {page.index} is a root and cannot be moved")
        at, to = page.position, change["position"]
        left, right = (at + 1, sql.LAST), (to, sql.LAST)
        if before.pk == above.pk:
            left = right = (min(at, to), max(at, to))
        sql.change(
            sql.MOVE,
            page=page.pk,
            before=before.pk,
            above=above.pk,
            at=at,
            to=to,
            left_from=left[0],
            left_to=left[1],
            right_from=right[0],
            right_to=right[1],
        )
        if change["to"] != change["index"]:
            self._reindex(page, above.segment, number_of(change["to"]), change["count"])

    def _remove(self, change: Change) -> None:
        page = self._row(change["index"])
        if page.parent is None:
            raise InvalidOperation(f"page {page.index} is a root and cannot be removed")
        sql.change(sql.DELETE_SUBTREE, page=page.pk)
        self._close_gap(page.parent, page.position)
        self._count(page.parent, -1)

    # Pieces of a change

    def _new_row(self, page: PageCopy, segment: Segment, parent_id: Any) -> Page:
        fields = {field: getattr(page, field) for field in PageCopy.__slots__ if field != "parent"}
        return Page(
            organization_id=self.organization_id,
            view_id=self.view_id,
            segment_id=segment.pk,
            parent_id=parent_id,
            **fields,
        )

    def _make_room(self, above: Page, position: int) -> None:
        if position < above.child_count:
            above.children.filter(position__gte=position).update(position=F("position") + 1)

    def _close_gap(self, above: Page, position: int) -> None:
        if position < above.child_count - 1:
            above.children.filter(position__gt=position).update(position=F("position") - 1)

    def _count(self, above: Page, more: int) -> None:
        Page.objects.filter(pk=above.pk).update(child_count=F("child_count") + more)

    def _use_up(self, segment: Segment, number: int) -> None:
        Segment.objects.filter(pk=segment.pk).update(next_index=number + 1)

    def _reindex(self, page: Page, segment: Segment, first: int, count: int) -> None:
        sql.change(
            sql.REINDEX_SUBTREE,
            page=page.pk,
            segment=segment.pk,
            segment_id=segment.segment_id,
            first=first,
        )
        self._use_up(segment, first + count - 1)

    # Rows

    def _segments(self) -> QuerySet[Segment]:
        return Segment.objects.filter(organization_id=self.organization_id, view_id=self.view_id)

    def _pages(self) -> QuerySet[Page]:
        return Page.objects.filter(organization_id=self.organization_id, view_id=self.view_id)

    def _page(self, index: str) -> QuerySet[Page]:
        return self._pages().filter(index=index) if checks.is_index(index) else self._pages().none()

    def _segment(self, segment_id: str) -> Segment:
        segment = self._segments().filter(segment_id=segment_id).first()
        if segment is None:
            raise segment_not_found(segment_id)
        return segment

    def _rows(self) -> QuerySet[Page]:
        """Pages with segment and parent, without their words."""
        return self._pages().select_related("segment", "parent").defer("detail", "parent__detail")

    def _row(self, index: str) -> Page:
        """One of them; read once while the view is locked."""
        page = self._seen.get(index)
        if page is None:
            page = self._rows().filter(index=index).first() if checks.is_index(index) else None
            if page is None:
                raise page_not_found(index)
            if self._locked is not None:
                self._seen[index] = page
        return page

    def _contents(self, index: str) -> Page:
        page = self._row(index)
        if page.kind != PageKind.CONTENTS:
            raise InvalidOperation(f"page {index} is a detail page and holds no pages")
        return page


def _part(above: str, n: int, name: str, description: str, detail: str) -> Change:
    words = checks.text(description, "description"), checks.text(detail, "detail")
    return changes.part(above, n, checks.name(name), *words)


def _segment_copy(segment: Segment) -> SegmentCopy:
    return SegmentCopy(**{field: getattr(segment, field) for field in SegmentCopy.__slots__})


def _page_copy(page: Page, parent: str | None = None) -> PageCopy:
    if parent is None and page.parent is not None:
        parent = page.parent.index
    fields = {field: getattr(page, field) for field in PageCopy.__slots__ if field != "parent"}
    return PageCopy(parent=parent, **fields)
