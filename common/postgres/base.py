"""Django's PostgreSQL engine with connections that notice a lost session and wait for no lock for ever."""

from types import SimpleNamespace
from typing import Any

import psycopg
from django.conf import settings
from django.db.backends.postgresql import base

from common.postgres import Connection, limit, lineage, look

# What Django looks up in the driver: its errors, its types, and how to connect.
DRIVER: Any = SimpleNamespace(**{**vars(psycopg), "connect": Connection.connect})


class DatabaseWrapper(base.DatabaseWrapper):
    """As Django's, but for who connects and how long a statement may wait for a lock."""

    Database = DRIVER

    def init_connection_state(self) -> None:
        super().init_connection_state()
        assert self.connection is not None  # noqa: S101 - it has just been made
        if self.pool:
            return
        try:
            if self.settings_dict.get("POOLED"):
                look(self.connection)
            else:
                limit(self.connection, settings.LOCK_SECONDS, settings.LEASE_SECONDS)
        except BaseException:
            self.connection = None  # else Django would go on with it
            raise

    def is_usable(self) -> bool:
        """Behind a pooler the server may have become another since the connection was made: look again."""
        if not (self.settings_dict.get("POOLED") and lineage.guarded and self.connection):
            return bool(super().is_usable())
        try:
            lineage.check(self.connection)
        except psycopg.Error:
            return False
        return True
