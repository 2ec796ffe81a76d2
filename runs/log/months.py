"""The log's months: each is a partition of the table of events (docs/operating.md, Events by month)."""

import logging
from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Warning
from django.db import DatabaseError, OperationalError, transaction

from common import months
from common.db import execute, is_locked, row

logger = logging.getLogger(__name__)

TABLE = "runs_runevent"
OLD_STATISTICS = """
SELECT relkind = 'p' AND COALESCE(last_analyze < now() - interval '7 days', true)
    AND pg_try_advisory_xact_lock(hashtextextended('analyze ' || relid::text, 0))
FROM pg_stat_user_tables JOIN pg_class ON pg_class.oid = relid WHERE relid = to_regclass(%s)
"""
GONE = "SELECT EXISTS (SELECT FROM runs_gonemonth WHERE since <= %s AND until > %s)"


def keep_up() -> None:
    """Make the partitions of months to come. Where somebody holds the locks, the next time does."""
    try:
        for name in months.create(TABLE):
            logger.info("made %s", name)
        with transaction.atomic():  # autovacuum looks at partitions alone, and plans are made for the whole
            if row(OLD_STATISTICS, [TABLE])[0]:
                execute(f"ANALYZE {TABLE}")
    except OperationalError as error:
        if not is_locked(error):
            raise
        logger.warning("%s is locked by somebody else; its next month is made later", TABLE)
    except months.TooMany as error:
        logger.warning("%s: stop the clusters for a moment and run manage.py prune --months", error)


def is_gone(run_id: str) -> bool:
    """Whether the events of the run's month were removed, all of them (runs/actions/prune_months.py)."""
    return bool(row(GONE, [run_id, run_id])[0])


def check(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """deputy.W001, where nobody has made the partition of the month to come."""
    try:
        absent = months.missing(TABLE, 1) if databases else []
    except DatabaseError:
        return []  # said by whoever needs the database
    words = "Next month's events have no partition of their own yet: {}. They go to {} until then."
    hint = "A cluster makes it within an hour; without one: manage.py prune --months."
    told = words.format(", ".join(name for name, *_ in absent), months.other(TABLE))
    return [Warning(told, hint=hint, id="deputy.W001")] if absent else []
