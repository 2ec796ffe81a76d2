"""Raw SQL: one cursor for each connection, whatever becomes of the connection; times as they were stored."""

import os
import signal
import threading
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from django.db import DataError, connection, transaction
from django.db.transaction import TransactionManagementError

from common.db import execute, row, rows

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    "at",
    [
        datetime(2026, 11, 22, 6, 46, 31, 236589, tzinfo=UTC),
        datetime(2026, 11, 22, 6, 46, 31, 200000, tzinfo=UTC),
        datetime(2026, 11, 22, tzinfo=UTC),
        datetime(1890, 1, 1, 12, tzinfo=UTC),
        datetime(9999, 6, 30, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2026, 11, 22, 6, 46, tzinfo=timezone(timedelta(hours=5, minutes=45))),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "Europe/Amsterdam"])
def test_a_time_is_read_as_it_was_stored_in_utc_wherever_the_server_thinks_it_is(at, zone):
    with transaction.atomic():
        execute("SELECT set_config('TimeZone', %s, true)", [zone])
        (found,) = row("SELECT %s", [at])
    assert found == at
    assert found.isoformat() == at.astimezone(UTC).isoformat()


def test_a_connection_that_was_closed_is_made_again():
    (before,) = row("SELECT pg_backend_pid()")
    connection.close()
    (after,) = row("SELECT pg_backend_pid()")
    assert before != after


def test_after_a_statement_that_failed_the_next_one_works():
    with pytest.raises(DataError):
        row("SELECT 1 / %s", [0])
    assert rows("SELECT generate_series(1, %s)", [3]) == [(1,), (2,), (3,)]


def test_a_transaction_that_has_to_be_rolled_back_takes_no_statement_more():
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            row("SELECT 1")


def test_whoever_counts_statements_sees_them(django_assert_num_queries):
    with django_assert_num_queries(2) as counted:
        row("SELECT %s", ["one"])
        execute("SELECT %s", ["two"])
    assert [query["sql"] for query in counted.captured_queries] == ["SELECT 'one'", "SELECT 'two'"]


def test_a_statement_that_the_server_takes_late_is_sent_to_its_end(monkeypatch):
    monkeypatch.setattr("common.postgres.SILENT_SECONDS", 0.3)
    monkeypatch.setattr("common.postgres.LATE_ANSWER_SECONDS", 20.0)
    (pid,) = row("SELECT pg_backend_pid()")
    process = Path(f"/proc/{pid}/cmdline")
    if not process.exists() or not process.read_bytes().startswith(b"postgres: "):
        pytest.skip("the server's processes are not of this machine")
    text = "x" * 30_000_000  # more than the sockets hold
    os.kill(pid, signal.SIGSTOP)
    later = threading.Timer(1.0, os.kill, (pid, signal.SIGCONT))
    later.start()
    try:
        assert row("SELECT length(%s)", [text]) == (len(text),)
    finally:
        later.join()
