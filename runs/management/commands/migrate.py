"""manage.py migrate: Django's, but it gives way to whoever works on the database meanwhile.

While a migration waits for a lock, others wait behind it. Where it has locked what they want, and waits for
what they have, PostgreSQL ends one of them after a second (deadlock_timeout). So a migration gives up sooner,
which undoes it, and begins again after a pause. Every few times it waits for longer than that second:
autovacuum gives way to nobody else.
"""

import time
from typing import Any

from django.conf import settings
from django.core.management.commands import migrate
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections

from common.db import is_deadlock, is_locked

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

    def _connect_anew(self) -> None:
        """Django leaves a transaction open whose last statements, those of foreign keys, have failed."""
        connections[self.alias].close()
        connections[self.alias].connect()

    def migration_progress_callback(self, action: str, migration: Any = None, fake: bool = False) -> None:
        """Called before and after each migration. One that is no transaction might be left half done, and
        sees to its locks itself.
        """
        super().migration_progress_callback(action, migration, fake)
        if action in ("apply_start", "unapply_start"):
            self._wait_for_locks(self.waits_ms if migration.atomic else settings.LOCK_SECONDS * 1_000)

    def _wait_for_locks(self, milliseconds: int) -> None:
        with connections[self.alias].cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{milliseconds}ms"])
