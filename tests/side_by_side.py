"""Whether a migration may run while processes of the release before still work on the database.

The statements of each migration go through squawk, a linter for PostgreSQL's migrations: it knows which of
them lock a table for long, and which take away or change what the older release reads and writes. What
changes data or runs Python it cannot see, so a person has to have looked at that. A migration says what was
looked at and why it does no harm: `side_by_side = {"rule": "why"}` in its class.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.contrib.postgres.operations import ValidateConstraint
from django.db import connection
from django.db.migrations import Migration
from django.db.migrations.operations import AddField, CreateModel, RunPython, RunSQL
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import NOT_PROVIDED

# Matters of taste (Django chooses the types), and what holds already: each session has a lock_timeout.
NOT_ASKED = (
    *("prefer-text-field", "prefer-bigint-over-int", "prefer-bigint-over-smallint", "prefer-identity"),
    *("prefer-robust-stmts", "prefer-timestamptz", "require-lock-timeout", "require-statement-timeout"),
)
CHANGES_DATA, RUNS_PYTHON = "changes-data", "runs-python"
HARMLESS = ("create", "comment", "alter")  # statements of RunSQL that squawk understands
OLDEST = "15"  # of PostgreSQL


def objections(migration: Migration, before: ProjectState) -> dict[str, str]:
    """Rules that the migration breaks and says nothing of, each with where. `before`, the models until then,
    is brought up to date.
    """
    in_atomic_block = connection.in_atomic_block
    connection.in_atomic_block = migration.atomic and in_atomic_block  # the test's own is none of theirs
    try:
        with connection.schema_editor(collect_sql=True, atomic=migration.atomic) as editor:
            migration.apply(before, editor, collect_sql=True)
    finally:
        connection.in_atomic_block = in_atomic_block
    sql = "\n".join(editor.collected_sql)
    found = {**of_statements(sql, migration.atomic), **of_operations(migration.operations)}
    accepted: Mapping[str, str] = getattr(migration, "side_by_side", {})
    return {rule: where for rule, where in found.items() if not accepted.get(rule, "").strip()}


def only_adds(operation: Operation) -> bool:
    """Whether it makes a table, or a column that the older release may leave out: nothing to look at. (The
    models of a whole release take a while to be put together, only to see its statements.)
    """
    if isinstance(operation, AddField):
        field = operation.field
        return not field.is_relation and (field.null or field.db_default is not NOT_PROVIDED)
    return isinstance(operation, CreateModel | ValidateConstraint)


def of_statements(sql: str, atomic: bool = True) -> dict[str, str]:
    """What squawk says of them, by rule. A table made by the same statements is nobody's yet."""
    asked = [Path(sys.executable).with_name("squawk"), "--reporter", "json", "--pg-version", OLDEST]
    asked += ["--assume-in-transaction"] if atomic else []
    asked += [f"--exclude={','.join(NOT_ASKED)}", "--stdin-filepath", "migration.sql"]
    done = subprocess.run(asked, input=sql, capture_output=True, text=True)
    if done.returncode and not done.stdout.strip():
        raise RuntimeError(done.stderr)
    said: list[dict[str, Any]] = json.loads(done.stdout or "[]")
    return {each["rule_name"]: f"line {each['line'] + 1}: {each['message']}" for each in said}


def of_operations(operations: Sequence[Operation]) -> dict[str, str]:
    """What no linter of statements sees: data that the older release has written, or is about to."""
    found = {}
    for operation in operations:
        if isinstance(operation, RunPython):
            found[RUNS_PYTHON] = "RunPython"
        if isinstance(operation, RunSQL) and not all(map(_harmless, _statements(operation.sql))):
            found[CHANGES_DATA] = "RunSQL"
    return found


def _statements(sql: Any) -> list[str]:
    if isinstance(sql, str):
        return [sql]
    return [one if isinstance(one, str) else one[0] for one in sql]


def _harmless(statement: str) -> bool:
    words = [line.split("--")[0].strip() for line in statement.lower().splitlines()]
    return next(filter(None, words), "create").startswith(HARMLESS)
