"""Memory's raw SQL. It stands here because Django's query builder cannot say it in one round trip.

Search is BM25 in one statement, for all tiers at once. Ranking every memory that shares a word with the
question is slow (common words match a large part of a scope); so candidates come from the question's
rarest terms, through the index, and only they are weighed: by functions of the database
(memory/migrations/_functions.py).
"""

from functools import cache
from typing import NamedTuple

TRY_LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended(%(key)s, 0))"

LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%(key)s, 0))"

FOLD = """
WITH gone AS (
    DELETE FROM memory_pendingmemory WHERE memory_id = ANY (ARRAY(
        SELECT memory_id FROM memory_pendingmemory WHERE scope_key = %(scope_key)s
        LIMIT %(batch)s FOR UPDATE SKIP LOCKED))
    RETURNING memory_id
), written AS (
    SELECT memory.search_vector, memory.length
    FROM gone JOIN memory_memory AS memory ON memory.id = gone.memory_id
), terms AS (
    INSERT INTO memory_termcount AS old (scope_key, term, memories)
    SELECT %(scope_key)s, lexeme, count(*)
    FROM written CROSS JOIN unnest(written.search_vector)
    GROUP BY lexeme
    ON CONFLICT (scope_key, term) DO UPDATE SET memories = old.memories + excluded.memories
), size AS (
    INSERT INTO memory_scopesize AS old (scope_key, memories, terms)
    SELECT %(scope_key)s, count(*), sum(length) FROM written HAVING count(*) > 0
    ON CONFLICT (scope_key) DO UPDATE
        SET memories = old.memories + excluded.memories, terms = old.terms + excluded.terms
)
SELECT count(*) FROM gone
"""

TAKE_OFF = """
WITH gone AS (
    DELETE FROM memory_departedterms WHERE id = ANY (ARRAY(
        SELECT id FROM memory_departedterms WHERE scope_key = %(scope_key)s LIMIT %(batch)s))
    RETURNING search_vector, length
), terms AS (
    UPDATE memory_termcount AS old SET memories = greatest(old.memories - less.memories, 0)
    FROM (
        SELECT lexeme, count(*) AS memories FROM gone CROSS JOIN unnest(search_vector) GROUP BY lexeme
    ) AS less
    WHERE old.scope_key = %(scope_key)s AND old.term = less.lexeme
), size AS (
    UPDATE memory_scopesize AS old
    SET memories = greatest(old.memories - less.memories, 0), terms = greatest(old.terms - less.terms, 0)
    FROM (SELECT count(*) AS memories, coalesce(sum(length), 0) AS terms FROM gone) AS less
    WHERE old.scope_key = %(scope_key)s AND less.memories > 0
)
SELECT count(*) FROM gone
"""

# Parameters: tiers, quotas, keys (parallel: a tier is a list of scope keys), kept (parallel too: how many of
# a tier are ranked by words), terms, quoted, asked (parallel: what each term counts), a_word (how many terms
# a word of the question's language has), organization, and the numbers of memory.search.
_BY_WORDS = """memory_find(
        %(organization)s::text, %(tiers)s::int[], %(kept)s::int[], %(keys)s::uuid[], %(terms)s::text[],
        %(quoted)s::text[], %(asked)s::float[], %(a_word)s::float, %(weighed)s::int,
        %(small)s::int, %(reach)s::int, %(pairs)s::int, %(scanned)s::int, %(enough)s::int, %(telling)s::float,
        %(together)s::int, %(most)s::int
    )"""

# Besides, for those memories that have a vector: nearness in meaning. A memory's score is the weighted sum of
# two that run from 0 to 1 in its tier: by words, as a share of the best one; by meaning, from the farthest of
# those found to the nearest. The index over vectors knows no
# scopes: what it finds is filtered, so it is asked only for scopes that hold a good share of all memories.
# Where that is not so, or it found too little, a scope's distances are computed one by one.
# One more parameter: vector. In braces: the model's name and the numbers of Meaning.
#
#   size_of     whether a scope is large; a setting makes the index go on where the filter took all it found
#   by_index    the nearest of each large scope (the cast keeps the planner from the index over scopes)
#   near        these, and the nearest of every other scope
#   nearest     so many of a tier, and how near each is
#   fused       both in one score
_MEANING = """
WITH ranked AS (
    SELECT tier, id, importance,
        {words} * coalesce(score / nullif(max(score) OVER (PARTITION BY tier), 0), 1) AS part,
        row_number() OVER (PARTITION BY tier ORDER BY score DESC, importance DESC, id DESC) AS rank
    FROM {by_words} AS found
), place AS MATERIALIZED (
    SELECT * FROM unnest(%(tiers)s::int[], %(quotas)s::int[], %(keys)s::uuid[]) AS place (tier, quota, key)
), size_of AS MATERIALIZED (
    SELECT place.*, set_config('hnsw.iterative_scan', 'relaxed_order', true),
        memories > {exact} AND memories::float * {share} > (
            SELECT reltuples FROM pg_class WHERE oid = 'memory_embedding'::regclass
        ) AS is_large
    FROM place CROSS JOIN LATERAL (
        SELECT coalesce((SELECT memories FROM memory_scopesize WHERE scope_key = place.key), 0) AS memories
    ) AS known
), by_index AS MATERIALIZED (
    SELECT place.tier, place.quota, place.key, memory.*
    FROM size_of AS place CROSS JOIN LATERAL (
        SELECT memory.*, vector::halfvec({dimensions}) <=> %(vector)s::text::halfvec({dimensions}) AS distance
        FROM memory_embedding AS embedding CROSS JOIN LATERAL ({memory}) AS memory
        WHERE is_large AND embedding.model = {model} AND embedding.scope_key::text = place.key::text
        ORDER BY vector::halfvec({dimensions}) <=> %(vector)s::text::halfvec({dimensions})
        LIMIT {near}
    ) AS memory
), near AS (
    SELECT tier, quota, id, importance, distance FROM by_index
    UNION ALL
    SELECT place.tier, place.quota, memory.*
    FROM size_of AS place CROSS JOIN LATERAL (
        SELECT memory.*, vector::vector({dimensions}) <=> %(vector)s::text::vector({dimensions}) AS distance
        FROM memory_embedding AS embedding CROSS JOIN LATERAL ({memory}) AS memory
        WHERE embedding.model = {model} AND embedding.scope_key = place.key AND vector IS NOT NULL
        ORDER BY distance
        LIMIT {near}
    ) AS memory
    WHERE NOT is_large OR (SELECT count(*) FROM by_index WHERE by_index.key = place.key) < {near}
), nearest AS (
    SELECT tier, quota, id, importance,
        (1 - {words}) * coalesce(
            (max(distance) OVER of_tier - distance)
            / nullif(max(distance) OVER of_tier - min(distance) OVER of_tier, 0), 1
        ) AS part
    FROM (
        SELECT tier, quota, id, importance, min(distance) AS distance,
            row_number() OVER (PARTITION BY tier ORDER BY min(distance), importance DESC, id DESC) AS rank
        FROM near GROUP BY tier, quota, id, importance
    ) AS each_once
    WHERE rank <= {near}
    WINDOW of_tier AS (PARTITION BY tier)
), fused AS (
    SELECT tier, quota, id, importance, sum(part)::float AS score
    FROM (
        SELECT tier, quota, id, importance, part FROM ranked
        CROSS JOIN LATERAL (SELECT quota FROM place WHERE place.tier = ranked.tier LIMIT 1) AS allowed
        WHERE rank <= {near}
        UNION ALL SELECT * FROM nearest
    ) AS both_ways
    GROUP BY tier, quota, id, importance
), best AS (
    SELECT *
    FROM (
        SELECT *, row_number() OVER (PARTITION BY tier ORDER BY score DESC, importance DESC, id DESC) AS rank
        FROM fused
    ) AS ranked_by_both
    WHERE rank <= quota
)"""

# The memory of an embedding, as long as it may be found in that scope.
_OF_EMBEDDING = """
            SELECT id, importance FROM memory_memory
            WHERE id = embedding.memory_id AND scope_key = place.key AND status = 'active'
                AND organization_id = %(organization)s::text
                AND (expires_at IS NULL OR expires_at > clock_timestamp())
            LIMIT 1
        """

_ANSWER = """
SELECT best.tier, best.score, memory.id, memory.content, memory.type, memory.metadata,
    memory.source_run_id, memory.created_at
FROM {best} AS best
CROSS JOIN LATERAL (SELECT * FROM memory_memory WHERE id = best.id LIMIT 1) AS memory
ORDER BY best.tier, best.score DESC, best.importance DESC, best.id DESC
"""


class Meaning(NamedTuple):
    """What is written into the statement (see memory.search): it is planned once for all values."""

    model: str
    dimensions: int
    near: int
    words: float
    exact: int
    share: int


@cache
def search(meaning: Meaning | None = None) -> str:
    """The statement, by words alone or, for the vectors of a model, by meaning too."""
    if meaning is None:
        return _ANSWER.format(best=_BY_WORDS)
    name = "'" + meaning.model.replace("'", "''").replace("%", "%%") + "'"
    written = meaning._asdict() | {"model": name, "memory": _OF_EMBEDDING, "by_words": _BY_WORDS}
    return _MEANING.format(**written) + _ANSWER.format(best="best")
