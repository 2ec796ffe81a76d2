"""Working memory with 10,000 pages: to render what is visible, and to move a page.

    python benchmarks/context.py

The floor is bare SQL doing the same on the same rows: one indexed query for what is visible; one
transaction that locks the view and rewrites the moved page and its neighbours. `grows` shows that the
cost follows what is visible: the same open lists with 1,000, 10,000 and 30,000 pages in all. The
last line is one JSON object.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

PAGES = 10_000
OPEN_LISTS = 10
LIST_LENGTH = 20
ROUNDS = 300


def main() -> None:
    import django

    django.setup()
    with _server():
        from django.db import connection

        name = connection.creation.create_test_db(verbosity=0, autoclobber=True)
        try:
            report = measure()
        finally:
            connection.creation.destroy_test_db(name, verbosity=0)
    print(json.dumps(report))


def _server():
    from contextlib import nullcontext

    from django.conf import settings

    home = getattr(settings, "TEST_HOME", None)
    if home is None:
        return nullcontext()
    from contextlib import ExitStack

    from launch import place, postgres

    stack = ExitStack()
    stack.callback(place.remove, home)
    stack.callback(postgres.ensure(home, durable=True, temporary=True).leave)
    return stack


def measure() -> dict:
    systems = {count: a_view(count) for count in (1_000, PAGES, 3 * PAGES)}
    analyze()
    system = systems[PAGES]
    lists = [page.index for page in system.visible() if page.name.startswith("List")]
    render = timed(system.render)
    move = timed(mover(system, lists))
    deep = a_chain(1_000)
    return {
        "bench": "context",
        "ours": {
            "p50_ms": move["p50_ms"],
            "p95_ms": move["p95_ms"],
            "pages": PAGES,
            "visible": len(system.visible()),
            "render": render,
            "move": move,
            "fold_to_budget": timed(lambda: system.fold_to_budget(10**9), rounds=100),
            "render_1000_deep": timed(deep.render, rounds=50),
            "grows": {str(count): timed(view.render)["p50_ms"] for count, view in systems.items()},
        },
        "floor": {"render": timed(bare_render(system)), "move": timed(bare_mover(system, lists))},
        "peers": {},
    }


def a_view(count: int):
    """`count` pages in lists of 20: ten lists are open, the others are in a folded one."""
    from groups.models import Organization, Project
    from memory.context import ContextSystem, Tree
    from memory.context.models import PageKind, SegmentPermission, SegmentType, Visibility

    organization, _ = Organization.objects.get_or_create(slug="bench", name="Bench")
    project, _ = Project.objects.get_or_create(organization=organization, slug="bench", name="Bench")
    tree = Tree()
    tree.add_segment("usr", "User", "", SegmentType.USER, SegmentPermission.READ_WRITE)
    archive = tree.add_page("usr-0", PageKind.CONTENTS, "Archive", visibility=Visibility.HIDDEN)
    words = "A line of notes, as long as such lines are. " * 20
    for n in range(count // (LIST_LENGTH + 1)):
        is_open = n < OPEN_LISTS
        listing = tree.add_page("usr-0" if is_open else archive, PageKind.CONTENTS, f"List {n}")
        for item in range(LIST_LENGTH):
            folded = Visibility.HIDDEN if item else Visibility.EXPANDED
            tree.add_page(listing, PageKind.DETAIL, f"Note {item}", "what it is about", words, folded)
    system, _ = ContextSystem.open(organization.id, project.id, f"run_{count}", "", tree)
    return system


def a_chain(depth: int):
    from groups.models import Organization, Project
    from memory.context import ContextSystem, Tree
    from memory.context.models import PageKind, SegmentPermission, SegmentType

    tree = Tree()
    tree.add_segment("usr", "User", "", SegmentType.USER, SegmentPermission.READ_WRITE)
    parent = "usr-0"
    for _ in range(depth):
        parent = tree.add_page(parent, PageKind.CONTENTS, "Level")
    organization, project = Organization.objects.get().id, Project.objects.get().id
    return ContextSystem.open(organization, project, "run_deep", "", tree)[0]


def mover(system, lists: list[str]) -> Callable[[], None]:
    """Moves the first page of one open list to the middle of the next, as an agent does."""
    from memory.context import AgentContext

    agent, turn = AgentContext(system), iter(range(10**9))
    first = {index: [page.index for page in system.get_children(index)] for index in lists}

    def move() -> None:
        n = next(turn)
        source, target = lists[n % len(lists)], lists[(n + 1) % len(lists)]
        page = first[source].pop(0)
        agent.move_page(page, target, 10)
        first[target].insert(10, page)

    return move


def bare_render(system) -> Callable[[], None]:
    """What is visible, fetched by the keys known beforehand: no walk, no text made."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM memory_page WHERE view_id = %s AND index = ANY(%s)",
            [system.view_id, [page.index for page in system.visible()]],
        )
        keys = [row[0] for row in cursor.fetchall()]

    def fetch() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT index, name, description, CASE WHEN visibility = 'expanded' THEN detail END "
                "FROM memory_page WHERE id = ANY(%s)",
                [keys],
            )
            cursor.fetchall()

    return fetch


def bare_mover(system, lists: list[str]) -> Callable[[], None]:
    """The rows a move must change, in one transaction, nothing checked."""
    from django.db import connection, transaction

    from memory.context.models import Page

    keys = [page.pk for page in Page.objects.filter(view_id=system.view_id, index__in=lists)]
    turn = iter(range(10**9))

    def move() -> None:
        n = next(turn)
        source, target = keys[n % len(keys)], keys[(n + 1) % len(keys)]
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                "UPDATE memory_contextview SET version = version + 1 WHERE id = %s", [system.view_id]
            )
            cursor.execute("SELECT id FROM memory_page WHERE parent_id = %s AND position = 0", [source])
            page = cursor.fetchone()[0]
            cursor.execute(
                "UPDATE memory_page SET position = position - 1 WHERE parent_id = %s AND position > 0",
                [source],
            )
            cursor.execute(
                "UPDATE memory_page SET position = position + 1 WHERE parent_id = %s AND position >= 10",
                [target],
            )
            cursor.execute(
                "UPDATE memory_page SET parent_id = %s, position = 10 WHERE id = %s", [target, page]
            )
            cursor.execute(
                "UPDATE memory_page SET child_count = child_count + CASE id WHEN %s THEN 1 ELSE -1 END "
                "WHERE id IN (%s, %s)",
                [target, source, target],
            )

    return move


def analyze() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE memory_page, memory_segment, memory_contextview")


def timed(work: Callable[[], object], rounds: int = ROUNDS) -> dict[str, float]:
    for _ in range(20):
        work()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1000)
    cuts = statistics.quantiles(times, n=20)
    return {"p50_ms": round(statistics.median(times), 3), "p95_ms": round(cuts[-1], 3)}


if __name__ == "__main__":
    main()
