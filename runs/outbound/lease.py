"""A carrier's lease on all it holds: one row, renewed by a thread with a connection of its own.

A thread, so that no moment of much work costs the lease. It renews for a loop that turns: one that has
stood still for STALLED_SECONDS ends its process, and another carrier takes over.
"""

import logging
import os
import signal
import threading
import time
from typing import Any

import psycopg
from django.conf import settings

from common.db import own_connection
from runs.outbound.table import BEAT, told

logger = logging.getLogger(__name__)

STALLED_SECONDS = 30.0
IDLE_SECONDS = 10.0  # between two signs of life of a carrier that holds nothing


class Lease:
    """Renewed while calls are under way; else a sign of life now and then."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.in_flight = 0
        self.ticked = time.monotonic()

    def start(self) -> None:
        threading.Thread(target=self._keep, name="lease", daemon=True).start()

    def tick(self, in_flight: int) -> None:
        """The loop turns, and so many calls are under way."""
        self.in_flight, self.ticked = in_flight, time.monotonic()

    def _keep(self) -> None:
        own: Any = None
        beaten = -IDLE_SECONDS
        while True:
            now = time.monotonic()
            if now - self.ticked > STALLED_SECONDS:
                logger.critical("the carrier has stood still for %.0f s; ending it", now - self.ticked)
                os.kill(os.getpid(), signal.SIGKILL)
            if self.in_flight or now - beaten >= IDLE_SECONDS:
                try:
                    own = own or own_connection(durable=False)
                    own.execute(BEAT, told(self.name, self.in_flight))
                    beaten = now
                except psycopg.Error as error:  # the database may be away: the next round tries again
                    logger.warning("could not renew the carrier's lease: %s", type(error).__name__)
                    if own is not None:
                        own.close()
                    own = None
            time.sleep(settings.LEASE_SECONDS / 3)
