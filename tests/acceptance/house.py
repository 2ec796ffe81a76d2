"""A real Deputy under test: a PostgreSQL of its own and clusters as real processes, on free ports."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection

from common import env
from common.processes import die_with_parent
from launch import binaries, postgres
from launch.home import PROJECT
from runs.log import log as run_log
from runs.models import Run, RunEvent, ToolCall
from tests.acceptance.witness import MailSink, Witness

MODEL = "scripted:tests.plays.by_goal"
PATIENCE = 60.0  # seconds: for what takes a fraction of that on an idle machine


def until(what: Callable[[], Any], seconds: float = PATIENCE, said: Callable[[], str] = str) -> Any:
    """The first true answer. Fails the test when none comes in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds:g} s: {getattr(what, '__name__', what)} {said()}")


class House:
    """The database, the witness and the mail server; starts clusters and ends them."""

    def __init__(self, *options: str, dumped: str = "", release: Path = PROJECT) -> None:
        """`options` of the server: `name=value`; `dumped`: a migrated database as SQL, to start with; else
        `release`, a folder with Deputy's code, migrates it.
        """
        self.home = postgres.temporary_home()
        self.server = postgres.Server(self.home, durable=False, temporary=True)
        self.server.options += options
        self.server.start()
        self.url = postgres.url(self.home)
        self.witness, self.mail = Witness(), MailSink()
        self.clusters: list[Cluster] = []
        self.common: Cluster | None = None
        self.logs = Path(tempfile.mkdtemp(prefix="deputy-logs-"))
        if not dumped:
            self.manage("migrate", "--verbosity", "0", release=release)
        with psycopg.connect(self.url) as own:
            own.execute(dumped)
            # a killed server keeps what it acknowledged, as with fsync
            own.execute("ALTER DATABASE deputy SET synchronous_commit = on")

    def environment(self, **more: str) -> dict[str, str]:
        return os.environ | {
            "DJANGO_SETTINGS_MODULE": "tests.settings_acceptance",
            "DATABASE_URL": self.url,
            "DEPUTY_HOME": str(self.home),
            "DEPUTY_WITNESS": self.witness.url,
            "DEPUTY_SMTP": self.mail.address,
            "DEPUTY_MODEL": MODEL,
            "LEASE_SECONDS": "2",
            "SWEEP_SECONDS": "1",
            "RUN_DEPTH": "10",
            "WORKERS": "2",
            "PYTHONUNBUFFERED": "1",
            **more,
        }

    def manage(self, *command: str, release: Path = PROJECT) -> str:
        """Run a command of manage.py; returns its output."""
        done = subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=release,
            env=self.environment(),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def cluster(self, release: Path = PROJECT, **environment: str) -> "Cluster":
        """Start one of the test's own and wait until its workers are there."""
        self.end_common()
        cluster = Cluster(self, self.environment(**environment), release)
        self.clusters.append(cluster)
        until(cluster.workers, said=cluster.said)
        return cluster

    def common_cluster(self) -> "Cluster":
        """One for several tests, whatever they do to it."""
        if self.common is None or self.common.process.poll() is not None:
            self.common = self.cluster()
            self.clusters.remove(self.common)
        until(self.common.workers, said=self.common.said)
        return self.common

    def settings(self) -> dict[str, Any]:
        return env.database(self.url)

    def report(self, run_id: str) -> str:
        """What a failed test shows."""
        runs = [f"{r.depth} {r.status} {r.waiting_reason} {r.error} {r.output}" for r in tree(run_id)]
        calls = ToolCall.objects.filter(run__root_id=run_id).order_by("run__depth", "id")
        called = [f"{c.run_id} {c.call_id} {c.tool} {c.status} {c.error}" for c in calls]
        return "\n".join(
            [
                *runs,
                *called,
                *(cluster.said()[-4000:] for cluster in filter(None, [*self.clusters, self.common])),
            ]
        )

    def end_common(self) -> None:
        if self.common is not None:
            self.common.end()
            self.common = None

    def end_clusters(self) -> None:
        for cluster in self.clusters:
            cluster.end()
        self.clusters = []

    def postmaster(self) -> int:
        """The server's process."""
        pid_file = self.server.place.data / "postmaster.pid"
        return int(pid_file.read_text().split("\n", 1)[0])

    def answers(self) -> bool:
        return postgres.answers(self.server.place, binaries.find())

    @contextmanager
    def beside(self) -> Iterator[psycopg.Connection]:
        """A connection to another database of the same server, in autocommit."""
        with psycopg.connect(self.url.rsplit("/", 1)[0] + "/postgres", autocommit=True) as own:
            yield own

    def transactions(self) -> int:
        """How many the database has seen; asked from beside it, so as not to be counted."""
        with self.beside() as own:
            count = own.execute(
                "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'deputy'"
            ).fetchone()
        return int(count[0])

    def close(self) -> None:
        self.end_clusters()
        self.end_common()
        self.witness.close()
        self.mail.close()
        self.server.leave()


class Cluster:
    """`manage.py cluster` and what it forks."""

    number = 0

    def __init__(self, house: House, environment: dict[str, str], release: Path = PROJECT) -> None:
        Cluster.number += 1
        self.log = house.logs / f"cluster-{Cluster.number}.log"
        self.count = int(environment["WORKERS"])
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "cluster"],
                cwd=release,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGTERM),
            )
        self.seen: set[int] = set()

    @property
    def group(self) -> int | None:
        """The newest group: the cluster's parent process."""
        return max(set(children(self.process.pid)) - set(self.carriers()), default=None)

    def carriers(self) -> list[int]:
        """The processes that carry outbound calls."""
        found = [pid for pid in children(self.process.pid) if name_of(pid) == "deputy-carrier"]
        self.seen.update(found)
        return found

    def sentinel(self) -> int | None:
        return min(children(self.group), default=None)

    def inner(self) -> list[int]:
        """What the sentinel has forked, in order: the workers, the monitor, the pusher."""
        found = sorted(children(self.sentinel()))
        self.seen.update(found, filter(None, [self.process.pid, self.group, self.sentinel()]))
        return found

    def workers(self) -> list[int]:
        found = self.inner()
        return found[: self.count] if len(found) >= self.count + 2 else []

    def said(self) -> str:
        return self.log.read_text()

    def kill(self, pid: int | None) -> None:
        """SIGKILL, to one process of this cluster alone."""
        assert pid is not None
        assert pid in self.seen or pid == self.process.pid, "only what this test has started"
        os.kill(pid, signal.SIGKILL)

    def end(self) -> None:
        self.inner()
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(30)
        finally:
            for pid in self.seen:
                if cluster_process(pid):
                    os.kill(pid, signal.SIGKILL)


def children(pid: int | None) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def name_of(pid: int) -> str:
    """What the process calls itself."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def cluster_process(pid: int) -> bool:
    """Whether the process is alive and one of `manage.py cluster`."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"cluster" in words


def tree(run_id: str) -> list[Run]:
    """The run and everything below it, ancestors first."""
    return list(Run.objects.filter(root_id=run_id).order_by("depth", "id"))


def check_logs(run_id: str) -> None:
    """The log of every run of the tree is dense, and its digests chain to the row's."""
    for run in tree(run_id):
        events = run_log.read(run.pk)
        assert [event.seq for event in events] == list(range(1, run.last_seq + 1))
        digests = list(RunEvent.objects.filter(run=run).order_by("seq").values_list("digest", flat=True))
        previous = ""
        for event, digest in zip(events, digests, strict=True):
            previous = run_log.chain(previous, event)
            assert previous == digest
        assert previous == run.last_digest


def status(run_id: str) -> str:
    connection.ensure_connection()
    return Run.objects.values_list("status", flat=True).get(pk=run_id)
