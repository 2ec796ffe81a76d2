"""What a cluster with nothing to do asks of the database.

    python -m benchmarks.idle [SECONDS]

Transactions a second, committed or rolled back, of a cluster of two workers that has settled. A minute holds
one round of everything it does by the clock. The database is vacuumed before: what autovacuum makes of tables
that have just been migrated is not the cluster's, and not idle.
"""

import json
import os
import signal
import subprocess
import sys
import time

import psycopg

from benchmarks import harness
from launch.home import PROJECT

SETTLES = 30  # seconds


def main() -> None:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    with harness.server() as admin_url:
        url = harness.database(admin_url, "idle")
        environment = harness.environment(url) | {"SECRET_KEY": "only-for-benchmarks-" + "0123456789" * 4}
        os.environ |= environment
        from benchmarks import deputy

        deputy.prepare(url)
        with psycopg.connect(url, autocommit=True) as own:
            own.execute("VACUUM ANALYZE")
        command = [sys.executable, "manage.py", "cluster"]
        cluster = subprocess.Popen(command, cwd=PROJECT, env=environment, start_new_session=True)
        try:
            time.sleep(SETTLES)
            before = transactions(admin_url)
            time.sleep(seconds)
            each = (transactions(admin_url) - before) / seconds
        finally:
            cluster.send_signal(signal.SIGTERM)
            cluster.wait(30)
    print(f"{each:.2f} transactions a second, over {seconds} seconds")
    print(json.dumps({"bench": "idle", "per_second": round(each, 2), "seconds": seconds}))


def transactions(admin_url: str) -> int:
    with psycopg.connect(admin_url, autocommit=True) as admin:
        row = admin.execute(
            "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'idle'"
        ).fetchone()
    assert row is not None
    return int(row[0])


if __name__ == "__main__":
    main()
