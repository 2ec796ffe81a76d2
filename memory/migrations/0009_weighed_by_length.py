"""BM25 that suits short and long texts, one term at a time; and what stands beside a hit counts with it.

docs/memory.md says how the search works and what was measured, memory/search.py what the numbers are.
"""

from importlib import import_module

from django.db import migrations, models

# The best of each tier, at most `quotas` of them (parallel to tiers and scopes: a tier is a list of scopes).
# `asked` is what each word counts in the question; `a_word` how many terms a word of the question's language has.
#
# A term occurs in a text how often? ts_rank adds 1 + 1/4 + 1/9 + ... over a term's occurrences, and divides by
# 1.644934, which that sum never reaches; so n is very nearly 1 / (1.644934 - sum) - 0.5. Asked for one term at a
# time it yields BM25 exactly. Only the heaviest `exact` terms are asked so; the others, in three groups of about
# the same weight, count as if each stood there once.
#
# k1, after which a term's further occurrences say little, grows with the usual length of the texts: a turn of a
# conversation that names a thing twice is about it no more than one that names it once; a document of hundreds
# of words is.
#
# Texts of a few words are turns of one conversation, or sentences of one file: a hit lends some of its score to the
# candidates written just before and after it, if they come from the same run and the same file.
#
# In a small scope memories are quickly read, so that three times as many are weighed there.
#
# Whose a memory is, its row says once more: the index holds numbers that are only very likely different.
# (IS NOT DISTINCT FROM is no condition for an index, which would be the wrong one.)
FIND = """
    CREATE FUNCTION memory_find(
        organization text, tiers int[], quotas int[], scopes uuid[], words text[], quoted text[], asked float[],
        a_word float, weighed int, exact int, small int,
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
        single tsquery[];
        single_weights float[];
        width float;
        bucket int;
        queries text[];
        grouped tsquery[];
        weights float[];
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

            single := kept.quoted[:exact]::tsquery[];
            single_weights := kept.weights[:exact];
            queries := array_fill(NULL::text, ARRAY[3]);
            weights := array_fill(0::float, ARRAY[3]);
            IF cardinality(kept.weights) > exact THEN
                width := greatest(kept.weights[exact + 1] - kept.weights[cardinality(kept.weights)], 1e-9) / 3;
                FOR word IN exact + 1 .. cardinality(kept.weights) LOOP
                    bucket := 1 + least(
                        floor((kept.weights[word] - kept.weights[cardinality(kept.weights)]) / width), 2
                    );
                    queries[bucket] := concat_ws('|', queries[bucket], kept.quoted[word]);
                    weights[bucket] := weights[bucket] + kept.weights[word];
                END LOOP;
            END IF;
            grouped := queries::tsquery[];
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
                                FROM unnest(single, single_weights) AS each (query, weight)
                                OFFSET 0
                            ) AS ranked
                            WHERE rank > 0
                        ) AS counts
                    ), 0) + CASE WHEN grouped[1] IS NULL AND grouped[2] IS NULL AND grouped[3] IS NULL THEN 0
                        ELSE 16.44934 * (
                            coalesce(ts_rank(memory.vector, grouped[1]) * weights[1], 0)
                            + coalesce(ts_rank(memory.vector, grouped[2]) * weights[2], 0)
                            + coalesce(ts_rank(memory.vector, grouped[3]) * weights[3], 0)
                        ) * (k1 + 1) / (1 + k1 * memory.norm) END AS score
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
            ), beside AS (
                SELECT near.id, sum(best.score) * lent AS score
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
                ) AS near
                JOIN weighed ON weighed.id = near.id
                WHERE weighed.source_run_id IS NOT DISTINCT FROM best.source_run_id
                    AND weighed.file IS NOT DISTINCT FROM best.file
                GROUP BY near.id
            )
            SELECT place.tier, weighed.id, weighed.importance, weighed.score + coalesce(beside.score, 0) AS total
            FROM weighed LEFT JOIN beside USING (id)
            ORDER BY total DESC, weighed.importance DESC, weighed.id DESC
            LIMIT place.quota;
        END LOOP;
    END $$;
"""
DROP = """
    DROP FUNCTION memory_find(
        text, int[], int[], uuid[], text[], text[], float[], float, int, int, int, int, int, int, int, float, int, int
    );
"""
BEFORE = import_module("memory.migrations.0008_search_on_the_server")
DROP_BEFORE = BEFORE.DROP.split(";")[0] + ";"


class Migration(migrations.Migration):
    dependencies = [("memory", "0008_search_on_the_server")]

    operations = [
        migrations.RunSQL(DROP_BEFORE, BEFORE.FIND),
        migrations.RunSQL(FIND, DROP),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                fields=["scope_key", "id"], condition=models.Q(("status", "active")), name="memory_in_order"
            ),
        ),
    ]
