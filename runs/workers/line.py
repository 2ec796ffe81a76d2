"""Processes that act do so on the database they know, and on none that was restored meanwhile."""

import sys
from contextlib import closing

import psycopg

from common import sessions
from common.db import own_connection
from common.env import BadSetting
from common.postgres import lineage


def guard() -> None:
    """From now on this process connects to no restored database. Raises BadSetting where it is one now."""
    look()
    lineage.guard()


def look() -> None:
    """Raises BadSetting where the database has been restored since anybody acted on it.

    One that is away, or still in recovery, is for others to tell of.
    """
    try:
        with closing(own_connection()) as own:
            lineage.check(own)
    except lineage.Restored as restored:
        raise BadSetting(f"{restored}.") from None
    except psycopg.OperationalError:
        return


def check_sessions(needed: int = 0, what: str = "") -> None:
    """Raises BadSetting where this process gets no sessions of its own, or fewer than it needs.

    A database that is away may come.
    """
    try:
        sessions.check(needed, what)
    except psycopg.OperationalError as error:
        sys.stderr.write(f"deputy: the database cannot be reached yet: {type(error).__name__}\n")
