"""The house: imports run downwards only, and only the queue's own files know django-q2."""

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLOORS = ("common", "groups", "policy", "memory", "runs")  # from the ground up
QUEUE = ("runs/queue/put.py", "runs/queue/broker.py", "runs/queue/redis_broker.py", "runs/workers/worker.py")

# The rooms of runs, from the ground up; a room imports only from those in lines before its own, and itself.
ROOMS = (
    ("models", "providers"),
    ("observe", "queue"),
    ("log", "tools"),
    ("gate", "webhooks"),
    ("notices", "context"),
    ("outbound",),
    ("actions",),
    ("deciding", "execution"),
    ("workers", "api", "demo", "cells"),
    ("admin", "mcp", "a2a", "agui", "terminal"),
    ("web", "management"),
)
MOST_FLOORS = 12  # more than these nobody keeps in mind

# Not a floor: the entrance and the launcher stand beside the house, tests and benchmarks outside.
BESIDE = {"config", "launch", "tests", "benchmarks", "examples", "manage"}


def modules(folder):
    return sorted(path for path in (ROOT / folder).rglob("*.py") if "__pycache__" not in path.parts)


def imported(path):
    """The modules a file imports, wherever in it, relative ones resolved."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            yield ".".join((*base, *filter(None, [node.module])))
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "import_string"
        ):
            yield from (argument.value for argument in node.args if isinstance(argument, ast.Constant))


@pytest.mark.parametrize("floor", FLOORS)
def test_imports_run_downwards_only(floor):
    above = FLOORS[FLOORS.index(floor) + 1 :]
    upwards = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(floor)
        for name in imported(path)
        if name.split(".")[0] in above
    ]
    assert modules(floor) and not upwards


def rooms():
    return [room for line in ROOMS for room in line if (ROOT / "runs" / room).is_dir()]


def room_of(name):
    parts = name.split(".")
    return parts[1] if parts[0] == "runs" and len(parts) > 1 else None


@pytest.mark.parametrize("room", rooms())
def test_the_rooms_of_runs_import_downwards_only(room):
    line = next(number for number, names in enumerate(ROOMS) if room in names)
    allowed = {room, *(name for names in ROOMS[:line] for name in names)}
    upwards = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(f"runs/{room}")
        for name in imported(path)
        if (other := room_of(name)) and other not in allowed
    ]
    assert modules(f"runs/{room}") and not upwards


def test_the_rooms_of_runs_stand_on_at_most_so_many_floors():
    above = {}
    for line in ROOMS:
        for room in line:
            names = {name for path in modules(f"runs/{room}") for name in imported(path)}
            below = {room_of(name) for name in names} & above.keys()
            above[room] = 1 + max((above[other] for other in below), default=0)
    assert above.keys() == set(rooms()) and max(above.values()) <= MOST_FLOORS


def test_no_file_of_runs_imports_itself_by_way_of_others():
    files = {module_name(path): path for path in modules("runs")}
    graph = {name: (files.keys() & set(named(path))) - {name} for name, path in files.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the files


def module_name(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def named(path):
    """The modules a file imports, and what it takes out of them, which may be modules as well."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{each.name}" for each in node.names)
    yield from imported(path)


def test_every_module_of_runs_is_in_a_room():
    flat = {path.name for path in (ROOT / "runs").glob("*.py")}
    folders = {path.parent.name for path in (ROOT / "runs").glob("*/__init__.py")}
    assert flat == {"__init__.py", "apps.py"}
    assert folders == {*rooms(), "migrations"}


def test_the_architecture_page_shows_the_rooms_in_this_order():
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    picture = page.split("```")[1]
    lines = [
        {name for name in rooms() if re.search(rf"\b{name}  |\b{name}$|runs/{name}\b", row)}
        for row in picture.splitlines()
    ]
    shown = [names for names in reversed(lines) if names]
    below = [{name for name in line if name in rooms()} for line in ROOMS[:8]]
    assert shown[: len(below)] == below


def test_nothing_below_imports_the_entrance():
    outside = [
        f"{path.relative_to(ROOT)} imports {name}"
        for floor in FLOORS
        for path in modules(floor)
        for name in imported(path)
        if name.split(".")[0] in {"config", "launch"}
    ]
    assert not outside


def test_no_floor_imports_what_only_looks_at_it():
    outside = [
        f"{path.relative_to(ROOT)} imports {name}"
        for floor in FLOORS
        for path in modules(floor)
        for name in imported(path)
        if name.split(".")[0] in {"tests", "benchmarks", "manage"}
    ]
    assert not outside


def test_every_folder_of_code_has_its_place():
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert folders <= {*FLOORS, *BESIDE}


def test_only_the_queue_its_broker_and_its_workers_know_django_q():
    knows = {
        str(path.relative_to(ROOT))
        for floor in FLOORS
        for path in modules(floor)
        for name in imported(path)
        if name.split(".")[0] == "django_q" and "migrations" not in path.parts
    }
    assert knows <= set(QUEUE), knows - set(QUEUE)


def test_an_upward_import_would_be_seen(tmp_path, monkeypatch):
    (tmp_path / "groups").mkdir()
    (tmp_path / "groups" / "bad.py").write_text("def late():\n    from runs.models import Run\n")
    monkeypatch.setattr("tests.unit.test_architecture.ROOT", tmp_path)
    with pytest.raises(AssertionError, match=r"imports runs\.models"):
        test_imports_run_downwards_only("groups")


CLOCKS = {
    ("time", "time"),
    ("timezone", "now"),
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("date", "today"),
}
SHOWN_ONLY = ("admin", "terminal", "demo", "management", "migrations")  # ages on pages, nothing that decides
READS_ITS_OWN_CLOCK = {
    "runs/providers/failures.py",  # a model server's Retry-After may be a date of its own clock
    "memory/deposit.py",  # deposited_at, for people
}


def test_leases_and_expiry_go_by_the_databases_clock_alone():
    found = set()
    for floor in ("runs", "policy", "memory"):
        for path in (ROOT / floor).rglob("*.py"):
            if set(path.relative_to(ROOT).parts) & set(SHOWN_ONLY):
                continue
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                of = getattr(getattr(node, "value", None), "id", None)
                if isinstance(node, ast.Attribute) and (of, node.attr) in CLOCKS:
                    found.add(str(path.relative_to(ROOT)))
    assert found == READS_ITS_OWN_CLOCK
