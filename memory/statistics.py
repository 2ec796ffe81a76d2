"""Counting terms, a little behind the writing."""

import random
from collections.abc import Iterable
from uuid import UUID

from django.db import connection, transaction

from memory import sql
from memory.models import Memory

FOLD_ONE_IN = 64  # a scope's uncounted memories stay around this many
BATCH = 2_000


def fold_sometimes(memory: Memory) -> None:
    """With one write in sixty-four, count what its scope has uncounted. Waits for nobody."""
    if random.randrange(FOLD_ONE_IN) == 0:  # noqa: S311
        merge_deltas(memory.scope_key)


def lock(name: str) -> None:
    """Be alone with `name` until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(sql.LOCK, {"key": name})


def merge_deltas(scope_key: UUID) -> int:
    """Count the uncounted memories of a scope and take off what has departed; returns how many of both.

    Leaves it to whoever is at it already.
    """
    counted = 0
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql.TRY_LOCK, {"key": f"memory.fold.{scope_key}"})
            if not cursor.fetchone()[0]:
                return counted
            batches = []
            for statement in (sql.FOLD, sql.TAKE_OFF):
                cursor.execute(statement, {"scope_key": scope_key, "batch": BATCH})
                batches.append(int(cursor.fetchone()[0]))
        counted += sum(batches)
        if max(batches) < BATCH:
            return counted


def merge_all_deltas(scope_keys: Iterable[UUID] | None = None) -> int:
    """Bring the counts (of these scopes) up to date; returns how many memories that took."""
    from memory.models import DepartedTerms, PendingMemory

    if scope_keys is None:
        came, left = (
            model.objects.values_list("scope_key", flat=True) for model in (PendingMemory, DepartedTerms)
        )
        scope_keys = came.union(left)
    return sum(merge_deltas(scope_key) for scope_key in scope_keys)
