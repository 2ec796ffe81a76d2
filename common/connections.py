"""How many connections to PostgreSQL a process needs, and whether the server allows them (docs/operating.md).

Said at start, in one line: a process that gets fewer than it needs works until the connection is missing that
renews its leases, or says that it lives.
"""

import secrets
from typing import TYPE_CHECKING, Any

from common.env import BadSetting

if TYPE_CHECKING:
    import psycopg

OF_A_WORKER = 3  # its own, which may be a pooler's; one that renews its lease; one that sends hints
OF_A_GROUP = 6  # who takes messages; who acknowledges; duties; signs of life; hints; one for questions
OF_A_CARRIER = 8  # calls; listening; its lease; errands; leases of outside calls; hints; two that ask policy
OF_A_WEB_PROCESS = 5  # beside its threads: events, listening to them; hints; two for requests of MCP
SPARE = 20  # commands, psql, backups, and what PostgreSQL keeps for superusers
LEAST = 100  # PostgreSQL's own default
LOOKS = 5  # at whether two connections share a session, while others may be using it

ALLOWED = """
SELECT current_setting('max_connections')::int - CASE WHEN rolsuper THEN 0 ELSE
           current_setting('superuser_reserved_connections')::int
           + COALESCE(current_setting('reserved_connections', true), '0')::int END,
       rolconnlimit, datconnlimit
FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()
"""


WHERE = "SELECT current_database(), pg_postmaster_start_time()"
SESSION_LIMITS = "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)"
NAMES = "SELECT quote_ident(current_user), quote_ident(current_database())"


def of_cluster(workers: int, carriers: int, errands: int, pooled: bool = False) -> int:
    """Connections of one `manage.py cluster`, whose carriers do so many errands at once; where the rest go
    through a pooler (`pooled`), those past it.
    """
    return of_group(workers, pooled) + of_carriers(carriers, errands, pooled)


def of_group(workers: int, pooled: bool = False) -> int:
    """Connections of a group of workers."""
    return (OF_A_WORKER - pooled) * workers + OF_A_GROUP


def of_carriers(carriers: int, errands: int, pooled: bool = False) -> int:
    """Connections of so many carriers. An errand lets go of its own while it waits for the network."""
    return carriers * (OF_A_CARRIER + (0 if pooled else errands))


def of_web(threads: int, pooled: bool = False) -> int:
    """Connections of one web process."""
    return (0 if pooled else threads) + OF_A_WEB_PROCESS


def of_one_machine(workers: int, carriers: int, errands: int, threads: int, web_processes: int) -> int:
    """What a server for all of `make run` should allow: while a group of workers is being replaced, the old
    one's finish what they are at.
    """
    needed = of_group(workers) + of_cluster(workers, carriers, errands) + web_processes * of_web(threads)
    return max(LEAST, needed + SPARE)


def share_session(one: "psycopg.Connection[Any]", other: "psycopg.Connection[Any]") -> bool:
    """Whether a pooler in transaction mode lends both the same sessions: what the one sets is set for the
    other, or, where many use the pool, gone when it looks again.
    """
    for _ in range(LOOKS):
        token = secrets.token_hex(8)
        one.execute("SELECT set_config('deputy.session', %s, false)", [token])
        seen, kept = (
            connection.execute("SELECT current_setting('deputy.session', true)").fetchone() or ("",)
            for connection in (other, one)
        )
        if seen[0] == token or kept[0] != token:
            return True
    return False


def check_sessions(one: "psycopg.Connection[Any]", other: "psycopg.Connection[Any]", pooled: bool) -> None:
    """Raises BadSetting where these, on which leases, locks and notifications rest, share sessions."""
    if not share_session(one, other):
        return
    if pooled:
        raise BadSetting(
            "DATABASE_DIRECT_URL leads to a pooler in transaction mode: it has to name the server itself."
        )
    raise BadSetting(
        "DATABASE_URL leads to a pooler in transaction mode: name the server itself in DATABASE_DIRECT_URL "
        "as well, or put the pooler into session mode (pgbouncer: pool_mode = session)."
    )


def check_pooler(
    direct: "psycopg.Connection[Any]",
    pooled: "psycopg.Connection[Any]",
    lock_seconds: int,
    still_seconds: int,
) -> None:
    """Raises BadSetting where the pooler leads to another database than DATABASE_DIRECT_URL, or where its
    sessions wait longer for a lock, or hold one longer in an idle transaction, than Deputy's own.
    """
    if direct.execute(WHERE).fetchone() != pooled.execute(WHERE).fetchone():
        raise BadSetting("DATABASE_URL and DATABASE_DIRECT_URL lead to different databases or servers.")
    limits = {"lock_timeout": lock_seconds, "idle_in_transaction_session_timeout": still_seconds}
    found = dict(pooled.execute(SESSION_LIMITS, [list(limits)]).fetchall())
    if all(0 < int(found[name]) <= seconds * 1000 for name, seconds in limits.items()):
        return
    (role, database) = pooled.execute(NAMES).fetchone() or ("", "")
    alter = f"ALTER ROLE {role} IN DATABASE {database} SET"
    said = "; ".join(f"{alter} {name} = '{seconds}s'" for name, seconds in limits.items())
    raise BadSetting(
        "sessions of the pooler in DATABASE_URL may hold others up for as long as they like, as nobody can "
        f"set their limits but the server: say there {said}; and have the pooler connect anew (pgbouncer: "
        "RECONNECT)."
    )


def check(connection: "psycopg.Connection[Any]", needed: int, what: str, embedded: bool) -> None:
    """Raises BadSetting when the server, the role or the database allows fewer connections than that."""
    limits = connection.execute(ALLOWED).fetchone() or ()
    allowed = min((limit for limit in limits if limit >= 0), default=needed)
    if needed <= allowed:
        return
    help_ = (
        "the embedded server is sized when it starts: stop every program that uses it, and start again"
        if embedded
        else f"raise its max_connections (or the role's or database's own limit) to at least {needed + SPARE}"
    )
    raise BadSetting(
        f"{what} needs {needed} connections to PostgreSQL, which allows {allowed}: {help_}, or lower it."
    )
