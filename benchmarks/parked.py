"""Runs that wait for a person: what each takes up in the database, what else it holds, how fast it wakes.

    python -m benchmarks.parked --items 2000

Bytes are heap and indexes of every table of the subject's database after VACUUM, divided by the runs that
were parked. Times, commits and WAL are of waking one: from the person's answer to the run's end.
"""

import argparse
import dataclasses
import sys
from typing import Any

import psycopg

from benchmarks import harness, peers
from benchmarks.harness import FLOOR, OURS, Measured, Subject

FIRST = 50  # runs parked before the first look, so that no table starts empty
SIZES = """
SELECT relname, pg_total_relation_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""


def subjects(options: argparse.Namespace) -> list[Subject]:
    chosen = [Subject(FLOOR, "benchmarks.parked_floor"), Subject(OURS, "benchmarks.parked_ours")]
    python = None if options.no_peers else peers.python()
    if python:
        chosen.append(Subject("langgraph", "benchmarks.parked_langgraph", python))
    return chosen


def sizes(url: str) -> dict[str, int]:
    """Bytes of each table with its indexes and TOAST, after VACUUM."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("VACUUM (TRUNCATE)")
        return dict(db.execute(SIZES).fetchall())


def look(subject: Subject, admin_url: str, runs: int, repetitions: int) -> dict[str, Any]:
    """Park `runs`, look at what they take, and wake as many as the repetitions ask for. Raises Failed."""
    url = harness.database(admin_url, subject.name)
    harness.prepare(subject, url)
    park = dataclasses.replace(subject, kind="park")
    wake = dataclasses.replace(subject, kind="wake")
    harness.repeat(park, admin_url, url, 1, FIRST)
    before = sizes(url)
    held = harness.repeat(park, admin_url, url, 1, runs, warm_up=0)
    after = sizes(url)
    bytes_each = {table: (size - before.get(table, 0)) / runs for table, size in after.items()}
    each = min(500, runs // repetitions - harness.WARM_UP - 1)
    woken = [harness.repeat(wake, admin_url, url, 1, each).figures for _ in range(repetitions)]
    return {
        **Measured.of(woken).figures.told(),
        "bytes_per_run": round(sum(bytes_each.values())),
        "bytes_by_table": {table: round(size) for table, size in bytes_each.items() if size >= 0.5},
        "connections_held": held.connections,
        "threads_held": held.threads,
        "process_kb_per_run": round(held.memory_kb / runs, 2),
    }


def lines(name: str, told: dict[str, Any]) -> str:
    tables = sorted(told["bytes_by_table"].items(), key=lambda item: -item[1])
    return (
        f"{name:<12}{told['bytes_per_run']:>9}{told['connections_held']:>13}{told['threads_held']:>9}"
        f"{told['process_kb_per_run']:>12.2f}{told['p50_ms']:>9.2f}{told['p95_ms']:>9.2f}"
        f"{told['per_second']:>9.0f}{told['commits']:>9.1f}{told['wal_bytes'] / 1000:>8.1f}\n"
        f"{'':<12}{', '.join(f'{table} {size}' for table, size in tables)}"
    )


def main() -> None:
    parser = harness.arguments("parked", items=2000)
    options = parser.parse_args()
    if options.items // options.repetitions <= harness.WARM_UP + 1:
        sys.exit("too few items: each repetition wakes some and warms up with some")
    told: dict[str, dict[str, Any]] = {}
    with harness.server() as admin_url:
        print(
            f"{options.items} runs parked{'':<4}bytes  connections  threads  process KB   wake p50 ms, p95,"
            "  per s,  commits, WAL KB"
        )
        for subject in subjects(options):
            with harness.left_out(subject.name):
                told[subject.name] = look(subject, admin_url, options.items, options.repetitions)
                print(lines(subject.name, told[subject.name]), flush=True)
    print(harness.last_line("parked", told))


if __name__ == "__main__":
    main()
