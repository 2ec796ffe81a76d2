"""The tests' PostgreSQL: one embedded server a session, in a folder that goes with it."""

import gc
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import ProgrammingError, connections
from django.test import TransactionTestCase

from launch import place, postgres


def pytest_xdist_make_scheduler(config: Any, log: Any) -> Any:
    """`-n 2`: which process runs which test."""
    from tests import scheduling

    return scheduling.AcceptanceByFile(config, log)


def pytest_collection_finish() -> None:
    """What is there when tests begin stays there: a tenth of their time went into looking through it for
    garbage.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@pytest.fixture(scope="session")
def database_server() -> Iterator[postgres.Server | None]:
    """The running server; None where DATABASE_URL names one. It stops however the session ends."""
    home = getattr(settings, "TEST_HOME", None)
    if home is None:
        yield None
        return
    server = postgres.ensure(postgres.temporary_home(home), durable=False, temporary=True)
    # known only now: root's server lies elsewhere where its user cannot reach the folder
    settings.DATABASES["default"]["HOST"] = str(server.place.socket_folder)
    yield server
    connections.close_all()
    server.leave()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    database_server: postgres.Server | None, django_db_modify_db_settings_parallel_suffix: None
) -> None:
    """pytest-django asks for this before it connects: the server, and a database for each test process."""


def pytest_unconfigure() -> None:
    """Remove the folder of a session in which no test asked the database."""
    if settings.configured and (home := getattr(settings, "TEST_HOME", None)) is not None:
        place.remove(home)


@pytest.fixture(scope="session", autouse=True)
def emptied_quickly() -> Iterator[None]:
    """After a test that commits, only the tables with rows are emptied. Django's flush empties all of them
    and makes content types and permissions anew, which takes several times as long.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", empty)
        yield


# Rows are deleted without triggers: to truncate their tables and all that refer to them takes fifty times as
# long. Truncating waits for whoever still writes, and so does this.
KEPT = ["django_migrations", "django_content_type", "auth_permission"]
TABLES = """
SELECT string_agg(oid::regclass::text, ', ') FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> ALL (%s)
  AND pg_relation_size(oid) > 0
"""
WRITES = """
SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
               AND backend_type = 'client backend' AND backend_xid IS NOT NULL)
"""
ALONE = "BEGIN; SET LOCAL session_replication_role = replica"
STILL_WRITES = 60.0  # seconds


def empty(case: TransactionTestCase) -> None:
    """Empty every table of every database of the test that has rows, but for what `migrate` makes."""
    for alias in case._databases_names(include_mirrors=False):
        with connections[alias].cursor() as cursor:
            until = time.monotonic() + STILL_WRITES
            while _asked(cursor, WRITES)[0] and time.monotonic() < until:
                time.sleep(0.01)
            (tables,) = _asked(cursor, TABLES, [KEPT])
            if not tables:
                continue
            deleted = "; ".join(f"DELETE FROM {table}" for table in tables.split(", "))
            try:
                cursor.execute(f"{ALONE}; {deleted}; COMMIT")
            except ProgrammingError:  # whoever may not leave triggers out
                cursor.execute(f"ROLLBACK; TRUNCATE {tables} CASCADE")


def _asked(cursor: Any, sql: str, values: list[Any] | None = None) -> Any:
    cursor.execute(sql, values)
    return cursor.fetchone()


@pytest.fixture(autouse=True)
def nothing_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """One write in sixty-four counts terms on the side; a test that wants it counted says so."""
    monkeypatch.setattr("memory.statistics.FOLD_ONE_IN", 10**9)
