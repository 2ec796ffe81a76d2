"""What is written under a lock bears the time at which the lock was held, not waited for."""

import threading
import time

import pytest
from django.db import connection, transaction

from runs.log import RunLog
from tests.scripted import in_order

pytestmark = pytest.mark.django_db(transaction=True)


def test_times_within_a_run_never_run_backwards(ask):
    run = ask(in_order(), drive=False)
    began, times = threading.Event(), []

    def second():
        began.wait(10)
        with transaction.atomic():
            times.append(RunLog.lock(run.pk).now)
        connection.close()

    waiting = threading.Thread(target=second)
    waiting.start()
    with transaction.atomic():
        RunLog.lock(run.pk)
        began.set()
        deadline = time.monotonic() + 10
        while not blocked() and time.monotonic() < deadline:
            time.sleep(0.01)
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            (released,) = cursor.fetchone()
    waiting.join(10)

    assert times[0] > released


def blocked():
    """Whether some connection to this database waits for a row."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks waits JOIN pg_locks has USING (pid) WHERE NOT waits.granted "
            "AND has.database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
        )
        return cursor.fetchone()[0]
