"""The tree stays a tree, whatever is done to it, by whomever, in whatever order (seed 002)."""

import json
import random
import sys
import threading
from dataclasses import asdict, dataclass, field

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from groups.models import Organization, Project
from memory.context import ContextError, ContextSystem, InvalidOperation, NotFound, Tree, apply_change, sql
from memory.context.changes import OutOfOrder
from memory.context.models import ContextView, Page, PageKind, SegmentType, Visibility

CONTENTS, DETAIL = PageKind.CONTENTS, PageKind.DETAIL
SEGMENTS = ("usr", "task")


def a_view(owner="run_1"):
    organization, _ = Organization.objects.get_or_create(slug="acme", defaults={"name": "Acme"})
    project, _ = Project.objects.get_or_create(
        organization=organization, slug="web", defaults={"name": "Web"}
    )
    return ContextSystem.open(organization.id, project.id, owner)


def stored(system):
    """Segments and pages by id, with everything that is kept of them."""
    pages = Page.objects.filter(view_id=system.view_id).select_related("parent")
    fields = ("kind", "position", "name", "description", "detail", "visibility", "opened_at", "child_count")
    return (
        {segment.segment_id: asdict(segment) for segment in system.list_segments()},
        {
            page.index: {"parent": page.parent and page.parent.index}
            | {name: getattr(page, name) for name in (*fields, "source")}
            for page in pages
        },
    )


def in_memory(tree):
    pages = {index: asdict(page) for index, page in tree.pages.items()}
    for page in pages.values():
        del page["index"]
    return {name: asdict(segment) for name, segment in tree.segments.items()}, pages


@dataclass
class Node:
    """A page of the model: what it is and the pages in it, in order."""

    kind: str
    name: str
    open: bool = True
    inside: list = field(default_factory=list)


class Working(RuleBasedStateMachine):
    """Random operations on a stored view and on nested lists, side by side."""

    handles = Bundle("handles")  # names of nodes; they stay when a page gets a new index

    @initialize(target=handles)
    def a_view(self):
        self.system, opened = a_view()
        self.log = [opened]
        self.nodes, self.index = {}, {}
        self.high = dict.fromkeys(SEGMENTS, 0)
        for segment in SEGMENTS:
            self.log.append(self.system.add_segment(segment, segment.title()))
            self.nodes[segment] = Node("contents", segment.title())
            self.index[segment] = f"{segment}-0"
        return multiple(*SEGMENTS)

    # What the model knows

    def holder(self, handle):
        return next((name for name, node in self.nodes.items() if handle in node.inside), None)

    def beneath(self, handle):
        return [handle, *(deep for child in self.nodes[handle].inside for deep in self.beneath(child))]

    def segment(self, handle):
        above = self.holder(handle)
        return handle if above is None else self.segment(above)

    def attempt(self, possible, operation):
        """Run it; what the model calls impossible must be refused and change nothing."""
        if possible:
            change = operation()
            self.log.append(json.loads(json.dumps(change)))
            return change
        before = stored(self.system)
        with pytest.raises(ContextError):
            operation()
        assert stored(self.system) == before
        return None

    def number(self, segment):
        self.high[segment] += 1
        return f"{segment}-{self.high[segment]}"

    def at(self, handle):
        return self.index.get(handle, "usr-9999")

    def alive(self, handle):
        return handle in self.nodes

    # What is done

    @rule(target=handles, parent=handles, kind=st.sampled_from(PageKind), place=st.none() | st.integers(0, 3))
    def create(self, parent, kind, place):
        room = len(self.nodes[parent].inside) if self.alive(parent) else 0
        possible = (
            self.alive(parent) and self.nodes[parent].kind == "contents" and (place is None or place <= room)
        )
        name = f"page {len(self.log)}"
        change = self.attempt(
            possible, lambda: self.system.add_page(self.at(parent), kind, name, position=place)
        )
        if change is None:
            return multiple()
        handle = f"h{len(self.log)}"
        self.nodes[handle] = Node(kind.value, name)
        self.nodes[parent].inside.insert(room if place is None else place, handle)
        self.index[handle] = self.number(self.segment(handle))
        assert change["index"] == self.index[handle]
        return handle

    @rule(source=handles, into=handles, place=st.none() | st.integers(0, 3))
    def move(self, source, into, place):
        possible = self.alive(source) and self.alive(into) and self.can_move(source, into)
        if possible:
            room = len([child for child in self.nodes[into].inside if child != source])
            possible = place is None or place <= room
        change = self.attempt(
            possible, lambda: self.system.move_page_internal(self.at(source), self.at(into), place)
        )
        if change is not None:
            self.moved(source, into, place)
            assert change["to"] == self.index[source]

    def can_move(self, source, target):
        return (
            source not in SEGMENTS
            and self.nodes[target].kind == "contents"
            and target not in self.beneath(source)
        )

    def moved(self, source, target, place):
        elsewhere = self.segment(source) != self.segment(target)
        self.nodes[self.holder(source)].inside.remove(source)
        room = self.nodes[target].inside
        room.insert(len(room) if place is None else place, source)
        if elsewhere:
            rest = sorted(self.beneath(source)[1:], key=lambda handle: int(self.index[handle].split("-")[1]))
            for handle in (source, *rest):
                self.index[handle] = self.number(self.segment(target))

    @rule(target=handles, parent=handles, first=handles, second=handles)
    def gather(self, parent, first, second):
        """A list made around pages that are there, when that is possible for both."""
        wanted = [first, second]
        possible = (
            first != second
            and all(map(self.alive, (parent, *wanted)))
            and self.nodes[parent].kind == "contents"
            and all(child not in SEGMENTS and parent not in self.beneath(child) for child in wanted)
            and (
                second not in self.beneath(first)  # else it has a new index by the time it is moved
                or self.segment(first) == self.segment(parent)
            )
        )
        name = f"list {len(self.log)}"
        change = self.attempt(
            possible,
            lambda: self.system.add_page(
                self.at(parent), CONTENTS, name, children=[self.at(child) for child in wanted]
            ),
        )
        if change is None:
            return multiple()
        handle = f"h{len(self.log)}"
        self.nodes[handle] = Node("contents", name)
        self.nodes[parent].inside.append(handle)
        self.index[handle] = self.number(self.segment(handle))
        for child in wanted:
            self.moved(child, handle, None)
        return handle

    @rule(handle=handles)
    def remove(self, handle):
        possible = self.alive(handle) and handle not in SEGMENTS
        if self.attempt(possible, lambda: self.system.remove_page_internal(self.at(handle))):
            gone = self.beneath(handle)
            self.nodes[self.holder(handle)].inside.remove(handle)
            for page in gone:
                del self.nodes[page], self.index[page]

    @rule(handle=handles, open=st.booleans())
    def show(self, handle, open):
        verb = self.system.expand_details_internal if open else self.system.hide_details_internal
        if self.attempt(self.alive(handle), lambda: verb(self.at(handle))):
            self.nodes[handle].open = open

    @rule(handle=handles, name=st.sampled_from(["new", " ", "two\nlines"]))
    def rename(self, handle, name):
        possible = self.alive(handle) and name.strip() != ""
        if self.attempt(possible, lambda: self.system.update_page_internal(self.at(handle), name)):
            self.nodes[handle].name = " ".join(name.split())

    # What always holds

    @invariant()
    def the_stored_tree_is_the_model(self):
        _, pages = stored(self.system)
        assert set(pages) == set(self.index.values())
        for handle, node in self.nodes.items():
            page = pages[self.index[handle]]
            above = self.holder(handle)
            assert page["parent"] == (self.index[above] if above else None)
            assert page["name"] == node.name
            assert page["kind"] == node.kind
            assert (page["visibility"] == "expanded") == node.open
            assert page["child_count"] == len(node.inside)
            assert [pages[self.index[child]]["position"] for child in node.inside] == [
                *range(len(node.inside))
            ]

    @invariant()
    def every_page_hangs_from_its_own_segment_s_root(self):
        _, pages = stored(self.system)
        for index, page in pages.items():
            seen = {index}
            while page["parent"] is not None:
                assert pages[page["parent"]]["kind"] == "contents"
                assert page["parent"] not in seen
                seen.add(page["parent"])
                page = pages[page["parent"]]
            assert {step.rpartition("-")[0] for step in seen} == {index.rpartition("-")[0]}
            assert f"{index.rpartition('-')[0]}-0" in seen

    @invariant()
    def no_index_is_given_twice(self):
        segments, pages = stored(self.system)
        for index in pages:
            name, _, number = index.rpartition("-")
            assert int(number) < segments[name]["next_index"] == self.high[name] + 1

    @invariant()
    def what_is_shown_is_what_is_open(self):
        expected = []
        waiting = [*SEGMENTS]
        while waiting:
            handle = waiting.pop(0)
            expected.append(self.index[handle])
            if self.nodes[handle].open:
                waiting = [*self.nodes[handle].inside, *waiting]
        assert list(self.system.render().indexes) == expected

    def teardown(self):
        if sys.exc_info()[0] or not hasattr(self, "log"):
            return  # it failed already
        tree = Tree.replay(self.log)
        assert in_memory(tree) == stored(self.system)
        again, _ = a_fresh_copy(self.system, self.log)
        assert stored(again) == stored(self.system)
        assert again.render() == self.system.render() == tree.render()


def a_fresh_copy(system, log):
    """Another stored view, empty, and everything done to it again."""
    view = ContextView.objects.create(
        organization_id=system.organization_id, project=Project.objects.get(), owner=f"copy of {len(log)}"
    )
    again = ContextSystem(system.organization_id, view.id)
    for change in log:
        apply_change(again, change)
    return again, view


class WorkingMemory(TestCase):
    """Random operations, random order; hypothesis shrinks what fails."""

    def test_random_operations_keep_every_invariant_and_replay_to_the_same_tree(self):
        run_state_machine_as_test(
            Rolled,
            settings=settings(
                max_examples=12,
                stateful_step_count=25,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )


class Rolled(Working):
    """Each life in a transaction of its own that is rolled back."""

    def __init__(self):
        super().__init__()
        self.atomic = transaction.atomic()
        self.atomic.__enter__()

    def teardown(self):
        try:
            super().teardown()
        finally:
            transaction.set_rollback(True)
            self.atomic.__exit__(None, None, None)


@pytest.fixture
def system(db):
    system, _ = a_view()
    system.add_segment("usr", "User")
    return system


def listing(system, parent="usr-0", name="Listing"):
    return system.add_page(parent, CONTENTS, name)["index"]


def note(system, parent="usr-0", name="Note", detail="words", **more):
    return system.add_page(parent, DETAIL, name, "", detail, **more)["index"]


def test_a_page_cannot_move_under_itself_or_what_is_inside_it(system):
    outer = listing(system)
    inner = listing(system, outer)
    deepest = listing(system, inner)
    for target in (outer, inner, deepest):
        with pytest.raises(InvalidOperation, match=f"page {outer} cannot be moved under itself"):
            system.move_page_internal(outer, target)


def test_a_root_stays_where_it_is(system):
    target = listing(system)
    with pytest.raises(InvalidOperation, match="page usr-0 is a root and cannot be moved"):
        system.move_page_internal("usr-0", target)
    with pytest.raises(InvalidOperation, match="page usr-0 is a root and cannot be removed"):
        system.remove_page_internal("usr-0")


def test_a_detail_page_holds_no_pages(system):
    leaf = note(system)
    with pytest.raises(InvalidOperation, match=f"page {leaf} is a detail page and holds no pages"):
        system.add_page(leaf, DETAIL, "x")
    with pytest.raises(InvalidOperation, match=f"page {leaf} is a detail page and holds no pages"):
        system.move_page_internal(listing(system), leaf)


def test_a_parent_that_is_not_there_is_named(system):
    with pytest.raises(NotFound, match="page usr-77 not found"):
        system.add_page("usr-77", DETAIL, "x")


def test_an_index_does_not_return_after_its_page_is_gone(system):
    first = note(system)
    system.remove_page_internal(first)
    assert note(system) == "usr-2"
    assert system.generate_index("usr") == "usr-3"


def test_a_segment_id_does_not_return_after_its_segment_is_gone(system):
    system.add_segment("lib", "Library")
    note(system, "lib-0")
    system.remove_segment("lib")
    assert [segment.segment_id for segment in system.list_segments()] == ["usr"]
    assert not Page.objects.filter(index__startswith="lib").exists()
    with pytest.raises(InvalidOperation, match="segment id lib is used"):
        system.add_segment("lib", "Library again")


def test_a_subtree_that_moves_to_another_segment_is_numbered_there(system):
    system.add_segment("lib", "Library")
    note(system, "lib-0")
    outer = listing(system)  # usr-1
    inner = listing(system, outer)  # usr-2
    leaf = note(system, inner, detail="kept")  # usr-3
    stays = note(system)
    change = system.move_page_internal(outer, "lib-0", 0)
    assert (change["to"], change["count"]) == ("lib-2", 3)
    assert [page.index for page in system.get_ancestors("lib-4")] == ["lib-3", "lib-2", "lib-0"]
    assert system.get_page("lib-4").detail == "kept"
    assert system.get_page(stays).position == 0
    for gone in (outer, inner, leaf):
        with pytest.raises(NotFound):
            system.get_page(gone)
    assert system.generate_index("lib") == "lib-5"


def test_siblings_close_up_and_make_room(system):
    pages = [note(system, name=f"n{n}") for n in range(5)]

    def order():
        return [(page.name, page.position) for page in system.get_children("usr-0")]

    system.move_page_internal(pages[0], "usr-0", 3)
    assert order() == [("n1", 0), ("n2", 1), ("n3", 2), ("n0", 3), ("n4", 4)]
    system.move_page_internal(pages[4], "usr-0", 1)
    assert order() == [("n1", 0), ("n4", 1), ("n2", 2), ("n3", 3), ("n0", 4)]
    system.remove_page_internal(pages[4])
    assert order() == [("n1", 0), ("n2", 1), ("n3", 2), ("n0", 3)]
    with pytest.raises(InvalidOperation, match="position 4 is not between 0 and 3"):
        system.move_page_internal(pages[1], "usr-0", 4)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ({"name": ""}, "needs a name"),
        ({"name": "x" * 201}, "at most 200"),
        ({"name": "ok", "detail": "a\x00b"}, "NUL"),
        ({"name": "ok", "detail": "\ud800"}, "surrogate"),
        ({"name": "ok", "description": "x" * 1_000_001}, "at most 1000000"),
    ],
)
def test_what_cannot_be_stored_is_refused_in_words(system, words, problem):
    with pytest.raises(InvalidOperation, match=problem):
        system.add_page("usr-0", DETAIL, **words)
    assert system.get_children("usr-0") == []


def test_a_list_has_no_words_of_its_own(system):
    with pytest.raises(InvalidOperation, match="contents page"):
        system.add_page("usr-0", CONTENTS, "x", detail="words")
    with pytest.raises(InvalidOperation, match="contents page"):
        system.update_page_internal(listing(system), detail="words")


def test_finding_is_by_name_and_description_in_any_case_and_any_script(system):
    note(system, name="Rechnung Übersicht")
    note(system, name="发票 2026")
    system.add_page("usr-0", DETAIL, "x", "100% of the INVOICES")
    found = lambda query: [page.name for page in system.find_page(query)]  # noqa: E731
    assert found("übersicht") == ["Rechnung Übersicht"]
    assert found("发票") == ["发票 2026"]
    assert found("invoices") == ["x"]
    assert found("100%") == ["x"]
    assert found("1_0%") == []
    assert found("  ") == []


def test_a_change_out_of_order_is_refused(system):
    change = system.add_page("usr-0", DETAIL, "x")
    with pytest.raises(OutOfOrder):
        apply_change(system, change)
    with pytest.raises(OutOfOrder):
        apply_change(system, {**change, "index": "usr-9", "seq": change["seq"] + 2})
    with pytest.raises(OutOfOrder):
        Tree().apply(change)


def test_every_moment_of_a_view_can_be_seen_again(system):
    log = [{"op": "open", "segments": [], "pages": [], "seq": 1}, system_segment_change(system)]
    moments = []
    page = None
    for step in range(12):
        if step % 3 == 0:
            change = system.add_page("usr-0", DETAIL, f"n{step}", detail=f"words {step}")
            page = change["index"]
        elif step % 3 == 1:
            change = system.hide_details_internal(page)
        else:
            change = system.move_page_internal(page, "usr-0", 0)
        log.append(change)
        moments.append(system.render())
    assert [Tree.replay(log[: 3 + n]).render() for n in range(12)] == moments


def system_segment_change(system):
    segment = system.get_segment("usr")
    fields = ("segment_id", "name", "description", "type", "permission", "position")
    return {"op": "add_segment", "seq": 2} | {name: getattr(segment, name) for name in fields}


def test_a_deep_tree_is_shown_in_one_query(system):
    parent = "usr-0"
    for n in range(60):
        parent = listing(system, parent, f"level {n}")
    note(system, parent, "at the bottom", detail="deep words")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        pages = system.visible()
    assert len(queries) == 1
    assert len(pages) == 62
    assert "deep words" in system.render().text


def test_what_is_folded_is_not_walked(system):
    folded = listing(system)
    system.hide_details_internal(folded)
    view = system.view_id
    Page.objects.bulk_create(
        Page(
            organization_id=system.organization_id,
            view_id=view,
            segment=Page.objects.get(index=folded, view_id=view).segment,
            parent=Page.objects.get(index=folded, view_id=view),
            index=f"usr-{n}",
            kind=DETAIL,
            position=n - 2,
            name="x",
        )
        for n in range(2, 502)
    )
    Page.objects.filter(index=folded).update(child_count=500)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memory_page")
        cursor.execute(
            "EXPLAIN (ANALYZE, FORMAT JSON) " + sql.VISIBLE,
            {"organization": system.organization_id, "view": view},
        )
        plan = json.dumps(cursor.fetchone()[0])
    touched = [int(float(part.split(",")[0])) for part in plan.split('"Actual Rows": ')[1:]]
    assert max(touched) <= 10
    assert len(system.visible()) == 2


@pytest.mark.django_db(transaction=True)
def test_two_agents_writing_at_once_wait_for_each_other():
    system, _ = a_view()
    system.add_segment("usr", "User")
    boxes = [listing(system, name=f"box {n}") for n in range(3)]
    problems = []

    def work(seed):
        try:
            mine = ContextSystem(system.organization_id, system.view_id)
            choice = random.Random(seed)
            for _ in range(25):
                page = note(mine, choice.choice(boxes), position=0)
                mine.move_page_internal(page, choice.choice(boxes), 0)
                if choice.random() < 0.3:
                    mine.remove_page_internal(page)
        except Exception as problem:
            problems.append(problem)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    _, pages = stored(system)
    for box in boxes:
        places = sorted(page["position"] for page in pages.values() if page["parent"] == box)
        assert places == [*range(len(places))]
        assert pages[box]["child_count"] == len(places)
    assert system.get_segment("usr").next_index == 3 + 75 + 1


@pytest.mark.django_db(transaction=True)
def test_two_moves_that_would_make_a_cycle_together_do_not():
    """Each is right alone: A under B, and B under A. The second to get the lock is refused."""
    system, _ = a_view()
    system.add_segment("usr", "User")
    first, second = listing(system), listing(system)
    start = threading.Barrier(2)
    results = []

    def move(source, target):
        mine = ContextSystem(system.organization_id, system.view_id)
        start.wait()
        try:
            mine.move_page_internal(source, target)
            results.append("moved")
        except InvalidOperation:
            results.append("refused")
        finally:
            connection.close()

    threads = [threading.Thread(target=move, args=pair) for pair in ((first, second), (second, first))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["moved", "refused"]
    assert len(system.visible()) == 3


@pytest.mark.django_db(transaction=True)
def test_a_view_opened_twice_at_once_is_one_view():
    organization = Organization.objects.create(slug="acme", name="Acme")
    project = Project.objects.create(organization=organization, slug="web", name="Web")
    start = threading.Barrier(4)
    views = []

    def open_view():
        start.wait()
        system, change = ContextSystem.open(organization.id, project.id, "agt_1", "mail")
        views.append((system.view_id, change is not None))
        connection.close()

    threads = [threading.Thread(target=open_view) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({view for view, _ in views}) == 1
    assert sum(made for _, made in views) == 1
    assert ContextView.objects.count() == 1


def test_folding_is_remembered_by_the_version_it_was_opened_at(system):
    first, second = note(system), note(system)
    system.hide_details_internal(first)
    system.expand_details_internal(first)
    assert system.get_page(first).opened_at > system.get_page(second).opened_at
    assert system.get_page(first).visibility == Visibility.EXPANDED
    assert system.get_segment("usr").type == SegmentType.CUSTOM
