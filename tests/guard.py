"""An end to what might hang: a test says how long is far too long, and measures nothing."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def ends(seconds: int = 20) -> Iterator[None]:
    """The block is broken off after `seconds`, as a failure. In the main thread only."""

    def broken_off(*_: Any) -> None:
        raise AssertionError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, broken_off)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
