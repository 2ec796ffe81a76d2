"""Which databases of earlier versions this one can migrate: those with every migration before the squash.

Django itself refuses the others with a message about nodes of its graph, which names no way out.
"""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error
from django.db import DatabaseError, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

OLDEST = "0.1.0a2"  # the last version with the migrations that are squashed now; see CHANGELOG.md
PROBLEM = (
    f"This database was last migrated by a version of Deputy before {OLDEST}. "
    f"Migrate it with {OLDEST} first, then with this version (CHANGELOG.md, Upgrading)."
)


def problem(database: str = "default") -> str:
    """Why this version cannot migrate the database; empty where it can. Raises DatabaseError."""
    applied = set(MigrationRecorder(connections[database]).applied_migrations())
    for migration in MigrationLoader(None).disk_migrations.values():
        replaced = set(migration.replaces)
        if replaced & applied and replaced - applied:
            return PROBLEM
    return ""


def check(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """deputy.E001, which `manage.py migrate` asks before it does anything."""
    try:
        problems = [found for database in databases or () if (found := problem(database))]
    except DatabaseError:
        return []  # said by whoever needs the database
    return [Error(found, id="deputy.E001") for found in problems]
