"""What large results of tools cost in PostgreSQL: room, WAL, backup, and the step that keeps them.

    python -m benchmarks.payloads [--rows 1000] [--runs 30]

A durable embedded PostgreSQL in a temporary folder. `rows` results of 100,000 characters, the most of a
page, of each of three kinds: text (slices of docs/), records (JSON as programs answer), and noise
(random base64, which nothing compresses). For each, with PostgreSQL's own compression and with lz4:
`bytes_each` of the table with all that belongs to it, `wal_bytes_each`, `insert_ms` and `read_ms` of one. The
backup is pg_basebackup with all of that in the server, and pg_dump of the tables. `step`: milliseconds of a
run with one call of a tool that answers with so many characters of text, wall clock and this process's
processor time. The last line is JSON.
"""

import argparse
import base64
import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from benchmarks import harness
from benchmarks.deputy import Deputy, prepare
from launch import binaries
from launch.home import PROJECT

CHARACTERS = 100_000
SIZES = (1_000, 10_000, 100_000)
COMPRESSIONS = ("pglz", "lz4")
PAGES = "\n\n".join(path.read_text("utf-8") for path in sorted((PROJECT / "docs").glob("*.md")))
INSERT = """
INSERT INTO {table} (id, organization_id, run_id, call_id, agent, tool, arguments, effective_arguments,
                     request_digest, idempotency_key, status, attempt, result, created_at)
VALUES (%s, 'org', 'run', %s, '', 'fetch', '{{}}', '{{}}', '', '', 'succeeded', 1, %s, now())
"""


def text(number: int, size: int = CHARACTERS) -> str:
    start = random.Random(number).randrange(len(PAGES) - size)
    return PAGES[start : start + size]


def records(number: int) -> list[dict[str, Any]]:
    chance = random.Random(number)
    names = PAGES.split()
    return [
        {
            "id": chance.getrandbits(48),
            "name": " ".join(chance.sample(names, 3)),
            "price": round(chance.random() * 1000, 2),
            "in_stock": chance.random() < 0.5,
            "updated_at": f"2026-05-{chance.randrange(1, 29):02}T08:00:00Z",
        }
        for _ in range(CHARACTERS // 130)
    ]


def noise(number: int) -> str:
    return base64.b64encode(random.Random(number).randbytes(CHARACTERS * 3 // 4)).decode()


KINDS: dict[str, Callable[[int], Any]] = {"text": text, "records": records, "noise": noise}


def kept(own: "psycopg.Connection[Any]", kind: str, compression: str, rows: int) -> dict[str, float]:
    """What so many results of one kind cost in a table as that of calls."""
    table = f"payloads_{kind}_{compression}"
    own.execute(f"CREATE TABLE {table} (LIKE runs_toolcall INCLUDING ALL)")
    own.execute(f"ALTER TABLE {table} ALTER COLUMN result SET COMPRESSION {compression}")
    values = [KINDS[kind](number) for number in range(min(rows, 100))]  # PostgreSQL compresses each by itself
    own.execute("CHECKPOINT")
    before = _wal(own)
    took = []
    for number in range(rows):
        began = time.perf_counter()
        own.execute(
            INSERT.format(table=table), [f"cal_{number}", str(number), Jsonb(values[number % len(values)])]
        )
        took.append(time.perf_counter() - began)
    wal = _wal(own) - before
    read = []
    for number in range(min(rows, 200)):
        began = time.perf_counter()
        own.execute(f"SELECT result FROM {table} WHERE id = %s", [f"cal_{number}"]).fetchone()
        read.append(time.perf_counter() - began)
    ((size,),) = own.execute("SELECT pg_total_relation_size(%s::regclass)", [table]).fetchall()
    return {
        "bytes_each": round(size / rows),
        "wal_bytes_each": round(wal / rows),
        "insert_ms": round(statistics.median(took) * 1000, 2),
        "read_ms": round(statistics.median(read) * 1000, 2),
    }


def _wal(own: "psycopg.Connection[Any]") -> int:
    ((position,),) = own.execute("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").fetchall()
    return int(position)


def backup(url: str) -> dict[str, float]:
    """Seconds and bytes of a copy of the server and of a dump of these tables."""
    folder = Path(tempfile.mkdtemp(prefix="deputy-payloads-"))
    programs = binaries.find()
    copy: list[Any] = [programs / "pg_basebackup", "-D", folder / "copy", "--checkpoint=fast", "-d", url]
    dump: list[Any] = [
        programs / "pg_dump",
        "-Fc",
        "-Z1",
        "-t",
        "payloads_*",
        "-f",
        folder / "dump",
        "-d",
        url,
    ]
    found = {}
    try:
        for name, command in (("basebackup", copy), ("dump", dump)):
            began = time.perf_counter()
            subprocess.run(command, check=True, cwd="/")
            found[f"{name}_seconds"] = round(time.perf_counter() - began, 1)
        found["basebackup_bytes"] = sum(
            one.stat().st_size for one in (folder / "copy").rglob("*") if one.is_file()
        )
        found["dump_bytes"] = (folder / "dump").stat().st_size
    finally:
        shutil.rmtree(folder)
    return found


class Fetching(Deputy):
    play = "fetch"


def steps(url: str, runs: int) -> dict[str, dict[str, float]]:
    """Milliseconds of a run with one result of each size; the sizes take turns."""
    deputy = Fetching(url)
    from benchmarks import plays  # once Django is set up

    found: dict[int, list[tuple[float, float]]] = {size: [] for size in SIZES}
    for number in range(runs + 3):
        for size in SIZES:
            plays.fetched[0] = text(number, size)
            wall, processor = time.perf_counter(), time.process_time()
            run = deputy.run()
            took = (time.perf_counter() - wall, time.process_time() - processor)
            deputy.expect(run, status="completed")
            if number >= 3:
                found[size].append(took)
    deputy.close()
    return {
        str(size): {
            "wall_ms": round(statistics.median(one[0] for one in took) * 1000, 1),
            "processor_ms": round(statistics.median(one[1] for one in took) * 1000, 1),
        }
        for size, took in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=30)
    options = parser.parse_args()
    with harness.server() as admin:
        url = harness.database(admin, "payloads")
        os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "config.settings"}
        prepare(url)
        figures: dict[str, Any] = {"load": round(os.getloadavg()[0], 1), "step": steps(url, options.runs)}
        with psycopg.connect(url, autocommit=True) as own:
            for kind in KINDS:
                figures[kind] = {each: kept(own, kind, each, options.rows) for each in COMPRESSIONS}
        figures["backup"] = backup(url)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
