"""An organization's rows from one database into another: by COPY, and no other organization's."""

from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg import sql

from runs.cells import tables
from runs.cells.tables import EVENTS, MESSAGES, RUNS, Table

# Written since a snapshot, or a little before: what had been committed then is older. Never less than that.
SINCE = "age(t.xmin) <= age(%s::xid)"
COUNTED_THERE = {("groups_project", "catalog_version")}  # by triggers, also while rows arrive
HORIZON = "SELECT pg_snapshot_xmin(pg_current_snapshot())::xid::text"


class Differ(Exception):
    """What arrived is not what was sent."""


def text(words: str) -> sql.SQL:
    """Our own text as a statement: the names in it are those of the models."""
    return sql.SQL(words)


def stream(source: Any, target: Any, query: str, values: list[Any], into: str) -> int:
    """Copy what the query finds into the table; returns how many rows."""
    with source.cursor() as reading, target.cursor() as writing:
        with (
            reading.copy(text(f"COPY ({query}) TO STDOUT (FORMAT BINARY)"), values) as out,
            writing.copy(text(f"COPY {into} FROM STDIN (FORMAT BINARY)")) as taken,
        ):
            for part in out:
                taken.write(part)
        return int(writing.rowcount)


def whole(source: Any, target: Any, each: Table, organization: str) -> int:
    """All of the organization's rows of the table."""
    query = f"SELECT {each.chosen} FROM {each.name} t WHERE {each.where}"  # noqa: S608
    if each.name == EVENTS:
        query += " ORDER BY t.id"  # the order in which they happened is that of their new numbers
    return stream(source, target, query, [organization], f"{each.name} ({each.into})")


def changes(source: Any, target: Any, each: Table, organization: str, since: str) -> int:
    """Bring the target's rows of the table up to date; returns how many were copied."""
    if each.name == EVENTS:
        return _events(source, target, each, organization, since)
    if not each.key:
        target.execute(f"DELETE FROM {each.name} t WHERE {each.where}", [organization])  # noqa: S608
        return whole(source, target, each, organization)
    try:
        with target.transaction():
            copied = _written(source, target, each, organization, since)
    except psycopg.errors.UniqueViolation:  # something has taken the place of what was removed
        _remove_gone(source, target, each, organization)
        copied = _written(source, target, each, organization, since)
    if count(source, each, organization) != count(target, each, organization):
        _remove_gone(source, target, each, organization)
    return copied


def _written(source: Any, target: Any, each: Table, organization: str, since: str) -> int:
    """Add what was added since, and change what was changed."""
    query = f"SELECT {each.chosen} FROM {each.name} t WHERE {each.where} AND {SINCE}"  # noqa: S608
    target.execute(f"CREATE TEMP TABLE changed AS SELECT {each.into} FROM {each.name} LIMIT 0")  # noqa: S608
    copied = stream(source, target, query, [organization, since], f"changed ({each.into})")
    if copied:
        target.execute(
            f"INSERT INTO {each.name} ({each.into}) SELECT {each.into} FROM changed "  # noqa: S608
            f"ON CONFLICT ({each.known_by}) DO {_replaced(each)}"
        )
    target.execute("DROP TABLE changed")
    return copied


def _replaced(each: Table) -> str:
    """A row is changed where it stands: with a project that is removed for a moment its memories would go."""
    others = [f'"{name}" = EXCLUDED."{name}"' for name in each.columns if name not in each.key]
    return f"UPDATE SET {', '.join(others)}" if others else "NOTHING"


def _events(source: Any, target: Any, each: Table, organization: str, since: str) -> int:
    """Those of runs whose row has changed: whoever appends changes it, and so does who removes contents."""
    ids = changed_runs(source, organization, since)
    target.execute(f"DELETE FROM {EVENTS} WHERE run_id = ANY(%s)", [ids])  # noqa: S608
    query = f"SELECT {each.chosen} FROM {EVENTS} t WHERE t.run_id = ANY(%s) ORDER BY t.id"  # noqa: S608
    return stream(source, target, query, [ids], f"{EVENTS} ({each.into})")


def changed_runs(source: Any, organization: str, since: str) -> list[str]:
    """The runs that have changed since, and with them their logs."""
    query = f"SELECT t.id FROM {RUNS} t WHERE t.organization_id = %s AND {SINCE}"  # noqa: S608
    return [found for (found,) in source.execute(query, [organization, since])]


def count(connection: Any, each: Table, organization: str) -> int:
    query = f"SELECT count(*) FROM {each.name} t WHERE {each.where}"  # noqa: S608
    return int(connection.execute(query, [organization]).fetchone()[0])


def _remove_gone(source: Any, target: Any, each: Table, organization: str) -> None:
    """Remove what the source has removed since."""
    key = ", ".join(f't."{name}"' for name in each.key)
    query = f"SELECT {key} FROM {each.name} t WHERE {each.where}"  # noqa: S608
    kept = set(source.execute(query, [organization]))
    gone = [one for one in target.execute(query, [organization]) if one not in kept]
    same = " AND ".join(f't."{name}" = %s' for name in each.key)
    with target.cursor() as writing:
        writing.executemany(text(f"DELETE FROM {each.name} t WHERE {same}"), gone)  # noqa: S608


def compare(source: Any, target: Any, organization: str, since: str = "") -> dict[str, int]:
    """How many rows each table has; raises Differ where the two cells hold another number, or others.

    With `since`, of events only those are compared that were copied again: the rest cannot change. Messages
    of the queue are not: they may be taken also while nothing else of the organization is written.
    """
    counts = {}
    for each in tables.tables():
        if each.name == MESSAGES and since:
            continue
        if each.name == EVENTS and since:
            changed = changed_runs(source, organization, since)
            here, there = (digest(one, each, changed, "t.run_id = ANY(%s)") for one in (source, target))
        else:
            here, there = (digest(one, each, organization, each.where) for one in (source, target))
        if here != there:
            raise Differ(f"{each.name}: {here[0]} rows were sent, {there[0]} have arrived, or others")
        counts[each.name] = here[0]
    broken = target.execute(BROKEN, [organization]).fetchone()
    if broken:
        raise Differ(f"{broken[0]} has not arrived whole")
    return counts


# The head of each log, as its run has it.
BROKEN = f"""
SELECT r.id FROM {RUNS} r
WHERE r.organization_id = %s AND r.last_seq > 0 AND r.pruned_at IS NULL AND r.last_digest <> COALESCE(
    (SELECT e.digest FROM {EVENTS} e WHERE e.run_id = r.id AND e.seq = r.last_seq), '')
LIMIT 1
"""  # noqa: S608


def digest(connection: Any, each: Table, whose: Any, where: str) -> tuple[int, int]:
    """How many rows there are, and a sum over what they say. Of events, whose digests say it, theirs."""
    columns = ("run_id", "seq", "digest") if each.name == EVENTS else each.columns
    said = ", ".join(f't."{name}"' for name in columns if (each.name, name) not in COUNTED_THERE)
    query = f"""SELECT count(*), COALESCE(sum(hashtextextended(ROW({said})::text, 0)), 0)
        FROM {each.name} t WHERE {where}"""  # noqa: S608
    found, total = connection.execute(query, [whose]).fetchone()
    return int(found), int(total)


def remove(connection: Any, organization: str) -> None:
    """Remove all of the organization's rows, in the caller's transaction."""
    connection.execute(
        "DELETE FROM groups_connection WHERE token_id IN "
        "(SELECT id FROM groups_token WHERE organization_id = %s)",
        [organization],
    )
    for name in tables.LEFT_BEHIND:
        connection.execute(f"DELETE FROM {name} WHERE organization_id = %s", [organization])  # noqa: S608
    for each in reversed(tables.tables()):
        connection.execute(f"DELETE FROM {each.name} t WHERE {each.where}", [organization])  # noqa: S608
    for name in tables.LEFT_BEHIND:  # written again by triggers
        connection.execute(f"DELETE FROM {name} WHERE organization_id = %s", [organization])  # noqa: S608


def people_of(connection: Any, organization: str) -> set[int]:
    """The accounts that any of the organization's rows names."""
    named: Iterable[str] = (
        f"SELECT t.{column} FROM {each.name} t WHERE {each.where}"  # noqa: S608
        for each in tables.tables()
        for column in each.people
    )
    query = " UNION ".join(named)
    return {
        found
        for (found,) in connection.execute(query, [organization] * query.count("%s"))
        if found is not None
    }
