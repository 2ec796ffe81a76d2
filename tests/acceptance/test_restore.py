"""A database restored to a point in time: runs go on, and what was done after the point is not done again."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from django.test import override_settings

from launch import binaries, place, postgres
from launch.home import PROJECT
from policy.models import CapabilityRule
from runs.models import Approval, OutboundCall, Run, ToolCall, Wait
from tests.acceptance.house import MODEL, House, status, until
from tests.acting import approve, message, resolve, start
from tests.factories import MembershipFactory, ProjectFactory, permit

SCRIPTS = PROJECT / "deploy" / "backup"


class Backup:
    """A base backup and archived WAL, in a folder of the server's user, made with the operators' scripts."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="deputy-backup-"))
        self.base, self.wal, self.data = self.folder / "base", self.folder / "wal", self.folder / "data"
        self.wal.mkdir()
        self.scripts = [Path(shutil.copy(script, self.folder)) for script in SCRIPTS.glob("*.sh")]
        self.archiving = ("archive_mode=on", f"archive_command={self.folder}/archive.sh %p %f {self.wal}")

    def belongs_to(self, where: place.Place) -> None:
        self.where = where
        for path in (self.folder, self.wal, *self.scripts):
            where.own(path)

    def run(self, script: str, *words: str | Path) -> None:
        programs = postgres._reachable(self.where, binaries.find())
        done = subprocess.run(
            [self.folder / script, *words],
            env=postgres.clean_environment() | {"PATH": f"{programs}:{os.environ['PATH']}"},
            cwd="/",
            capture_output=True,
            text=True,
            **self.where.popen(),
        )
        assert done.returncode == 0, done.stderr

    def copy(self) -> None:
        """The base backup."""
        socket = str(self.where.socket_folder)
        self.run("base.sh", self.base, "-h", socket, "-p", postgres.PORT, "-U", postgres.DATABASE)


class RestoredHouse(House):
    """The same outside world, around a server of what was restored."""

    def __init__(self, old: House, backup: Backup, point: str) -> None:
        self.home = postgres.temporary_home()
        self.server = postgres.Server(self.home, durable=False, temporary=True)
        backup.run("restore.sh", backup.base, backup.wal, backup.data, point)
        shutil.move(backup.data, self.server.place.data)
        self.server.start()
        self.url = postgres.url(self.home)
        self.witness, self.mail = old.witness, old.mail
        self.clusters, self.common, self.logs = [], None, old.logs
        until(self.is_primary)

    def is_primary(self) -> bool:
        with psycopg.connect(self.url) as own:
            return not own.execute("SELECT pg_is_in_recovery()").fetchone()[0]

    def attempt(self, *command: str) -> tuple[int, str]:
        """Exit status and output of a command of manage.py."""
        asked = [sys.executable, "manage.py", *command]
        environment = self.environment()
        done = subprocess.run(asked, cwd=PROJECT, env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def close(self) -> None:
        self.end_clusters()
        self.server.leave()


@contextmanager
def looking_into(house: House) -> Iterator[None]:
    """This process's own queries go to that database."""
    connection.close()
    connection.settings_dict.update(house.settings())
    yield
    house.end_clusters()
    connection.close()


@pytest.fixture
def backup():
    backup = Backup()
    yield backup
    shutil.rmtree(backup.folder, ignore_errors=True)


@pytest.fixture
def lost(backup, django_db_blocker, their_tools):
    """The house of which a backup is made."""
    before = dict(connection.settings_dict)
    house = House(*backup.archiving)
    backup.belongs_to(house.server.place)
    with django_db_blocker.unblock(), override_settings(QUEUE_ENABLED=True, DEPUTY_MODEL=MODEL):
        yield house
    connection.close()
    connection.settings_dict.clear()
    connection.settings_dict.update(before)
    house.close()


def parked(run_id):
    return Run.objects.get(pk=run_id).waiting_reason


def in_review(run_id):
    return parked(run_id) == "review"


def archived(house):
    """Everything written so far is in the archive."""
    with psycopg.connect(house.url, autocommit=True) as own:
        (last,) = own.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchone()
        told = "SELECT coalesce(last_archived_wal, '') >= %s FROM pg_stat_archiver"
        until(lambda: own.execute(told, [last]).fetchone()[0])


@pytest.mark.slow
def test_runs_go_on_after_a_restore_and_nothing_is_done_twice(lost, backup):
    with looking_into(lost):
        project = ProjectFactory()
        user = MembershipFactory(organization=project.organization).user
        ada = MembershipFactory(organization=project.organization).user
        permit(ada, "runs.view_run", "runs.decide_approval", "runs.resolve_review")
        CapabilityRule.objects.create(
            organization=project.organization, tool="keyed_effect", effect="require_approval", name="asked"
        )
        lost.cluster()
        backup.copy()

        def ask(goal):
            return start(user=user, project=project, goal=goal)

        done, open_still = ask("brief"), ask("asking")
        answered, approved = ask("later effect"), ask("alone keyed_effect")
        until(lambda: status(done) == "completed")
        until(
            lambda: (
                [parked(run) for run in (answered, approved, open_still)] == ["input", "approval", "input"]
            )
        )
        under_way = ask("alone slow_effect")
        until(lambda: OutboundCall.objects.filter(run=under_way, kind="tool").exclude(holder="").exists())
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            (point,) = cursor.fetchone()

        # all of this is after the point
        message(answered, "Do.", user)
        approve(Approval.objects.get(run=approved).pk, ada)
        forgotten = ask("alone effect")
        until(lambda: {status(run) for run in (answered, approved, under_way, forgotten)} == {"completed"})
        effects = lost.witness.count([answered, approved, under_way, forgotten])
        assert effects == {"later": 1, "it": 3}
        lost.end_clusters()
        archived(lost)

    restored = RestoredHouse(lost, backup, point.isoformat())
    try:
        with looking_into(restored):
            assert not Run.objects.filter(pk=forgotten).exists()
            assert (status(under_way), parked(answered), parked(approved)) == ("running", "input", "approval")

            refused, said = restored.attempt("cluster")
            assert refused and "manage.py after_restore" in said and len(said.strip().splitlines()) == 1
            until(lambda: "4 runs had not ended" in restored.attempt("after_restore")[1])
            restored.cluster()

            until(lambda: in_review(under_way))
            message(open_still, "2026", user)
            until(lambda: status(open_still) == "completed")  # nothing was in doubt
            message(answered, "Do.", user)
            approve(Approval.objects.get(run=approved).pk, ada)
            until(lambda: in_review(answered) and in_review(approved))
            assert lost.witness.count([answered, approved, under_way, forgotten]) == effects

            for run_id in (answered, approved, under_way):
                call = ToolCall.objects.get(run=run_id, status="unknown")
                resolve(run_id, call.call_id, "succeeded", ada, result="done before")
                until(lambda run_id=run_id: status(run_id) == "completed")
            assert not Wait.objects.filter(resolved_at=None).exists()
            assert restored.manage("verify_run", "--all") == "5 runs checked, 0 broken.\n"
            assert lost.witness.count([answered, approved, under_way]) == {"later": 1, "it": 2}
    finally:
        restored.close()
