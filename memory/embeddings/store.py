"""Vectors in PostgreSQL: what the server must have, the index, what is written and what is missing."""

from collections.abc import Sequence
from hashlib import md5, sha256
from typing import NamedTuple

from django.db import DatabaseError, connection, transaction

from common.db import execute, row, rows
from memory import statistics
from memory.embeddings.client import Vector
from memory.embeddings.models import EmbeddingModel
from memory.models import EmbeddingProgress

LAST = "mem_~"  # sorts after every id
LEAST_PGVECTOR = (0, 8)  # the first whose index goes on looking when a filter took what it found

AVAILABLE = "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'"
# By now most writers of the last minutes have committed: ids are made before the commit.
SETTLED = "created_at < clock_timestamp() - interval '10 minutes'"

MISSING = """
SELECT memory.id, memory.content
FROM memory_memory AS memory
WHERE memory.id > %(after)s AND NOT EXISTS (
    SELECT FROM memory_embedding WHERE memory_id = memory.id AND model = %(model)s)
ORDER BY memory.id LIMIT %(limit)s
"""
STALE = """
SELECT memory.id, memory.content
FROM memory_embedding AS embedding JOIN memory_memory AS memory ON memory.id = embedding.memory_id
WHERE embedding.model = '' LIMIT %(limit)s
"""
# Where the text has changed while its vector was made, it is to be embedded again. FOR SHARE lets an edit
# that is just being made wait, so that its trigger finds the vector and takes it away.
WRITE = """
INSERT INTO memory_embedding AS old (memory_id, scope_key, model, vector)
SELECT memory.id, memory.scope_key,
    CASE WHEN same THEN %(model)s ELSE '' END, CASE WHEN same THEN made.vector::real[] END
FROM unnest(%(ids)s::text[], %(digests)s::text[], %(vectors)s::text[]) AS made (id, digest, vector)
CROSS JOIN LATERAL (
    SELECT id, scope_key, encode(sha256(convert_to(content, 'UTF8')), 'hex') = made.digest AS same
    FROM memory_memory WHERE memory_memory.id = made.id FOR SHARE
) AS memory
ON CONFLICT (memory_id) DO UPDATE
    SET scope_key = excluded.scope_key, model = excluded.model, vector = excluded.vector
"""
SETTLE = f"""
UPDATE memory_embeddingprogress SET memory_id = greatest(memory_id,
    (SELECT max(id) FROM memory_memory WHERE id <= %(until)s AND {SETTLED}))
WHERE model = %(model)s
"""  # noqa: S608 - a constant
COUNT = "SELECT (SELECT count(*) FROM memory_memory), count(*) FROM memory_embedding WHERE model = %(model)s"

OTHERS = """
SELECT indexname FROM pg_indexes
WHERE tablename = 'memory_embedding' AND indexname LIKE 'memory\\_near\\_%%' AND indexdef NOT LIKE %(mine)s
"""


class Unprepared(Exception):
    """The server cannot keep vectors; the message says what it lacks."""


class Text(NamedTuple):
    """A memory that lacks its vector."""

    id: str
    content: str


def problem() -> str | None:
    """What the database server lacks for search by meaning; None where it lacks nothing."""
    found = row(AVAILABLE)
    if found is None:
        return "The database server has no pgvector. Install the extension there, or unset EMBEDDING_MODEL."
    version = tuple(int(part) for part in found[0].split(".")[:2])
    if version < LEAST_PGVECTOR:
        return f"The database server has pgvector {found[0]}; search by meaning takes 0.8 or newer."
    return None


def prepare(model: EmbeddingModel, dimensions: int) -> None:
    """See to the extension and the model's index. Raises Unprepared."""
    if ready(model, dimensions):
        return
    if lacking := problem():
        raise Unprepared(lacking)
    name = index_name(model, dimensions)
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            statistics.lock("memory.embeddings")
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
            cursor.execute(
                f"CREATE INDEX IF NOT EXISTS {name} ON memory_embedding"
                f" USING hnsw ((vector::halfvec({dimensions:d})) halfvec_cosine_ops) WHERE model = %s",
                [model.name],
            )
    except DatabaseError as error:
        said = str(error).splitlines()[0]
        raise Unprepared(f"The database refuses what search by meaning needs: {said}") from error


def drop_others(model: EmbeddingModel) -> None:
    """Drop the indexes of models that were used before."""
    for (name,) in rows(OTHERS, {"mine": f"%'{model.name}'::text%"}):
        execute(f"DROP INDEX IF EXISTS {connection.ops.quote_name(name)}")


def ready(model: EmbeddingModel, dimensions: int) -> bool:
    """Whether vectors of this length by this model can be searched."""
    found = row("SELECT to_regclass(%s) IS NOT NULL", [index_name(model, dimensions)])
    return bool(found[0])


def index_name(model: EmbeddingModel, dimensions: int) -> str:
    said = md5(f"{model.name}/{dimensions}".encode(), usedforsecurity=False).hexdigest()[:16]
    return f"memory_near_{said}"


def stale(limit: int) -> list[Text]:
    """Memories whose text has changed since they were embedded."""
    return [Text(*each) for each in rows(STALE, {"limit": limit})]


def missing(model: EmbeddingModel, after: str, limit: int) -> list[Text]:
    """The first memories with an id beyond `after` that this model has not embedded."""
    asked = {"model": model.name, "after": after, "limit": limit}
    return [Text(*each) for each in rows(MISSING, asked)]


def write(model: EmbeddingModel, texts: Sequence[Text], vectors: Sequence[Vector | None]) -> int:
    """Keep the vectors of these texts (None: the model refused it); returns how many are there still."""
    return execute(
        WRITE,
        {
            "model": model.name,
            "ids": [text.id for text in texts],
            "digests": [sha256(text.content.encode()).hexdigest() for text in texts],
            "vectors": [None if vector is None else literal(vector, "{}") for vector in vectors],
        },
    )


def literal(vector: Vector, brackets: str = "[]") -> str:
    """A vector as pgvector, or with "{}" an array of PostgreSQL, reads it."""
    return brackets[0] + ",".join(f"{number:.7g}" for number in vector) + brackets[1]


def reached(model: EmbeddingModel) -> str:
    """The id up to which every memory has been embedded, or is known to be stale."""
    return EmbeddingProgress.objects.get_or_create(model=model.name)[0].memory_id


def settled_until(model: EmbeddingModel, until: str = LAST) -> None:
    """Nothing is missing up to this id: note it, as far as nobody may still be writing before it."""
    execute(SETTLE, {"model": model.name, "until": until})


def counts(model: EmbeddingModel) -> tuple[int, int]:
    """How many memories there are, and how many of them have been embedded."""
    everything, done = row(COUNT, {"model": model.name})
    return everything, done
