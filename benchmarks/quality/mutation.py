"""Which mutants of a module the tests kill: cosmic-ray's mutants and a few more, in one warm process.

    python -m benchmarks.quality.mutation [MODULE.py | FOLDER ...] [--survivors]

`mutation.toml` says which modules, which tests see each, and which mutants are equivalent. A process for
each mutant would start Django hundreds of times; instead pytest collects once, and each mutant is put into
the functions of a fork that runs the tests until one fails: those that call the function it is in, the
quickest first. The unchanged source is put there first and last and has to pass: what kills is the mutation,
not the way it got there, nor what another mutant left behind. Where an importer has copied a constant, the
copy stays as it was, which can hide a mutant from the tests and never kills one.

Tests that ask the database share one server and one migrated database, so their mutants are tried one at a
time (`jobs = 1`), and tests that commit are left out: a killed one would leave its rows to the next mutant.
Where trying every mutant would take hours, `sample` of them are drawn by `seed`.

Needs cosmic-ray (`pip install cosmic-ray==8.7.0`), in an environment of its own beside Deputy's packages.
"""

import argparse
import ast
import difflib
import importlib
import math
import os
import random
import signal
import sys
import time
import tomllib
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SETTINGS = Path(__file__).with_name("mutation.toml")
LEFT_OUT = {"__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__", "__static_attributes__"}
CALLED = "__called__"  # in a module whose functions note that they are called
KILLED, SURVIVED, INVALID = 1, 0, 3  # exit statuses of a fork; any other, and a signal, is a kill


@dataclass(frozen=True)
class Mutant:
    path: Path | None  # None: no mutant at all, but every module as it is
    operator: str
    source: str
    difference: str
    line: int = 0  # where it begins, in the unchanged source

    @property
    def lines(self) -> tuple[str, str]:
        """What was there and what is there now, each on one line without indentation."""
        changed = self.difference.split("\n")
        return tuple(  # type: ignore[return-value]
            " ".join(line[1:].strip() for line in changed if line.startswith(sign)) for sign in "-+"
        )


def mutants(path: Path) -> list[Mutant]:
    """Every mutant of the file that differs in more than annotations and docstrings, each once."""
    from cosmic_ray.mutating import mutate_code

    source = path.read_text()
    seen = {meaning(source)}
    found = []
    for name, operator in operators():
        occurrence = 0
        while (mutated := mutate_code(source, operator, occurrence)) is not None:
            occurrence += 1
            means = meaning(mutated)
            if means is not None and means not in seen:
                seen.add(means)
                first = first_difference(source, mutated)
                found.append(Mutant(path, name, mutated, difference(source, mutated), first))
    return found


def operators() -> Iterator[tuple[str, Any]]:
    """cosmic-ray's operators that take no arguments, and those of this folder."""
    from cosmic_ray import plugins

    from benchmarks.quality.operators import OWN

    for name in plugins.operator_names():
        operator = plugins.get_operator(name)
        if not operator.arguments() and not name.endswith("/NoOp"):
            yield name.split("/")[1], operator()
    for own in OWN:
        yield own.__name__, own()


def meaning(source: str) -> str | None:
    """The program without annotations, docstrings and `__all__`; None where it is no program."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            node.value = ast.Constant(None)
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = [ast.Pass(), *node.body[1:]]
    return ast.dump(tree)


def difference(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=0)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def first_difference(before: str, after: str) -> int:
    pairs = zip(before.split("\n"), after.split("\n"), strict=False)
    return next((number for number, (one, other) in enumerate(pairs, 1) if one != other), 1)


def functions(path: Path) -> dict[int, int]:
    """By line, where the function or method around it begins, decorators and nested functions included."""
    around: dict[int, int] = {}
    for node in ast.walk(ast.parse(path.read_text())):  # outer nodes come first
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno not in around:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            around |= dict.fromkeys(range(first, (node.end_lineno or first) + 1), first)
    return around


class Noting(ast.NodeTransformer):
    """Every function begins by noting the line at which it begins."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.body.insert(0, ast.parse(f"{CALLED}.add({node.lineno})").body[0])
        return node


def noting(source: str) -> str:
    return ast.unparse(Noting().visit(ast.parse(source)))


# putting a mutant into a running process


def put(source: str, module: types.ModuleType) -> None:
    """Gives the module's functions, classes and constants what the mutated source says."""
    mutated = types.ModuleType(module.__name__)
    mutated.__file__ = module.__file__
    mutated.__dict__[CALLED] = vars(module).setdefault(CALLED, set())  # constants may have methods from here
    exec(compile(source, str(module.__file__), "exec"), mutated.__dict__)
    for name in set(vars(module)) - set(vars(mutated)):
        if not name.startswith("__"):
            delattr(module, name)
    for name, new in vars(mutated).items():
        old = vars(module).get(name)
        if isinstance(new, types.FunctionType) and isinstance(old, types.FunctionType):
            if new.__module__ == module.__name__:
                put_function(new, old)
        elif isinstance(new, type) and isinstance(old, type):
            if new.__module__ == module.__name__:
                put_class(new, old)
        elif new is old or name.startswith("__"):
            continue
        elif isinstance(new, dict) and isinstance(old, dict):
            old.clear()
            old.update(new)
        else:
            setattr(module, name, new)


def put_function(new: types.FunctionType, old: types.FunctionType) -> None:
    old.__code__, old.__defaults__, old.__kwdefaults__ = new.__code__, new.__defaults__, new.__kwdefaults__


def put_class(new: type, old: type) -> None:
    for name in set(vars(old)) - set(vars(new)) - LEFT_OUT:
        delattr(old, name)
    for name, value in vars(new).items():
        before = vars(old).get(name)
        if same_shape(value, before):
            put_function(value, before)
        elif isinstance(value, property) and isinstance(before, property):
            put_function(value.fget, before.fget)  # type: ignore[arg-type]
        elif name not in LEFT_OUT and not issubclass(old, str | BaseException):
            setattr(old, name, value)


def same_shape(new: Any, old: Any) -> bool:
    """Whether the code of one can stand in the other: both name as many variables of an outer function."""
    functions = isinstance(new, types.FunctionType) and isinstance(old, types.FunctionType)
    return functions and len(new.__code__.co_freevars) == len(old.__code__.co_freevars)


# running the tests against each


class Trial:
    """A pytest plugin: runs the collected tests once as they are, then the fitting ones for each mutant."""

    def __init__(self, paths: list[Path], own: dict[str, Any]) -> None:
        self.paths, self.own = paths, own
        self.around = {path: functions(path) for path in paths}
        self.modules: dict[Path, types.ModuleType] = {}
        self.calls: dict[Any, set[tuple[str, int]]] = {}
        self.seconds: dict[Any, float] = {}
        self.failed = False
        self.reason = ""
        self.all = 0
        self.results: list[tuple[Mutant, int]] = []

    def pytest_configure(self, config: Any) -> None:
        config.option.verbose = 0  # pytest-django asks, and the plugin with that option is left out

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if not commits(item)]

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed = True
            self.reason = report.longreprtext

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        self.modules = {path: module_of(path) for path in self.paths}
        for path, module in self.modules.items():
            put(noting(path.read_text()), module)
        for item in session.items:
            self.watch(item)
        self.put(Mutant(None, "", "", ""))
        self.expect_unchanged()
        found = [mutant for path in self.paths for mutant in mutants(path)]
        self.all = len(found)
        self.results = list(self.against(sample(found, self.own)))
        self.expect_unchanged()
        return True

    def watch(self, item: Any) -> None:
        """Runs a test and notes how long it took and which of the modules' functions it called."""
        for module in self.modules.values():
            vars(module)[CALLED].clear()
        began = time.monotonic()
        self.run(item)
        self.seconds[item] = time.monotonic() - began
        self.calls[item] = {
            (path, line) for path, module in self.modules.items() for line in vars(module)[CALLED]
        }
        if self.failed:
            raise SystemExit(f"{item.nodeid} fails without any mutant:\n{self.reason}")

    def expect_unchanged(self) -> None:
        """Every module is put there as it is, by one fork that runs all tests."""
        unchanged = Mutant(None, "", "", "")
        if [status for _, status in self.against([unchanged])] != [SURVIVED]:
            raise SystemExit("the tests fail with the unchanged source in place of the modules")

    def put(self, mutant: Mutant) -> None:
        for path, module in self.modules.items():
            if mutant.path is None:
                put(path.read_text(), module)
            elif mutant.path == path:
                put(mutant.source, module)

    def tests_of(self, mutant: Mutant) -> list[Any]:
        """Those that call the function a mutant is in, or anything of its module; the quickest first."""
        items = (
            self.calls if mutant.path is None else [one for one in self.calls if self.reaches(one, mutant)]
        )
        return sorted(items, key=self.seconds.__getitem__)

    def reaches(self, item: Any, mutant: Mutant) -> bool:
        around = self.around[mutant.path]
        function = around.get(mutant.line)
        return any(
            path == mutant.path and function in (None, around.get(line)) for path, line in self.calls[item]
        )

    def run(self, item: Any) -> None:
        """What the session set up, such as the database, stays for the forks: hence the session is "next"."""
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=item.session)

    def against(self, tried: list[Mutant]) -> Iterator[tuple[Mutant, int]]:
        """Each mutant with the exit status of its fork; several forks run at a time."""
        running: dict[int, Mutant] = {}
        waiting = list(reversed(tried))
        while waiting or running:
            while waiting and len(running) < self.own["jobs"]:
                mutant = waiting.pop()
                pid = os.fork()
                if pid == 0:
                    os._exit(self.in_fork(mutant))
                running[pid] = mutant
            pid, status = os.wait()
            if pid in running:
                mark(os.waitstatus_to_exitcode(status))
                yield running.pop(pid), os.waitstatus_to_exitcode(status)

    def in_fork(self, mutant: Mutant) -> int:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        seconds = self.own["seconds"]
        signal.setitimer(signal.ITIMER_PROF, seconds)  # of its own work, however busy the machine is
        signal.alarm(5 * seconds)  # one that waits for what never comes does no work
        forget_connections()
        try:
            self.put(mutant)
        except BaseException:
            return INVALID
        try:
            for item in self.tests_of(mutant):
                self.run(item)
                if self.failed:
                    return KILLED
        except BaseException:
            return KILLED
        return SURVIVED


def mark(status: int) -> None:
    """One sign for each mutant, as it ends: t is one that took too long."""
    print(
        {KILLED: ".", SURVIVED: "S", INVALID: "i"}.get(status, "t"), end="", flush=True, file=sys.__stderr__
    )


kept = []


def forget_connections() -> None:
    """The parent's connections are the parent's; a fork opens its own."""
    from django.db import connections

    for connection in connections.all(initialized_only=True):
        kept.append(connection.connection)
        connection.connection = None


def module_of(path: Path) -> types.ModuleType:
    return importlib.import_module(path.with_suffix("").as_posix().replace("/", "."))


def commits(item: Any) -> bool:
    marker = item.get_closest_marker("django_db")
    return "transactional_db" in item.fixturenames or bool(marker and marker.kwargs.get("transaction"))


def sample(found: list[Mutant], own: dict[str, Any]) -> list[Mutant]:
    """All, or as many as the settings say, the same ones for the same sources and seed."""
    size = own.get("sample", len(found))
    return found if size >= len(found) else random.Random(own["seed"]).sample(found, size)


# the report


def examine(target: Path, settings: dict[str, Any], survivors: bool) -> bool:
    """Prints the score of a module or folder. Returns whether it is as high as the settings ask."""
    own = {**settings, **settings["modules"][target.as_posix()]}
    equivalent = {(each["before"], each["after"]) for each in own.get("equivalent", ()) if "before" in each}
    operators = {each["operator"] for each in settings["equivalent"]}
    paths = [path for path in sorted(target.glob("*.py")) if path.stem != "__init__"] or [target]
    status, trial = attempt(paths, own)
    if not trial.results:
        raise SystemExit(f"no mutant of {target} was tried (pytest's status {status})")
    tried = [(mutant, status) for mutant, status in trial.results if status != INVALID]
    survived = [mutant for mutant, status in tried if status == SURVIVED]
    left = [one for one in survived if one.lines not in equivalent and one.operator not in operators]
    same = len(survived) - len(left)
    different = len(tried) - same
    score = 1 - len(left) / different
    low, high = wilson(different - len(left), different)
    of_all = "" if len(trial.results) == trial.all else f" of {trial.all}, drawn with seed {own['seed']}"
    print(
        f"{target}: {len(tried)} mutants{of_all}, {same} equivalent, {different - len(left)} killed, "
        f"{len(left)} survived, score {score:.1%} (95 %: {low:.0%} to {high:.0%}; "
        f"{len(trial.results) - len(tried)} did not load)"
    )
    for mutant in left if survivors else ():
        print(f"\n{mutant.path}:{mutant.line} [{mutant.operator}]\n{mutant.difference}")
    return score >= settings["least"]


def attempt(paths: list[Path], own: dict[str, Any]) -> tuple[int, Trial]:
    trial = Trial(paths, own)
    options = ["-o", "addopts=", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:terminal"]
    return pytest.main([*options, "-m", "not slow", *own["tests"]], plugins=[trial]), trial


def wilson(killed: int, tried: int) -> tuple[float, float]:
    """The 95 % confidence interval of a share that was seen in a sample."""
    z, share = 1.96, killed / tried
    middle = share + z * z / (2 * tried)
    reach = z * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried))
    return (middle - reach) / (1 + z * z / tried), (middle + reach) / (1 + z * z / tried)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("modules", nargs="*", type=Path)
    parser.add_argument("--survivors", action="store_true", help="show the mutants that no test noticed")
    options = parser.parse_args()
    settings = tomllib.loads(SETTINGS.read_text())
    modules = options.modules or [Path(name) for name in settings["modules"]]
    if len(modules) == 1:
        sys.exit(0 if examine(modules[0], settings, options.survivors) else 1)
    sys.exit(max([again(module, options.survivors) for module in modules]))


def again(module: Path, survivors: bool) -> int:
    """A module in a process of its own: pytest runs once a process."""
    command = [sys.executable, "-m", "benchmarks.quality.mutation", str(module)]
    return os.spawnv(os.P_WAIT, sys.executable, [*command, *(["--survivors"] if survivors else [])])


if __name__ == "__main__":
    main()
