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
        fold(memory.scope_key)


def lock(name: str) -> None:
    """Be alone with `name` until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(sql.LOCK, {"key": name})


def fold(scope_key: UUID) -> int:
    """Count the uncounted memories of a scope; returns how many. Leaves it to whoever is at it already."""
    counted = 0
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql.TRY_LOCK, {"key": f"memory.fold.{scope_key}"})
            if not cursor.fetchone()[0]:
                return counted
            cursor.execute(sql.FOLD, {"scope_key": scope_key, "batch": BATCH})
            batch = int(cursor.fetchone()[0])
        counted += batch
        if batch < BATCH:
            return counted


def fold_all(scope_keys: Iterable[UUID] | None = None) -> int:
    """Count everything uncounted (in these scopes); returns how many memories that were."""
    from memory.models import PendingMemory

    if scope_keys is None:
        scope_keys = PendingMemory.objects.values_list("scope_key", flat=True).distinct()
    return sum(fold(scope_key) for scope_key in list(scope_keys))
