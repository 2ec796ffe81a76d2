"""No-op messages through django-q2: Deputy's broker beside django-q2's own on the same PostgreSQL.

    python -m benchmarks.queue [MESSAGES]

A durable embedded PostgreSQL in a temporary folder, two workers. `per_second`: a queue of MESSAGES (4,000)
is drained. `p50_ms`, `p95_ms`: from the commit of a single message on an idle cluster to the start of
its task. `commits` and `wal_bytes` are per message of the drained queue. The floor does the same durable
work in bare SQL from one connection: an insert, a take and a delete, each committed. The last line is JSON.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from typing import Any

from launch import postgres

WORKERS = 2
SINGLES = 100
WARM_UP = 200

if __name__ == "__main__" and "DEPUTY_BENCH" not in os.environ:
    HOME = postgres.temporary_home()
    SERVER = postgres.Server(HOME, temporary=True)
    SERVER.start()
    os.environ |= {"DATABASE_URL": postgres.url(HOME), "DEPUTY_HOME": str(HOME)}
os.environ.setdefault("SECRET_KEY", "only-for-benchmarks-" + "0123456789" * 4)
os.environ["WORKERS"] = str(WORKERS)
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.queue_settings")

TABLES = "CREATE TABLE IF NOT EXISTS bench_started (number int, at float8)"


def started(number: int) -> None:
    """The task: nothing, but the last one and single ones say when they began."""
    if number >= 0:
        from common.db import execute

        execute("INSERT INTO bench_started VALUES (%s, %s)", [number, time.time()])


def nothing(number: int) -> None:
    """The no-op: a byte in a file, so that each can be counted."""
    with open(os.environ["DEPUTY_BENCH_COUNT"], "ab") as file:
        file.write(b".")


def measure(command: list[str], stock: bool, messages: int) -> dict[str, Any]:
    """Drain a queue, then time single messages, with the cluster that `command` starts."""
    from common.db import execute

    name = "stock" if stock else "ours"
    environment = os.environ | {"DEPUTY_BENCH": name, "DEPUTY_BENCH_COUNT": str(HOME / f"{name}.count")}
    execute("TRUNCATE bench_started")
    put_many(WARM_UP, stock)
    cluster = subprocess.Popen([sys.executable, *command], env=environment, start_new_session=True)
    try:
        drained(stock)
        before = counters()
        put_many(messages, stock)
        began = time.perf_counter()
        drained(stock)
        took = time.perf_counter() - began
        after = counters()
        done = os.path.getsize(environment["DEPUTY_BENCH_COUNT"])
        assert done == WARM_UP + messages, f"{done} of {WARM_UP + messages} were done"
        delays = singles(stock)
    finally:
        cluster.send_signal(signal.SIGTERM)
        cluster.wait(30)
    return {
        "p50_ms": round(statistics.median(delays), 2),
        "p95_ms": round(statistics.quantiles(delays, n=20)[-1], 2),
        "commits": round((after[0] - before[0]) / messages, 2),
        "wal_bytes": round((after[1] - before[1]) / messages),
        "per_second": round(messages / took),
    }


def put_many(count: int, stock: bool) -> None:
    """`count` no-ops in one transaction, so that all can be taken at the same moment."""
    from django.db import transaction
    from django_q.tasks import async_task

    with transaction.atomic():
        for _ in range(count):
            async_task("benchmarks.queue.nothing", -1, q_options=options(stock))


def options(stock: bool) -> dict[str, Any]:
    from django_q.brokers.orm import ORM

    from runs.queue.broker import PostgresBroker

    return {"save": False, "broker": ORM("deputy") if stock else PostgresBroker("deputy")}


def drained(stock: bool) -> None:
    """Wait until every message has been acknowledged."""
    from common.db import row

    table = "django_q_ormq" if stock else "runs_queuemessage"
    while row(f"SELECT EXISTS (SELECT FROM {table})")[0]:
        time.sleep(0.02)


def singles(stock: bool) -> list[float]:
    """Milliseconds from the commit of a message to the start of its task, one at a time."""
    from django_q.tasks import async_task

    from common.db import row

    sent = []
    for number in range(SINGLES):
        async_task("benchmarks.queue.started", number, q_options=options(stock))
        sent.append(time.time())
        while row("SELECT count(*) FROM bench_started")[0] <= number:
            time.sleep(0.002)
        time.sleep(0.03)
    at = {
        number: row("SELECT at FROM bench_started WHERE number = %s", [number])[0]
        for number in range(SINGLES)
    }
    return [(at[number] - sent[number]) * 1000 for number in range(SINGLES)]


def counters() -> tuple[int, int]:
    """Commits of this database and bytes of WAL so far."""
    from django.db import connection

    from common.db import row

    time.sleep(2)  # backends tell their counts within a second
    row("SELECT pg_stat_force_next_flush()")
    commits = row("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")[0]
    wal = row("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")[0]
    connection.close()
    return int(commits), int(wal)


def floor(messages: int) -> dict[str, Any]:
    """The same rows in bare SQL: insert, take, delete, a commit each."""
    from common.db import own_connection

    own, times = own_connection(), []
    before = counters()
    payload = "x" * 400
    began = time.perf_counter()
    for _ in range(messages):
        at = time.perf_counter()
        number = own.execute(
            "INSERT INTO runs_queuemessage (queue, payload) VALUES ('floor', %s) RETURNING id", [payload]
        ).fetchone()[0]
        own.execute("UPDATE runs_queuemessage SET due_at = now() + interval '1 hour' WHERE id = %s", [number])
        own.execute("DELETE FROM runs_queuemessage WHERE id = %s", [number])
        times.append((time.perf_counter() - at) * 1000)
    took = time.perf_counter() - began
    after = counters()
    own.close()
    return {
        "p50_ms": round(statistics.median(times), 2),
        "p95_ms": round(statistics.quantiles(times, n=20)[-1], 2),
        "commits": round((after[0] - before[0]) / messages, 2),
        "wal_bytes": round((after[1] - before[1]) / messages),
        "per_second": round(messages / took),
    }


def main() -> None:
    import django

    django.setup()
    from django.core.management import call_command

    from common.db import execute

    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    call_command("migrate", verbosity=0)
    execute(TABLES)
    result = {
        "bench": "queue",
        "ours": measure(["manage.py", "cluster"], False, messages),
        "floor": floor(min(messages, 1000)),
        "peers": {"django-q2 ORM broker": measure(["manage.py", "qcluster"], True, messages)},
    }
    for name, figures in {**{k: result[k] for k in ("ours", "floor")}, **result["peers"]}.items():
        print(f"{name:<24}{figures}")
    print(json.dumps(result))
    from django.db import connections

    connections.close_all()
    SERVER.leave()


if __name__ == "__main__":
    main()
