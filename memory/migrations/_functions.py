"""Search as functions of the database: what takes several steps, each of which depends on the one before.

As one statement every step was set up whether it was needed or not, which cost a small organization more than
the search itself. The statements inside are planned when they are first needed, for all values alike, and
never read a table from end to end. docs/memory.md says how the search works and what was measured,
memory/search.py what the numbers are. No migration itself: the one that installs them stays readable.
"""

# How large the scopes of a tier are together, and the words from the rarest to the commonest in them. Memories
# that are not counted yet (memory.statistics) are counted here where they are more than one in fifty.
COUNTED = """
    CREATE FUNCTION memory_counted(
        scopes uuid[], asked text[], asked_quoted text[],
        OUT all_memories float, OUT all_terms float, OUT words text[], OUT quoted text[], OUT memories float[]
    ) LANGUAGE plpgsql STABLE AS $$
    DECLARE
        fresh text[] := ARRAY(
            SELECT memory_id FROM memory_pendingmemory WHERE scope_key = ANY (scopes) LIMIT 256
        );
    BEGIN
        SELECT coalesce(sum(size.memories), 0), coalesce(sum(size.terms), 0) INTO all_memories, all_terms
        FROM memory_scopesize AS size WHERE scope_key = ANY (scopes);
        IF cardinality(fresh) * 50 < all_memories THEN
            fresh := '{}';
        ELSIF cardinality(fresh) > 0 THEN
            SELECT all_memories + count(*), all_terms + coalesce(sum(length), 0) INTO all_memories, all_terms
            FROM memory_memory WHERE id = ANY (fresh);
        END IF;
        IF all_memories = 0 THEN
            RETURN;
        END IF;
        SELECT array_agg(counted.word ORDER BY counted.memories, counted.word),
            array_agg(counted.quoted ORDER BY counted.memories, counted.word),
            array_agg(counted.memories ORDER BY counted.memories, counted.word)
        INTO words, quoted, memories
        FROM (
            SELECT word, max(found.quoted) AS quoted, sum(found.memories)::float AS memories
            FROM (
                SELECT word, each.quoted, 0 AS memories FROM unnest(asked, asked_quoted) AS each (word, quoted)
                UNION ALL
                SELECT known.term, NULL, known.memories FROM memory_termcount AS known
                WHERE scope_key = ANY (scopes) AND known.term = ANY (asked)
                UNION ALL
                SELECT lexeme, NULL, 1
                FROM memory_memory CROSS JOIN unnest(tsvector_to_array(search_vector)) AS lexeme
                WHERE id = ANY (fresh) AND lexeme = ANY (asked)
            ) AS found
            GROUP BY word
        ) AS counted;
    END $$;
"""

# Where the rows stand that are worth weighing:
#   every memory with one of the rarest words, as long as these together reach no more than `reach` memories;
#   those with two of the next `pairs` words, where that is a small number of them;
#   and if all that brings in less than `enough`, those with the commoner words together, as many words as it
#   takes to make them few; but not where there are rarer ones and the others are in a share of more than
#   `telling` of all memories: those say nothing.
CANDIDATES = """
    CREATE FUNCTION memory_candidates(
        scopes uuid[], words text[], memories float[], all_memories float,
        reach int, pairs int, scanned int, enough int, telling float, together int, most int
    ) RETURNS tid[] LANGUAGE plpgsql STABLE AS $$
    DECLARE
        reached float := 0;
        rare int := 0;
        keys bigint[];
        found tid[];
        pair record;
        expected float;
        last int;
    BEGIN
        WHILE rare < cardinality(words) AND (reached + memories[rare + 1] <= reach OR all_memories <= reach) LOOP
            rare := rare + 1;
            reached := reached + memories[rare];
        END LOOP;
        IF rare > 0 THEN
            keys := ARRAY(SELECT memory_key(scope, word) FROM unnest(scopes) AS scope, unnest(words[:rare]) AS word);
            found := ARRAY(
                SELECT ctid FROM memory_memory
                WHERE status = 'active' AND memory_keys(scope_key, search_vector) && keys
                LIMIT most
            );
        END IF;
        IF rare = cardinality(words) THEN
            RETURN found;
        END IF;

        SELECT coalesce(sum(both_words), 0) AS expected, array_agg(words[one]) AS ones, array_agg(words[other]) AS others
        INTO pair
        FROM generate_series(rare + 1, least(rare + pairs, cardinality(words))) AS one,
            generate_series(one + 1, least(rare + pairs, cardinality(words))) AS other,
            LATERAL (SELECT memories[one] * memories[other] / all_memories AS both_words) AS share
        WHERE memories[one] <= scanned AND both_words <= reach / 4.0;
        IF pair.ones IS NOT NULL THEN
            found := found || ARRAY(
                SELECT memory.ctid
                FROM unnest(pair.ones, pair.others) AS each (one, other) CROSS JOIN unnest(scopes) AS scope
                CROSS JOIN LATERAL (
                    SELECT ctid FROM memory_memory
                    WHERE status = 'active' AND memory_keys(scope_key, search_vector)
                        @> ARRAY[memory_key(scope, one), memory_key(scope, other)]
                    LIMIT together
                ) AS memory
                LIMIT most
            );
        END IF;

        IF reached + pair.expected < enough
            AND (rare = 0 OR memories[rare + 1] <= telling * all_memories) THEN
            last := rare + 1;
            expected := memories[last];
            WHILE last < cardinality(words) AND expected > reach / 2.0 LOOP
                last := last + 1;
                expected := expected * least(memories[last] / all_memories, 1);
            END LOOP;
            found := found || ARRAY(
                SELECT memory.ctid
                FROM unnest(scopes) AS scope
                CROSS JOIN LATERAL (
                    SELECT ctid FROM memory_memory
                    WHERE status = 'active' AND memory_keys(scope_key, search_vector)
                        @> ARRAY(SELECT memory_key(scope, word) FROM unnest(words[rare + 1:last]) AS word)
                    LIMIT together
                ) AS memory
            );
        END IF;
        RETURN found[:most];
    END $$;
"""

# The best of each tier, at most `quotas` of them (parallel to tiers and scopes: a tier is a list of scopes).
# `asked` is what each word counts in the question; `a_word` how many terms a word of the question's language has.
#
# A term occurs in a text how often? ts_rank adds 1 + 1/4 + 1/9 + ... over a term's occurrences, and divides by
# 1.644934, which that sum never reaches; so n is very nearly 1 / (1.644934 - sum) - 0.5. Asked for one term at a
# time it yields BM25 exactly.
#
# k1, after which a term's further occurrences say little, grows with the usual length of the texts: a turn of a
# conversation that names a thing twice is about it no more than one that names it once; a document of hundreds
# of words is.
#
# Texts of a few words are turns of one conversation, or sentences of one file: a hit lends some of its score to the
# candidates written just before and after it, if they come from the same run and the same file. MATERIALIZED, because
# the planner otherwise looks for the neighbours of each hit once for every candidate.
#
# In a small scope memories are quickly read, so that three times as many are weighed there.
#
# Whose a memory is, its row says once more: the index holds numbers that are only very likely different.
# (IS NOT DISTINCT FROM is no condition for an index, which would be the wrong one.)
FIND = """
    CREATE FUNCTION memory_find(
        organization text, tiers int[], quotas int[], scopes uuid[], words text[], quoted text[], asked float[],
        a_word float, weighed int, small int,
        reach int, pairs int, scanned int, enough int, telling float, together int, most int
    ) RETURNS TABLE (tier int, id varchar, importance float, score float)
    LANGUAGE plpgsql STABLE ROWS 20
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
    DECLARE
        place record;
        counted record;
        kept record;
        found tid[];
        usual_length float;
        k1 float;
        lent float;
        times int;
        queries tsquery[];
        b CONSTANT float := 0.7;
    BEGIN
        FOR place IN
            SELECT each.tier, max(each.quota) AS quota, array_agg(each.scope) AS scopes
            FROM unnest(tiers, quotas, memory_find.scopes) AS each (tier, quota, scope) GROUP BY each.tier
        LOOP
            counted := memory_counted(place.scopes, words, memory_find.quoted);
            CONTINUE WHEN counted.all_memories = 0;

            SELECT array_agg(best.word ORDER BY best.memories, best.word) AS words,
                array_agg(best.memories ORDER BY best.memories, best.word) AS memories,
                array_agg(best.quoted ORDER BY best.weight DESC, best.word) AS quoted,
                array_agg(best.weight ORDER BY best.weight DESC, best.word) AS weights
            INTO kept
            FROM (
                SELECT known.word, known.quoted, known.memories, each.asked
                    * ln(1 + (greatest(counted.all_memories - known.memories, 0) + 0.5) / (known.memories + 0.5))
                    AS weight
                FROM unnest(counted.words, counted.quoted, counted.memories) AS known (word, quoted, memories)
                JOIN unnest(words, memory_find.asked) AS each (word, asked) USING (word)
                ORDER BY known.memories = 0, weight DESC, known.word
                LIMIT weighed
            ) AS best;
            CONTINUE WHEN kept.words IS NULL;
            times := CASE WHEN counted.all_memories <= small THEN 3 ELSE 1 END;
            found := memory_candidates(
                place.scopes, kept.words, kept.memories, counted.all_memories,
                times * reach, pairs, scanned, times * enough, telling, together, times * most
            );
            CONTINUE WHEN found IS NULL OR found = '{}';

            queries := kept.quoted::tsquery[];
            usual_length := greatest(counted.all_terms / counted.all_memories, 1);
            k1 := least(greatest(usual_length / a_word / 80, 0.25), 2.5);
            lent := 0.25 * least(greatest((80 - usual_length / a_word) / 60, 0), 1);

            RETURN QUERY
            WITH weighed AS MATERIALIZED (
                SELECT memory.id, memory.importance, memory.scope_key, memory.source_run_id, memory.file,
                    coalesce((
                        SELECT sum(weight * n * (k1 + 1) / (n + k1 * memory.norm))
                        FROM (
                            SELECT weight, 1 / (1.644934 * (1 - 10 * rank)) - 0.5 AS n
                            FROM (
                                SELECT each.weight, ts_rank(memory.vector, each.query) AS rank
                                FROM unnest(queries, kept.weights) AS each (query, weight)
                                OFFSET 0
                            ) AS ranked
                            WHERE rank > 0
                        ) AS counts
                    ), 0) AS score
                FROM (
                    SELECT each.id, each.importance, each.scope_key, each.source_run_id,
                        each.metadata ->> 'file' AS file, setweight(search_vector, 'D') AS vector,
                        1 - b + b * each.length / usual_length AS norm
                    FROM memory_memory AS each
                    WHERE ctid = ANY (found) AND status = 'active' AND each.scope_key = ANY (place.scopes)
                        AND organization_id IS NOT DISTINCT FROM organization
                        AND (expires_at IS NULL OR expires_at > clock_timestamp())
                    OFFSET 0
                ) AS memory
            ), best AS (
                SELECT * FROM weighed
                ORDER BY weighed.score DESC LIMIT CASE WHEN lent > 0 THEN 3 * place.quota ELSE 0 END
            ), near AS MATERIALIZED (
                SELECT best.score, best.source_run_id, best.file, beside.id
                FROM best CROSS JOIN LATERAL (
                    (
                        SELECT each.id FROM memory_memory AS each
                        WHERE each.scope_key = best.scope_key AND each.id > best.id AND status = 'active'
                        ORDER BY each.id LIMIT 1
                    ) UNION ALL (
                        SELECT each.id FROM memory_memory AS each
                        WHERE each.scope_key = best.scope_key AND each.id < best.id AND status = 'active'
                        ORDER BY each.id DESC LIMIT 1
                    )
                ) AS beside
            ), beside AS (
                SELECT near.id, sum(near.score) * lent AS score
                FROM near JOIN weighed ON weighed.id = near.id
                WHERE weighed.source_run_id IS NOT DISTINCT FROM near.source_run_id
                    AND weighed.file IS NOT DISTINCT FROM near.file
                GROUP BY near.id
            )
            SELECT place.tier, weighed.id, weighed.importance, weighed.score + coalesce(beside.score, 0) AS total
            FROM weighed LEFT JOIN beside USING (id)
            ORDER BY total DESC, weighed.importance DESC, weighed.id DESC
            LIMIT place.quota;
        END LOOP;
    END $$;
"""
