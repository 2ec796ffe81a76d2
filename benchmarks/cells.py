"""How long does an organization pause that moves to another cell, and do cells cost each other anything?

    python -m benchmarks.cells [--runs 10000] [--events 20] [--moves 3] [--a-second 3]
        [--cells 3] [--each 60] [--only moves|cells]

Moves: two cells, each a PostgreSQL with `make run`. An organization of so many ended runs is moved to and fro
as `manage.py move_organization` does it, each time while runs are begun in it, `--a-second`, and are at work;
all that were acknowledged have to complete where it went. Cells: one PostgreSQL with `make run` takes so many
runs, alone, and then as many each at the same time as others. Told of each run: statements, processor time of
the server and of Deputy's processes, bytes of WAL. The last line is JSON; docs/scale.md is computed from it
(benchmarks/scale.py).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import psycopg

from benchmarks.capacity import TICKS, Installation, model_server, processor_seconds, told_by
from benchmarks.harness import environment
from launch import postgres
from launch.home import PROJECT

MODEL_SECONDS = 3.0
PATIENCE = 300.0  # for runs under way to complete
IDLE_SECONDS = 20.0
SECRET = "of-a-benchmark-" + "0123456789" * 3
PRELOADED = "shared_preload_libraries=pg_stat_statements"
BATCH = 2_000
RUNS = """
INSERT INTO runs_run (id, organization_id, project_id, user_id, root_id, depth, kind, driver, session_key,
    goal, context, status, budgets, usage, attempt, crashes, last_seq, last_digest, created_at, started_at,
    ended_at)
SELECT made.id, o.id, p.id, u.id, made.id, 0, 'personal', 'internal', '', 'An old goal', '', 'completed',
    '{}', '{}', 1, 0, %s, repeat('0', 64), made.at, made.at, made.at
FROM unnest(%s::text[], %s::timestamptz[]) AS made(id, at),
    groups_organization o, groups_project p, auth_user u
WHERE u.username = 'mia'
"""
CALLS = """
INSERT INTO runs_toolcall (id, organization_id, run_id, call_id, agent, seat, role_id, tool, arguments,
    effective_arguments, request_digest, idempotency_key, status, attempt, result, traceparent,
    created_at, ended_at)
SELECT 'tcl_' || substr(r.id, 5), r.organization_id, r.id, 'c1', '', '', '', 'memory_search',
    '{"query": "what do our competitors charge"}', '{}', '', r.id, 'succeeded', 1, '{"found": []}', '',
    r.created_at, r.created_at
FROM runs_run r WHERE r.goal = 'An old goal'
"""
STATEMENTS = "SELECT sum(calls), pg_current_wal_insert_lsn() - '0/0' FROM pg_stat_statements WHERE toplevel"
SIZE = """
SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
OPEN = "SELECT count(*) FROM runs_run WHERE ended_at IS NULL"
BEGUN = "SELECT status, count(*) FROM runs_run WHERE goal <> 'An old goal' AND depth = 0 GROUP BY 1"


@dataclass
class Counted:
    """Up to now: statements and bytes of WAL of the server, seconds of processor time of it and of Deputy."""

    statements: int
    wal: int
    server_s: float
    deputy_s: float


class CellAtWork:
    """A PostgreSQL of its own, and Deputy as `make run` starts it."""

    def __init__(self, dumped: str = "") -> None:
        self.home = postgres.temporary_home()
        self.server = postgres.Server(self.home, durable=True, temporary=True)
        self.server.options += (PRELOADED, "pg_stat_statements.max=5000")
        self.server.start()
        self.url = postgres.url(self.home)
        self.installation: Installation | None = None
        if dumped:
            with psycopg.connect(self.url) as own:
                own.execute(dumped)
        else:
            self.manage("migrate", "--verbosity", "0")
        self.asked("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")

    def environment(self) -> dict[str, str]:
        return environment(self.url) | {"SECRET_KEY": SECRET, "DEPUTY_HOME": str(self.home)}

    def manage(self, *command: str) -> None:
        subprocess.run(
            [sys.executable, "manage.py", *command], cwd=PROJECT, env=self.environment(), check=True
        )

    def asked(self, sql: str) -> list[Any]:
        with psycopg.connect(self.url, autocommit=True) as own:
            done = own.execute(sql)  # type: ignore[call-overload]
            return list(done.fetchall()) if done.description else []

    def told(self, *words: str) -> dict[str, float]:
        return told_by([sys.executable, "-m", *words], self.environment())

    def work(self, model_url: str, home: Path) -> None:
        home.mkdir()
        more = {"SECRET_KEY": SECRET, "WORKERS": "1", "ALLOWED_HOSTS": "127.0.0.1"}
        self.installation = Installation(self.url, model_url, home, **more)

    def counted(self) -> Counted:
        assert self.installation is not None
        pid = int((self.server.place.data / "postmaster.pid").read_text().split("\n", 1)[0])
        ((statements, wal),) = self.asked(STATEMENTS)
        spent = processor_seconds(pid) + of_ended(pid), self.installation.processor_seconds()
        return Counted(int(statements), int(wal), *spent)

    def close(self) -> None:
        if self.installation is not None:
            self.installation.stop()
        self.server.leave()


def of_ended(pid: int) -> float:
    """Of processor time, of the server's processes that have ended: each connection is one."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / TICKS


def fill(runs: int, events: int) -> None:
    """Ended runs, over the last month, in the organization that is there."""
    import django

    django.setup()
    from datetime import UTC, datetime, timedelta

    from benchmarks.months import LOG
    from common import ids
    from common.db import execute

    begun = datetime.now(UTC) - timedelta(days=30)
    step = timedelta(days=29) / runs
    for at in range(0, runs, BATCH):
        moments = [begun + n * step for n in range(at, min(at + BATCH, runs))]
        names = [ids.first_of("run", moment) for moment in moments]
        execute(RUNS, [events, names, moments])
        execute(LOG, {"ids": names, "ats": moments, "last": events})
    execute(CALLS)
    execute("VACUUM ANALYZE")
    print("{}")


def begin(a_second: float) -> None:
    """Start runs until their organization has gone; tells how many were acknowledged."""
    import django

    django.setup()
    from django.contrib.auth import get_user_model
    from django.db import DatabaseError

    from common.db import is_locked
    from groups.models import Project
    from tests.acting import start

    user = get_user_model().objects.get(username="mia")
    project = Project.objects.get(slug="supply")
    begun = 0
    while True:
        try:
            start(user=user, project=project, goal=f"What does crate {begun} cost?")
            begun += 1
            time.sleep(1 / a_second)
        except DatabaseError as error:
            if not is_locked(error):
                break  # the fence, or a key to what has been removed
        except Exception:  # whatever it says of an organization that is not there
            break
    print(json.dumps({"begun": begun}))


def move(to: str) -> None:
    """Move the organization; tells what the command tells."""
    import django

    django.setup()
    from runs.cells import move as moving

    done = moving.move("acme", to)
    names = ("copying", "leaving", "pause", "removing", "caught_up")
    told = {name: round(getattr(done, name), 3) for name in names}
    print(json.dumps(told | {"rows": sum(done.rows.values()), "runs": done.rows["runs_run"]}))


def until_none_is_open(cell: CellAtWork) -> float:
    """Seconds until every run there has ended."""
    begun = time.monotonic()
    while cell.asked(OPEN)[0][0]:
        assert time.monotonic() - begun < PATIENCE, cell.asked(BEGUN)
        time.sleep(0.1)
    return time.monotonic() - begun


def until_begun(cell: CellAtWork) -> None:
    """Runs are at work there."""
    while not cell.asked(OPEN)[0][0]:
        time.sleep(0.1)


def moves(arguments: argparse.Namespace, model_url: str, folder: Path) -> dict[str, Any]:
    """Each move's figures, and their median and largest pause."""
    from tests.upgrades import dump

    with ExitStack() as opened:
        here = CellAtWork()
        opened.callback(here.close)
        there = CellAtWork(dump(here.url))
        opened.callback(there.close)
        there.manage("cell", "--number", "2", "--address", "http://127.0.0.1:1002")
        here.told("benchmarks.capacity_ours", "prepare", here.url)
        here.manage("cell", "--number", "0", "--address", "http://127.0.0.1:1000")
        here.told("benchmarks.cells", "fill", str(arguments.runs), str(arguments.events))
        for name, cell in (("here", here), ("there", there)):
            cell.work(model_url, folder / name)
        told, begun = [], 0
        for _ in range(arguments.moves):
            with ThreadPoolExecutor(1) as beside:
                starting = beside.submit(here.told, "benchmarks.cells", "begin", str(arguments.a_second))
                until_begun(here)
                one = here.told("benchmarks.cells", "move", there.url)
                one["begun"] = starting.result()["begun"]
            begun += int(one["begun"])
            one["until_all_ended_s"] = round(until_none_is_open(there), 1)
            assert dict(there.asked(BEGUN)) == {"completed": begun}, there.asked(BEGUN)
            told.append(one)
            print(one, flush=True)
            here, there = there, here
    pauses = [one["pause"] for one in told]
    summary = {"pause_median_s": median(pauses), "pause_most_s": max(pauses)}
    asked = {name: getattr(arguments, name) for name in ("runs", "events", "a_second")}
    return {"moves": told, **summary, **asked}


@contextmanager
def cells_at_work(count: int, model_url: str, folder: Path) -> Iterator[list[CellAtWork]]:
    from tests.upgrades import dump

    with ExitStack() as opened:
        found: list[CellAtWork] = []
        dumped = ""
        for number in range(count):
            cell = CellAtWork(dumped)
            opened.callback(cell.close)
            if not number:
                cell.told("benchmarks.capacity_ours", "prepare", cell.url)
                dumped = dump(cell.url)
            cell.work(model_url, folder / f"cell-{number}")
            found.append(cell)
        yield found


def each_run(cell: CellAtWork, runs: int) -> dict[str, float]:
    """What a run cost in the cell: so many, all begun at once."""
    before = cell.counted()
    worked = cell.told("benchmarks.capacity_ours", "work", "escalation", str(runs))
    after = cell.counted()
    return {
        "statements": round((after.statements - before.statements) / runs, 1),
        "server_ms": round((after.server_s - before.server_s) / runs * 1000, 2),
        "deputy_ms": round((after.deputy_s - before.deputy_s) / runs * 1000, 2),
        "wal_kb": round((after.wal - before.wal) / runs / 1024, 1),
        "wall_s": round(worked["wall_s"], 1),
    }


def idle(cell: CellAtWork) -> dict[str, float]:
    """What a cell costs in a second in which nothing is asked of it."""
    before = cell.counted()
    time.sleep(IDLE_SECONDS)
    after = cell.counted()
    return {
        "statements": round((after.statements - before.statements) / IDLE_SECONDS, 1),
        "server_ms": round((after.server_s - before.server_s) / IDLE_SECONDS * 1000, 2),
        "deputy_ms": round((after.deputy_s - before.deputy_s) / IDLE_SECONDS * 1000, 2),
    }


def side_by_side(arguments: argparse.Namespace, model_url: str, folder: Path) -> dict[str, Any]:
    """A run's cost in one cell that works alone, and in each of several at once."""
    with cells_at_work(arguments.cells, model_url, folder) as cells:
        each_run(cells[0], 10)  # warm
        resting = idle(cells[0])
        (size,) = cells[0].asked(SIZE)[0]
        alone = each_run(cells[0], arguments.each)
        (grown,) = cells[0].asked(SIZE)[0]
        alone["stored_kb"] = round(int(grown - size) / arguments.each / 1024, 1)
        with ThreadPoolExecutor(len(cells)) as at_once:
            together = list(at_once.map(lambda cell: each_run(cell, arguments.each), cells))
    averages = {name: round(mean(one[name] for one in together), 2) for name in together[0]}
    return {
        "idle": resting,
        "alone": alone,
        "together": together,
        "together_mean": averages,
        "cells": arguments.cells,
        "each": arguments.each,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=20)
    parser.add_argument("--moves", type=int, default=3)
    parser.add_argument("--a-second", type=float, default=3)
    parser.add_argument("--cells", type=int, default=3)
    parser.add_argument("--each", type=int, default=60)
    parser.add_argument("--only", choices=("moves", "cells"))
    arguments = parser.parse_args()
    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        if arguments.only != "moves":
            with model_server(MODEL_SECONDS) as model_url:
                told["side_by_side"] = side_by_side(arguments, model_url, Path(folder))
            print(json.dumps(told), flush=True)
        if arguments.only != "cells":
            with model_server(MODEL_SECONDS) as model_url:
                told["moving"] = moves(arguments, model_url, Path(folder))
    told["processors"], told["load"] = os.cpu_count(), round(os.getloadavg()[1], 1)
    print(json.dumps(told))


if __name__ == "__main__":
    if sys.argv[1:2] == ["fill"]:
        fill(int(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1:2] == ["begin"]:
        begin(float(sys.argv[2]))
    elif sys.argv[1:2] == ["move"]:
        move(sys.argv[2])
    else:
        main()
