"""A world that many tests begin with: made by Deputy's code once in a process, then copied in, in a tenth of
the time.

Only in tests that roll back: elsewhere what follows a commit belongs to the making.
"""

from collections.abc import Callable
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

from django.db import ProgrammingError, connection, transaction

from groups import catalog, routing

# Generated columns are not written; of a partitioned table the partitions hold the rows.
COLUMNS = """
SELECT c.oid::regclass::text, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attgenerated = ''
GROUP BY c.oid
"""
WORLDS: dict[tuple[Any, ...], tuple[SimpleNamespace, dict[str, bytes]]] = {}


def kept(key: tuple[Any, ...], make: Callable[[], SimpleNamespace]) -> SimpleNamespace:
    """What `make` returns, with its rows in the database."""
    if not connection.in_atomic_block:
        return make()
    if key in WORLDS:
        made, rows = WORLDS[key]
        catalog._kept.clear()  # by projects' ids and versions, which another test has had
        routing._routers.clear()
        return deepcopy(made) if _written(rows) else make()
    before = _filled()
    made = make()
    after = _filled()
    if all(after.get(table) == held for table, held in before.items()):  # nothing else was there to mix with
        WORLDS[key] = deepcopy(made), {table: held for table, held in after.items() if table not in before}
    return made


def _filled() -> dict[str, bytes]:
    """The rows of each table that has any, by the table and its columns, as COPY writes them."""
    found = {}
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS)
        for table, columns in cursor.fetchall():
            with cursor.copy(f"COPY {table} ({columns}) TO STDOUT") as rows:
                held = b"".join(bytes(row) for row in rows)
            if held:
                found[f"{table} ({columns})"] = held
    return found


def _written(rows: dict[str, bytes]) -> bool:
    """False, with nothing written, where this server's user may not leave triggers out."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            for table, held in rows.items():
                with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                    copy.write(held)
            cursor.execute("SET LOCAL session_replication_role = origin")
    except ProgrammingError:
        return False
    return True
