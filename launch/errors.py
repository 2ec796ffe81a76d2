"""Why Deputy cannot start, in one line and without a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from common.env import BadSetting


class LaunchError(Exception):
    """Something outside Deputy keeps it from starting; the message says what, and what helps."""


@contextmanager
def one_line() -> Iterator[None]:
    """Turn a known reason not to start into one line on stderr and exit status 1."""
    try:
        yield
    except (BadSetting, LaunchError) as reason:
        sys.exit(f"deputy: {reason}")
