"""Lists and reports may read a replica (DATABASE_REPLICA_URL); decisions and permissions never do.

There is no router: what may be read from the replica asks `reading` for an alias, and everything else reads
the primary. tests/unit/test_replica_readers.py names the files that ask.

A list is read from the replica only if that has replayed everything the primary had committed when the list
was asked for. So whoever has just written something finds it, by whichever door, and what was withdrawn
before the request is gone, without anybody keeping an account of who has written when. A replica that is
behind gets a moment to catch up. If it does not, or cannot be asked, the primary is read, and the replica is
left alone for a few seconds.

Positions in the WAL can be compared within one timeline only. A standby that still follows a leader that was
replaced may be further than the new leader, and lack what that has written. Therefore the replica also has to
have the note of the primary's present timeline, which workers write into the database (lineage.py).
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg
from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, OperationalError, connections

from common.connections import check as check_allowed
from common.connections import share_session
from common.db import row
from common.env import BadSetting

logger = logging.getLogger("runs.replica")

T = TypeVar("T")

ALIAS = "replica"
WAIT_SECONDS = 0.1  # for what has just been committed to arrive
LOOK_SECONDS = 0.005  # between two looks whether it has
AWAY_SECONDS = 5.0  # that a replica which is behind, or away, is not asked again
# Of a server that ends the statement and stays: a conflict with what it replays, and its time limit.
OF_THE_STATEMENT = ("40001", "40P01", "57014", "55P03")

# What is acknowledged is flushed, unless the server acknowledges before that.
COMMITTED = """
SELECT (CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn()
        ELSE pg_current_wal_flush_lsn() END)::text, pg_postmaster_start_time()::text, system, timeline
FROM runs_databaseline WHERE timeline = substr(pg_walfile_name(pg_current_wal_flush_lsn()), 1, 8)
"""
# The URL may lead to the primary itself while there is no standby (target_session_attrs=prefer-standby). Any
# other server that accepts writes is a copy that has gone its own way, whatever its position.
REPLAYED = """
SELECT EXISTS (SELECT FROM runs_databaseline WHERE system = %s AND timeline = %s),
       pg_is_in_recovery() OR pg_postmaster_start_time() = %s::timestamptz,
       NOT pg_is_in_recovery() OR pg_last_wal_replay_lsn() >= %s::pg_lsn
"""

UNTOLD = "the primary does not say how far it is"
UNKNOWN = "no worker has noted the primary's present timeline"
ANOTHER = "it does not follow the primary's present timeline, or is another database"
BEHIND = "it lags behind"
NO_ANSWER = "it cannot be asked"


@dataclass
class _Pause:
    """Whether this process leaves the replica alone for now. Its threads share it."""

    until: float = 0.0
    why: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def over(self) -> bool:
        """Whether the replica may be asked. During an outage one thread asks at a time."""
        with self.lock:
            now = time.monotonic()
            if now < self.until:
                return False
            if self.why:
                self.until = now + AWAY_SECONDS
            return True

    def begin(self, why: str) -> None:
        with self.lock:
            self.until = time.monotonic() + AWAY_SECONDS
            if not self.why:
                logger.warning("lists read the primary, not the replica: %s", why)
            self.why = why

    def end(self) -> None:
        if self.why:
            with self.lock:
                self.until, self.why = 0.0, ""
            logger.info("lists read the replica again")


_pause = _Pause()


def is_set() -> bool:
    """Whether a replica is named."""
    return ALIAS in connections.databases


def reading(work: Callable[[str], T]) -> T:
    """What `work` returns, given the alias of the database that it may read: the replica's or the default.

    `work` only reads, and reads all it returns. If the replica fails meanwhile, it is called again with the
    default. Without a replica, and inside a transaction, whose own changes no replica has, it gets the
    default.
    """
    if not _may_be_read():
        return work(DEFAULT_DB_ALIAS)
    try:
        return work(ALIAS)
    except (OperationalError, InterfaceError) as error:
        if getattr(error.__cause__, "sqlstate", None) not in OF_THE_STATEMENT:
            connections[ALIAS].close()
            _pause.begin(NO_ANSWER)
    return work(DEFAULT_DB_ALIAS)


def _may_be_read() -> bool:
    if not is_set() or connections[DEFAULT_DB_ALIAS].in_atomic_block or not _pause.over():
        return False
    problem = look()
    if problem is None:
        _pause.end()
        return True
    _pause.begin(problem)
    return False


def look() -> str | None:
    """Why the replica cannot be read now; None if it has everything that is committed."""
    try:
        committed = row(COMMITTED)
    except (DatabaseError, InterfaceError):  # if it is away, whoever asked will hear it from the primary
        return UNTOLD
    if committed is None:
        return UNKNOWN
    try:
        return _compared(*committed)
    except (DatabaseError, InterfaceError):
        connections[ALIAS].close()  # the next one may lead to another host
        return NO_ANSWER


def _compared(position: str, started: str, system: str, timeline: str) -> str | None:
    until = time.monotonic() + WAIT_SECONDS
    while True:
        noted, follows, replayed = row(REPLAYED, [system, timeline, started, position], using=ALIAS)
        if not follows:
            return ANOTHER
        if noted and replayed:
            return None
        if time.monotonic() >= until:
            return BEHIND if noted else ANOTHER
        time.sleep(LOOK_SECONDS)


def check_sessions(needed: int, what: str) -> None:
    """Raises BadSetting where the replica's address leads to a pooler in transaction mode, or allows fewer
    connections than needed; and psycopg.OperationalError where it cannot be asked.
    """
    parameters = {**connections[ALIAS].get_connection_params(), "cursor_factory": psycopg.Cursor}
    with (
        closing(psycopg.connect(**parameters, autocommit=True)) as own,
        closing(psycopg.connect(**parameters, autocommit=True)) as other,
    ):
        if share_session(own, other):
            raise BadSetting(
                "DATABASE_REPLICA_URL leads to a pooler in transaction mode: name the server itself there."
            )
        check_allowed(own, needed, what, embedded=False)


def check() -> dict[str, Any]:
    """What a probe tells of it: whether it is `ok`, and otherwise why it is not read."""
    problem = look()
    return {"ok": problem is None, **({"problem": problem} if problem else {})}
