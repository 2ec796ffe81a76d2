"""Small helpers for raw SQL, whose statements stay prepared on the server."""

import json
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg.types.json import Jsonb


def jsonb(value: Any) -> Any:
    """`value` as a JSONB parameter; None stays NULL."""
    return None if value is None else Jsonb(value)


def from_json(value: Any) -> Any:
    """A JSONB column read by a raw cursor, which Django leaves as text."""
    return json.loads(value) if isinstance(value, str) else value


def prepared() -> Any:
    """A cursor of Django's connection whose statements the server keeps prepared.

    Django's own cursors write the parameters into the text: the server then parses and plans each
    statement anew, which costs a short one most of its time.
    """
    default: Any = connections[DEFAULT_DB_ALIAS]
    if default.queries_logged:  # whoever looks at the statements wants them whole
        return default.cursor()
    default.close_if_health_check_failed()
    default.ensure_connection()
    return default.make_cursor(psycopg.Cursor(default.connection))


def rows(sql: str, parameters: Any = ()) -> list[Any]:
    """All rows of a query."""
    with prepared() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())


def row(sql: str, parameters: Any = ()) -> Any:
    """The first row of a query, or None."""
    with prepared() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchone()


def execute(sql: str, parameters: Any = ()) -> int:
    """Run a statement; returns how many rows it touched."""
    with prepared() as cursor:
        cursor.execute(sql, parameters)
        return int(cursor.rowcount)


def own_connection(*, durable: bool = True) -> Any:
    """A connection to the default database beside Django's, in autocommit; the caller closes it.

    `durable=False`: a commit returns before it is on disk, for what may be lost in a power cut.
    """
    parameters = connections["default"].get_connection_params()
    own = psycopg.connect(**{**parameters, "cursor_factory": psycopg.Cursor}, autocommit=True)
    if not durable:
        own.execute("SET synchronous_commit = off")
    return own


async def own_async_connection() -> Any:
    """The same for a coroutine, with times in UTC and JSONB as Python values."""
    parameters = connections["default"].get_connection_params()
    for name in ("cursor_factory", "context"):  # Django's; they read values as Django's own cursors do
        parameters.pop(name, None)
    own = await psycopg.AsyncConnection.connect(**parameters, autocommit=True)
    await own.execute("SET TimeZone = 'UTC'")
    return own
