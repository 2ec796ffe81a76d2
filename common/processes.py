"""What Linux offers against processes that outlive the one that started them, and for many connections."""

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
FILES = 65_536  # that a process may have open, connections included, where the system allows as many
TELLING = (signal.SIGINT, signal.SIGHUP)


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


class Make:
    """The make whose recipe this is. Killed, or interrupted alone, it would leave the recipe running.

    GNU make forwards SIGTERM. A SIGINT or SIGHUP sent to it alone (not to the group, as a terminal
    does) it keeps to itself: it goes back to the default action and waits. Its signal mask shows that.
    """

    def __init__(self) -> None:
        self.pid = os.getppid() if "MAKELEVEL" in os.environ else None
        if self.pid is not None:
            follow_parent(signal.SIGTERM)
        self.listened = self._caught()

    def interrupted(self) -> bool:
        """Whether make has been told to stop since this object was made."""
        return bool(self.listened & ~self._caught())

    def _caught(self) -> int:
        """The signals of TELLING it has a handler for, as a mask; 0 where there is no /proc."""
        try:
            with open(f"/proc/{self.pid}/status") as status:
                caught = next(line.split()[1] for line in status if line.startswith("SigCgt:"))
        except (OSError, StopIteration):
            return 0
        return int(caught, 16) & sum(1 << (number - 1) for number in TELLING)


def many_files() -> None:
    """Let this process have FILES open, or as many as the system allows it. Most systems start programs with
    1,024, which a carrier's calls exceed, and which idle clients of a web process use up.
    """
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if most == resource.RLIM_INFINITY else min(FILES, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
