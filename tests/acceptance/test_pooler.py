"""Deputy behind pgbouncer: in session mode all of it works, in transaction mode it says that it would not."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest

from launch.home import PROJECT
from launch.postgres import PORT
from tests.acceptance.house import until
from tests.acceptance.web import Web
from tests.ports import free_port

PROGRAM = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.exists(PROGRAM), reason="pgbouncer is not here"),
]
SETTINGS = """
[databases]
deputy = host={socket} port={port} dbname=deputy
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = 80
max_client_conn = 200
"""


@pytest.fixture
def pooled(house):
    """Start pgbouncer in a mode; returns the URL of the database through it."""
    started = []

    def start(mode):
        where, listen = house.server.place, free_port()
        folder = Path(tempfile.mkdtemp(prefix="deputy-pooler-"))
        settings = folder / "pgbouncer.ini"
        told = {"socket": where.socket_folder, "port": PORT, "listen": listen, "mode": mode}
        settings.write_text(SETTINGS.format(**told).replace("dbname=deputy", "dbname=deputy user=deputy"))
        for path in (folder, settings):
            where.own(path)
        log = (house.logs / f"pgbouncer-{mode}.log").open("wb")
        process = subprocess.Popen([PROGRAM, settings], stdout=log, stderr=log, cwd="/", **where.popen())
        started.append((process, folder))
        url = f"postgresql://deputy@127.0.0.1:{listen}/deputy"
        until(lambda: answers(url), said=lambda: Path(log.name).read_text())
        return url

    yield start
    house.end_clusters()
    for process, folder in started:
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder, ignore_errors=True)


def answers(url):
    try:
        with psycopg.connect(url, connect_timeout=2) as own:
            return own.execute("SELECT true").fetchone()[0]
    except psycopg.OperationalError:
        return False


def test_runs_complete_and_pages_answer_through_a_pooler_in_session_mode(house, pooled, ask, ended):
    url = pooled("session")
    house.cluster(DATABASE_URL=url)
    web = Web(house, DATABASE_URL=url)
    try:
        web.wait()
        runs = [ask("deep 3"), ask("alone keyed_effect"), ask("nap 1")]
        assert [ended(run) for run in runs] == ["completed"] * 3, house.report(runs[0])
        with web.browser() as browser:
            until(lambda: browser.get("/readyz?all").status_code == 200, said=web.said)
    finally:
        web.end()


def test_in_transaction_mode_nothing_starts_and_says_why(house, pooled):
    url = pooled("transaction")
    cluster = [sys.executable, "manage.py", "cluster"]
    web = [sys.executable, "-c", "import config.asgi"]
    for command in (cluster, web):
        environment = house.environment(DATABASE_URL=url)
        done = subprocess.run(
            command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 1
        assert (
            done.stderr.startswith("deputy: DATABASE_URL leads to a pooler") and "session mode" in done.stderr
        )
        assert len(done.stderr.strip().splitlines()) == 1
