"""Partition the events by month. The table there is becomes the first partition: nothing is copied."""

import time
from datetime import UTC, datetime, timedelta

from django.db import OperationalError, migrations

from common import ids, months
from common.db import execute, is_locked, row, rows

TABLE, OLD = "runs_runevent", "runs_runevent_old"
SOON = timedelta(days=7)  # before its first partition ends an installation has time to go on with the migration
TRIES = 60

# What is known by these names is the whole table's from now on.
NAMES = {"btree": "run_event_decisions", "brin": "run_event_id"}
INDEXES = """
SELECT c.relname, i.indisunique, m.amname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_am m ON m.oid = c.relam WHERE i.indrelid = to_regclass(%s)
"""


def forwards(apps, editor):
    if row("SELECT relkind = 'p' FROM pg_class WHERE oid = to_regclass(%s)", [TABLE])[0]:
        return  # it was interrupted after this
    until = end_of_first()
    patiently(lambda: promise(until))
    # reads the whole table, while others read and write: attaching it then reads nothing
    execute(f"ALTER TABLE {TABLE} VALIDATE CONSTRAINT run_event_month")
    patiently(lambda: partition(until))
    months.create(TABLE)
    execute(f"ANALYZE {TABLE}")  # autovacuum looks at partitions alone


def patiently(step):
    """Take the step in a transaction that nobody waits long for: it gives way, and tries again."""
    for left in reversed(range(TRIES)):
        try:
            with months.short_locks():
                return step()
        except OperationalError as error:
            if not left or not is_locked(error):
                raise
        time.sleep(1)


def promise(until):
    """From here on the table takes what belongs into its partition. What is there already is not read."""
    execute(f"ALTER TABLE {TABLE} DROP CONSTRAINT IF EXISTS run_event_month")
    execute(f"ALTER TABLE {TABLE} ADD CONSTRAINT run_event_month CHECK (run_id < '{until}') NOT VALID")


def end_of_first():
    """The first id of the month in which the first partition no longer takes runs."""
    latest = row(f"SELECT max(run_id) FROM {TABLE}")[0]
    made = datetime.fromtimestamp(ids.made_at(latest), UTC) if latest else datetime.now(UTC)
    return ids.first_of("run", months.following(max(made, datetime.now(UTC)) + SOON))


def partition(until):
    """Put a partitioned table into the place of the one there is. Nothing here reads or writes rows."""
    execute(f"LOCK TABLE {TABLE} IN ACCESS EXCLUSIVE MODE")
    execute(f"ALTER TABLE {TABLE} RENAME TO {OLD}")
    last, called = row(f"SELECT last_value, is_called FROM {TABLE}_id_seq")
    execute(f"ALTER TABLE {OLD} ALTER id DROP IDENTITY")
    execute(f"CREATE SEQUENCE {TABLE}_id_seq")
    execute(f"SELECT setval('{TABLE}_id_seq', %s, %s)", [last, called])
    execute(f"ALTER TABLE {OLD} ALTER id SET DEFAULT nextval('{TABLE}_id_seq')")
    for name, *_ in rows(INDEXES, [OLD]):
        execute(f"ALTER INDEX {name} RENAME TO {OLD}_{name.removeprefix('run_event_')}")
    execute(f"CREATE TABLE {TABLE} (LIKE {OLD} INCLUDING ALL) PARTITION BY RANGE (run_id)")
    execute(f"ALTER SEQUENCE {TABLE}_id_seq OWNED BY {TABLE}.id")
    execute(f"ALTER TABLE {TABLE} DROP CONSTRAINT run_event_month")
    for name, unique, kind in rows(INDEXES, [TABLE]):
        execute(f"ALTER INDEX {name} RENAME TO {'run_event_seq' if unique else NAMES[kind]}")
    months.attach(TABLE, OLD, f"FOR VALUES FROM (MINVALUE) TO ('{until}')")
    execute(f"ALTER TABLE {OLD} DROP CONSTRAINT run_event_month")
    execute(f"CREATE TABLE {months.other(TABLE)} (LIKE {TABLE} INCLUDING ALL)")
    months.attach(TABLE, months.other(TABLE), "DEFAULT")


class Migration(migrations.Migration):
    atomic = False
    side_by_side = {
        "runs-python": "the first partition is the table there was, checked beforehand while others write; it "
        "changes its place under a lock of some milliseconds, waited for a second and a half at a time. Both "
        "releases name the table, its columns and its constraints as before",
    }

    dependencies = [("runs", "0037_remote_agents")]
    operations = [migrations.RunPython(forwards)]
