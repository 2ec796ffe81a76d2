"""Measure Deputy, the floor and the peers side by side: one server, one run, fsync on.

The floor is bare SQL doing the same durable work. Each subject is a module (benchmarks/client.py) whose
clients are processes of their own on a database of its own. What is measured per item: wall time (p50,
p95), commits and bytes of WAL, as the server counts them. Repetitions take turns between the subjects, so
that a slow minute of the machine meets all; what is told is the median of the repetitions, and their
spread.
"""

import argparse
import contextlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from launch import postgres
from launch.home import PROJECT

WARM_UP = 20  # items, shared by all clients; each does some
EXCEPTION = re.compile(r"[\w.]+(Error|Exception|Exit|Interrupt|DoesNotExist|Refused)\b")
OURS, FLOOR = "ours", "floor"


@dataclass(frozen=True)
class Subject:
    """What is measured: a module that ends in `client.serve(…)`, and the Python that runs it."""

    name: str
    module: str
    python: str = sys.executable
    kind: str = "work"  # which of the module's clients


@dataclass(frozen=True)
class Figures:
    """Of one item: milliseconds, commits, bytes of WAL; and how many all clients did in a second."""

    p50_ms: float
    p95_ms: float
    commits: float
    wal_bytes: float
    per_second: float

    def told(self) -> dict[str, float]:
        return {name: round(value, 3) for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Measured:
    """The median of the repetitions, figure by figure, and the repetitions themselves."""

    figures: Figures
    repetitions: tuple[Figures, ...]

    @classmethod
    def of(cls, repetitions: Sequence[Figures]) -> "Measured":
        columns = zip(*(asdict(figures).values() for figures in repetitions), strict=True)
        return cls(Figures(*map(median, columns)), tuple(repetitions))

    def told(self) -> dict[str, float]:
        return {**self.figures.told(), "spread": round(self.spread(), 2)}

    def spread(self) -> float:
        """How far p50 lies apart between the repetitions, as a share of its median."""
        p50s = [figures.p50_ms for figures in self.repetitions]
        return (max(p50s) - min(p50s)) / self.figures.p50_ms


@dataclass(frozen=True)
class Repetition:
    """Its figures, and what its clients held when all was done beside what they held before."""

    figures: Figures
    connections: int
    threads: int
    memory_kb: int


@dataclass(frozen=True)
class Counters:
    commits: int
    wal_bytes: int


class Failed(Exception):
    """A subject's process ended with an error; the message is its last words."""


# The server


@contextlib.contextmanager
def server() -> Iterator[str]:
    """A durable PostgreSQL of this run alone; the URL of a database to administer it from."""
    folder = postgres.temporary_home()
    running = postgres.ensure(folder, durable=True, temporary=True)
    assert running is not None  # only DATABASE_URL without a folder gives None
    try:
        yield postgres.url(folder)
    finally:
        running.leave()


def database(admin_url: str, name: str) -> str:
    """A new, empty database on the server; its URL."""
    with psycopg.connect(admin_url, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"')
    return admin_url.rpartition("/")[0] + "/" + name


def count(admin_url: str, url: str) -> Counters:
    """Commits of the database and bytes of the server's WAL up to now."""
    name = psycopg.conninfo.conninfo_to_dict(make_conninfo(url))["dbname"]
    with psycopg.connect(admin_url, autocommit=True) as admin:
        row = admin.execute(
            "SELECT xact_commit, (pg_current_wal_insert_lsn() - '0/0')::bigint "
            "FROM pg_stat_database WHERE datname = %s",
            [name],
        ).fetchone()
    assert row is not None
    return Counters(*row)


def alone(admin_url: str) -> None:
    """Wait until every client has left: the server has then counted all that they did."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if connected(admin_url) == 0:
            return
        time.sleep(0.02)
    raise Failed("a client left a connection open")


def connected(admin_url: str) -> int:
    """How many connections the server has, this one not counted."""
    with psycopg.connect(admin_url, autocommit=True) as admin:
        row = admin.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        ).fetchone()
    assert row is not None
    return int(row[0])


def fsync_ms(folder: Path) -> float:
    """What one write and fsync costs where the server keeps its data: most of a small commit."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(50):
            started = time.perf_counter()
            file.write(b"\0" * 8192)
            file.flush()
            os.fsync(file.fileno())
            times.append((time.perf_counter() - started) * 1000)
    return median(times)


# One repetition


def prepare(subject: Subject, url: str) -> None:
    """Let the subject make its tables and what its items need. Raises Failed."""
    done = subprocess.run(
        [subject.python, "-m", subject.module, "prepare", url],
        cwd=PROJECT,
        env=environment(url),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise Failed(_last_words(done.stderr))


def repeat(
    subject: Subject, admin_url: str, url: str, clients: int, items: int, warm_up: int = WARM_UP
) -> Repetition:
    """`items` by each of `clients` at once, after each has warmed up. Raises Failed."""
    warm_up = min(warm_up, max(5, warm_up // clients))
    alone(admin_url)
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(_client(subject, url, warm_up, items)) for _ in range(clients)]
        for process in processes:
            process.expect()
        before, connections = count(admin_url, url), connected(admin_url)
        for process in processes:
            process.say("go")
        results = [json.loads(process.expect()) for process in processes]
        connections = connected(admin_url) - connections
        for process in processes:
            process.say("leave")
    alone(admin_url)
    after = count(admin_url, url)
    # the statement that flushed the counters was counted with what it flushed: `before` holds it
    return Repetition(
        figures(results, after.commits - before.commits, after.wal_bytes - before.wal_bytes),
        connections,
        sum(result["threads"] for result in results),
        sum(result["memory_kb"] for result in results),
    )


def figures(results: Sequence[Mapping[str, Any]], commits: int, wal_bytes: int) -> Figures:
    """The figures of one repetition from what its clients told."""
    times = sorted(ms for result in results for ms in result["times_ms"])
    elapsed = max(result["ended"] for result in results) - min(result["started"] for result in results)
    return Figures(
        percentile(times, 0.5),
        percentile(times, 0.95),
        commits / len(times),
        wal_bytes / len(times),
        len(times) / elapsed,
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


class Process:
    """A client's process and the conversation with it."""

    def __init__(self, command: Sequence[str], url: str, errors: Any) -> None:
        self._errors = errors
        self.popen = subprocess.Popen(
            command,
            cwd=PROJECT,
            env=environment(url),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )

    def expect(self) -> str:
        """The client's next line. Raises Failed when there is none to come."""
        assert self.popen.stdout
        line = self.popen.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise Failed(_last_words(self._errors.read()))
        return line

    def say(self, word: str) -> None:
        assert self.popen.stdin
        self.popen.stdin.write(word + "\n")
        self.popen.stdin.flush()


@contextlib.contextmanager
def _client(subject: Subject, url: str, warm_up: int, items: int) -> Iterator[Process]:
    command = [subject.python, "-m", subject.module, subject.kind, url, str(warm_up), str(items)]
    with tempfile.TemporaryFile("w+") as errors:
        process = Process(command, url, errors)
        try:
            yield process
            process.popen.wait(30)
        finally:
            if process.popen.poll() is None:
                process.popen.kill()
            process.popen.communicate()


def environment(url: str) -> dict[str, str]:
    """What a subject sees: the database, and nothing that would send its traces elsewhere."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("LANGCHAIN", "LANGSMITH"))
    }
    return kept | {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "config.settings"}


def _last_words(errors: str) -> str:
    """The exception of a traceback, which notes may follow, or else the last line."""
    lines = [line for line in errors.splitlines() if line.strip()]
    named = [line for line in lines if EXCEPTION.match(line)]
    return (named or lines or ["no reason given"])[-1]


# All repetitions, and what is told


def measure(
    subjects: Sequence[Subject], admin_url: str, clients: int, items: int, repetitions: int
) -> dict[str, Measured]:
    """Prepare and measure the subjects in turns; one that fails is left out, with its reason on stderr."""
    urls: dict[str, str] = {}
    for subject in subjects:
        with left_out(subject.name):
            url = database(admin_url, f"{subject.name}_{clients}")
            prepare(subject, url)
            urls[subject.name] = url
    runs: dict[str, list[Figures]] = {name: [] for name in urls}
    for _ in range(repetitions):
        for subject in subjects:
            if subject.name in urls:
                with left_out(subject.name):
                    url = urls[subject.name]
                    runs[subject.name].append(repeat(subject, admin_url, url, clients, items).figures)
    return {name: Measured.of(done) for name, done in runs.items() if len(done) == repetitions}


@contextlib.contextmanager
def left_out(name: str) -> Iterator[None]:
    try:
        yield
    except Failed as failed:
        print(f"{name} is left out: {failed}", file=sys.stderr)


def table(measured: Mapping[str, Measured], clients: int) -> str:
    """The figures for reading, with each p50 against the floor's."""
    floor = measured.get(FLOOR)
    head = f"{f'{clients} client' + 's' * (clients > 1):<12}{'p50 ms':>9}{'p95 ms':>9}{'per s':>9}"
    lines = [head + f"{'commits':>9}{'WAL KB':>9}{'p50 ÷ floor':>13}{'spread':>8}"]
    for name, one in measured.items():
        told = one.figures
        ratio = f"{told.p50_ms / floor.figures.p50_ms:.2f}" if floor else "–"
        lines.append(
            f"{name:<12}{told.p50_ms:>9.2f}{told.p95_ms:>9.2f}{told.per_second:>9.0f}"
            f"{told.commits:>9.1f}{told.wal_bytes / 1000:>9.1f}{ratio:>13}{one.spread():>8.0%}"
        )
    return "\n".join(lines)


def by_role(told: Mapping[str, Any]) -> dict[str, Any]:
    """Ours, the floor and the peers, each as told; None for one that was left out."""
    peers = {name: value for name, value in told.items() if name not in (OURS, FLOOR)}
    return {OURS: told.get(OURS), FLOOR: told.get(FLOOR), "peers": peers}


def last_line(bench: str, told: Mapping[str, Any], **more: Any) -> str:
    """The one JSON object a benchmark ends with."""
    return json.dumps({"bench": bench, **by_role(told), **more})


def compare(bench: str, subjects: Callable[[argparse.Namespace], Sequence[Subject]], items: int) -> None:
    """Run a benchmark from the command line: one client, then eight; the table, then the JSON line."""
    parser = arguments(bench, items)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8])
    options = parser.parse_args()
    chosen = subjects(options)
    told: dict[int, dict[str, Any]] = {}
    with server() as admin_url:
        print(
            f"{bench}: fsync on, {fsync_ms(Path(tempfile.gettempdir())):.2f} ms each; {os.cpu_count()} cores"
        )
        for clients in options.clients:
            each = max(1, options.items // clients)
            measured = measure(chosen, admin_url, clients, each, options.repetitions)
            print(table(measured, clients), end="\n\n", flush=True)
            told[clients] = {name: one.told() for name, one in measured.items()}
    first, *others = options.clients
    more = {f"clients_{clients}": by_role(told[clients]) for clients in others}
    print(last_line(bench, told[first], **more))


def arguments(bench: str, items: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{bench}")
    parser.add_argument("--items", type=int, default=items, help="in each repetition, over all clients")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--no-peers", action="store_true", help="measure Deputy and the floor only")
    return parser
