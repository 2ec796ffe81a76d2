"""Deputy behind pgbouncer: in session mode, and in transaction mode with a way past it for some of it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest

from groups.models import Project
from launch.home import PROJECT
from launch.postgres import PORT
from runs.models import Approval
from tests.acceptance.house import check_logs, until
from tests.acceptance.web import Web, forms, sign_in
from tests.factories import GroupFactory, MemberFactory
from tests.ports import free_port

PROGRAM = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.exists(PROGRAM), reason="pgbouncer is not here"),
]
SETTINGS = """
[databases]
deputy = host={socket} port={port} dbname=deputy user=deputy connect_query='SET application_name = pooled'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = 80
max_client_conn = 200
"""


class Pooler:
    """pgbouncer in a mode, in front of the house's server."""

    def __init__(self, house, mode, **more):
        self.where, listen = house.server.place, free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="deputy-pooler-"))
        self.settings = self.folder / "pgbouncer.ini"
        told = {"socket": self.where.socket_folder, "port": PORT, "listen": listen, "mode": mode}
        lines = [f"{name} = {value}" for name, value in more.items()]
        self.settings.write_text("\n".join([SETTINGS.format(**told), *lines, ""]))
        for path in (self.folder, self.settings):
            self.where.own(path)
        self.log = house.logs / f"pgbouncer-{mode}-{listen}.log"
        self.url = f"postgresql://deputy@127.0.0.1:{listen}/deputy"
        self.start()

    def start(self):
        with self.log.open("ab") as log:
            command = [PROGRAM, self.settings]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **self.where.popen())
        until(lambda: answers(self.url), said=self.log.read_text)

    def kill(self):
        self.process.kill()
        self.process.wait(10)

    def end(self):
        self.process.terminate()
        self.process.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def pooled(house):
    """Start pgbouncer in a mode; returns it."""
    started = []

    def start(mode, **more):
        started.append(Pooler(house, mode, **more))
        return started[-1]

    yield start
    house.end_clusters()
    for pooler in started:
        pooler.end()


def answers(url):
    try:
        with psycopg.connect(url, connect_timeout=2) as own:
            return own.execute("SELECT true").fetchone()[0]
    except psycopg.OperationalError:
        return False


def test_runs_complete_and_pages_answer_through_a_pooler_in_session_mode(house, pooled, ask, ended):
    url = pooled("session").url
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


CLUSTER, CARRIER = ([sys.executable, "manage.py", name] for name in ("cluster", "carrier"))
SWEEP = [sys.executable, "manage.py", "sweep"]
WEB = [sys.executable, "-c", "import config.asgi"]


def refusal(house, command, **environment):
    """The one line with which it does not start."""
    done = subprocess.run(
        command, cwd=PROJECT, env=house.environment(**environment), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1, done.stdout
    lines = [line for line in done.stderr.splitlines() if " INFO " not in line]
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.mark.parametrize(
    "command", [CLUSTER, CARRIER, SWEEP, WEB], ids=["cluster", "carrier", "sweep", "web"]
)
def test_in_transaction_mode_without_a_way_past_it_nothing_starts_and_says_why(house, pooled, command):
    said = refusal(house, command, DATABASE_URL=pooled("transaction").url)
    assert said.startswith("deputy: DATABASE_URL leads to a pooler")
    assert "DATABASE_DIRECT_URL" in said


def test_a_way_past_the_pooler_that_leads_elsewhere_is_refused(house, pooled):
    url, other = pooled("transaction").url, pooled("transaction").url
    said = refusal(house, CLUSTER, DATABASE_URL=url, DATABASE_DIRECT_URL=other)
    assert "DATABASE_DIRECT_URL leads to a pooler" in said
    elsewhere = house.url.rsplit("/", 1)[0] + "/postgres"
    said = refusal(house, WEB, DATABASE_URL=url, DATABASE_DIRECT_URL=elsewhere)
    assert "lead to different databases" in said


@pytest.fixture
def limited(house):
    """Sessions of the role begin with the limits that Deputy asks for; returns how it asks for them."""
    limits = {"lock_timeout": "2s", "idle_in_transaction_session_timeout": "120s"}
    with psycopg.connect(house.url, autocommit=True) as own:
        for name, value in limits.items():
            own.execute(f"ALTER ROLE deputy IN DATABASE deputy SET {name} = '{value}'")
        yield [
            f"ALTER ROLE deputy IN DATABASE deputy SET {name} = '{value}'" for name, value in limits.items()
        ]
        own.execute("ALTER ROLE deputy IN DATABASE deputy RESET ALL")


def test_sessions_that_wait_for_locks_for_ever_are_refused_with_what_to_say(house, pooled, limited):
    with psycopg.connect(house.url, autocommit=True) as own:
        own.execute("ALTER ROLE deputy IN DATABASE deputy RESET lock_timeout")
    said = refusal(house, CLUSTER, DATABASE_URL=pooled("transaction").url, DATABASE_DIRECT_URL=house.url)
    assert all(statement in said for statement in limited)


def test_the_server_itself_has_to_allow_what_goes_past_the_pooler(house, pooled, limited):
    both = {"DATABASE_URL": pooled("transaction").url, "DATABASE_DIRECT_URL": house.url}
    said = refusal(house, CLUSTER, **both, WORKERS="64")
    assert "needs 142 connections" in said


def test_an_escalation_with_an_approval_goes_through_a_pooler_that_is_killed(house, pooled, limited, ended):
    """Twenty sessions serve what has some forty connections."""
    pooler = pooled("transaction", default_pool_size=20)
    both = {"DATABASE_URL": pooler.url, "DATABASE_DIRECT_URL": house.url}
    made = json.loads(house.manage("demo", "--json"))
    group = GroupFactory(project=Project.objects.get(pk=made["project"]), name="Depths", max_rounds=1)
    MemberFactory(group=group, role__name="scout", ordinal=0)
    MemberFactory(group=group, role__name="chair", ordinal=1, is_lead=True)
    asked = {"project": "atlas", "goal": "letter 2", "context": group.pk}
    house.cluster(**both, WORKERS="3")
    web = Web(house, **both)
    try:
        web.wait()
        api = web.api(made["users"]["member"]["token"])
        runs = [api.post("runs/", json=asked).json()["id"] for _ in range(2)]
        for number, run in enumerate(runs):
            approval = until(
                lambda run=run: Approval.objects.filter(run__root=run).first(),
                said=lambda run=run: house.report(run),
            )
            if number:
                pooler.kill()
                assert api.get(f"runs/{run}/").status_code == 503
                pooler.start()
            with web.browser() as browser:
                until(lambda: api.get(f"runs/{run}/").status_code == 200, said=web.said)  # noqa: B023
                sign_in(browser, "approver", made["users"]["approver"]["password"])
                page = f"/admin/runs/approval/{approval.pk}/change/"
                form = forms(browser.get(page))["arguments_digest"] | {"decision": "approve"}
                assert "Approved; the call runs now." in browser.post(page, data=form).text
            assert ended(run) == "completed", house.report(run)
            check_logs(run)
        with web.browser() as browser:
            until(lambda: browser.get("/readyz?all").status_code == 200, said=web.said)
        assert 0 < sessions_of_the_pool(house, "pooled") <= 20
        assert "Traceback" not in web.said()
    finally:
        web.end()
    said = subprocess.run(
        [sys.executable, "manage.py", "verify_run", "--all"],
        cwd=PROJECT,
        env=house.environment(**both),
        capture_output=True,
        text=True,
    )
    assert said.returncode == 0, said.stderr


def sessions_of_the_pool(house, name):
    with house.beside() as own:
        counted = own.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", [name])
        return counted.fetchone()[0]
