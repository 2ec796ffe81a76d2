"""Named points at which a test may have the process killed. None is active in production."""

import os
import signal

# DEPUTY_CRASH_AT="after_slow" or "after_slow:3" (the third time this process comes by)
_wanted, _, _count = os.environ.get("DEPUTY_CRASH_AT", "").partition(":")
_left = int(_count or 1)


def point(name: str) -> None:
    """SIGKILL this process when this is the point the environment names."""
    global _left
    if name != _wanted:
        return
    _left -= 1
    if _left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
