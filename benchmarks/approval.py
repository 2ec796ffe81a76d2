"""From a person's approval to the end of the run that waited for it.

    python -m benchmarks.approval

`drives`: the process that takes the decision goes on with the run, as the floor and LangGraph (a node that
interrupts, resumed with the decision) do. `queue`: a worker of another process does, woken by the queue;
its floor is bare SQL with a NOTIFY and a second process. The run's end is looked for every half millisecond.
An item is one decision; the runs are parked before.
"""

import argparse
import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from benchmarks import harness, peers
from benchmarks.harness import FLOOR, OURS, Measured, Subject
from launch.home import PROJECT

MODULES = {FLOOR: "benchmarks.approval_floor", OURS: "benchmarks.approval_ours"}
WORKER = {
    FLOOR: [sys.executable, "-m", "benchmarks.approval_floor", "worker"],
    OURS: [sys.executable, "manage.py", "cluster"],
}


def subjects(options: argparse.Namespace) -> list[Subject]:
    chosen = [Subject(name, module) for name, module in MODULES.items()]
    python = None if options.no_peers else peers.python()
    return [*chosen, Subject("langgraph", "benchmarks.parked_langgraph", python)] if python else chosen


def drives(subject: Subject, admin_url: str, items: int, repetitions: int) -> Measured:
    """The process that decides goes on with the run. Raises Failed."""
    url = parked(subject, admin_url, items * repetitions, "drives")
    kind = "wake" if subject.name == "langgraph" else "drive"
    wake = dataclasses.replace(subject, kind=kind)
    return Measured.of([harness.repeat(wake, admin_url, url, 1, items).figures for _ in range(repetitions)])


def queued(subject: Subject, admin_url: str, items: int, repetitions: int) -> Measured:
    """A worker goes on with the run. Its idle connections do not count as a client's. Raises Failed."""
    url = parked(subject, admin_url, items * repetitions, "queue")
    decide = dataclasses.replace(subject, kind="decide")
    runs = []
    for _ in range(repetitions):
        with worker(WORKER[subject.name], url), quiet_harness():
            runs.append(harness.repeat(decide, admin_url, url, 1, items).figures)
    return Measured.of(runs)


def parked(subject: Subject, admin_url: str, runs: int, label: str) -> str:
    url = harness.database(admin_url, f"{subject.name}_{label}")
    harness.prepare(subject, url)
    park = dataclasses.replace(subject, kind="park")
    harness.repeat(park, admin_url, url, 1, runs + 4 * harness.WARM_UP, warm_up=0)
    return url


@contextlib.contextmanager
def worker(command: list[str], url: str) -> Iterator[None]:
    environment = harness.environment(url) | {
        "DJANGO_SETTINGS_MODULE": "benchmarks.approval_settings",
        "SECRET_KEY": "only-for-benchmarks-" + "0123456789" * 4,
    }
    process = subprocess.Popen(
        command, cwd=PROJECT, env=environment, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        time.sleep(3)  # until it listens; the warm-up finds out whether it does
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


@contextlib.contextmanager
def quiet_harness() -> Iterator[None]:
    """The harness waits for every connection to be gone; a worker's stay."""
    alone, harness.alone = harness.alone, lambda admin_url: time.sleep(1.2)  # type: ignore[assignment]
    try:
        yield
    finally:
        harness.alone = alone


def main() -> None:
    parser = harness.arguments("approval", items=100)
    options = parser.parse_args()
    told: dict[str, dict[str, Any]] = {"drives": {}, "queue": {}}
    with harness.server() as admin_url:
        for way, measure in (("drives", drives), ("queue", queued)):
            measured = {}
            for subject in subjects(options):
                if way == "queue" and subject.name not in WORKER:
                    continue
                with harness.left_out(subject.name):
                    measured[subject.name] = measure(subject, admin_url, options.items, options.repetitions)
            print(way, harness.table(measured, 1), sep="\n", end="\n\n", flush=True)
            told[way] = {name: one.told() for name, one in measured.items()}
    print(harness.last_line("approval", told["drives"], queue=harness.by_role(told["queue"])))


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    main()
