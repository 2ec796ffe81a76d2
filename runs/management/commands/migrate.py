"""manage.py migrate: Django's, but it gives way to whoever works on the database meanwhile.

While a migration waits for a lock, others wait behind it. Where it has locked what they want, and waits for
what they have, PostgreSQL ends one of them after a second (deadlock_timeout). So a migration gives up sooner,
which undoes it, and begins again after a pause. Every few times it waits for longer than that second:
autovacuum gives way to nobody else.
"""

import time
from contextlib import closing
from typing import Any

from django.conf import settings
from django.contrib.postgres.operations import NotInTransactionMixin
from django.core.management.commands import migrate
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections

from common.db import is_deadlock, is_locked, own_connection
from runs.cells import fence

TRIES = 60
PAUSE_SECONDS = 1.0  # for those who waited
SHORT_MS, LONG_MS, EVERY = 400, 1_500, 4  # for one lock; each fourth time for longer


class Command(migrate.Command):
    waits_ms, alias = SHORT_MS, DEFAULT_DB_ALIAS

    def handle(self, *args: Any, **options: Any) -> None:
        """What was applied stays so: each try begins with the migration that the last could not apply."""
        self.alias = options.get("database") or DEFAULT_DB_ALIAS
        for number in range(1, TRIES + 1):
            self.waits_ms = SHORT_MS if number % EVERY else LONG_MS
            try:
                super().handle(*args, **options)
                break
            except OperationalError as error:
                if number == TRIES or not (is_locked(error) or is_deadlock(error)):
                    raise
            self._connect_anew()
            self.stderr.write(f"Somebody else has locked what is to change. Again in {PAUSE_SECONDS:g} s.")
            time.sleep(PAUSE_SECONDS)
        self._wait_for_locks(settings.LOCK_SECONDS * 1_000)
        if not (options.get("app_label") or options.get("plan")):
            self._fence()

    def _fence(self) -> None:
        """The tables that a release brings to a cell get the triggers of a cell's."""
        with closing(own_connection()) as own:
            if fence.is_cell(own):
                fence.build(own)

    def _connect_anew(self) -> None:
        """Django leaves a transaction open whose last statements, those of foreign keys, have failed."""
        connections[self.alias].close()
        connections[self.alias].connect()

    def migration_progress_callback(self, action: str, migration: Any = None, fake: bool = False) -> None:
        """Called before and after each migration."""
        super().migration_progress_callback(action, migration, fake)
        if action in ("apply_start", "unapply_start"):
            self._wait_for_locks(self._patience(migration))

    def _patience(self, migration: Any) -> int:
        """In milliseconds; 0 is for ever. One that is no transaction sees to its locks itself. Nobody waits
        behind an index that is made concurrently; giving up would leave it there, unusable.
        """
        if migration.atomic:
            return self.waits_ms
        concurrently = all(isinstance(operation, NotInTransactionMixin) for operation in migration.operations)
        return 0 if concurrently else settings.LOCK_SECONDS * 1_000

    def _wait_for_locks(self, milliseconds: int) -> None:
        with connections[self.alias].cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{milliseconds}ms"])
