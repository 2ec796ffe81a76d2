"""How much of the database each organization takes.

Of each table with rows of organizations some blocks are read (all, where it is small), and what the table
takes with its indexes is shared out by the bytes of the rows found there. So it costs the same however much
there is, and what was removed counts no more. Rows that name no organization, such as vectors of memories,
are not counted.
"""

from collections.abc import Iterator

from django.apps import apps
from django.db import models, transaction

from common.db import execute, row, rows
from groups.models import Organization, StorageUse

BLOCKS = 2_000  # of a table that are read; 8 KB each
AGAIN_SECONDS = 600  # between two measurements, whichever cluster makes them
LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended('deputy.storage', 0))"
RECENT = "SELECT EXISTS (SELECT FROM groups_storageuse WHERE measured_at > now() - %s * interval '1 second')"
# of the table, or of all its partitions: bytes of the rows alone, and with indexes and what is kept aside
SIZE = """
SELECT sum(pg_relation_size(relid))::float8, sum(pg_total_relation_size(relid))::float8
FROM (SELECT relid FROM pg_partition_tree(%(table)s::text::regclass)
      UNION SELECT %(table)s::text::regclass) parts
"""
SHARES = """
SELECT organization_id, sum({row}) FROM {table} TABLESAMPLE SYSTEM (%s)
WHERE organization_id IS NOT NULL GROUP BY organization_id
"""
KEEP = """
INSERT INTO groups_storageuse (organization_id, size)
SELECT id, COALESCE(found.size, 0) FROM groups_organization
LEFT JOIN unnest(%s::text[], %s::bigint[]) AS found(organization_id, size) ON found.organization_id = id
ON CONFLICT (organization_id) DO UPDATE SET size = EXCLUDED.size, measured_at = now()
"""
HEAD = 24  # bytes of a row beside its columns


def keep_up() -> None:
    """Measure, unless somebody has lately, or is at it."""
    if row(RECENT, [AGAIN_SECONDS])[0]:
        return
    with transaction.atomic():
        if row(LOCK)[0]:
            measure()


def measure() -> dict[str, int]:
    """Bytes by organization; kept as well."""
    found: dict[str, float] = {}
    for model in _tables():
        for organization_id, size in _shares(model):
            found[organization_id] = found.get(organization_id, 0) + size
    whole = {organization_id: round(size) for organization_id, size in found.items()}
    execute(KEEP, [list(whole), list(whole.values())])
    return whole


def _tables() -> Iterator[type[models.Model]]:
    for model in apps.get_models():
        fields = {field.name: field for field in model._meta.local_concrete_fields}
        named = fields.get("organization")
        if named is not None and named.related_model is Organization and model is not StorageUse:
            yield model


def _shares(model: type[models.Model]) -> Iterator[tuple[str, float]]:
    table = model._meta.db_table
    of_rows, whole = row(SIZE, {"table": table})
    percent = min(100.0, 100.0 * BLOCKS * 8192 / of_rows) if of_rows else 0.0
    if not percent:
        return
    found = rows(SHARES.format(row=_row(model), table=table), [percent])
    every = sum(size for _, size in found)
    for organization_id, size in found:
        yield organization_id, whole * float(size) / float(every)


def _row(model: type[models.Model]) -> str:
    """An expression for the bytes of a row, with what is kept aside of it, as compressed as it is there."""
    columns = [field.column for field in model._meta.local_concrete_fields]
    return " + ".join([str(HEAD), *(f'COALESCE(pg_column_size("{column}"), 0)' for column in columns)])
