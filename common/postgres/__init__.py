"""Connections to PostgreSQL that notice when their session is gone without a word.

A network, or a proxy in it, may stop forwarding and close nothing. The kernel notices what is not received
(keepalives, tcp_user_timeout: OPTIONS in config/settings.py), but not a proxy that receives and goes no
further. So a statement that has had no answer for a while is asked about over a second connection: does the
server still work at it? If not, or if the server cannot be reached, the statement fails as it does when a
connection breaks.
"""

import asyncio
import logging
import time
from typing import Any, Self

import psycopg
from psycopg import errors

from common.postgres import hosts, lineage

logger = logging.getLogger(__name__)

SILENT_SECONDS = 3.0  # without an answer, after which the server is asked about the statement
LATE_ANSWER_SECONDS = 1.0  # for an answer that was on its way while the question was asked
READY_NONE = 0  # psycopg's word for a socket with nothing to read and no room to write
ASYNC_SECONDS = 10.0  # for statements of a coroutine, all of which are quick

STILL_SECONDS = (
    120  # that a transaction may be idle before the server ends its session, and with it its locks
)

# The server looks after its end of the connection as well, else what a lost session has locked stays locked.
LIMITS = """
SELECT set_config('lock_timeout', %s, false), set_config('idle_in_transaction_session_timeout', %s, false),
       set_config('tcp_keepalives_idle', %s, false), set_config('tcp_keepalives_interval', %s, false),
       set_config('tcp_keepalives_count', '2', false), set_config('tcp_user_timeout', %s, false),
       set_config('synchronous_commit', COALESCE(%s, current_setting('synchronous_commit')), false)
"""

ASK = "SELECT pg_backend_pid(), (SELECT state FROM pg_stat_activity WHERE pid = %s)"


def limits(lock_seconds: int, lease_seconds: int, durable: bool = True) -> tuple[str, list[Any]]:
    """The statement that a new session begins with, and its values."""
    quarter = str(max(1, lease_seconds // 4))
    waits = [f"{lock_seconds}s", f"{STILL_SECONDS}s", quarter, quarter, f"{lease_seconds}s"]
    return LIMITS, [*waits, None if durable else "off"]


def limit(made: Any, lock_seconds: int, lease_seconds: int, durable: bool = True) -> None:
    """Let the session wait for no lock for more than so long, and end when its network does.

    In a process that acts, raises lineage.Restored and InRecovery. What it raises has closed the connection.
    """
    try:
        with psycopg.Cursor(made) as cursor:
            cursor.execute(*limits(lock_seconds, lease_seconds, durable))
        if not made.autocommit:
            made.commit()
    except BaseException:
        made.close()
        raise
    look(made)


def look(made: Any) -> None:
    """In a process that acts, raises lineage.Restored and InRecovery, having closed the connection."""
    try:
        if lineage.guarded:
            lineage.check(made)
    except BaseException:
        made.close()
        raise


class Lost(psycopg.OperationalError):
    """The session is gone, though nobody has closed it."""


class Connection(psycopg.Connection[Any]):
    """Raises Lost from a statement that the server knows nothing of any more."""

    parameters: dict[str, Any]  # by which it was made; the question goes the same way

    @classmethod
    def connect(cls, conninfo: str = "", **parameters: Any) -> Self:
        lost: psycopg.OperationalError | None = None
        for one in hosts.to_try(parameters):
            try:
                made = super().connect(conninfo, **one)
            except psycopg.OperationalError as error:
                hosts.failed(one, error)
                lost = error
                continue
            made.parameters = parameters
            hosts.found(made)
            return made
        raise lost or psycopg.OperationalError("there is no host to connect to")

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        if timeout is not None:  # who sets a time of their own expects no answer
            return super().wait(gen, interval, timeout)
        going_on = gen
        while True:
            try:
                return super().wait(going_on, interval, SILENT_SECONDS)
            except errors._WaitTimeout:
                going_on = _resumed(gen)
                if not is_lost(self):
                    continue
            try:
                return super().wait(going_on, interval, LATE_ANSWER_SECONDS)
            except errors._WaitTimeout:
                logger.warning("a session with PostgreSQL is gone without a word")
                self.pgconn.finish()
                raise Lost("the server knows nothing of this statement any more") from None


def _resumed(gen: Any) -> Any:
    """Go on with a statement that was left in its middle.

    psycopg's `wait` begins with `next`. A generator that still sends takes that for an answer of the
    socket, and fails; so it is told first that nothing is ready.
    """
    try:
        wanted = gen.send(READY_NONE)
        while True:
            wanted = gen.send((yield wanted))
    except StopIteration as end:
        return end.value


class Inquiry(psycopg.Connection[Any]):
    """A connection for one question, whose every answer has to come in time."""

    @classmethod
    def connect(cls, conninfo: str = "", **parameters: Any) -> Self:
        return super().connect(
            conninfo, **{**parameters, "autocommit": True, "cursor_factory": psycopg.Cursor}
        )

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, interval, SILENT_SECONDS if timeout is None else timeout)
        except errors._WaitTimeout:
            self.pgconn.finish()
            raise Lost("the server does not answer") from None

    def lost(self, pid: int) -> bool:
        """Whether the server has no statement of that session. Behind a pooler nobody can say: False."""
        asked, state = self.execute(ASK, [pid]).fetchone() or (0, None)
        return asked == self.info.backend_pid and state != "active"


class AsyncConnection(psycopg.AsyncConnection[Any]):
    """For coroutines, whose statements are quick: one that takes ASYNC_SECONDS is lost in any case."""

    parameters: dict[str, Any]

    @classmethod
    async def connect(cls, conninfo: str = "", **parameters: Any) -> Self:
        lost: psycopg.OperationalError | None = None
        for one in hosts.to_try(parameters):
            try:
                made = await super().connect(conninfo, **one)
            except psycopg.OperationalError as error:
                hosts.failed(one, error)
                lost = error
                continue
            made.parameters = parameters
            hosts.found(made)
            return made
        raise lost or psycopg.OperationalError("there is no host to connect to")

    async def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        if timeout is not None:
            return await super().wait(gen, interval, timeout)
        going_on, deadline = gen, time.monotonic() + ASYNC_SECONDS
        while True:
            try:
                return await super().wait(going_on, interval, SILENT_SECONDS)
            except errors._WaitTimeout:
                going_on = _resumed(gen)
                if time.monotonic() < deadline and not await asyncio.to_thread(is_lost, self):
                    continue
            try:
                return await super().wait(going_on, interval, LATE_ANSWER_SECONDS)
            except errors._WaitTimeout:
                self.pgconn.finish()
                raise Lost("the server has not answered in time") from None


def is_lost(made: "Connection | AsyncConnection") -> bool:
    """Whether its server can be asked and does not work for this session, or cannot be reached."""
    try:
        with Inquiry.connect(**hosts.same(made.parameters, made)) as inquiry:
            return inquiry.lost(made.info.backend_pid)
    except psycopg.OperationalError as error:
        if error.sqlstate is not None:  # the server has answered: it is full, or starting
            return False
        hosts.gone(made)
        return True
