"""Keep the lease of the runs and outside calls that this process holds, on a connection of its own.

The thread writes nothing but lease_expires_at; what a run is, only the thread that holds it writes.
"""

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connection

from runs.queue import worker_status

logger = logging.getLogger(__name__)

RENEW = """
UPDATE runs_run SET lease_expires_at = clock_timestamp() + %s * interval '1 second'
WHERE id = %s AND attempt = %s AND status = 'running'
"""

RENEW_CALL = """
UPDATE runs_toolcall SET lease_expires_at = clock_timestamp() + %s * interval '1 second'
WHERE id = %s AND attempt = %s AND status = 'running' AND lease_expires_at IS NOT NULL
"""
CALL_PREFIX = "tcl_"

# since when a run or call is held, and since when the step lasts that it is at, on the monotonic clock
_held: dict[tuple[str, int], tuple[float, float]] = {}
_lock = threading.Lock()
end_stuck_process = False  # a worker says yes: the run has gone to another, and the thread will not end
_keeper: tuple[int, threading.Thread] | None = None  # the process it was started in: a fork has none


@contextmanager
def held(run_id: str, attempt: int) -> Iterator[None]:
    """Renew the run's or the call's lease while the block runs, for STEP_SECONDS a step at most."""
    key, now = (run_id, attempt), time.monotonic()
    with _lock:
        _held[key] = now, now
        _start()
    worker_status.hold(run_id, attempt)
    try:
        yield
    finally:
        worker_status.hold("", 0)
        with _lock:
            _held.pop(key, None)


def progress(run_id: str, attempt: int) -> None:
    """A step has been completed: its successor has STEP_SECONDS of its own."""
    with _lock:
        if (run_id, attempt) in _held:
            _held[run_id, attempt] = _held[run_id, attempt][0], time.monotonic()


def _start() -> None:
    global _keeper
    if _keeper and _keeper[0] == os.getpid() and _keeper[1].is_alive():
        return
    _keeper = (os.getpid(), threading.Thread(target=_keep, name="lease", daemon=True))
    _keeper[1].start()


def _keep() -> None:
    """Renew until nothing has been held for a while. The connection opens with the first renewal."""
    try:
        idle = 0
        while not _done(idle):
            time.sleep(settings.LEASE_SECONDS / 3)
            due = _due()
            idle = 0 if due else idle + 1
            for run_id, attempt in due:
                _renew(run_id, attempt)
            if end_stuck_process:
                _end_if_stuck()
    finally:
        connection.close()


def _done(idle: int) -> bool:
    """Whether to end. Decided under the lock: who takes a run hold meanwhile starts another thread."""
    global _keeper
    with _lock:
        if idle < 10 or _held:
            return False
        _keeper = None
        return True


def _end_if_stuck() -> None:
    """End a process whose step has outlived its lease, and with it whatever does not come back."""
    limit = settings.STEP_SECONDS + 2 * settings.LEASE_SECONDS
    now = time.monotonic()
    with _lock:
        stuck = [run_id for (run_id, _), (_, step) in _held.items() if now - step > limit]
    if stuck:
        logger.critical("a step of %s has not come back in %d s; ending its worker", stuck[0], limit)
        os.kill(os.getpid(), signal.SIGKILL)


def _due() -> list[tuple[str, int]]:
    now = time.monotonic()
    with _lock:
        young, old = settings.LEASE_SECONDS / 3, settings.STEP_SECONDS
        return [key for key, (held, step) in _held.items() if young <= now - held and now - step < old]


def _renew(run_id: str, attempt: int) -> None:
    try:
        with connection.cursor() as cursor:
            statement = RENEW_CALL if run_id.startswith(CALL_PREFIX) else RENEW
            cursor.execute(statement, [settings.LEASE_SECONDS, run_id, attempt])
    except Exception as error:  # the database may be away: the next round tries again
        logger.warning("could not renew the lease of %s: %s", run_id, type(error).__name__)
        connection.close()
