"""Notifications: NOTIFY after a commit, from a thread and a connection of its own.

NOTIFY makes commits take turns, so it is never sent inside a step. The thread sends what has come
together meanwhile, each channel and payload once, the first at once and then every PAUSE_SECONDS at most.
A process that ends waits a moment for its last notifications. One that is lost costs its reader one poll.
"""

import logging
import os
import threading
import time
from multiprocessing import util
from typing import Any

from django.db import transaction

from common.db import own_connection

logger = logging.getLogger(__name__)

NOTIFY = "SELECT pg_notify(channel, payload) FROM unnest(%s::text[], %s::text[]) AS due (channel, payload)"

GATHER_SECONDS = 0.0005  # what comes within this time goes out together
PAUSE_SECONDS = 0.05  # between two rounds; a person sees no difference, and it bounds the commits
# The channels that workers and carriers sleep on: their hints wait for nothing.
URGENT = frozenset({"deputy_queue", "deputy_outbound", "deputy_errands"})
IDLE_SECONDS = 30  # after which the connection is closed
LEAVE_SECONDS = 1.0  # that the end of a process waits for its last notifications

_lock = threading.Lock()
_wanted = threading.Event()
_urgent = threading.Event()
_pending: dict[tuple[str, str], None] = {}
_sending = False
_sender: tuple[int, threading.Thread] | None = None  # the process it was started in: a fork has none
_waiting = 0  # the process whose end waits for its notifications


def after_commit(channel: str, payload: str = "") -> None:
    """Notify once the caller's transaction has committed; at once where there is none."""
    transaction.on_commit(lambda: send(channel, payload))


def send(channel: str, payload: str = "") -> None:
    """Notify soon. Never blocks and never raises."""
    global _sender
    with _lock:
        _pending[channel, payload] = None
        if not (_sender and _sender[0] == os.getpid() and _sender[1].is_alive()):
            _sender = (os.getpid(), threading.Thread(target=_send_all, name="notifications", daemon=True))
            _sender[1].start()
            _wait_at_the_end()
    if channel in URGENT:
        _urgent.set()
    _wanted.set()


def _wait_at_the_end() -> None:
    """Once for each process."""
    global _waiting
    if _waiting != os.getpid():
        _waiting = os.getpid()
        util.Finalize(None, finish, exitpriority=5)


def finish() -> None:
    """Let what is pending go out, while the thread that sends it still lives."""
    deadline = time.monotonic() + LEAVE_SECONDS
    while _sender and (_pending or _sending) and time.monotonic() < deadline:
        time.sleep(GATHER_SECONDS)


def _send_all() -> None:
    """Send what is pending until nothing has been for a while."""
    global _sender, _sending
    connection: Any = None
    try:
        while True:
            _wanted.wait(IDLE_SECONDS)
            if not _urgent.is_set():
                time.sleep(GATHER_SECONDS)
            with _lock:
                _wanted.clear()
                _urgent.clear()
                due = list(_pending)
                _pending.clear()
                _sending = bool(due)
                if not due:
                    _sender = None
                    return
            try:
                if connection is None:
                    connection = own_connection(durable=False)
                connection.execute(NOTIFY, [list(part) for part in zip(*due, strict=True)])
            except Exception as error:  # only a notification
                logger.info("could not send a notification: %s", type(error).__name__)
                if connection is not None:
                    connection.close()
                    connection = None
            finally:
                _sending = False
            _urgent.wait(PAUSE_SECONDS)
    finally:
        if connection is not None:
            connection.close()
