"""How many connections to PostgreSQL a process needs, and whether the server allows them (docs/operating.md).

Said at start, in one line: a process that gets fewer than it needs works until the connection is missing that
renews its leases, or says that it lives.
"""

import secrets
from typing import TYPE_CHECKING, Any

from common.env import BadSetting

if TYPE_CHECKING:
    import psycopg

OF_A_WORKER = 3  # its own; one that renews its lease; one that sends hints
OF_A_GROUP = 6  # who takes messages; who acknowledges; duties; signs of life; hints; one for questions
OF_A_CARRIER = 8  # calls; listening; its lease; errands; leases of outside calls; hints; two that ask policy
OF_A_WEB_PROCESS = 5  # beside its threads: events, listening to them; hints; two for requests of MCP
SPARE = 20  # commands, psql, backups, and what PostgreSQL keeps for superusers
LEAST = 100  # PostgreSQL's own default

ALLOWED = """
SELECT current_setting('max_connections')::int - CASE WHEN rolsuper THEN 0 ELSE
           current_setting('superuser_reserved_connections')::int
           + COALESCE(current_setting('reserved_connections', true), '0')::int END,
       rolconnlimit, datconnlimit
FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()
"""


def of_cluster(workers: int, carriers: int, errands: int) -> int:
    """Connections of one `manage.py cluster`, whose carriers do so many errands at once."""
    return of_group(workers) + of_carriers(carriers, errands)


def of_group(workers: int) -> int:
    """Connections of a group of workers."""
    return OF_A_WORKER * workers + OF_A_GROUP


def of_carriers(carriers: int, errands: int) -> int:
    """Connections of so many carriers. An errand lets go of its own while it waits for the network."""
    return carriers * (OF_A_CARRIER + errands)


def of_web(threads: int) -> int:
    """Connections of one web process."""
    return threads + OF_A_WEB_PROCESS


def of_one_machine(workers: int, carriers: int, errands: int, threads: int, web_processes: int) -> int:
    """What a server for all of `make run` should allow: while a group of workers is being replaced, the old
    one's finish what they are at.
    """
    needed = of_group(workers) + of_cluster(workers, carriers, errands) + web_processes * of_web(threads)
    return max(LEAST, needed + SPARE)


def check_sessions(one: "psycopg.Connection[Any]", other: "psycopg.Connection[Any]") -> None:
    """Raises BadSetting where what one connection sets is set for the other: a pooler in transaction mode has
    lent both the same session. Leases, locks and notifications would be anybody's.
    """
    token = secrets.token_hex(8)
    one.execute("SELECT set_config('deputy.session', %s, false)", [token])
    (seen,) = other.execute("SELECT current_setting('deputy.session', true)").fetchone() or ("",)
    if seen == token:
        raise BadSetting(
            "DATABASE_URL leads to a pooler that gives a session to several connections: it has to be in "
            "session mode (pgbouncer: pool_mode = session), or name the server itself."
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
