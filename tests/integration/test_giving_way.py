"""Migrations give way to those who work on the database meanwhile (docs/operating.md, Upgrades)."""

import threading
import time
from contextlib import closing
from importlib import import_module
from types import SimpleNamespace

import pytest
from django.core.management import call_command

from common import months
from common.db import own_connection, row
from runs.management.commands import migrate
from tests.integration.test_upgrades import FILES, database_of

by_month = import_module("runs.migrations.0038_events_by_month")

APPEND = """
INSERT INTO runs_runevent (organization_id, run_id, seq, type, agent, payload, created_at, digest)
SELECT organization_id, id, %s, 'message.created', '', '{}', now(), '' FROM runs_run ORDER BY id LIMIT 1
"""
CIRCLE = """
SELECT count(*) FROM pg_locks h JOIN pg_locks w USING (pid) WHERE NOT w.granted AND h.granted
AND h.relation = 'runs_a2atask'::regclass AND w.relation = 'runs_run'::regclass
"""

pytestmark = pytest.mark.slow  # each makes a database of its own, and waits for locks


@pytest.fixture
def database(django_db_setup, django_db_blocker):
    """One of an earlier release, with runs; as far as the migration says that is given."""
    made = database_of(FILES[-1], django_db_blocker)
    next(made)
    yield lambda before: call_command("migrate", "runs", before, verbosity=0)
    next(made, None)


def beside():
    """A session of Deputy's, which waits for locks as long as in an installation."""
    made = own_connection()
    made.execute("SET lock_timeout = '2s'")
    return made


class Appending(threading.Thread):
    """Somebody who appends to a log all the while."""

    def __init__(self):
        super().__init__(daemon=True)
        self.over, self.appended, self.failed = threading.Event(), 0, []
        self.session = beside()

    def run(self):
        with closing(self.session):
            while not self.over.wait(0.01):
                try:
                    self.session.execute(APPEND, [100_000 + self.appended])
                    self.appended += 1
                except Exception as error:
                    self.failed.append(f"{type(error).__name__}: {error}")

    def go_on(self):
        """Return once more was appended, or could not be."""
        seen = self.appended + len(self.failed)
        while self.appended + len(self.failed) <= seen + 1:
            self.over.wait(0.01)


def test_who_appends_is_kept_waiting_by_no_try_to_partition_the_log(database, monkeypatch):
    """Somebody reads the table in one long transaction, at each of the steps that want it alone."""
    database("0037_remote_agents")
    appending, reader, pauses, reading = Appending(), beside(), [], []
    partition = by_month.partition

    def read():
        reader.execute("BEGIN")
        reading.append(reader.execute("SELECT count(*) FROM runs_runevent").fetchone())

    def partition_while_somebody_reads(until):
        if len(reading) == 1:
            read()
        partition(until)

    def pause(seconds):
        appending.go_on()
        pauses.append(seconds)
        if len(pauses) in (2, 4):
            reader.execute("COMMIT")

    monkeypatch.setattr(by_month, "time", SimpleNamespace(sleep=pause))
    monkeypatch.setattr(by_month, "partition", partition_while_somebody_reads)
    with closing(reader):
        read()
        appending.start()
        call_command("migrate", "runs", "0038_events_by_month", verbosity=0)
    appending.go_on()
    appending.over.set()
    appending.join()

    assert (appending.failed, len(pauses)) == ([], 4)
    assert months.partitions("runs_runevent")[0].name == "runs_runevent_old"
    assert row("SELECT count(*) FROM runs_runevent WHERE seq >= 100000") == (appending.appended,)


def test_a_migration_gives_way_before_anybody_is_ended_for_it(database, monkeypatch, capsys):
    """It has locked one table and waits for another, which somebody has who wants the first."""
    monkeypatch.setattr(migrate, "PAUSE_SECONDS", 0.1)
    database("0036_run_traceparent")
    other, watching, found = beside(), beside(), []

    def want():
        while not watching.execute(CIRCLE).fetchone()[0]:
            time.sleep(0.01)
        try:
            found.append(other.execute("SELECT count(*) FROM runs_a2atask").fetchone())
        except Exception as error:
            found.append(error)
        other.execute("ROLLBACK")

    with closing(other), closing(watching):
        other.execute("BEGIN; UPDATE runs_run SET goal = goal WHERE false")
        wanting = threading.Thread(target=want, daemon=True)
        wanting.start()
        call_command("migrate", "runs", "0037_remote_agents", verbosity=0)
        wanting.join()

    assert found == [(0,)]
    assert "Somebody else has locked" in capsys.readouterr().err
    assert row("SELECT count(hops) FROM runs_a2atask") == (0,)
    assert row("SELECT setting FROM pg_settings WHERE name = 'lock_timeout'") == ("20000",)
