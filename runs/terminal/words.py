"""Hear what the models of a tree are just saying, over a connection of its own."""

import threading
import time
from typing import Any

import psycopg

from common.db import own_connection
from runs.outbound import following
from runs.outbound.following import ANNOUNCE, CHANNEL, Delta

ANNOUNCE_SECONDS = 10.0
LOOK_SECONDS = 0.1


class Listener:
    """A thread that gathers the words of one tree; `take` gives what has come since the last time."""

    def __init__(self, root_id: str) -> None:
        self.root_id = root_id
        self._heard: list[Delta] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="words", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(1)

    def take(self) -> list[Delta]:
        with self._lock:
            heard, self._heard = self._heard, []
        return heard

    def _listen(self) -> None:
        """Until `stop`. Without the database there are no words, and nobody needs them."""
        own: Any = None
        try:
            own = own_connection(durable=False)
            own.execute(f"LISTEN {CHANNEL}")
            announced = -ANNOUNCE_SECONDS
            while not self._stop.is_set():
                if time.monotonic() - announced >= ANNOUNCE_SECONDS:
                    own.execute(ANNOUNCE, [[self.root_id]])
                    announced = time.monotonic()
                for heard in own.notifies(timeout=LOOK_SECONDS):
                    self._hear(following.read(heard.payload) if heard.channel == CHANNEL else None)
        except psycopg.Error:
            return
        finally:
            if own is not None:
                own.close()

    def _hear(self, delta: Delta | None) -> None:
        if delta is not None and delta.root_id == self.root_id:
            with self._lock:
                self._heard.append(delta)
