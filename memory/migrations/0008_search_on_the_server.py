"""Search as functions of the database: what takes several steps, each of which depends on the one before.

As one statement every step was set up whether it was needed or not, which cost a small organization more than
the search itself. The statements inside are planned when they are first needed, for all values alike, and
never read a table from end to end. docs/memory.md says how it works, memory/search.py what the numbers are.
"""

from django.db import migrations

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
#
# ts_rank knows no weights for a query's terms. So terms of about the same idf are ranked together, in six groups
# (more rank the same, fewer rank worse), and each group's rank counts by its mean idf. ts_rank counts a term's
# occurrences as 1 + 1/4 + 1/9 + ..., which is BM25's saturation at k1 = 0.64; long texts are held for less.
#
# Whose a memory is, its row says once more: the index holds numbers that are only very likely different.
# (IS NOT DISTINCT FROM is no condition for an index, which would be the wrong one.)
FIND = """
    CREATE FUNCTION memory_find(
        organization text, tiers int[], quotas int[], scopes uuid[], words text[], quoted text[],
        reach int, pairs int, scanned int, enough int, telling float, together int, most int
    ) RETURNS TABLE (tier int, id varchar, importance float, score float)
    LANGUAGE plpgsql STABLE ROWS 20
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
    DECLARE
        place record;
        counted record;
        found tid[];
        usual_length float;
        idf float[];
        width float;
        bucket int;
        queries text[];
        sought tsquery[];
        weights float[];
    BEGIN
        FOR place IN
            SELECT each.tier, max(each.quota) AS quota, array_agg(each.scope) AS scopes
            FROM unnest(tiers, quotas, memory_find.scopes) AS each (tier, quota, scope) GROUP BY each.tier
        LOOP
            counted := memory_counted(place.scopes, words, quoted);
            CONTINUE WHEN counted.all_memories = 0;
            found := memory_candidates(
                place.scopes, counted.words, counted.memories, counted.all_memories,
                reach, pairs, scanned, enough, telling, together, most
            );
            CONTINUE WHEN found IS NULL OR found = '{}';

            idf := ARRAY(
                SELECT ln(1 + (greatest(counted.all_memories - memories, 0) + 0.5) / (memories + 0.5))
                FROM unnest(counted.memories) WITH ORDINALITY AS each (memories, ordinal) ORDER BY ordinal
            );
            usual_length := greatest(counted.all_terms / counted.all_memories, 1);
            width := greatest(idf[1] - idf[cardinality(idf)], 1e-9) / 6;
            queries := array_fill(NULL::text, ARRAY[6]);
            weights := array_fill(0::float, ARRAY[6]);
            FOR word IN 1 .. cardinality(idf) LOOP
                bucket := 1 + least(floor((idf[word] - idf[cardinality(idf)]) / width), 5);
                queries[bucket] := concat_ws('|', queries[bucket], counted.quoted[word]);
                weights[bucket] := weights[bucket] + idf[word];
            END LOOP;
            sought := queries::tsquery[];

            RETURN QUERY
            SELECT place.tier, memory.id, memory.importance, 16.45 * (
                    coalesce(ts_rank(vector, sought[1]) * weights[1], 0)
                    + coalesce(ts_rank(vector, sought[2]) * weights[2], 0)
                    + coalesce(ts_rank(vector, sought[3]) * weights[3], 0)
                    + coalesce(ts_rank(vector, sought[4]) * weights[4], 0)
                    + coalesce(ts_rank(vector, sought[5]) * weights[5], 0)
                    + coalesce(ts_rank(vector, sought[6]) * weights[6], 0)
                ) / (1 + 0.64 * (0.6 + 0.4 * memory.length / usual_length)) AS weighed
            FROM (
                SELECT each.id, each.importance, length, setweight(search_vector, 'D') AS vector
                FROM memory_memory AS each
                WHERE ctid = ANY (found) AND status = 'active' AND scope_key = ANY (place.scopes)
                    AND organization_id IS NOT DISTINCT FROM organization
                    AND (expires_at IS NULL OR expires_at > clock_timestamp())
                OFFSET 0
            ) AS memory
            ORDER BY weighed DESC, memory.importance DESC, memory.id DESC
            LIMIT place.quota;
        END LOOP;
    END $$;
"""
DROP = """
    DROP FUNCTION memory_find(
        text, int[], int[], uuid[], text[], text[], int, int, int, int, float, int, int
    );
    DROP FUNCTION memory_candidates(
        uuid[], text[], float[], float, int, int, int, int, float, int, int
    );
    DROP FUNCTION memory_counted(uuid[], text[], text[]);
"""

# What is written waits in a list, of which every look-up reads all, until it is put in its place. Half as long, it
# is put there twice as often, each time in half the time: a deposit costs the same on average.
SHORTER_LIST = "ALTER INDEX memory_search SET (gin_pending_list_limit = 128)"
LONGER_LIST = "ALTER INDEX memory_search SET (gin_pending_list_limit = 256)"


class Migration(migrations.Migration):
    dependencies = [("memory", "0007_remembered")]

    operations = [
        migrations.RunSQL(COUNTED + CANDIDATES + FIND, DROP),
        migrations.RunSQL(SHORTER_LIST, LONGER_LIST),
    ]
