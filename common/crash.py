"""Named points at which a test may have the process killed. None is active in production."""

import os
import signal

# DEPUTY_CRASH_AT="after_slow" or "after_slow:3" (the third time this process comes by).
# DEPUTY_CRASH_ONCE names a file: the process that makes it is the only one to be killed.
_wanted, _, _count = os.environ.get("DEPUTY_CRASH_AT", "").partition(":")
_left = int(_count or 1)
_once = os.environ.get("DEPUTY_CRASH_ONCE", "")


def point(name: str) -> None:
    """SIGKILL this process when this is the point the environment names."""
    global _left
    if name != _wanted:
        return
    _left -= 1
    if _left <= 0 and _first():
        os.kill(os.getpid(), signal.SIGKILL)


def _first() -> bool:
    """Whether no process has been killed here before."""
    if not _once:
        return True
    try:
        os.close(os.open(_once, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
