"""The tests' PostgreSQL: one embedded server a session, in a folder that goes with it."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import connections
from django.test import TransactionTestCase

from launch import place, postgres


def pytest_xdist_make_scheduler(config: Any, log: Any) -> Any:
    """`-n 2`: which process runs which test."""
    from tests import scheduling

    return scheduling.AcceptanceByFile(config, log)


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


KEPT = {"django_migrations", "django_content_type", "auth_permission"}
# Partitions each by itself: to empty all of a table's takes ten times as long as the one with rows.
TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"


def empty(case: TransactionTestCase) -> None:
    """Empty every table of every database of the test that has rows, but for what `migrate` makes."""
    for alias in case._databases_names(include_mirrors=False):
        connection = connections[alias]
        with connection.cursor() as cursor:
            cursor.execute(TABLES)
            tables = [name for (name,) in cursor.fetchall() if name not in KEPT]
            quoted = {name: connection.ops.quote_name(name) for name in tables}
            looks = [f"SELECT '{name}' WHERE EXISTS (SELECT FROM {table})" for name, table in quoted.items()]
            cursor.execute(" UNION ALL ".join(looks))
            if full := [quoted[name] for (name,) in cursor.fetchall()]:
                cursor.execute(f"TRUNCATE {', '.join(full)} CASCADE")


@pytest.fixture(autouse=True)
def nothing_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """One write in sixty-four counts terms on the side; a test that wants it counted says so."""
    monkeypatch.setattr("memory.statistics.FOLD_ONE_IN", 10**9)
