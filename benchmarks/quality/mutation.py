"""Which mutants of a module the tests kill: cosmic-ray's mutants and a few more, in one warm process.

    python -m benchmarks.quality.mutation [MODULE.py ...] [--survivors]

`mutation.toml` says which modules, which tests see each, and which mutants are equivalent. A process for
each mutant would start Django hundreds of times; instead pytest collects once, and each mutant is put into
the functions of a fork that runs the tests until one fails. The unchanged source is put there first and has
to pass: what kills is the mutation, not the way it got there. Where an importer has copied a constant, the
copy stays as it was, which can hide a mutant from the tests and never kills one.

Needs cosmic-ray (`pip install cosmic-ray==8.7.0`), in an environment of its own beside Deputy's packages.
"""

import argparse
import ast
import difflib
import importlib
import os
import signal
import sys
import tomllib
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SETTINGS = Path(__file__).with_name("mutation.toml")
LEFT_OUT = {"__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__", "__static_attributes__"}
KILLED, SURVIVED, INVALID = 1, 0, 3  # exit statuses of a fork; any other, and a signal, is a kill


@dataclass(frozen=True)
class Mutant:
    operator: str
    source: str
    difference: str

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
                found.append(Mutant(name, mutated, difference(source, mutated)))
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


# putting a mutant into a running process


def put(source: str, module: types.ModuleType) -> None:
    """Gives the module's functions, classes and constants what the mutated source says."""
    mutated = types.ModuleType(module.__name__)
    mutated.__file__ = module.__file__
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
    """A pytest plugin: runs the collected tests once as they are, then once for each mutant."""

    def __init__(self, path: Path, seconds: int, jobs: int) -> None:
        self.path, self.seconds, self.jobs = path, seconds, jobs
        self.module = path.with_suffix("").as_posix().replace("/", ".")
        self.items: list[Any] = []
        self.failed = False
        self.results: list[tuple[Mutant, int]] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed = self.failed or report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        self.items = session.items
        for item in self.items:
            self.run(item)
            if self.failed:
                raise SystemExit(f"{item.nodeid} fails without any mutant")
        module = importlib.import_module(self.module)
        unchanged = Mutant("", self.path.read_text(), "")
        if next(self.against([unchanged], module))[1] != SURVIVED:
            raise SystemExit(f"the tests fail with an unchanged {self.path} put in place of the module")
        self.results = list(self.against(mutants(self.path), module))
        return True

    def run(self, item: Any) -> None:
        """What the session set up, such as the database, stays for the forks: hence the session is "next"."""
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=item.session)

    def against(self, tried: list[Mutant], module: types.ModuleType) -> Iterator[tuple[Mutant, int]]:
        """Each mutant with the exit status of its fork; several forks run at a time."""
        running: dict[int, Mutant] = {}
        waiting = list(reversed(tried))
        while waiting or running:
            while waiting and len(running) < self.jobs:
                mutant = waiting.pop()
                pid = os.fork()
                if pid == 0:
                    os._exit(self.in_fork(mutant, module))
                running[pid] = mutant
            pid, status = os.wait()
            if pid in running:
                mark(os.waitstatus_to_exitcode(status))
                yield running.pop(pid), os.waitstatus_to_exitcode(status)

    def in_fork(self, mutant: Mutant, module: types.ModuleType) -> int:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)  # of its own work, however busy the machine is
        forget_connections()
        try:
            put(mutant.source, module)
        except BaseException:
            return INVALID
        try:
            for item in self.items:
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


# the report


def examine(path: Path, settings: dict[str, Any], survivors: bool) -> bool:
    """Prints the module's score. Returns whether it is as high as the settings ask."""
    own = settings["modules"][path.as_posix()]
    equivalent = {(each["before"], each["after"]) for each in own.get("equivalent", ())}
    operators = {each["operator"] for each in settings["equivalent"]}
    trial = Trial(path, settings["seconds"], settings["jobs"])
    options = [
        "-o",
        "addopts=",
        "--assert=plain",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:terminal",
        "-m",
        "not slow",
    ]
    status = pytest.main([*options, *own["tests"]], plugins=[trial])
    if not trial.results:
        raise SystemExit(f"no mutant of {path} was tried (pytest's status {status})")
    tried = [(mutant, status) for mutant, status in trial.results if status != INVALID]
    survived = [mutant for mutant, status in tried if status == SURVIVED]
    left = [one for one in survived if one.lines not in equivalent and one.operator not in operators]
    same = len(survived) - len(left)
    score = 1 - len(left) / (len(tried) - same)
    print(
        f"{path}: {len(tried)} mutants, {same} equivalent, {len(tried) - same - len(left)} killed, "
        f"{len(left)} survived, score {score:.1%} ({len(trial.results) - len(tried)} did not load)"
    )
    for mutant in left if survivors else ():
        print(f"\n[{mutant.operator}]\n{mutant.difference}")
    return score >= settings["least"]


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
