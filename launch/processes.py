"""What Linux offers against processes that outlive the one that started them."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def die_with_parent(with_signal: int = signal.SIGTERM) -> Callable[[], None] | None:
    """A `preexec_fn`: the kernel sends `with_signal` when the starting thread is gone. Linux only."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)  # loaded here: nothing may be loaded between fork and exec
    parent = os.getpid()

    def ask_kernel() -> None:
        libc.prctl(PR_SET_PDEATHSIG, int(with_signal), 0, 0, 0)
        if os.getppid() != parent:  # it died before the kernel was asked
            os._exit(1)

    return ask_kernel


def follow_parent(with_signal: int = signal.SIGTERM) -> None:
    """The same for this very process."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(with_signal), 0, 0, 0)
