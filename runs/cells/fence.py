"""The fence of a cell: triggers by which its database lets nobody write for an organization that has left.

Each writer shares a lock of the organization, which a move has alone while it is frozen, and whoever waited
for it finds out that the organization has gone (groups_stays, runs/migrations/0043_cells.py). Only cells have
the triggers, since every row that is written pays for them.
"""

from typing import Any

from django.apps import apps
from django.db import OperationalError
from psycopg import errors

from groups.models import Organization
from runs.cells import tables

TRIES = 30  # at getting one table for a moment, each for as long as the connection waits for a lock
TRIGGER = "CREATE TRIGGER stays BEFORE INSERT OR UPDATE OR DELETE ON {} FOR EACH ROW EXECUTE FUNCTION {}"
THERE = "SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = 'stays'"
# Events are written with their run's row, and a message of the queue decides nothing.
WITHOUT = (tables.EVENTS, tables.MESSAGES)


def triggers() -> dict[str, str]:
    """For each table that a cell fences, the statement that does."""
    names = [name for name in tables.names(tables.tables()) if name not in WITHOUT]
    return {name: TRIGGER.format(name, _function(name)) for name in names}


def _function(name: str) -> str:
    if name == Organization._meta.db_table:
        return "groups_stays_itself()"
    for label, through in tables.VIA.items():
        model = apps.get_model(label)
        if model._meta.db_table == name:
            field: Any = model._meta.get_field(through)
            return f"groups_stays_by('{field.related_model._meta.db_table}', '{field.column}')"
    return "groups_stays_row()"


def missing(connection: Any) -> list[str]:
    """The tables of this database that have no trigger yet."""
    there = {name for (name,) in connection.execute(THERE).fetchall()}
    return [name for name in triggers() if name not in there]


def is_cell(connection: Any) -> bool:
    """Whether this database is a cell's."""
    if connection.execute("SELECT to_regclass('groups_cell')").fetchone()[0] is None:
        return False
    return bool(connection.execute("SELECT EXISTS (SELECT FROM groups_cell)").fetchone()[0])


def build(connection: Any) -> None:
    """Make the triggers that are missing, each as soon as nobody writes the table. `connection` is psycopg's,
    in autocommit, with a limit to its waiting for locks. Raises OperationalError where somebody keeps one.
    """
    for name in missing(connection):
        for left in reversed(range(TRIES)):
            try:
                connection.execute(triggers()[name])
                break
            except errors.LockNotAvailable:
                if not left:
                    raise OperationalError(f"Somebody keeps {name} locked; try again.") from None


def remove(connection: Any) -> None:
    """Take all of them away again."""
    for (name,) in connection.execute(THERE).fetchall():
        connection.execute(f"DROP TRIGGER stays ON {name}")
