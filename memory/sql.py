"""Memory's raw SQL. It stands here because Django's query builder cannot say it in one round trip.

Search is BM25 in one statement, for all tiers at once. Ranking every memory that shares a word with the
question is slow (common words match a large part of a scope); so candidates come from the question's
rarest terms, through the index, and only they are weighed.
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

# Parameters: tiers, quotas, keys (parallel: a tier is a list of scope keys), terms, quoted (parallel),
# organization. In braces: constants of memory.search. What each step does:
#
# (LATERAL … LIMIT 1 and the subquery in `counted` are lookups by key whatever the planner's statistics say:
# joined, a scope just loaded was read from end to end.)
#
#   uncounted   what the counts do not know yet (memory.statistics)
#   weighted    each term's inverse document frequency in each tier, from the rarest to the commonest
#   common      the terms that are not among the rarest, and how many memories should have them all up to here
#   wanted      the candidates: every memory with one of the rarest terms, as long as these together
#               reach no more than `reach` memories; those with two of the next `pairs` terms, where that
#               is a small number of them; and if all that brings in less than `enough`, those with the
#               commoner terms together, as many terms as it takes to make them few; but not where the
#               question has rarer terms and the others are in every other text: those say nothing
#   plan        the weights for ts_rank, which knows none of its own for a query's terms: terms of about the
#               same idf are ranked together, and each group's rank counts by its mean idf. ts_rank counts
#               a term's occurrences as 1 + 1/4 + 1/9 + …, which is BM25's saturation at k1 = 0.64
#   sought      the keys of these in every scope of their tier: the rarest in one look-up, terms together in
#               one of their own; what promises few comes first
#   candidate   what the index finds, up to `most`
#   found       the candidates with their scores; long texts are held for less
_WORDS = """
WITH place AS MATERIALIZED (
    SELECT * FROM unnest(%(tiers)s::int[], %(quotas)s::int[], %(keys)s::uuid[]) AS place (tier, quota, key)
), term AS MATERIALIZED (
    SELECT * FROM unnest(%(terms)s::text[], %(quoted)s::text[]) AS term (term, quoted)
), uncounted AS MATERIALIZED (
    SELECT place.tier, memory.search_vector, memory.length
    FROM place
    CROSS JOIN LATERAL (
        SELECT memory_id FROM memory_pendingmemory WHERE scope_key = place.key LIMIT 256
    ) AS pending
    CROSS JOIN LATERAL (
        SELECT search_vector, length FROM memory_memory WHERE id = pending.memory_id LIMIT 1
    ) AS memory
), size AS MATERIALIZED (
    SELECT tier, sum(memories)::float AS memories,
        greatest(sum(terms)::float / greatest(sum(memories), 1), 1) AS usual_length
    FROM (
        SELECT place.tier, memories, terms
        FROM place CROSS JOIN LATERAL (
            SELECT memories, terms FROM memory_scopesize WHERE scope_key = place.key LIMIT 1
        ) AS known
        UNION ALL SELECT tier, count(*), sum(length) FROM uncounted GROUP BY tier
    ) AS sizes
    GROUP BY tier
), counted AS (
    SELECT tier, term, sum(memories)::float AS memories
    FROM (
        SELECT place.tier, term.term, (
            SELECT memories FROM memory_termcount AS known
            WHERE scope_key = place.key AND known.term = term.term
        ) AS memories
        FROM place CROSS JOIN term
        UNION ALL
        SELECT tier, term, count(*) FROM uncounted JOIN term ON search_vector @@ quoted::tsquery GROUP BY 1, 2
    ) AS counts
    GROUP BY tier, term
), weighted AS MATERIALIZED (
    SELECT tier, term, quoted, size.memories AS all_memories, usual_length,
        coalesce(counted.memories, 0) AS memories,
        ln(1 + (greatest(size.memories - coalesce(counted.memories, 0), 0) + 0.5)
            / (coalesce(counted.memories, 0) + 0.5)) AS idf,
        sum(coalesce(counted.memories, 0)) OVER nearest AS reach,
        row_number() OVER nearest AS ordinal
    FROM size CROSS JOIN term LEFT JOIN counted USING (tier, term)
    WINDOW nearest AS (PARTITION BY tier ORDER BY coalesce(counted.memories, 0), term)
), common AS (
    SELECT tier, term, memories, all_memories, row_number() OVER nearest AS ordinal,
        all_memories * exp(sum(ln(least(memories / all_memories, 1))) OVER nearest) AS together
    FROM weighted WHERE reach > {reach} AND all_memories > {reach}
    WINDOW nearest AS (PARTITION BY tier ORDER BY ordinal)
), alternative AS MATERIALIZED (
    SELECT tier, ARRAY[term] AS terms, memories AS expected
    FROM weighted WHERE reach <= {reach} OR all_memories <= {reach}
    UNION ALL
    SELECT one.tier, ARRAY[one.term, other.term], one.memories * other.memories / one.all_memories
    FROM common AS one JOIN common AS other ON one.tier = other.tier AND one.ordinal < other.ordinal
    WHERE other.ordinal <= {pairs} AND one.memories <= {scanned}
        AND one.memories * other.memories / one.all_memories <= {reach} / 4
), wanted AS MATERIALIZED (
    SELECT tier, terms, expected FROM alternative
    UNION ALL
    SELECT tier, array_agg(term), {enough}
    FROM common
    WHERE (ordinal = 1 OR together * all_memories / memories > {reach} / 2)
        AND tier NOT IN (SELECT tier FROM alternative GROUP BY tier HAVING sum(expected) >= {enough})
        AND tier IN (
            SELECT tier FROM weighted GROUP BY tier
            HAVING min(reach) > {reach}
                OR min(memories / all_memories) FILTER (WHERE reach > {reach}) <= {telling}
        )
    GROUP BY tier
), plan AS MATERIALIZED (
    SELECT tier, usual_length, {plan}
    FROM (
        SELECT *, least(
            floor((idf - least_idf) / greatest(most_idf - least_idf, 1e-9) * {groups}), {groups} - 1
        ) AS bucket
        FROM (
            SELECT *, min(idf) OVER tiers AS least_idf, max(idf) OVER tiers AS most_idf
            FROM weighted WINDOW tiers AS (PARTITION BY tier)
        ) AS ranged
    ) AS bucketed
    GROUP BY tier, usual_length
), sought AS MATERIALIZED (
    SELECT place.tier, place.quota, place.key, cardinality(terms) > 1 AS together,
        array_agg(memory_key(place.key, word)) AS keys
    FROM place JOIN wanted USING (tier) CROSS JOIN unnest(wanted.terms) AS word
    GROUP BY place.tier, place.quota, place.key, CASE WHEN cardinality(terms) > 1 THEN terms END, together
    ORDER BY together, min(expected)
), candidate AS (
    SELECT DISTINCT ON (tier, id) *
    FROM (
        SELECT sought.tier, sought.quota, memory.*
        FROM sought
        CROSS JOIN LATERAL (
            (SELECT id, importance, length, search_vector, expires_at
            FROM memory_memory
            WHERE NOT together AND status = 'active' AND memory_keys(scope_key, search_vector) && sought.keys
                AND scope_key = sought.key AND organization_id = %(organization)s::text)
            UNION ALL
            (SELECT id, importance, length, search_vector, expires_at
            FROM memory_memory
            WHERE together AND status = 'active' AND memory_keys(scope_key, search_vector) @> sought.keys
                AND scope_key = sought.key AND organization_id = %(organization)s::text
            LIMIT {together})
        ) AS memory
        WHERE expires_at IS NULL OR expires_at > clock_timestamp()
        LIMIT {most}
    ) AS found_there
), found AS MATERIALIZED (
    SELECT tier, quota, id, importance, 16.45 * ({score})
        / (1 + 0.64 * (0.6 + 0.4 * length / usual_length)) AS score
    FROM candidate JOIN plan USING (tier)
), ranked AS (
    SELECT tier, quota, id, importance, score,
        row_number() OVER (PARTITION BY tier ORDER BY score DESC, importance DESC, id DESC) AS rank
    FROM found
)"""

# Besides, for those memories that have a vector: nearness in meaning. A memory's place in the answer comes
# from its two ranks, by words and by meaning (reciprocal rank fusion). The index over vectors knows no
# scopes: what it finds is filtered, so it is asked only for scopes that hold a good share of all memories.
# Where that is not so, or it found too little, a scope's distances are computed one by one.
# One more parameter: vector.
#
#   size_of     whether a scope is large; a setting makes the index go on where the filter took all it found
#   by_index    the nearest of each large scope (the cast keeps the planner from the index over scopes)
#   near        these, and the nearest of every other scope
#   fused       both ranks in one score
_MEANING = """, size_of AS MATERIALIZED (
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
        row_number() OVER (PARTITION BY tier ORDER BY min(distance), importance DESC, id DESC) AS rank
    FROM near GROUP BY tier, quota, id, importance
), fused AS (
    SELECT tier, quota, id, importance, sum(1.0 / ({smooth} + rank))::float AS score
    FROM (
        SELECT tier, quota, id, importance, rank FROM ranked WHERE rank <= {near}
        UNION ALL SELECT * FROM nearest WHERE rank <= {near}
    ) AS both_ways
    GROUP BY tier, quota, id, importance
), ranked_by_both AS (
    SELECT *, row_number() OVER (PARTITION BY tier ORDER BY score DESC, importance DESC, id DESC) AS rank
    FROM fused
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
SELECT ranked.tier, ranked.score, memory.id, memory.content, memory.type, memory.metadata,
    memory.source_run_id, memory.created_at
FROM {ranked} AS ranked
CROSS JOIN LATERAL (SELECT * FROM memory_memory WHERE id = ranked.id LIMIT 1) AS memory
WHERE ranked.rank <= ranked.quota
ORDER BY ranked.tier, ranked.rank
"""

GROUPS = 6  # of terms by their idf: more rank the same, fewer rank worse


class Constants(NamedTuple):
    """What is written into the statement (see memory.search): it is planned once for all values."""

    reach: int
    pairs: int
    scanned: int
    enough: int
    telling: float
    together: int
    most: int
    near: int
    smooth: int
    exact: int
    share: int


@cache
def search(constants: Constants, model: str = "", dimensions: int = 0) -> str:
    """The statement, by words alone or, for vectors of this length by this model, by meaning too."""
    plan = ", ".join(
        f"string_agg(quoted, '|') FILTER (WHERE bucket = {n})::tsquery AS terms_{n},"
        f" sum(idf) FILTER (WHERE bucket = {n}) AS weight_{n}"
        for n in range(GROUPS)
    )
    score = " + ".join(f"coalesce(ts_rank(search_vector, terms_{n}) * weight_{n}, 0)" for n in range(GROUPS))
    written = constants._asdict() | {"plan": plan, "score": score, "groups": GROUPS, "ranked": "ranked"}
    if not dimensions:
        return (_WORDS + _ANSWER).format(**written)
    name = "'" + model.replace("'", "''").replace("%", "%%") + "'"
    written |= {"model": name, "dimensions": dimensions, "memory": _OF_EMBEDDING, "ranked": "ranked_by_both"}
    return (_WORDS + _MEANING + _ANSWER).format(**written)
