"""Whether the database is the one that it was, or what a backup or a standby has made of it.

PostgreSQL counts a timeline on whenever a server leaves recovery: restored to a point in time, or promoted. A
dump that is loaded elsewhere is in a server with another system identifier. Deputy keeps both in the database
itself (`runs_databaseline`), so that what is restored says where it comes from. A copy of the data folder
that is started without recovery to a point (a snapshot of the disk) is not told from a server that crashed.

Processes that act (`guarded`) look at every new connection: one may lead to a restored server at any time.
"""

import logging
from typing import Any

import psycopg
from django.conf import settings
from psycopg import errors

logger = logging.getLogger(__name__)

# Without the right to ask for the system identifier, the timeline alone tells.
SYSTEM = "(SELECT system_identifier::text FROM pg_control_system())"
UNKNOWN = "''"
ASK = """
SELECT pg_is_in_recovery(), {system},
       CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) END,
       (SELECT ARRAY[system, timeline] FROM runs_databaseline)
"""
NOTE = """
INSERT INTO runs_databaseline (id, system, timeline, noted_at) VALUES (1, %s, %s, now())
ON CONFLICT (id) DO UPDATE SET system = EXCLUDED.system, timeline = EXCLUDED.timeline, noted_at = now()
"""
MESSAGE = (
    "the database has been restored, or a standby has taken over. What was done since may be missing: run "
    "`manage.py after_restore` (docs/operating.md, Backups)"
)

guarded = False  # whether this process acts on what the database says


class InRecovery(psycopg.OperationalError):
    """Nothing can be written yet, and nobody would look again at a connection that is open when it can."""


class Restored(psycopg.OperationalError):
    """The database is not the one that it was; what this process would do may have been done."""


def guard() -> None:
    """From now on, this process and those that it forks connect to no restored database."""
    global guarded
    guarded = True


def check(made: Any) -> None:
    """Raises Restored and InRecovery. Notes the line where none is noted yet."""
    found = _asked(made)
    if found is None:
        return
    in_recovery, system, timeline, noted = found
    if in_recovery:
        raise InRecovery("the database is in recovery: a standby, or a backup that is not restored yet")
    same = noted is not None and same_system(noted[0], system)
    if same and noted[1] == timeline:
        return
    if noted is not None and not (same and settings.SYNCHRONOUS_STANDBY):
        raise Restored(MESSAGE)
    logger.info("the database is on timeline %s", timeline)
    note(made, system, timeline)


def same_system(noted: str, system: str) -> bool:
    """Whether these may be of one server and its standbys; an unknown one may be any."""
    return noted == system or not (noted and system)


def note(made: Any, system: str, timeline: str) -> None:
    """Keep that the database is this one."""
    with made.transaction(), psycopg.Cursor(made) as cursor:
        cursor.execute(NOTE, [system, timeline])


def noted(made: Any) -> tuple[str, str] | None:
    """What was noted last."""
    found = _asked(made)
    return None if found is None or found[3] is None else (found[3][0], found[3][1])


def here(made: Any) -> tuple[str, str] | None:
    """System identifier and timeline; None where there is no table to keep them, or no primary."""
    found = _asked(made)
    return None if found is None or found[0] else (found[1], found[2])


def _asked(made: Any) -> Any:
    for system in (SYSTEM, UNKNOWN):
        try:
            with made.transaction(), psycopg.Cursor(made) as cursor:
                return cursor.execute(ASK.format(system=system)).fetchone()
        except errors.UndefinedTable:  # not migrated yet: nothing was done with it
            return None
        except (errors.InsufficientPrivilege, errors.UndefinedFunction, errors.FeatureNotSupported):
            continue
    return None
