"""Small helpers for raw SQL, whose statements stay prepared on the server."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from psycopg.adapt import Loader
from psycopg.types.json import Jsonb

from common import postgres

T = TypeVar("T")
Statement = tuple[str, list[Any]]  # SQL and the values of its parameters


def jsonb(value: Any) -> Any:
    """`value` as a JSONB parameter; None stays NULL."""
    return None if value is None else Jsonb(value)


def from_json(value: Any) -> Any:
    """A JSONB column read by a raw cursor, which Django leaves as text."""
    return json.loads(value) if isinstance(value, str) else value


def rows(sql: str, parameters: Any = (), *, using: str = DEFAULT_DB_ALIAS) -> list[Any]:
    """All rows of a query. `using`: an alias that common/replica.py has named."""
    found: list[Any] = _executed(sql, parameters, using).fetchall()
    return found


def row(sql: str, parameters: Any = (), *, using: str = DEFAULT_DB_ALIAS) -> Any:
    """The first row of a query, or None."""
    return _executed(sql, parameters, using).fetchone()


def execute(sql: str, parameters: Any = ()) -> int:
    """Run a statement; returns how many rows it touched."""
    return int(_executed(sql, parameters, DEFAULT_DB_ALIAS).rowcount)


def _executed(sql: str, parameters: Any, using: str) -> Any:
    """A cursor with the statement's result, which is this thread's until its next statement.

    Django's own cursors write the parameters into the text: the server then parses and plans each
    statement anew, which costs a short one most of its time. And a cursor takes longer to make than a
    short statement to send, so each connection keeps one.
    """
    database: Any = connections[using]
    if database.queries_logged or database.execute_wrappers:  # who looks at the statements wants them whole
        cursor = database.cursor()
        cursor.execute(sql, parameters)
        return cursor
    database.close_if_health_check_failed()
    database.ensure_connection()
    database.validate_no_broken_transaction()
    with database.wrap_database_errors:
        cursor = _cursor_of(database)
        cursor.execute(sql, parameters)
        return cursor


def _cursor_of(database: Any) -> Any:
    kept = database.__dict__.get("kept_cursor")
    if kept is None or kept.connection is not database.connection or kept.closed:
        kept = database.kept_cursor = psycopg.Cursor(database.connection)
        kept.adapters.register_loader("timestamptz", Times)
    return kept


class Times(Loader):
    """Reads times as Python does. psycopg's own way, for all that a server may be set to, takes ten times as
    long, and a log has a time for each event.
    """

    def load(self, data: Any) -> datetime:
        return datetime.fromisoformat(bytes(data).decode()).astimezone(UTC)


def let_go() -> None:
    """Close this thread's connection before a long wait; the next statement opens another. In the middle of
    a transaction it stays.
    """
    default = connections[DEFAULT_DB_ALIAS]
    if not default.in_atomic_block:
        default.close()


MOVING = "DP001"  # of an organization that has just moved to another cell (runs/migrations/0043_cells.py)
LOCKED, DEADLOCK = "55P03", "40P01"  # PostgreSQL's lock_not_available and deadlock_detected


def state_of(error: BaseException) -> str | None:
    """PostgreSQL's code of what went wrong; None of an error that has none."""
    return getattr(error.__cause__ or error, "sqlstate", None)


def is_locked(error: BaseException) -> bool:
    """Whether a statement gave up waiting for what another transaction has locked (LOCK_SECONDS)."""
    return state_of(error) == LOCKED


class Busy(OperationalError):
    """As if somebody else had locked it: nothing was changed, and it may be asked again soon."""

    sqlstate = LOCKED


def is_deadlock(error: BaseException) -> bool:
    """Whether PostgreSQL ended the transaction because it and another waited for each other."""
    return state_of(error) == DEADLOCK


def patiently(work: Callable[[], T], seconds: float) -> T:
    """What `work`, a transaction of its own, returns; begun again while somebody else has locked what it
    takes.

    Raises what it raises, and OperationalError for what is locked after so many seconds still.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            return work()
        except OperationalError as error:
            if not is_locked(error) or time.monotonic() > until:
                raise


def own_connection(*, durable: bool = True) -> Any:
    """A session of its own with the database beside Django's connection, in autocommit; past a pooler. The
    caller closes it.

    `durable=False`: a commit returns before it is on disk, for what may be lost in a power cut.
    """
    parameters = connections[settings.SESSION_DATABASE].get_connection_params()
    own = postgres.Connection.connect(**{**parameters, "cursor_factory": psycopg.Cursor}, autocommit=True)
    postgres.limit(own, settings.LOCK_SECONDS, settings.LEASE_SECONDS, durable)
    return own


def pooled_connection() -> Any:
    """One that goes as Django's do, through the pooler, and sets nothing there; the caller closes it."""
    parameters = connections[DEFAULT_DB_ALIAS].get_connection_params()
    return postgres.Connection.connect(**{**parameters, "cursor_factory": psycopg.Cursor}, autocommit=True)


@contextmanager
def session_lock(key: str, wait: bool = False) -> Iterator[bool]:
    """Whether this process has the advisory lock `key` (an SQL expression) while the block lasts.

    The lock is its session's, since a transaction would be open all the while: Django's own, and behind a
    pooler, which lends the session to others meanwhile, one beside it.
    """
    lock = f"pg_advisory_lock({key}) IS NOT NULL" if wait else f"pg_try_advisory_lock({key})"
    with _session() as asked:
        locked = bool(asked(f"SELECT {lock}"))
        try:
            yield locked
        finally:
            if locked:
                asked(f"SELECT pg_advisory_unlock({key})")


@contextmanager
def _session() -> Iterator[Callable[[str], Any]]:
    """A function that asks one value of the same session each time."""
    if settings.SESSION_DATABASE == DEFAULT_DB_ALIAS:
        yield lambda sql: row(sql)[0]
        return
    with closing(own_connection()) as own:
        yield lambda sql: own.execute(sql).fetchone()[0]


async def own_async_connection() -> Any:
    """The same for a coroutine, with times in UTC and JSONB as Python values."""
    if postgres.lineage.guarded:
        await asyncio.to_thread(lambda: own_connection().close())  # looks where this one will lead to
    parameters = connections[settings.SESSION_DATABASE].get_connection_params()
    for name in ("cursor_factory", "context"):  # Django's; they read values as Django's own cursors do
        parameters.pop(name, None)
    own = await postgres.AsyncConnection.connect(**parameters, autocommit=True)
    await own.execute(*postgres.limits(settings.LOCK_SECONDS, settings.LEASE_SECONDS))
    await own.execute("SET TimeZone = 'UTC'")
    return own
