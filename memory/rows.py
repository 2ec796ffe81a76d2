"""New rows of memories, in one statement that stays prepared: a run's last step waits for it."""

from collections import Counter
from collections.abc import Sequence

from common.db import jsonb, rows
from common.text import terms
from memory.models import Memory
from memory.models.columns import as_tsvector

COLUMNS = (
    "id",
    "organization_id",
    "user_id",
    "project_id",
    "group_id",
    "agent_instance_id",
    "type",
    "content",
    "metadata",
    "importance",
    "status",
    "source_run_id",
    "original",
    "search_vector",
    "length",
)
ROW = f"({', '.join('%s::tsvector' if name == 'search_vector' else '%s' for name in COLUMNS)})"
INSERT = f"""
INSERT INTO memory_memory ({", ".join(COLUMNS)}) VALUES {{rows}}
ON CONFLICT DO NOTHING
"""  # noqa: S608 - the names above


def insert(memories: Sequence[Memory]) -> list[Memory]:
    """Store new memories; returns those that were not there before, with their scope keys.

    Already there means: from the same run and the same original.
    """
    if not memories:
        return []
    statement, values = insertion(memories)
    stored = dict(rows(f"{statement} RETURNING id, scope_key", values))
    new = [memory for memory in memories if memory.id in stored]
    for memory in new:
        memory.scope_key = stored[memory.id]
    return new


def insertion(memories: Sequence[Memory]) -> tuple[str, list[object]]:
    """The statement that stores them, and its values."""
    values = [value for memory in memories for value in _values(memory)]
    return INSERT.format(rows=", ".join([ROW] * len(memories))), values


def _values(memory: Memory) -> list[object]:
    counts = Counter(terms(memory.content))
    plain = [getattr(memory, name) for name in COLUMNS[:-2]]
    plain[COLUMNS.index("metadata")] = jsonb(memory.metadata)
    return [*plain, as_tsvector(counts), counts.total()]
