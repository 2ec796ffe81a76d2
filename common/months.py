"""Tables in partitions of a month each, by ids that sort by time (common/ids.py).

A partition ends at the smallest id of a month's first moment, and the next begins there. What no month's
partition takes is in the default one, so that no row is ever refused.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection, transaction

from common import ids
from common.db import execute, row, rows

AHEAD = 3  # months that have their partition before they begin
# Less than others wait (LOCK_SECONDS), who are kept waiting meanwhile; and autovacuum gives way only to who
# waits for more than a second (deadlock_timeout).
LOCK_MS = 1_500
MOVED = 50_000  # rows of a late partition that upkeep takes out of the default one while appending waits

PARTITIONS = """
SELECT c.relname, pg_get_expr(c.relpartbound, c.oid), pg_total_relation_size(c.oid)
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = to_regclass(%s)
"""
BOUND = re.compile(r"FOR VALUES FROM \((.+)\) TO \('(.+)'\)")
ALONE = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"
UNIQUE = """
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = to_regclass(%s) AND i.indisunique
"""


class TooMany(Exception):
    """The default partition holds more rows of a month than may be moved while appending waits."""


@dataclass(frozen=True)
class Partition:
    """One with a range: ids from `since` (empty: from the first) to below `until`; `bytes` with indexes."""

    name: str
    since: str
    until: str
    bytes: int


def month(moment: datetime) -> datetime:
    """When the moment's month began, in UTC."""
    return moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def following(moment: datetime, count: int = 1) -> datetime:
    """When the month began, or will, that comes so many after the moment's."""
    years, months = divmod(moment.month - 1 + count, 12)
    return month(moment).replace(year=moment.year + years, month=months + 1)


def other(table: str) -> str:
    """The table's default partition."""
    return f"{table}_other"


def partitions(table: str) -> list[Partition]:
    """Those with a range, the oldest first; none where the table is not partitioned."""
    found = []
    for name, bound, size in rows(PARTITIONS, [table]):
        if limits := BOUND.fullmatch(bound):
            since = "" if limits[1] == "MINVALUE" else limits[1].strip("'")
            found.append(Partition(name, since, limits[2], size))
    return sorted(found, key=lambda one: ids.made_at(one.until))


def missing(table: str, months: int = AHEAD) -> list[tuple[str, str, str]]:
    """The partitions that are wanted until so many months from now: name, first id, and the end."""
    there = partitions(table)
    if not there:
        return []
    since = there[-1].until
    prefix, end = since.partition("_")[0], following(datetime.now(UTC), months + 1)
    wanted = []
    while (begins := datetime.fromtimestamp(ids.made_at(since), UTC)) < end:
        until = ids.first_of(prefix, following(begins))
        wanted.append((f"{table}_{begins:%Y_%m}", since, until))
        since = until
    return wanted


def create(table: str, months: int = AHEAD, moved: int = MOVED) -> list[str]:
    """Make the partitions that are missing; returns their names. Several processes may: one does.

    Each is a transaction of its own, which keeps those who append waiting for LOCK_MS at most before it
    has its locks. Raises OperationalError where it does not get them, and TooMany.
    """
    made = []
    for name, since, until in missing(table, months):
        with short_locks():
            if not row(ALONE, [table])[0] or name in {one.name for one in partitions(table)}:
                break
            _create(table, name, since, until, moved)
            made.append(name)
    return made


@contextmanager
def short_locks() -> Iterator[None]:
    """A transaction that waits LOCK_MS for each lock."""
    with transaction.atomic():
        execute(f"SET LOCAL lock_timeout = {LOCK_MS}")
        yield


def _create(table: str, name: str, since: str, until: str, moved: int) -> None:
    """Made by itself and then attached, which leaves those alone who append to other partitions."""
    execute(f"CREATE TABLE {name} (LIKE {table} INCLUDING ALL)")
    execute(f"LOCK TABLE {other(table)} IN ACCESS EXCLUSIVE MODE")
    late = row(f"SELECT count(*) FROM {other(table)} WHERE {_within(table)}", [since, until])[0]  # noqa: S608
    if late > moved:
        raise TooMany(f"{other(table)} holds {late} rows that belong to {name}")
    if late:
        execute(
            f"WITH late AS (DELETE FROM {other(table)} WHERE {_within(table)} RETURNING *) "  # noqa: S608
            f"INSERT INTO {name} SELECT * FROM late",
            [since, until],
        )
    attach(table, name, f"FOR VALUES FROM ('{since}') TO ('{until}')")


def attach(table: str, name: str, bound: str) -> None:
    """Add the table as a partition; logical replication finds its rows by its unique index."""
    (unique,) = row(UNIQUE, [name])
    execute(f"ALTER TABLE {name} REPLICA IDENTITY USING INDEX {connection.ops.quote_name(unique)}")
    execute(f"ALTER TABLE {table} ATTACH PARTITION {name} {bound}")


def _within(table: str) -> str:
    column = row(
        "SELECT attname FROM pg_partitioned_table JOIN pg_attribute ON attrelid = partrelid "
        "AND attnum = partattrs[0] WHERE partrelid = to_regclass(%s)",
        [table],
    )[0]
    return f"{column} >= %s AND {column} < %s"


def detach(table: str, name: str, *, drop: bool) -> None:
    """Take the partition out of the table, and away. Its table stays without `drop`."""
    execute(f"ALTER TABLE {table} DETACH PARTITION {name}")
    if drop:
        execute(f"DROP TABLE {name}")
