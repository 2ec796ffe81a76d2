"""Bring the database up to date: migrations, and the demo in a database that knows nobody yet.

A process of its own, so that the supervisor stays small and free of Django. Most starts find nothing to do,
which is seen without Django: loading it takes longer than all else.
"""

import io
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import connections
from common.env import flag, go_direct
from launch.binaries import OLDEST
from launch.errors import LaunchError, one_line
from launch.home import WEB_PROCESSES, make_home, write_private

if TYPE_CHECKING:
    import psycopg

ACCOUNTS = "demo.txt"  # what the demo said on its first run: names, passwords, tokens


def main() -> None:
    """Migrate, load the demo once, say what was done."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    with one_line():
        from launch import postgres

        pooled = go_direct()
        postgres.ensure()
        check_connections(pooled)
        if nothing_to_do():
            return
        import django

        django.setup()
        check_database()
        if applied := migrate():
            print(f"deputy: database ready, {applied} migrations applied")
        if flag("DEMO", True):
            load_demo()


def connected() -> "psycopg.Connection[Any]":
    """A connection to the database, made without Django. Raises psycopg.Error."""
    import psycopg
    from django.conf import settings

    database = settings.DATABASES["default"]
    named = {"dbname": "NAME", "host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD"}
    parts = {name: database[its] for name, its in named.items() if database.get(its)}
    return psycopg.connect(**parts, **database["OPTIONS"])


def check_connections(pooled: bool) -> None:
    """Raises BadSetting where the server allows fewer connections than all of Deputy here needs beside the
    pooler's.

    A server that cannot be reached is for others to tell of.
    """
    import psycopg
    from django.conf import settings

    workers, threads = settings.WORKERS, settings.WEB_THREADS
    cluster = connections.of_cluster(workers, settings.CARRIERS, settings.CARRIER_ERRANDS, pooled)
    needed = cluster + WEB_PROCESSES * connections.of_web(threads, pooled)
    what = f"Deputy with WORKERS={workers} and WEB_THREADS={threads}"
    try:
        with connected() as connection:
            connections.check(connection, needed, what, embedded="DATABASE_URL" not in os.environ)
    except psycopg.Error:
        return


def nothing_to_do() -> bool:
    """Whether the database has seen every migration there is a file for, and knows somebody.

    Where that cannot be told, Django is to look, and to say what is wrong.
    """
    import psycopg
    from django.conf import settings

    try:
        with connected() as connection:
            applied = set(connection.execute("SELECT app, name FROM django_migrations").fetchall())
            (knows_somebody,) = connection.execute("SELECT EXISTS (SELECT FROM auth_user)").fetchone() or [
                False
            ]
    except psycopg.Error:
        return False
    return migration_files(settings.INSTALLED_APPS) <= applied and (knows_somebody or not flag("DEMO", True))


def migration_files(apps: Sequence[str]) -> set[tuple[str, str]]:
    """(label, name) of every migration that lies in the folders of these packages, none of them imported."""
    found = set()
    for app in apps:
        top, *inner = app.split(".")
        spec = find_spec(top)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            for path in Path(folder, *inner, "migrations").glob("[!_]*.py"):
                found.add((app.rpartition(".")[2], path.stem))
    return found


def check_database() -> None:
    """Raises LaunchError where the database cannot be reached or is too old."""
    from django.db import OperationalError, connection

    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW server_version_num")
            version = int(cursor.fetchone()[0]) // 10_000
    except OperationalError as error:
        reason = " ".join(str(error).split())
        raise LaunchError(f"the database of DATABASE_URL cannot be used: {reason}") from None
    if version < OLDEST:
        raise LaunchError(f"the database is PostgreSQL {version}; Deputy needs {OLDEST} or newer.")


def migrate() -> int:
    """Apply what is missing; returns how many migrations that were. Raises LaunchError."""
    from django.core.management import call_command
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    from common import upgrades

    if problem := upgrades.problem():
        raise LaunchError(problem)
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        call_command("migrate", interactive=False, verbosity=0)
    executor.check_replacements()  # without a plan, nobody else notes that a squashed migration is applied
    return len(plan)


def load_demo() -> None:
    """Load the demo, all of it or nothing, into a database without any user."""
    from django.contrib.auth import get_user_model
    from django.core.management import call_command, get_commands
    from django.db import transaction

    if "demo" not in get_commands() or get_user_model().objects.exists():
        return
    said = io.StringIO()
    with transaction.atomic(), redirect_stdout(said):
        call_command("demo", stdout=said)
    write_private(make_home() / ACCOUNTS, said.getvalue())
    sys.stdout.write(said.getvalue())


if __name__ == "__main__":
    main()
