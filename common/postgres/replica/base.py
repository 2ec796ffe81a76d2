"""Connections of the alias `replica`. Nothing is lost when one fails: the primary answers instead.

The hosts of its URL are libpq's to choose from: which of the primary's was found last says nothing of them
(common/postgres/hosts.py).
"""

from types import SimpleNamespace
from typing import Any, Self

import psycopg
from django.db.backends.postgresql import base
from psycopg import errors

from common.postgres import Lost

STATEMENT_SECONDS = 8  # that a list may take
PATIENCE_SECONDS = 10.0  # without an answer, after which the session is given up

# A standby refuses to write by itself. The primary, to which the URL may lead while there is no standby, does
# not.
LIMITS = """
SELECT set_config('default_transaction_read_only', 'on', false), set_config('statement_timeout', %s, false),
       set_config('lock_timeout', %s, false)
"""


class Connection(psycopg.Connection[Any]):
    """Raises Lost from a statement without an answer."""

    @classmethod
    def connect(cls, conninfo: str = "", **parameters: Any) -> Self:
        return super().connect(conninfo, **parameters)

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, interval, PATIENCE_SECONDS if timeout is None else timeout)
        except errors._WaitTimeout:
            self.pgconn.finish()
            raise Lost("the replica does not answer") from None


DRIVER: Any = SimpleNamespace(**{**vars(psycopg), "connect": Connection.connect})


class DatabaseWrapper(base.DatabaseWrapper):
    """As Django's, in sessions that may only read."""

    Database = DRIVER

    def init_connection_state(self) -> None:
        super().init_connection_state()
        made = self.connection
        assert made is not None  # noqa: S101 - it has just been made
        try:
            with psycopg.Cursor(made) as cursor:
                cursor.execute(LIMITS, [f"{STATEMENT_SECONDS}s"] * 2)
            if not made.autocommit:
                made.commit()
        except BaseException:
            made.close()
            self.connection = None  # else Django would go on with it
            raise
