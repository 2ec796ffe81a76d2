"""What is written under a lock bears the time at which the lock was held, not waited for."""

import threading
import time

import pytest
from django.db import connection, transaction

from groups.models import Membership
from policy.cache import live_boundary
from runs.log.claimed import STATEMENT_TIMEOUT_MS
from runs.log.log import RunLog
from tests.at_once import Beside, until_blocked
from tests.factories import MembershipFactory
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


def test_what_a_step_decides_by_is_read_again_where_its_lock_was_waited_for(ask):
    run = ask(in_order(), drive=False)
    with transaction.atomic():
        RunLog.lock(run.pk)
        second = Beside(lambda: locked(run.pk).live)
        until_blocked(second)
        time.sleep(0.15)  # longer than LATE

    assert second.result() is None
    fresh = live_boundary(run.organization_id, run.user_id, run.project_id)
    assert fresh.boundary is not None
    assert locked(run.pk).live in (fresh, None)  # None on a machine that takes so long by itself


def test_what_a_step_decides_by_is_its_own_organizations(ask, world):
    run = ask(in_order(), drive=False)
    elsewhere = MembershipFactory(user=world.user, kind="service")
    Membership.objects.filter(organization=run.organization_id, user=world.user).update(active=False)
    assert elsewhere.organization_id != run.organization_id

    found = [locked(run.pk).live for _ in range(5)]
    assert any(found)
    assert {one.boundary for one in found if one} == {None}


def locked(run_id):
    with transaction.atomic():
        return RunLog.lock(run_id, STATEMENT_TIMEOUT_MS)


def blocked():
    """Whether some connection to this database waits for a row."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks waits JOIN pg_locks has USING (pid) WHERE NOT waits.granted "
            "AND has.database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
        )
        return cursor.fetchone()[0]
