-- made by 6fe2c6e of 2026-11-22
-- {"asks": "run_01m82d4r57ekjsevbxfkkksmrq", "mails": "run_01m82d4r5kfckt59hej3z68a4y", "completed": "run_01m82d4r69e07a9q51qt7wb25s", "started": "run_01m82d4r6ffp1920pje93cb960", "pending": "run_01m82d4r75fc1sv68d867h0pzw", "outside": "run_01m82d4r9hegk8qf832bvc30jq"}
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE FUNCTION public.groups_membership_stays() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'The kind, user and organization of membership % stay as they were made.', OLD.id
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE FUNCTION public.groups_touch_catalog() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    changed jsonb := to_jsonb(COALESCE(NEW, OLD));
BEGIN
    IF TG_TABLE_NAME = 'groups_group' THEN
        UPDATE groups_project SET catalog_version = catalog_version + 1
        WHERE id IN (to_jsonb(NEW)->>'project_id', to_jsonb(OLD)->>'project_id');
    ELSIF TG_TABLE_NAME = 'groups_groupmember' THEN
        UPDATE groups_project SET catalog_version = catalog_version + 1
        WHERE id = (SELECT project_id FROM groups_group WHERE id = changed->>'group_id');
    ELSE
        UPDATE groups_project SET catalog_version = catalog_version + 1
        WHERE id IN (SELECT g.project_id FROM groups_group g JOIN groups_groupmember m ON m.group_id = g.id
                     WHERE m.role_id = changed->>'id');
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION public.memory_candidates(scopes uuid[], words text[], memories double precision[], all_memories double precision, reach integer, pairs integer, scanned integer, enough integer, telling double precision, together integer, most integer) RETURNS tid[]
    LANGUAGE plpgsql STABLE
    AS $$
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
CREATE FUNCTION public.memory_count_again() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    BEGIN
        IF OLD.status = 'active' THEN
            DELETE FROM memory_pendingmemory WHERE memory_id = OLD.id;
            IF NOT FOUND THEN
                INSERT INTO memory_departedterms (scope_key, search_vector, length)
                VALUES (OLD.scope_key, OLD.search_vector, OLD.length);
            END IF;
        END IF;
        IF TG_OP = 'UPDATE' AND NEW.status = 'active' THEN
            INSERT INTO memory_pendingmemory (memory_id, scope_key) VALUES (NEW.id, NEW.scope_key)
                ON CONFLICT DO NOTHING;
        END IF;
        RETURN NULL;
    END $$;
CREATE FUNCTION public.memory_count_later() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    BEGIN
        INSERT INTO memory_pendingmemory (memory_id, scope_key) VALUES (NEW.id, NEW.scope_key)
            ON CONFLICT DO NOTHING;
        RETURN NULL;
    END $$;
CREATE FUNCTION public.memory_counted(scopes uuid[], asked text[], asked_quoted text[], OUT all_memories double precision, OUT all_terms double precision, OUT words text[], OUT quoted text[], OUT memories double precision[]) RETURNS record
    LANGUAGE plpgsql STABLE
    AS $$
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
CREATE FUNCTION public.memory_embed_again() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    BEGIN
        UPDATE memory_embedding SET scope_key = NEW.scope_key, model = '', vector = NULL
        WHERE memory_id = NEW.id;
        RETURN NULL;
    END $$;
CREATE FUNCTION public.memory_find(organization text, tiers integer[], quotas integer[], scopes uuid[], words text[], quoted text[], asked double precision[], a_word double precision, weighed integer, exact integer, small integer, reach integer, pairs integer, scanned integer, enough integer, telling double precision, together integer, most integer) RETURNS TABLE(tier integer, id character varying, importance double precision, score double precision)
    LANGUAGE plpgsql STABLE ROWS 20
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    AS $$
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
CREATE FUNCTION public.memory_keep_lineage() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
    BEGIN
        RAISE EXCEPTION 'a memory''s organization and source run never change' USING ERRCODE = 'check_violation';
    END $$;
CREATE FUNCTION public.memory_key(scope_key uuid, term text) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN hashtextextended((term COLLATE "C"), hashtextextended(((scope_key)::text COLLATE "C"), (0)::bigint));
CREATE FUNCTION public.memory_keys(scope_key uuid, terms tsvector) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (SELECT array_agg(hashtextextended((lexeme.lexeme COLLATE "C"), seed.seed)) AS array_agg FROM hashtextextended(((memory_keys.scope_key)::text COLLATE "C"), (0)::bigint) seed(seed), unnest(tsvector_to_array(memory_keys.terms)) lexeme(lexeme));
CREATE FUNCTION public.policy_touch_version() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO policy_policyversion (organization_id, version)
    SELECT id, 1 FROM groups_organization
    WHERE id = to_jsonb(COALESCE(NEW, OLD))->>'organization_id'
    ON CONFLICT (organization_id) DO UPDATE SET version = policy_policyversion.version + 1;
    RETURN NULL;
END $$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.auth_group (
    id integer NOT NULL,
    name character varying(150) NOT NULL
);
ALTER TABLE public.auth_group ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_group_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.auth_group_permissions (
    id bigint NOT NULL,
    group_id integer NOT NULL,
    permission_id integer NOT NULL
);
ALTER TABLE public.auth_group_permissions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_group_permissions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.auth_permission (
    id integer NOT NULL,
    name character varying(255) NOT NULL,
    content_type_id integer NOT NULL,
    codename character varying(100) NOT NULL
);
ALTER TABLE public.auth_permission ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_permission_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.auth_user (
    id integer NOT NULL,
    password character varying(128) NOT NULL,
    last_login timestamp with time zone,
    is_superuser boolean NOT NULL,
    username character varying(150) NOT NULL,
    first_name character varying(150) NOT NULL,
    last_name character varying(150) NOT NULL,
    email character varying(254) NOT NULL,
    is_staff boolean NOT NULL,
    is_active boolean NOT NULL,
    date_joined timestamp with time zone NOT NULL
);
CREATE TABLE public.auth_user_groups (
    id bigint NOT NULL,
    user_id integer NOT NULL,
    group_id integer NOT NULL
);
ALTER TABLE public.auth_user_groups ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_user_groups_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE public.auth_user ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_user_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.auth_user_user_permissions (
    id bigint NOT NULL,
    user_id integer NOT NULL,
    permission_id integer NOT NULL
);
ALTER TABLE public.auth_user_user_permissions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_user_user_permissions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.django_admin_log (
    id integer NOT NULL,
    action_time timestamp with time zone NOT NULL,
    object_id text,
    object_repr character varying(200) NOT NULL,
    action_flag smallint NOT NULL,
    change_message text NOT NULL,
    content_type_id integer,
    user_id integer NOT NULL,
    CONSTRAINT django_admin_log_action_flag_check CHECK ((action_flag >= 0))
);
ALTER TABLE public.django_admin_log ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_admin_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.django_content_type (
    id integer NOT NULL,
    app_label character varying(100) NOT NULL,
    model character varying(100) NOT NULL
);
ALTER TABLE public.django_content_type ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_content_type_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.django_migrations (
    id bigint NOT NULL,
    app character varying(255) NOT NULL,
    name character varying(255) NOT NULL,
    applied timestamp with time zone NOT NULL
);
ALTER TABLE public.django_migrations ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_migrations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.django_q_ormq (
    id integer NOT NULL,
    key character varying(100) NOT NULL,
    payload text NOT NULL,
    lock timestamp with time zone
);
ALTER TABLE public.django_q_ormq ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_q_ormq_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.django_q_schedule (
    id integer NOT NULL,
    func character varying(256) NOT NULL,
    hook character varying(256),
    args text,
    kwargs text,
    schedule_type character varying(2) NOT NULL,
    repeats integer NOT NULL,
    next_run timestamp with time zone,
    task character varying(100),
    name character varying(100),
    minutes smallint,
    cron character varying(100),
    cluster character varying(100),
    intended_date_kwarg character varying(100),
    CONSTRAINT django_q_schedule_minutes_check CHECK ((minutes >= 0))
);
ALTER TABLE public.django_q_schedule ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_q_schedule_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.django_q_task (
    name character varying(100) NOT NULL,
    func character varying(256) NOT NULL,
    hook character varying(256),
    args text,
    kwargs text,
    result text,
    started timestamp with time zone NOT NULL,
    stopped timestamp with time zone NOT NULL,
    success boolean NOT NULL,
    id character varying(32) NOT NULL,
    "group" character varying(100),
    attempt_count integer NOT NULL,
    cluster character varying(100)
);
CREATE TABLE public.django_session (
    session_key character varying(40) NOT NULL,
    session_data text NOT NULL,
    expire_date timestamp with time zone NOT NULL
);
CREATE TABLE public.groups_agentinstance (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    name character varying(100) NOT NULL,
    preferences jsonb NOT NULL,
    user_id integer,
    organization_id character varying(31) NOT NULL,
    role_id character varying(31) NOT NULL
);
CREATE TABLE public.groups_change (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    by character varying(150) NOT NULL,
    via character varying(10) NOT NULL,
    token character varying(31) NOT NULL,
    action character varying(10) NOT NULL,
    model character varying(100) NOT NULL,
    object_id character varying(64) NOT NULL,
    label character varying(200) NOT NULL,
    before jsonb NOT NULL,
    after jsonb NOT NULL,
    organization_id character varying(31),
    user_id integer
);
CREATE TABLE public.groups_customrole (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    name character varying(100) NOT NULL,
    permissions character varying(120)[] NOT NULL,
    organization_id character varying(31) NOT NULL
);
CREATE TABLE public.groups_group (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    name character varying(200) NOT NULL,
    description text NOT NULL,
    capabilities character varying(100)[] NOT NULL,
    max_rounds smallint NOT NULL,
    active boolean NOT NULL,
    organization_id character varying(31) NOT NULL,
    project_id character varying(31) NOT NULL,
    CONSTRAINT group_max_rounds CHECK ((max_rounds >= 1)),
    CONSTRAINT groups_group_max_rounds_check CHECK ((max_rounds >= 0))
);
CREATE TABLE public.groups_groupmember (
    id character varying(31) NOT NULL,
    ordinal smallint NOT NULL,
    is_lead boolean NOT NULL,
    agent_instance_id character varying(31) NOT NULL,
    group_id character varying(31) NOT NULL,
    organization_id character varying(31) NOT NULL,
    role_id character varying(31) NOT NULL,
    CONSTRAINT groups_groupmember_ordinal_check CHECK ((ordinal >= 0))
);
CREATE TABLE public.groups_membership (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    kind character varying(10) NOT NULL,
    active boolean NOT NULL,
    projects character varying(31)[],
    allowed_tools character varying(64)[],
    denied_tools character varying(64)[] NOT NULL,
    user_id integer NOT NULL,
    organization_id character varying(31) NOT NULL,
    role character varying(20) NOT NULL,
    custom_role_id character varying(31),
    not_known_yet boolean NOT NULL,
    CONSTRAINT membership_kind CHECK (((kind)::text = ANY ((ARRAY['human'::character varying, 'service'::character varying])::text[]))),
    CONSTRAINT membership_role CHECK (((role)::text = ANY ((ARRAY['viewer'::character varying, 'member'::character varying, 'decider'::character varying, 'curator'::character varying, 'administrator'::character varying])::text[])))
);
CREATE TABLE public.groups_organization (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    slug character varying(63) NOT NULL,
    name character varying(200) NOT NULL,
    queue_limit integer,
    retention_days integer,
    CONSTRAINT groups_organization_queue_limit_check CHECK ((queue_limit >= 0)),
    CONSTRAINT groups_organization_retention_days_check CHECK ((retention_days >= 0))
);
CREATE TABLE public.groups_project (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    slug character varying(63) NOT NULL,
    name character varying(200) NOT NULL,
    review_deposits boolean NOT NULL,
    allow_self_approval boolean NOT NULL,
    catalog_version bigint NOT NULL,
    organization_id character varying(31) NOT NULL,
    approval_profile character varying(10) NOT NULL,
    CONSTRAINT project_approval_profile CHECK (((approval_profile)::text = ANY ((ARRAY['off'::character varying, 'careful'::character varying, 'balanced'::character varying, 'open'::character varying])::text[])))
);
CREATE TABLE public.groups_role (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    name character varying(100) NOT NULL,
    description text NOT NULL,
    system_prompt text NOT NULL,
    allowed_tools character varying(64)[],
    denied_tools character varying(64)[] NOT NULL,
    delegable_tools character varying(64)[],
    model character varying(200) NOT NULL,
    organization_id character varying(31) NOT NULL,
    not_known_yet boolean NOT NULL
);
CREATE TABLE public.groups_routingexample (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    goal text NOT NULL,
    goal_hash character varying(64) NOT NULL,
    kind character varying(10) NOT NULL,
    source_run_id character varying(31),
    corrected_by_id integer,
    group_id character varying(31) NOT NULL,
    organization_id character varying(31) NOT NULL,
    CONSTRAINT routing_example_kind CHECK (((kind)::text = ANY ((ARRAY['fits'::character varying, 'misfit'::character varying])::text[])))
);
CREATE UNLOGGED TABLE public.groups_throttle (
    key text NOT NULL,
    full_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.groups_token (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    name character varying(100) NOT NULL,
    prefix character varying(12) NOT NULL,
    secret_hash character varying(64) NOT NULL,
    scopes character varying(40)[] NOT NULL,
    expires_at timestamp with time zone,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    organization_id character varying(31) NOT NULL,
    user_id integer NOT NULL
);
CREATE TABLE public.memory_contextview (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    owner character varying(31) NOT NULL,
    session_key character varying(200) NOT NULL,
    version integer NOT NULL,
    retired character varying(32)[] NOT NULL,
    organization_id character varying(31) NOT NULL,
    project_id character varying(31) NOT NULL,
    CONSTRAINT memory_contextview_version_check CHECK ((version >= 0))
);
CREATE TABLE public.memory_departedterms (
    id bigint NOT NULL,
    scope_key uuid NOT NULL,
    search_vector tsvector NOT NULL,
    length integer NOT NULL,
    CONSTRAINT memory_departedterms_length_check CHECK ((length >= 0))
);
ALTER TABLE public.memory_departedterms ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.memory_departedterms_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.memory_embedding (
    memory_id character varying(31) NOT NULL,
    scope_key uuid NOT NULL,
    model character varying(200) NOT NULL,
    vector real[]
);
ALTER TABLE ONLY public.memory_embedding ALTER COLUMN vector SET STORAGE EXTERNAL;
CREATE TABLE public.memory_embeddingprogress (
    model character varying(200) NOT NULL,
    memory_id character varying(31) NOT NULL
);
CREATE TABLE public.memory_memory (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    type character varying(10) NOT NULL,
    content text NOT NULL,
    metadata jsonb NOT NULL,
    importance double precision NOT NULL,
    status character varying(15) NOT NULL,
    source_run_id character varying(31),
    original character varying(64),
    expires_at timestamp with time zone,
    scope_key uuid GENERATED ALWAYS AS ((md5((((((((((((organization_id)::text || '/'::text) || COALESCE((user_id)::text, ''::text)) || '/'::text) || (COALESCE(project_id, ''::character varying))::text) || '/'::text) || (COALESCE(group_id, ''::character varying))::text) || '/'::text) || (COALESCE(agent_instance_id, ''::character varying))::text) || '/'::text) || (
CASE
    WHEN (metadata @> '{"pa_preference": true}'::jsonb) THEN 'preference'::character varying
    ELSE type
END)::text)))::uuid) STORED,
    search_vector tsvector NOT NULL,
    length integer NOT NULL,
    agent_instance_id character varying(31),
    group_id character varying(31),
    organization_id character varying(31) NOT NULL,
    project_id character varying(31),
    superseded_by_id character varying(31),
    user_id integer,
    CONSTRAINT memory_archival_is_shared CHECK (((NOT ((type)::text = 'archival'::text)) OR ((agent_instance_id IS NULL) AND (group_id IS NULL) AND (user_id IS NULL)))),
    CONSTRAINT memory_content CHECK ((NOT (content = ''::text))),
    CONSTRAINT memory_group_scope CHECK (((group_id IS NULL) OR ((agent_instance_id IS NULL) AND (project_id IS NOT NULL) AND (user_id IS NULL)))),
    CONSTRAINT memory_importance CHECK (((importance >= (0.0)::double precision) AND (importance <= (1.0)::double precision))),
    CONSTRAINT memory_memory_length_check CHECK ((length >= 0)),
    CONSTRAINT memory_preference_scope CHECK (((NOT (metadata @> '{"pa_preference": true}'::jsonb)) OR ((agent_instance_id IS NOT NULL) AND (group_id IS NULL) AND (project_id IS NULL) AND ((type)::text = 'core'::text) AND (user_id IS NOT NULL)))),
    CONSTRAINT memory_status CHECK (((status)::text = ANY ((ARRAY['active'::character varying, 'pending_review'::character varying, 'retracted'::character varying, 'superseded'::character varying])::text[]))),
    CONSTRAINT memory_type CHECK (((type)::text = ANY ((ARRAY['core'::character varying, 'episodic'::character varying, 'archival'::character varying])::text[])))
);
CREATE TABLE public.memory_memoryrevision (
    id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    action character varying(20) NOT NULL,
    before jsonb NOT NULL,
    by_id integer,
    memory_id character varying(31) NOT NULL
);
ALTER TABLE public.memory_memoryrevision ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.memory_memoryrevision_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.memory_page (
    id uuid NOT NULL,
    index character varying(44) NOT NULL,
    kind character varying(10) NOT NULL,
    "position" integer NOT NULL,
    name character varying(200) NOT NULL,
    description text NOT NULL,
    detail text NOT NULL,
    visibility character varying(10) NOT NULL,
    opened_at integer NOT NULL,
    child_count integer NOT NULL,
    source character varying(200) NOT NULL,
    organization_id character varying(31) NOT NULL,
    parent_id uuid,
    view_id character varying(31) NOT NULL,
    segment_id uuid NOT NULL,
    CONSTRAINT context_page_kind CHECK (((kind)::text = ANY ((ARRAY['contents'::character varying, 'detail'::character varying])::text[]))),
    CONSTRAINT context_page_shape CHECK ((((child_count = 0) AND ((kind)::text = 'detail'::text) AND (parent_id IS NOT NULL)) OR ((detail = ''::text) AND ((kind)::text = 'contents'::text)))),
    CONSTRAINT context_page_visibility CHECK (((visibility)::text = ANY ((ARRAY['expanded'::character varying, 'hidden'::character varying])::text[]))),
    CONSTRAINT memory_page_child_count_check CHECK ((child_count >= 0)),
    CONSTRAINT memory_page_opened_at_check CHECK ((opened_at >= 0)),
    CONSTRAINT memory_page_position_check CHECK (("position" >= 0))
);
CREATE TABLE public.memory_pendingmemory (
    memory_id character varying(31) NOT NULL,
    scope_key uuid NOT NULL
);
CREATE TABLE public.memory_scopesize (
    scope_key uuid NOT NULL,
    memories integer NOT NULL,
    terms bigint NOT NULL,
    CONSTRAINT memory_scopesize_memories_check CHECK ((memories >= 0)),
    CONSTRAINT memory_scopesize_terms_check CHECK ((terms >= 0))
);
CREATE TABLE public.memory_segment (
    id uuid NOT NULL,
    segment_id character varying(32) NOT NULL,
    name character varying(200) NOT NULL,
    description text NOT NULL,
    type character varying(10) NOT NULL,
    permission character varying(20) NOT NULL,
    "position" integer NOT NULL,
    next_index integer NOT NULL,
    organization_id character varying(31) NOT NULL,
    view_id character varying(31) NOT NULL,
    CONSTRAINT context_segment_permission CHECK (((permission)::text = ANY ((ARRAY['read_only'::character varying, 'read_write'::character varying, 'system_managed'::character varying])::text[]))),
    CONSTRAINT context_segment_type CHECK (((type)::text = ANY ((ARRAY['system'::character varying, 'user'::character varying, 'tool'::character varying, 'custom'::character varying])::text[]))),
    CONSTRAINT memory_segment_next_index_check CHECK ((next_index >= 0)),
    CONSTRAINT memory_segment_position_check CHECK (("position" >= 0))
);
CREATE TABLE public.memory_termcount (
    scope_key uuid NOT NULL,
    term character varying(64) NOT NULL,
    memories integer NOT NULL,
    CONSTRAINT memory_termcount_memories_check CHECK ((memories >= 0))
);
CREATE TABLE public.memory_textvector (
    model character varying(200) NOT NULL,
    digest character varying(64) NOT NULL,
    vector real[] NOT NULL
);
CREATE TABLE public.policy_capability (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    name character varying(64) NOT NULL,
    description text NOT NULL,
    organization_id character varying(31) NOT NULL
);
CREATE TABLE public.policy_capabilityrule (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    name character varying(200) NOT NULL,
    tool character varying(64) NOT NULL,
    effect character varying(20) NOT NULL,
    condition text NOT NULL,
    timeout_seconds integer,
    on_expiry character varying(10) NOT NULL,
    deciders_needed smallint NOT NULL,
    shadow boolean NOT NULL,
    active boolean NOT NULL,
    capability_id character varying(31),
    group_id character varying(31),
    organization_id character varying(31) NOT NULL,
    project_id character varying(31),
    role_id character varying(31),
    deciders character varying(80)[] NOT NULL,
    not_known_yet boolean NOT NULL,
    CONSTRAINT policy_capabilityrule_deciders_needed_check CHECK ((deciders_needed >= 0)),
    CONSTRAINT policy_capabilityrule_timeout_seconds_check CHECK ((timeout_seconds >= 0)),
    CONSTRAINT rule_capability_or_tool CHECK ((((capability_id IS NOT NULL) AND ((tool)::text = ''::text)) OR ((capability_id IS NULL) AND (NOT ((tool)::text = ''::text))))),
    CONSTRAINT rule_deciders_needed CHECK ((deciders_needed >= 1)),
    CONSTRAINT rule_effect CHECK (((effect)::text = ANY ((ARRAY['allow'::character varying, 'require_approval'::character varying, 'require_human'::character varying, 'deny'::character varying])::text[]))),
    CONSTRAINT rule_on_expiry CHECK (((on_expiry)::text = ANY ((ARRAY['fail_call'::character varying, 'cancel_run'::character varying])::text[])))
);
CREATE TABLE public.policy_grant (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    tool character varying(64) NOT NULL,
    arguments jsonb NOT NULL,
    any_arguments boolean NOT NULL,
    reason text NOT NULL,
    expires_at timestamp with time zone,
    max_uses integer,
    revoked_at timestamp with time zone,
    granted_by_id integer NOT NULL,
    organization_id character varying(31) NOT NULL,
    project_id character varying(31) NOT NULL,
    CONSTRAINT grant_ends CHECK (((expires_at IS NOT NULL) OR (max_uses IS NOT NULL))),
    CONSTRAINT grant_names_arguments CHECK (((any_arguments AND (arguments = '{}'::jsonb)) OR ((NOT any_arguments) AND (NOT (arguments = '{}'::jsonb))))),
    CONSTRAINT policy_grant_max_uses_check CHECK ((max_uses >= 0))
);
CREATE TABLE public.policy_grantuse (
    id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    idempotency_key character varying(64) NOT NULL,
    grant_id character varying(31) NOT NULL,
    organization_id character varying(31) NOT NULL
);
ALTER TABLE public.policy_grantuse ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.policy_grantuse_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.policy_outsideentity (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    type character varying(64) NOT NULL,
    identifier character varying(200) NOT NULL,
    properties jsonb NOT NULL,
    organization_id character varying(31) NOT NULL
);
CREATE TABLE public.policy_policyversion (
    organization_id character varying(31) NOT NULL,
    version bigint NOT NULL
);
CREATE TABLE public.policy_toolbinding (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    pattern character varying(64) NOT NULL,
    capability_id character varying(31) NOT NULL,
    organization_id character varying(31) NOT NULL,
    not_known_yet boolean NOT NULL
);
CREATE TABLE public.policy_tooldeclaration (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    tool character varying(64) NOT NULL,
    output_trust character varying(12) NOT NULL,
    fields jsonb NOT NULL,
    steering character varying(64)[],
    effect boolean,
    organization_id character varying(31) NOT NULL,
    CONSTRAINT tool_declaration_trust CHECK (((output_trust)::text = ANY ((ARRAY[''::character varying, 'user'::character varying, 'organization'::character varying, 'outside'::character varying])::text[])))
);
CREATE TABLE public.runs_approval (
    id character varying(31) NOT NULL,
    capability character varying(64) NOT NULL,
    effect character varying(20) NOT NULL,
    rule character varying(200) NOT NULL,
    explanation text NOT NULL,
    arguments_digest character varying(64) NOT NULL,
    correlation_key character varying(200) NOT NULL,
    status character varying(10) NOT NULL,
    requested_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    decided_at timestamp with time zone,
    consumed_at timestamp with time zone,
    decided_as_human boolean NOT NULL,
    reason text NOT NULL,
    edited_arguments jsonb,
    deciders_needed smallint NOT NULL,
    on_expiry character varying(10) NOT NULL,
    decided_by_id integer,
    organization_id character varying(31) NOT NULL,
    run_id character varying(31) NOT NULL,
    tool_call_id character varying(31) NOT NULL,
    deciders jsonb NOT NULL,
    replaced_arguments jsonb,
    replaces_id character varying(31),
    CONSTRAINT approval_effect CHECK (((effect)::text = ANY ((ARRAY['require_approval'::character varying, 'require_human'::character varying])::text[]))),
    CONSTRAINT approval_status CHECK (((status)::text = ANY ((ARRAY['pending'::character varying, 'approved'::character varying, 'rejected'::character varying, 'expired'::character varying, 'cancelled'::character varying, 'superseded'::character varying])::text[]))),
    CONSTRAINT runs_approval_deciders_needed_check CHECK ((deciders_needed >= 0))
);
CREATE TABLE public.runs_approvaldecision (
    id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    approved boolean NOT NULL,
    as_human boolean NOT NULL,
    reason text NOT NULL,
    arguments_digest character varying(64) NOT NULL,
    approval_id character varying(31) NOT NULL,
    organization_id character varying(31) NOT NULL,
    user_id integer NOT NULL,
    token_id character varying(31),
    via character varying(10) DEFAULT ''::character varying NOT NULL
);
ALTER TABLE public.runs_approvaldecision ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.runs_approvaldecision_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.runs_approvalnotice (
    id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    sent_at timestamp with time zone,
    approval_id character varying(31) NOT NULL,
    organization_id character varying(31) NOT NULL,
    user_id integer NOT NULL,
    due_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    holder character varying(60) DEFAULT ''::character varying NOT NULL,
    status character varying(10) DEFAULT 'pending'::character varying NOT NULL,
    CONSTRAINT runs_notice_status_check CHECK (((status)::text = ANY ((ARRAY['pending'::character varying, 'sending'::character varying, 'sent'::character varying, 'obsolete'::character varying])::text[])))
);
ALTER TABLE public.runs_approvalnotice ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.runs_approvalnotice_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.runs_carrier (
    name character varying(40) NOT NULL,
    host character varying(200) NOT NULL,
    in_flight integer NOT NULL,
    started_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    seen_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    lease_expires_at timestamp with time zone NOT NULL,
    CONSTRAINT runs_carrier_in_flight_check CHECK ((in_flight >= 0))
);
CREATE TABLE public.runs_conversation (
    id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    key character varying(200) NOT NULL,
    title character varying(200) NOT NULL,
    seen_at timestamp with time zone,
    organization_id character varying(31) NOT NULL,
    project_id character varying(31) NOT NULL,
    user_id integer NOT NULL
);
ALTER TABLE public.runs_conversation ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.runs_conversation_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.runs_eventcount (
    id bigint CONSTRAINT runs_tally_id_not_null NOT NULL,
    name character varying(40) CONSTRAINT runs_tally_name_not_null NOT NULL,
    labels text[] CONSTRAINT runs_tally_labels_not_null NOT NULL,
    value double precision CONSTRAINT runs_tally_value_not_null NOT NULL
);
CREATE TABLE public.runs_eventcountcursor (
    id bigint CONSTRAINT runs_tallycursor_id_not_null NOT NULL,
    done bigint CONSTRAINT runs_tallycursor_done_not_null NOT NULL,
    next bigint CONSTRAINT runs_tallycursor_next_not_null NOT NULL,
    next_at timestamp with time zone CONSTRAINT runs_tallycursor_next_at_not_null NOT NULL
);
CREATE TABLE public.runs_follower (
    root_id character varying(31) NOT NULL,
    until timestamp with time zone NOT NULL
);
CREATE TABLE public.runs_idempotencyrecord (
    id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    key character varying(255) NOT NULL,
    request_digest character varying(64) NOT NULL,
    status smallint,
    body jsonb,
    location character varying(500) NOT NULL,
    organization_id character varying(31) NOT NULL,
    user_id integer NOT NULL,
    CONSTRAINT runs_idempotencyrecord_status_check CHECK ((status >= 0))
);
ALTER TABLE public.runs_idempotencyrecord ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.runs_idempotencyrecord_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.runs_mcpserver (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    name character varying(30) NOT NULL,
    url character varying(2000) NOT NULL,
    sealed_headers text NOT NULL,
    header_names character varying(200)[] NOT NULL,
    timeout_seconds smallint NOT NULL,
    enabled boolean NOT NULL,
    checked_at timestamp with time zone,
    problem text NOT NULL,
    organization_id character varying(31) NOT NULL,
    CONSTRAINT runs_mcpserver_timeout_seconds_check CHECK ((timeout_seconds >= 0))
);
CREATE TABLE public.runs_mcptool (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    name character varying(128) NOT NULL,
    state character varying(10) NOT NULL,
    definition jsonb NOT NULL,
    digest character varying(64) NOT NULL,
    problem text NOT NULL,
    accepted jsonb,
    accepted_digest character varying(64) NOT NULL,
    accepted_at timestamp with time zone,
    changed_at timestamp with time zone,
    accepted_by_id integer,
    organization_id character varying(31) NOT NULL,
    server_id character varying(31) NOT NULL,
    CONSTRAINT mcp_tool_state CHECK (((state)::text = ANY ((ARRAY['new'::character varying, 'accepted'::character varying, 'changed'::character varying, 'gone'::character varying, 'unusable'::character varying])::text[])))
);
CREATE TABLE public.runs_modelkey (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    provider character varying(20) NOT NULL,
    base_url character varying(2000) NOT NULL,
    sealed_key text NOT NULL,
    organization_id character varying(31) NOT NULL,
    CONSTRAINT model_key_provider CHECK (((provider)::text = ANY ((ARRAY['openai'::character varying, 'ollama'::character varying, 'compatible'::character varying, 'anthropic'::character varying, 'google'::character varying])::text[])))
);
CREATE TABLE public.runs_outboundcall (
    id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    root_id character varying(31) NOT NULL,
    attempt integer NOT NULL,
    kind character varying(10) NOT NULL,
    call_id character varying(64) NOT NULL,
    target character varying(240) NOT NULL,
    host character varying(260) NOT NULL,
    rank smallint NOT NULL,
    threaded boolean NOT NULL,
    most integer NOT NULL,
    host_most integer NOT NULL,
    request text NOT NULL,
    receipt text NOT NULL,
    wake text NOT NULL,
    due_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    seconds double precision NOT NULL,
    expires_at timestamp with time zone,
    holder character varying(40) DEFAULT ''::character varying NOT NULL,
    begun_at timestamp with time zone,
    answer text,
    answered_at timestamp with time zone,
    organization_id character varying(31) NOT NULL,
    run_id character varying(31) NOT NULL,
    CONSTRAINT outbound_kind CHECK (((kind)::text = ANY ((ARRAY['model'::character varying, 'tool'::character varying])::text[]))),
    CONSTRAINT runs_outboundcall_attempt_check CHECK ((attempt >= 0)),
    CONSTRAINT runs_outboundcall_host_most_check CHECK ((host_most >= 0)),
    CONSTRAINT runs_outboundcall_most_check CHECK ((most >= 0)),
    CONSTRAINT runs_outboundcall_rank_check CHECK ((rank >= 0))
);
ALTER TABLE public.runs_outboundcall ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.runs_outboundcall_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.runs_outboundtarget (
    target character varying(240) NOT NULL,
    failures integer NOT NULL,
    reason character varying(300) NOT NULL,
    paused_until timestamp with time zone,
    changed_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    CONSTRAINT runs_outboundtarget_failures_check CHECK ((failures >= 0))
);
CREATE TABLE public.runs_queuemessage (
    id bigint NOT NULL,
    queue character varying(100) NOT NULL,
    payload text NOT NULL,
    run_id character varying(31),
    due_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    holder character varying(40) DEFAULT ''::character varying NOT NULL,
    deaths smallint DEFAULT 0 NOT NULL,
    later boolean DEFAULT false NOT NULL,
    organization_id character varying(31) DEFAULT '-'::character varying NOT NULL,
    priority smallint DEFAULT 1 NOT NULL,
    CONSTRAINT runs_queuemessage_deaths_check CHECK ((deaths >= 0)),
    CONSTRAINT runs_queuemessage_priority_check CHECK ((priority >= 0))
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='2000', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_scale_factor='0', autovacuum_analyze_threshold='10000');
ALTER TABLE public.runs_queuemessage ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.runs_queuemessage_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.runs_rating (
    id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    good boolean NOT NULL,
    note text NOT NULL,
    organization_id character varying(31) NOT NULL,
    run_id character varying(31) NOT NULL,
    user_id integer NOT NULL
);
ALTER TABLE public.runs_rating ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.runs_rating_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.runs_run (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    depth smallint NOT NULL,
    kind character varying(10) NOT NULL,
    driver character varying(10) NOT NULL,
    session_key character varying(200) NOT NULL,
    goal text NOT NULL,
    context text NOT NULL,
    status character varying(10) NOT NULL,
    waiting_reason character varying(10),
    output text,
    error jsonb,
    delegated_permissions jsonb,
    budgets jsonb NOT NULL,
    usage jsonb NOT NULL,
    deadline timestamp with time zone,
    attempt integer NOT NULL,
    crashes smallint NOT NULL,
    lease_expires_at timestamp with time zone,
    last_seq integer NOT NULL,
    last_digest character varying(64) NOT NULL,
    queued_at timestamp with time zone,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    agent_instance_id character varying(31),
    group_id character varying(31),
    organization_id character varying(31) NOT NULL,
    parent_run_id character varying(31),
    project_id character varying(31) NOT NULL,
    role_id character varying(31),
    root_id character varying(31) NOT NULL,
    user_id integer NOT NULL,
    pruned_at timestamp with time zone,
    CONSTRAINT runs_driver_check CHECK (((driver)::text = ANY ((ARRAY['internal'::character varying, 'external'::character varying])::text[]))),
    CONSTRAINT runs_ended_check CHECK ((((ended_at IS NULL) AND ((status)::text = ANY ((ARRAY['pending'::character varying, 'running'::character varying, 'waiting'::character varying])::text[]))) OR ((NOT ((status)::text = ANY ((ARRAY['pending'::character varying, 'running'::character varying, 'waiting'::character varying])::text[]))) AND (ended_at IS NOT NULL)))),
    CONSTRAINT runs_kind_check CHECK (((kind)::text = ANY ((ARRAY['personal'::character varying, 'group'::character varying])::text[]))),
    CONSTRAINT runs_run_attempt_check CHECK ((attempt >= 0)),
    CONSTRAINT runs_run_crashes_check CHECK ((crashes >= 0)),
    CONSTRAINT runs_run_depth_check CHECK ((depth >= 0)),
    CONSTRAINT runs_run_last_seq_check CHECK ((last_seq >= 0)),
    CONSTRAINT runs_status_check CHECK (((status)::text = ANY ((ARRAY['pending'::character varying, 'running'::character varying, 'waiting'::character varying, 'completed'::character varying, 'failed'::character varying, 'cancelled'::character varying])::text[]))),
    CONSTRAINT runs_waiting_reason_check CHECK (((((status)::text = 'waiting'::text) AND ((waiting_reason)::text = ANY ((ARRAY['child'::character varying, 'approval'::character varying, 'input'::character varying, 'review'::character varying, 'timer'::character varying, 'signal'::character varying])::text[]))) OR ((NOT ((status)::text = 'waiting'::text)) AND (waiting_reason IS NULL))))
);
CREATE TABLE public.runs_runevent (
    id bigint NOT NULL,
    seq integer NOT NULL,
    type character varying(30) NOT NULL,
    agent character varying(31) NOT NULL,
    payload jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    digest character varying(64) NOT NULL,
    organization_id character varying(31) NOT NULL,
    run_id character varying(31) NOT NULL,
    CONSTRAINT run_event_type CHECK (((type)::text = ANY ((ARRAY['run.created'::character varying, 'run.started'::character varying, 'run.waiting'::character varying, 'run.resumed'::character varying, 'run.completed'::character varying, 'run.failed'::character varying, 'run.cancelled'::character varying, 'message.created'::character varying, 'model.retried'::character varying, 'tool.called'::character varying, 'tool.completed'::character varying, 'tool.failed'::character varying, 'tool.blocked'::character varying, 'tool.waits'::character varying, 'tool.requires_approval'::character varying, 'tool.approved'::character varying, 'approval.edited'::character varying, 'tool.rejected'::character varying, 'tool.expired'::character varying, 'tool.outcome_unknown'::character varying, 'wait.completed'::character varying, 'child.created'::character varying, 'memory.written'::character varying, 'memory.deposited'::character varying, 'context.changed'::character varying])::text[]))),
    CONSTRAINT runs_runevent_seq_check CHECK ((seq >= 0))
);
ALTER TABLE public.runs_runevent ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.runs_runevent_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.runs_schedule (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    title character varying(200) NOT NULL,
    goal text NOT NULL,
    group_id character varying(31) NOT NULL,
    at timestamp with time zone,
    cron character varying(100) NOT NULL,
    time_zone character varying(64) NOT NULL,
    ends_at timestamp with time zone,
    most_runs integer,
    on_missed character varying(10) NOT NULL,
    budgets jsonb NOT NULL,
    outside boolean NOT NULL,
    token character varying(31) NOT NULL,
    paused boolean NOT NULL,
    stopped_because character varying(500) NOT NULL,
    started integer NOT NULL,
    next_at timestamp with time zone,
    organization_id character varying(31) NOT NULL,
    project_id character varying(31) NOT NULL,
    user_id integer NOT NULL,
    CONSTRAINT runs_schedule_most_runs_check CHECK ((most_runs >= 0)),
    CONSTRAINT runs_schedule_started_check CHECK ((started >= 0)),
    CONSTRAINT schedule_at_or_cron CHECK ((((at IS NULL) AND (NOT ((cron)::text = ''::text))) OR ((at IS NOT NULL) AND ((cron)::text = ''::text)))),
    CONSTRAINT schedule_paused_check CHECK (((NOT paused) OR (next_at IS NULL)))
);
CREATE TABLE public.runs_scheduledrun (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    due_at timestamp with time zone NOT NULL,
    outcome character varying(10) NOT NULL,
    times integer NOT NULL,
    code character varying(40) NOT NULL,
    reason character varying(500) NOT NULL,
    organization_id character varying(31) NOT NULL,
    run_id character varying(31),
    schedule_id character varying(31) NOT NULL,
    CONSTRAINT runs_scheduledrun_times_check CHECK ((times >= 0)),
    CONSTRAINT scheduled_run_outcome CHECK (((outcome)::text = ANY ((ARRAY['started'::character varying, 'missed'::character varying, 'overlapped'::character varying, 'refused'::character varying])::text[])))
);
ALTER TABLE public.runs_eventcount ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.runs_tally_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE public.runs_eventcountcursor ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.runs_tallycursor_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.runs_toolcall (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    call_id character varying(64) NOT NULL,
    agent character varying(31) NOT NULL,
    tool character varying(64) NOT NULL,
    arguments jsonb NOT NULL,
    effective_arguments jsonb NOT NULL,
    request_digest character varying(64) NOT NULL,
    idempotency_key character varying(64) NOT NULL,
    status character varying(10) NOT NULL,
    attempt integer NOT NULL,
    result jsonb,
    error jsonb,
    evidence jsonb,
    ended_at timestamp with time zone,
    organization_id character varying(31) NOT NULL,
    run_id character varying(31) NOT NULL,
    lease_expires_at timestamp with time zone,
    queued_at timestamp with time zone,
    role_id character varying(31) DEFAULT ''::character varying NOT NULL,
    seat character varying(31) DEFAULT ''::character varying NOT NULL,
    CONSTRAINT runs_toolcall_attempt_check CHECK ((attempt >= 0)),
    CONSTRAINT tool_call_status CHECK (((status)::text = ANY ((ARRAY['requested'::character varying, 'waiting'::character varying, 'running'::character varying, 'succeeded'::character varying, 'failed'::character varying, 'denied'::character varying, 'rejected'::character varying, 'expired'::character varying, 'cancelled'::character varying, 'unknown'::character varying])::text[])))
);
CREATE TABLE public.runs_triedmodel (
    id bigint NOT NULL,
    model character varying(200) NOT NULL,
    error character varying(40) NOT NULL,
    said character varying(300) NOT NULL,
    milliseconds integer NOT NULL,
    tried_at timestamp with time zone NOT NULL,
    organization_id character varying(31) NOT NULL,
    tried_by_id integer,
    CONSTRAINT runs_triedmodel_milliseconds_check CHECK ((milliseconds >= 0))
);
ALTER TABLE public.runs_triedmodel ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.runs_triedmodel_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.runs_wait (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    kind character varying(10) NOT NULL,
    correlation_key character varying(200) NOT NULL,
    expires_at timestamp with time zone,
    resolved_at timestamp with time zone,
    outcome character varying(10),
    payload jsonb,
    child_run_id character varying(31),
    organization_id character varying(31) NOT NULL,
    run_id character varying(31) NOT NULL,
    tool_call_id character varying(31),
    CONSTRAINT wait_kind CHECK (((kind)::text = ANY ((ARRAY['child'::character varying, 'approval'::character varying, 'input'::character varying, 'review'::character varying, 'timer'::character varying, 'signal'::character varying])::text[]))),
    CONSTRAINT wait_outcome CHECK ((((outcome IS NULL) AND (resolved_at IS NULL)) OR (((outcome)::text = ANY ((ARRAY['completed'::character varying, 'approved'::character varying, 'rejected'::character varying, 'failed'::character varying, 'cancelled'::character varying, 'expired'::character varying, 'superseded'::character varying])::text[])) AND (resolved_at IS NOT NULL))))
);
CREATE TABLE public.runs_webhookdelivery (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    event character varying(40) NOT NULL,
    payload jsonb NOT NULL,
    status character varying(10) NOT NULL,
    attempts integer NOT NULL,
    next_attempt_at timestamp with time zone,
    delivered_at timestamp with time zone,
    response_status smallint,
    problem character varying(300) NOT NULL,
    history jsonb NOT NULL,
    organization_id character varying(31) NOT NULL,
    endpoint_id character varying(31) NOT NULL,
    CONSTRAINT runs_webhookdelivery_attempts_check CHECK ((attempts >= 0)),
    CONSTRAINT runs_webhookdelivery_response_status_check CHECK ((response_status >= 0)),
    CONSTRAINT webhook_status CHECK (((status)::text = ANY ((ARRAY['pending'::character varying, 'delivered'::character varying, 'failed'::character varying])::text[])))
);
CREATE TABLE public.runs_webhookendpoint (
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    id character varying(31) NOT NULL,
    url character varying(2000) NOT NULL,
    description character varying(200) NOT NULL,
    events character varying(40)[] NOT NULL,
    enabled boolean NOT NULL,
    sealed_secret text NOT NULL,
    sealed_previous text NOT NULL,
    previous_until timestamp with time zone,
    failing_since timestamp with time zone,
    disabled_because text NOT NULL,
    organization_id character varying(31) NOT NULL,
    project_id character varying(31),
    sender character varying(60) DEFAULT ''::character varying NOT NULL,
    sending_until timestamp with time zone
);
CREATE TABLE public.runs_workergroup (
    name character varying(40) NOT NULL,
    host character varying(200) NOT NULL,
    workers smallint NOT NULL,
    busy smallint NOT NULL,
    started_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    seen_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    CONSTRAINT runs_workergroup_busy_check CHECK ((busy >= 0)),
    CONSTRAINT runs_workergroup_workers_check CHECK ((workers >= 0))
);
INSERT INTO public.auth_permission VALUES (1, 'Can add run', 1, 'add_run');
INSERT INTO public.auth_permission VALUES (2, 'Can change run', 1, 'change_run');
INSERT INTO public.auth_permission VALUES (3, 'Can delete run', 1, 'delete_run');
INSERT INTO public.auth_permission VALUES (4, 'Can view run', 1, 'view_run');
INSERT INTO public.auth_permission VALUES (5, 'Can ask an agent', 1, 'start_run');
INSERT INTO public.auth_permission VALUES (6, 'Can cancel a run', 1, 'cancel_run');
INSERT INTO public.auth_permission VALUES (7, 'Can decide approvals', 1, 'decide_approval');
INSERT INTO public.auth_permission VALUES (8, 'Can say what became of an interrupted call', 1, 'resolve_review');
INSERT INTO public.auth_permission VALUES (9, 'Can add run event', 2, 'add_runevent');
INSERT INTO public.auth_permission VALUES (10, 'Can change run event', 2, 'change_runevent');
INSERT INTO public.auth_permission VALUES (11, 'Can delete run event', 2, 'delete_runevent');
INSERT INTO public.auth_permission VALUES (12, 'Can view run event', 2, 'view_runevent');
INSERT INTO public.auth_permission VALUES (13, 'Can add tool call', 3, 'add_toolcall');
INSERT INTO public.auth_permission VALUES (14, 'Can change tool call', 3, 'change_toolcall');
INSERT INTO public.auth_permission VALUES (15, 'Can delete tool call', 3, 'delete_toolcall');
INSERT INTO public.auth_permission VALUES (16, 'Can view tool call', 3, 'view_toolcall');
INSERT INTO public.auth_permission VALUES (17, 'Can add approval', 4, 'add_approval');
INSERT INTO public.auth_permission VALUES (18, 'Can change approval', 4, 'change_approval');
INSERT INTO public.auth_permission VALUES (19, 'Can delete approval', 4, 'delete_approval');
INSERT INTO public.auth_permission VALUES (20, 'Can view approval', 4, 'view_approval');
INSERT INTO public.auth_permission VALUES (21, 'Can add wait', 5, 'add_wait');
INSERT INTO public.auth_permission VALUES (22, 'Can change wait', 5, 'change_wait');
INSERT INTO public.auth_permission VALUES (23, 'Can delete wait', 5, 'delete_wait');
INSERT INTO public.auth_permission VALUES (24, 'Can view wait', 5, 'view_wait');
INSERT INTO public.auth_permission VALUES (25, 'Can add approval decision', 6, 'add_approvaldecision');
INSERT INTO public.auth_permission VALUES (26, 'Can change approval decision', 6, 'change_approvaldecision');
INSERT INTO public.auth_permission VALUES (27, 'Can delete approval decision', 6, 'delete_approvaldecision');
INSERT INTO public.auth_permission VALUES (28, 'Can view approval decision', 6, 'view_approvaldecision');
INSERT INTO public.auth_permission VALUES (29, 'Can add queue message', 7, 'add_queuemessage');
INSERT INTO public.auth_permission VALUES (30, 'Can change queue message', 7, 'change_queuemessage');
INSERT INTO public.auth_permission VALUES (31, 'Can delete queue message', 7, 'delete_queuemessage');
INSERT INTO public.auth_permission VALUES (32, 'Can view queue message', 7, 'view_queuemessage');
INSERT INTO public.auth_permission VALUES (33, 'Can add idempotency record', 8, 'add_idempotencyrecord');
INSERT INTO public.auth_permission VALUES (34, 'Can change idempotency record', 8, 'change_idempotencyrecord');
INSERT INTO public.auth_permission VALUES (35, 'Can delete idempotency record', 8, 'delete_idempotencyrecord');
INSERT INTO public.auth_permission VALUES (36, 'Can view idempotency record', 8, 'view_idempotencyrecord');
INSERT INTO public.auth_permission VALUES (37, 'Can add approval notice', 9, 'add_approvalnotice');
INSERT INTO public.auth_permission VALUES (38, 'Can change approval notice', 9, 'change_approvalnotice');
INSERT INTO public.auth_permission VALUES (39, 'Can delete approval notice', 9, 'delete_approvalnotice');
INSERT INTO public.auth_permission VALUES (40, 'Can view approval notice', 9, 'view_approvalnotice');
INSERT INTO public.auth_permission VALUES (41, 'Can add MCP server', 10, 'add_mcpserver');
INSERT INTO public.auth_permission VALUES (42, 'Can change MCP server', 10, 'change_mcpserver');
INSERT INTO public.auth_permission VALUES (43, 'Can delete MCP server', 10, 'delete_mcpserver');
INSERT INTO public.auth_permission VALUES (44, 'Can view MCP server', 10, 'view_mcpserver');
INSERT INTO public.auth_permission VALUES (45, 'Can list an MCP server''s tools again', 10, 'refresh_mcpserver');
INSERT INTO public.auth_permission VALUES (46, 'Can add MCP tool', 11, 'add_mcptool');
INSERT INTO public.auth_permission VALUES (47, 'Can change MCP tool', 11, 'change_mcptool');
INSERT INTO public.auth_permission VALUES (48, 'Can delete MCP tool', 11, 'delete_mcptool');
INSERT INTO public.auth_permission VALUES (49, 'Can view MCP tool', 11, 'view_mcptool');
INSERT INTO public.auth_permission VALUES (50, 'Can accept an MCP server''s tools', 11, 'accept_mcptool');
INSERT INTO public.auth_permission VALUES (51, 'Can add worker group', 12, 'add_workergroup');
INSERT INTO public.auth_permission VALUES (52, 'Can change worker group', 12, 'change_workergroup');
INSERT INTO public.auth_permission VALUES (53, 'Can delete worker group', 12, 'delete_workergroup');
INSERT INTO public.auth_permission VALUES (54, 'Can view worker group', 12, 'view_workergroup');
INSERT INTO public.auth_permission VALUES (55, 'Can add webhook', 13, 'add_webhookendpoint');
INSERT INTO public.auth_permission VALUES (56, 'Can change webhook', 13, 'change_webhookendpoint');
INSERT INTO public.auth_permission VALUES (57, 'Can delete webhook', 13, 'delete_webhookendpoint');
INSERT INTO public.auth_permission VALUES (58, 'Can view webhook', 13, 'view_webhookendpoint');
INSERT INTO public.auth_permission VALUES (59, 'Can add webhook delivery', 14, 'add_webhookdelivery');
INSERT INTO public.auth_permission VALUES (60, 'Can change webhook delivery', 14, 'change_webhookdelivery');
INSERT INTO public.auth_permission VALUES (61, 'Can delete webhook delivery', 14, 'delete_webhookdelivery');
INSERT INTO public.auth_permission VALUES (62, 'Can view webhook delivery', 14, 'view_webhookdelivery');
INSERT INTO public.auth_permission VALUES (63, 'Can add carrier', 15, 'add_carrier');
INSERT INTO public.auth_permission VALUES (64, 'Can change carrier', 15, 'change_carrier');
INSERT INTO public.auth_permission VALUES (65, 'Can delete carrier', 15, 'delete_carrier');
INSERT INTO public.auth_permission VALUES (66, 'Can view carrier', 15, 'view_carrier');
INSERT INTO public.auth_permission VALUES (67, 'Can add follower', 16, 'add_follower');
INSERT INTO public.auth_permission VALUES (68, 'Can change follower', 16, 'change_follower');
INSERT INTO public.auth_permission VALUES (69, 'Can delete follower', 16, 'delete_follower');
INSERT INTO public.auth_permission VALUES (70, 'Can view follower', 16, 'view_follower');
INSERT INTO public.auth_permission VALUES (71, 'Can add outbound target', 17, 'add_outboundtarget');
INSERT INTO public.auth_permission VALUES (72, 'Can change outbound target', 17, 'change_outboundtarget');
INSERT INTO public.auth_permission VALUES (73, 'Can delete outbound target', 17, 'delete_outboundtarget');
INSERT INTO public.auth_permission VALUES (74, 'Can view outbound target', 17, 'view_outboundtarget');
INSERT INTO public.auth_permission VALUES (75, 'Can add outbound call', 18, 'add_outboundcall');
INSERT INTO public.auth_permission VALUES (76, 'Can change outbound call', 18, 'change_outboundcall');
INSERT INTO public.auth_permission VALUES (77, 'Can delete outbound call', 18, 'delete_outboundcall');
INSERT INTO public.auth_permission VALUES (78, 'Can view outbound call', 18, 'view_outboundcall');
INSERT INTO public.auth_permission VALUES (79, 'Can add conversation', 19, 'add_conversation');
INSERT INTO public.auth_permission VALUES (80, 'Can change conversation', 19, 'change_conversation');
INSERT INTO public.auth_permission VALUES (81, 'Can delete conversation', 19, 'delete_conversation');
INSERT INTO public.auth_permission VALUES (82, 'Can view conversation', 19, 'view_conversation');
INSERT INTO public.auth_permission VALUES (83, 'Can add rating', 20, 'add_rating');
INSERT INTO public.auth_permission VALUES (84, 'Can change rating', 20, 'change_rating');
INSERT INTO public.auth_permission VALUES (85, 'Can delete rating', 20, 'delete_rating');
INSERT INTO public.auth_permission VALUES (86, 'Can view rating', 20, 'view_rating');
INSERT INTO public.auth_permission VALUES (87, 'Can add event count', 21, 'add_eventcount');
INSERT INTO public.auth_permission VALUES (88, 'Can change event count', 21, 'change_eventcount');
INSERT INTO public.auth_permission VALUES (89, 'Can delete event count', 21, 'delete_eventcount');
INSERT INTO public.auth_permission VALUES (90, 'Can view event count', 21, 'view_eventcount');
INSERT INTO public.auth_permission VALUES (91, 'Can add event count cursor', 22, 'add_eventcountcursor');
INSERT INTO public.auth_permission VALUES (92, 'Can change event count cursor', 22, 'change_eventcountcursor');
INSERT INTO public.auth_permission VALUES (93, 'Can delete event count cursor', 22, 'delete_eventcountcursor');
INSERT INTO public.auth_permission VALUES (94, 'Can view event count cursor', 22, 'view_eventcountcursor');
INSERT INTO public.auth_permission VALUES (95, 'Can add schedule', 23, 'add_schedule');
INSERT INTO public.auth_permission VALUES (96, 'Can change schedule', 23, 'change_schedule');
INSERT INTO public.auth_permission VALUES (97, 'Can delete schedule', 23, 'delete_schedule');
INSERT INTO public.auth_permission VALUES (98, 'Can view schedule', 23, 'view_schedule');
INSERT INTO public.auth_permission VALUES (99, 'Can add scheduled run', 24, 'add_scheduledrun');
INSERT INTO public.auth_permission VALUES (100, 'Can change scheduled run', 24, 'change_scheduledrun');
INSERT INTO public.auth_permission VALUES (101, 'Can delete scheduled run', 24, 'delete_scheduledrun');
INSERT INTO public.auth_permission VALUES (102, 'Can view scheduled run', 24, 'view_scheduledrun');
INSERT INTO public.auth_permission VALUES (103, 'Can add model key', 25, 'add_modelkey');
INSERT INTO public.auth_permission VALUES (104, 'Can change model key', 25, 'change_modelkey');
INSERT INTO public.auth_permission VALUES (105, 'Can delete model key', 25, 'delete_modelkey');
INSERT INTO public.auth_permission VALUES (106, 'Can view model key', 25, 'view_modelkey');
INSERT INTO public.auth_permission VALUES (107, 'Can try a model', 25, 'try_modelkey');
INSERT INTO public.auth_permission VALUES (108, 'Can add pending memory', 27, 'add_pendingmemory');
INSERT INTO public.auth_permission VALUES (109, 'Can change pending memory', 27, 'change_pendingmemory');
INSERT INTO public.auth_permission VALUES (110, 'Can delete pending memory', 27, 'delete_pendingmemory');
INSERT INTO public.auth_permission VALUES (111, 'Can view pending memory', 27, 'view_pendingmemory');
INSERT INTO public.auth_permission VALUES (112, 'Can add scope size', 28, 'add_scopesize');
INSERT INTO public.auth_permission VALUES (113, 'Can change scope size', 28, 'change_scopesize');
INSERT INTO public.auth_permission VALUES (114, 'Can delete scope size', 28, 'delete_scopesize');
INSERT INTO public.auth_permission VALUES (115, 'Can view scope size', 28, 'view_scopesize');
INSERT INTO public.auth_permission VALUES (116, 'Can add term count', 29, 'add_termcount');
INSERT INTO public.auth_permission VALUES (117, 'Can change term count', 29, 'change_termcount');
INSERT INTO public.auth_permission VALUES (118, 'Can delete term count', 29, 'delete_termcount');
INSERT INTO public.auth_permission VALUES (119, 'Can view term count', 29, 'view_termcount');
INSERT INTO public.auth_permission VALUES (120, 'Can add memory', 30, 'add_memory');
INSERT INTO public.auth_permission VALUES (121, 'Can change memory', 30, 'change_memory');
INSERT INTO public.auth_permission VALUES (122, 'Can delete memory', 30, 'delete_memory');
INSERT INTO public.auth_permission VALUES (123, 'Can view memory', 30, 'view_memory');
INSERT INTO public.auth_permission VALUES (124, 'Can approve, retract, merge and promote knowledge', 30, 'curate_memory');
INSERT INTO public.auth_permission VALUES (125, 'Can add Deposited knowledge', 31, 'add_depositedknowledge');
INSERT INTO public.auth_permission VALUES (126, 'Can change Deposited knowledge', 31, 'change_depositedknowledge');
INSERT INTO public.auth_permission VALUES (127, 'Can delete Deposited knowledge', 31, 'delete_depositedknowledge');
INSERT INTO public.auth_permission VALUES (128, 'Can view Deposited knowledge', 31, 'view_depositedknowledge');
INSERT INTO public.auth_permission VALUES (129, 'Can add memory revision', 32, 'add_memoryrevision');
INSERT INTO public.auth_permission VALUES (130, 'Can change memory revision', 32, 'change_memoryrevision');
INSERT INTO public.auth_permission VALUES (131, 'Can delete memory revision', 32, 'delete_memoryrevision');
INSERT INTO public.auth_permission VALUES (132, 'Can view memory revision', 32, 'view_memoryrevision');
INSERT INTO public.auth_permission VALUES (133, 'Can add context view', 33, 'add_contextview');
INSERT INTO public.auth_permission VALUES (134, 'Can change context view', 33, 'change_contextview');
INSERT INTO public.auth_permission VALUES (135, 'Can delete context view', 33, 'delete_contextview');
INSERT INTO public.auth_permission VALUES (136, 'Can view context view', 33, 'view_contextview');
INSERT INTO public.auth_permission VALUES (137, 'Can add segment', 34, 'add_segment');
INSERT INTO public.auth_permission VALUES (138, 'Can change segment', 34, 'change_segment');
INSERT INTO public.auth_permission VALUES (139, 'Can delete segment', 34, 'delete_segment');
INSERT INTO public.auth_permission VALUES (140, 'Can view segment', 34, 'view_segment');
INSERT INTO public.auth_permission VALUES (141, 'Can add page', 35, 'add_page');
INSERT INTO public.auth_permission VALUES (142, 'Can change page', 35, 'change_page');
INSERT INTO public.auth_permission VALUES (143, 'Can delete page', 35, 'delete_page');
INSERT INTO public.auth_permission VALUES (144, 'Can view page', 35, 'view_page');
INSERT INTO public.auth_permission VALUES (145, 'Can add embedding progress', 36, 'add_embeddingprogress');
INSERT INTO public.auth_permission VALUES (146, 'Can change embedding progress', 36, 'change_embeddingprogress');
INSERT INTO public.auth_permission VALUES (147, 'Can delete embedding progress', 36, 'delete_embeddingprogress');
INSERT INTO public.auth_permission VALUES (148, 'Can view embedding progress', 36, 'view_embeddingprogress');
INSERT INTO public.auth_permission VALUES (149, 'Can add embedding', 37, 'add_embedding');
INSERT INTO public.auth_permission VALUES (150, 'Can change embedding', 37, 'change_embedding');
INSERT INTO public.auth_permission VALUES (151, 'Can delete embedding', 37, 'delete_embedding');
INSERT INTO public.auth_permission VALUES (152, 'Can view embedding', 37, 'view_embedding');
INSERT INTO public.auth_permission VALUES (153, 'Can add departed terms', 38, 'add_departedterms');
INSERT INTO public.auth_permission VALUES (154, 'Can change departed terms', 38, 'change_departedterms');
INSERT INTO public.auth_permission VALUES (155, 'Can delete departed terms', 38, 'delete_departedterms');
INSERT INTO public.auth_permission VALUES (156, 'Can view departed terms', 38, 'view_departedterms');
INSERT INTO public.auth_permission VALUES (157, 'Can add memory', 39, 'add_remembered');
INSERT INTO public.auth_permission VALUES (158, 'Can change memory', 39, 'change_remembered');
INSERT INTO public.auth_permission VALUES (159, 'Can delete memory', 39, 'delete_remembered');
INSERT INTO public.auth_permission VALUES (160, 'Can view memory', 39, 'view_remembered');
INSERT INTO public.auth_permission VALUES (161, 'Can add text vector', 40, 'add_textvector');
INSERT INTO public.auth_permission VALUES (162, 'Can change text vector', 40, 'change_textvector');
INSERT INTO public.auth_permission VALUES (163, 'Can delete text vector', 40, 'delete_textvector');
INSERT INTO public.auth_permission VALUES (164, 'Can view text vector', 40, 'view_textvector');
INSERT INTO public.auth_permission VALUES (165, 'Can add policy version', 41, 'add_policyversion');
INSERT INTO public.auth_permission VALUES (166, 'Can change policy version', 41, 'change_policyversion');
INSERT INTO public.auth_permission VALUES (167, 'Can delete policy version', 41, 'delete_policyversion');
INSERT INTO public.auth_permission VALUES (168, 'Can view policy version', 41, 'view_policyversion');
INSERT INTO public.auth_permission VALUES (169, 'Can add capability', 42, 'add_capability');
INSERT INTO public.auth_permission VALUES (170, 'Can change capability', 42, 'change_capability');
INSERT INTO public.auth_permission VALUES (171, 'Can delete capability', 42, 'delete_capability');
INSERT INTO public.auth_permission VALUES (172, 'Can view capability', 42, 'view_capability');
INSERT INTO public.auth_permission VALUES (173, 'Can add capability rule', 43, 'add_capabilityrule');
INSERT INTO public.auth_permission VALUES (174, 'Can change capability rule', 43, 'change_capabilityrule');
INSERT INTO public.auth_permission VALUES (175, 'Can delete capability rule', 43, 'delete_capabilityrule');
INSERT INTO public.auth_permission VALUES (176, 'Can view capability rule', 43, 'view_capabilityrule');
INSERT INTO public.auth_permission VALUES (177, 'Can add grant', 44, 'add_grant');
INSERT INTO public.auth_permission VALUES (178, 'Can change grant', 44, 'change_grant');
INSERT INTO public.auth_permission VALUES (179, 'Can delete grant', 44, 'delete_grant');
INSERT INTO public.auth_permission VALUES (180, 'Can view grant', 44, 'view_grant');
INSERT INTO public.auth_permission VALUES (181, 'Can add grant use', 45, 'add_grantuse');
INSERT INTO public.auth_permission VALUES (182, 'Can change grant use', 45, 'change_grantuse');
INSERT INTO public.auth_permission VALUES (183, 'Can delete grant use', 45, 'delete_grantuse');
INSERT INTO public.auth_permission VALUES (184, 'Can view grant use', 45, 'view_grantuse');
INSERT INTO public.auth_permission VALUES (185, 'Can add tool binding', 46, 'add_toolbinding');
INSERT INTO public.auth_permission VALUES (186, 'Can change tool binding', 46, 'change_toolbinding');
INSERT INTO public.auth_permission VALUES (187, 'Can delete tool binding', 46, 'delete_toolbinding');
INSERT INTO public.auth_permission VALUES (188, 'Can view tool binding', 46, 'view_toolbinding');
INSERT INTO public.auth_permission VALUES (189, 'Can add tool declaration', 47, 'add_tooldeclaration');
INSERT INTO public.auth_permission VALUES (190, 'Can change tool declaration', 47, 'change_tooldeclaration');
INSERT INTO public.auth_permission VALUES (191, 'Can delete tool declaration', 47, 'delete_tooldeclaration');
INSERT INTO public.auth_permission VALUES (192, 'Can view tool declaration', 47, 'view_tooldeclaration');
INSERT INTO public.auth_permission VALUES (193, 'Can add outside entity', 48, 'add_outsideentity');
INSERT INTO public.auth_permission VALUES (194, 'Can change outside entity', 48, 'change_outsideentity');
INSERT INTO public.auth_permission VALUES (195, 'Can delete outside entity', 48, 'delete_outsideentity');
INSERT INTO public.auth_permission VALUES (196, 'Can view outside entity', 48, 'view_outsideentity');
INSERT INTO public.auth_permission VALUES (197, 'Can add organization', 49, 'add_organization');
INSERT INTO public.auth_permission VALUES (198, 'Can change organization', 49, 'change_organization');
INSERT INTO public.auth_permission VALUES (199, 'Can delete organization', 49, 'delete_organization');
INSERT INTO public.auth_permission VALUES (200, 'Can view organization', 49, 'view_organization');
INSERT INTO public.auth_permission VALUES (201, 'Can add agent instance', 50, 'add_agentinstance');
INSERT INTO public.auth_permission VALUES (202, 'Can change agent instance', 50, 'change_agentinstance');
INSERT INTO public.auth_permission VALUES (203, 'Can delete agent instance', 50, 'delete_agentinstance');
INSERT INTO public.auth_permission VALUES (204, 'Can view agent instance', 50, 'view_agentinstance');
INSERT INTO public.auth_permission VALUES (205, 'Can add project', 51, 'add_project');
INSERT INTO public.auth_permission VALUES (206, 'Can change project', 51, 'change_project');
INSERT INTO public.auth_permission VALUES (207, 'Can delete project', 51, 'delete_project');
INSERT INTO public.auth_permission VALUES (208, 'Can view project', 51, 'view_project');
INSERT INTO public.auth_permission VALUES (209, 'Can add group', 52, 'add_group');
INSERT INTO public.auth_permission VALUES (210, 'Can change group', 52, 'change_group');
INSERT INTO public.auth_permission VALUES (211, 'Can delete group', 52, 'delete_group');
INSERT INTO public.auth_permission VALUES (212, 'Can view group', 52, 'view_group');
INSERT INTO public.auth_permission VALUES (213, 'Can add role', 53, 'add_role');
INSERT INTO public.auth_permission VALUES (214, 'Can change role', 53, 'change_role');
INSERT INTO public.auth_permission VALUES (215, 'Can delete role', 53, 'delete_role');
INSERT INTO public.auth_permission VALUES (216, 'Can view role', 53, 'view_role');
INSERT INTO public.auth_permission VALUES (217, 'Can add group member', 54, 'add_groupmember');
INSERT INTO public.auth_permission VALUES (218, 'Can change group member', 54, 'change_groupmember');
INSERT INTO public.auth_permission VALUES (219, 'Can delete group member', 54, 'delete_groupmember');
INSERT INTO public.auth_permission VALUES (220, 'Can view group member', 54, 'view_groupmember');
INSERT INTO public.auth_permission VALUES (221, 'Can add routing example', 55, 'add_routingexample');
INSERT INTO public.auth_permission VALUES (222, 'Can change routing example', 55, 'change_routingexample');
INSERT INTO public.auth_permission VALUES (223, 'Can delete routing example', 55, 'delete_routingexample');
INSERT INTO public.auth_permission VALUES (224, 'Can view routing example', 55, 'view_routingexample');
INSERT INTO public.auth_permission VALUES (225, 'Can add token', 56, 'add_token');
INSERT INTO public.auth_permission VALUES (226, 'Can change token', 56, 'change_token');
INSERT INTO public.auth_permission VALUES (227, 'Can delete token', 56, 'delete_token');
INSERT INTO public.auth_permission VALUES (228, 'Can view token', 56, 'view_token');
INSERT INTO public.auth_permission VALUES (229, 'Can add membership', 57, 'add_membership');
INSERT INTO public.auth_permission VALUES (230, 'Can change membership', 57, 'change_membership');
INSERT INTO public.auth_permission VALUES (231, 'Can delete membership', 57, 'delete_membership');
INSERT INTO public.auth_permission VALUES (232, 'Can view membership', 57, 'view_membership');
INSERT INTO public.auth_permission VALUES (233, 'Can add member role', 58, 'add_customrole');
INSERT INTO public.auth_permission VALUES (234, 'Can change member role', 58, 'change_customrole');
INSERT INTO public.auth_permission VALUES (235, 'Can delete member role', 58, 'delete_customrole');
INSERT INTO public.auth_permission VALUES (236, 'Can view member role', 58, 'view_customrole');
INSERT INTO public.auth_permission VALUES (237, 'Can add change', 59, 'add_change');
INSERT INTO public.auth_permission VALUES (238, 'Can change change', 59, 'change_change');
INSERT INTO public.auth_permission VALUES (239, 'Can delete change', 59, 'delete_change');
INSERT INTO public.auth_permission VALUES (240, 'Can view change', 59, 'view_change');
INSERT INTO public.auth_permission VALUES (241, 'Can add log entry', 60, 'add_logentry');
INSERT INTO public.auth_permission VALUES (242, 'Can change log entry', 60, 'change_logentry');
INSERT INTO public.auth_permission VALUES (243, 'Can delete log entry', 60, 'delete_logentry');
INSERT INTO public.auth_permission VALUES (244, 'Can view log entry', 60, 'view_logentry');
INSERT INTO public.auth_permission VALUES (245, 'Can add permission', 61, 'add_permission');
INSERT INTO public.auth_permission VALUES (246, 'Can change permission', 61, 'change_permission');
INSERT INTO public.auth_permission VALUES (247, 'Can delete permission', 61, 'delete_permission');
INSERT INTO public.auth_permission VALUES (248, 'Can view permission', 61, 'view_permission');
INSERT INTO public.auth_permission VALUES (249, 'Can add group', 62, 'add_group');
INSERT INTO public.auth_permission VALUES (250, 'Can change group', 62, 'change_group');
INSERT INTO public.auth_permission VALUES (251, 'Can delete group', 62, 'delete_group');
INSERT INTO public.auth_permission VALUES (252, 'Can view group', 62, 'view_group');
INSERT INTO public.auth_permission VALUES (253, 'Can add user', 63, 'add_user');
INSERT INTO public.auth_permission VALUES (254, 'Can change user', 63, 'change_user');
INSERT INTO public.auth_permission VALUES (255, 'Can delete user', 63, 'delete_user');
INSERT INTO public.auth_permission VALUES (256, 'Can view user', 63, 'view_user');
INSERT INTO public.auth_permission VALUES (257, 'Can add content type', 64, 'add_contenttype');
INSERT INTO public.auth_permission VALUES (258, 'Can change content type', 64, 'change_contenttype');
INSERT INTO public.auth_permission VALUES (259, 'Can delete content type', 64, 'delete_contenttype');
INSERT INTO public.auth_permission VALUES (260, 'Can view content type', 64, 'view_contenttype');
INSERT INTO public.auth_permission VALUES (261, 'Can add session', 65, 'add_session');
INSERT INTO public.auth_permission VALUES (262, 'Can change session', 65, 'change_session');
INSERT INTO public.auth_permission VALUES (263, 'Can delete session', 65, 'delete_session');
INSERT INTO public.auth_permission VALUES (264, 'Can view session', 65, 'view_session');
INSERT INTO public.auth_permission VALUES (265, 'Can add Scheduled task', 66, 'add_schedule');
INSERT INTO public.auth_permission VALUES (266, 'Can change Scheduled task', 66, 'change_schedule');
INSERT INTO public.auth_permission VALUES (267, 'Can delete Scheduled task', 66, 'delete_schedule');
INSERT INTO public.auth_permission VALUES (268, 'Can view Scheduled task', 66, 'view_schedule');
INSERT INTO public.auth_permission VALUES (269, 'Can add Task', 67, 'add_task');
INSERT INTO public.auth_permission VALUES (270, 'Can change Task', 67, 'change_task');
INSERT INTO public.auth_permission VALUES (271, 'Can delete Task', 67, 'delete_task');
INSERT INTO public.auth_permission VALUES (272, 'Can view Task', 67, 'view_task');
INSERT INTO public.auth_permission VALUES (273, 'Can add Failed task', 68, 'add_failure');
INSERT INTO public.auth_permission VALUES (274, 'Can change Failed task', 68, 'change_failure');
INSERT INTO public.auth_permission VALUES (275, 'Can delete Failed task', 68, 'delete_failure');
INSERT INTO public.auth_permission VALUES (276, 'Can view Failed task', 68, 'view_failure');
INSERT INTO public.auth_permission VALUES (277, 'Can add Successful task', 69, 'add_success');
INSERT INTO public.auth_permission VALUES (278, 'Can change Successful task', 69, 'change_success');
INSERT INTO public.auth_permission VALUES (279, 'Can delete Successful task', 69, 'delete_success');
INSERT INTO public.auth_permission VALUES (280, 'Can view Successful task', 69, 'view_success');
INSERT INTO public.auth_permission VALUES (281, 'Can add Queued task', 70, 'add_ormq');
INSERT INTO public.auth_permission VALUES (282, 'Can change Queued task', 70, 'change_ormq');
INSERT INTO public.auth_permission VALUES (283, 'Can delete Queued task', 70, 'delete_ormq');
INSERT INTO public.auth_permission VALUES (284, 'Can view Queued task', 70, 'view_ormq');
INSERT INTO public.auth_user VALUES (1, '', NULL, false, 'mia', '', '', '', false, true, '2026-11-22 19:53:45.852822+00');
INSERT INTO public.auth_user VALUES (2, '', NULL, false, 'ada', '', '', '', false, true, '2026-11-22 19:53:45.858839+00');
INSERT INTO public.django_content_type VALUES (1, 'runs', 'run');
INSERT INTO public.django_content_type VALUES (2, 'runs', 'runevent');
INSERT INTO public.django_content_type VALUES (3, 'runs', 'toolcall');
INSERT INTO public.django_content_type VALUES (4, 'runs', 'approval');
INSERT INTO public.django_content_type VALUES (5, 'runs', 'wait');
INSERT INTO public.django_content_type VALUES (6, 'runs', 'approvaldecision');
INSERT INTO public.django_content_type VALUES (7, 'runs', 'queuemessage');
INSERT INTO public.django_content_type VALUES (8, 'runs', 'idempotencyrecord');
INSERT INTO public.django_content_type VALUES (9, 'runs', 'approvalnotice');
INSERT INTO public.django_content_type VALUES (10, 'runs', 'mcpserver');
INSERT INTO public.django_content_type VALUES (11, 'runs', 'mcptool');
INSERT INTO public.django_content_type VALUES (12, 'runs', 'workergroup');
INSERT INTO public.django_content_type VALUES (13, 'runs', 'webhookendpoint');
INSERT INTO public.django_content_type VALUES (14, 'runs', 'webhookdelivery');
INSERT INTO public.django_content_type VALUES (15, 'runs', 'carrier');
INSERT INTO public.django_content_type VALUES (16, 'runs', 'follower');
INSERT INTO public.django_content_type VALUES (17, 'runs', 'outboundtarget');
INSERT INTO public.django_content_type VALUES (18, 'runs', 'outboundcall');
INSERT INTO public.django_content_type VALUES (19, 'runs', 'conversation');
INSERT INTO public.django_content_type VALUES (20, 'runs', 'rating');
INSERT INTO public.django_content_type VALUES (21, 'runs', 'eventcount');
INSERT INTO public.django_content_type VALUES (22, 'runs', 'eventcountcursor');
INSERT INTO public.django_content_type VALUES (23, 'runs', 'schedule');
INSERT INTO public.django_content_type VALUES (24, 'runs', 'scheduledrun');
INSERT INTO public.django_content_type VALUES (25, 'runs', 'modelkey');
INSERT INTO public.django_content_type VALUES (26, 'runs', 'triedmodel');
INSERT INTO public.django_content_type VALUES (27, 'memory', 'pendingmemory');
INSERT INTO public.django_content_type VALUES (28, 'memory', 'scopesize');
INSERT INTO public.django_content_type VALUES (29, 'memory', 'termcount');
INSERT INTO public.django_content_type VALUES (30, 'memory', 'memory');
INSERT INTO public.django_content_type VALUES (31, 'memory', 'depositedknowledge');
INSERT INTO public.django_content_type VALUES (32, 'memory', 'memoryrevision');
INSERT INTO public.django_content_type VALUES (33, 'memory', 'contextview');
INSERT INTO public.django_content_type VALUES (34, 'memory', 'segment');
INSERT INTO public.django_content_type VALUES (35, 'memory', 'page');
INSERT INTO public.django_content_type VALUES (36, 'memory', 'embeddingprogress');
INSERT INTO public.django_content_type VALUES (37, 'memory', 'embedding');
INSERT INTO public.django_content_type VALUES (38, 'memory', 'departedterms');
INSERT INTO public.django_content_type VALUES (39, 'memory', 'remembered');
INSERT INTO public.django_content_type VALUES (40, 'memory', 'textvector');
INSERT INTO public.django_content_type VALUES (41, 'policy', 'policyversion');
INSERT INTO public.django_content_type VALUES (42, 'policy', 'capability');
INSERT INTO public.django_content_type VALUES (43, 'policy', 'capabilityrule');
INSERT INTO public.django_content_type VALUES (44, 'policy', 'grant');
INSERT INTO public.django_content_type VALUES (45, 'policy', 'grantuse');
INSERT INTO public.django_content_type VALUES (46, 'policy', 'toolbinding');
INSERT INTO public.django_content_type VALUES (47, 'policy', 'tooldeclaration');
INSERT INTO public.django_content_type VALUES (48, 'policy', 'outsideentity');
INSERT INTO public.django_content_type VALUES (49, 'groups', 'organization');
INSERT INTO public.django_content_type VALUES (50, 'groups', 'agentinstance');
INSERT INTO public.django_content_type VALUES (51, 'groups', 'project');
INSERT INTO public.django_content_type VALUES (52, 'groups', 'group');
INSERT INTO public.django_content_type VALUES (53, 'groups', 'role');
INSERT INTO public.django_content_type VALUES (54, 'groups', 'groupmember');
INSERT INTO public.django_content_type VALUES (55, 'groups', 'routingexample');
INSERT INTO public.django_content_type VALUES (56, 'groups', 'token');
INSERT INTO public.django_content_type VALUES (57, 'groups', 'membership');
INSERT INTO public.django_content_type VALUES (58, 'groups', 'customrole');
INSERT INTO public.django_content_type VALUES (59, 'groups', 'change');
INSERT INTO public.django_content_type VALUES (60, 'admin', 'logentry');
INSERT INTO public.django_content_type VALUES (61, 'auth', 'permission');
INSERT INTO public.django_content_type VALUES (62, 'auth', 'group');
INSERT INTO public.django_content_type VALUES (63, 'auth', 'user');
INSERT INTO public.django_content_type VALUES (64, 'contenttypes', 'contenttype');
INSERT INTO public.django_content_type VALUES (65, 'sessions', 'session');
INSERT INTO public.django_content_type VALUES (66, 'django_q', 'schedule');
INSERT INTO public.django_content_type VALUES (67, 'django_q', 'task');
INSERT INTO public.django_content_type VALUES (68, 'django_q', 'failure');
INSERT INTO public.django_content_type VALUES (69, 'django_q', 'success');
INSERT INTO public.django_content_type VALUES (70, 'django_q', 'ormq');
INSERT INTO public.django_migrations VALUES (1, 'contenttypes', '0001_initial', '2026-11-22 19:53:36.906997+00');
INSERT INTO public.django_migrations VALUES (2, 'auth', '0001_initial', '2026-11-22 19:53:36.984618+00');
INSERT INTO public.django_migrations VALUES (3, 'admin', '0001_initial', '2026-11-22 19:53:37.004225+00');
INSERT INTO public.django_migrations VALUES (4, 'admin', '0002_logentry_remove_auto_add', '2026-11-22 19:53:37.011344+00');
INSERT INTO public.django_migrations VALUES (5, 'admin', '0003_logentry_add_action_flag_choices', '2026-11-22 19:53:37.0195+00');
INSERT INTO public.django_migrations VALUES (6, 'contenttypes', '0002_remove_content_type_name', '2026-11-22 19:53:37.124001+00');
INSERT INTO public.django_migrations VALUES (7, 'auth', '0002_alter_permission_name_max_length', '2026-11-22 19:53:37.129071+00');
INSERT INTO public.django_migrations VALUES (8, 'auth', '0003_alter_user_email_max_length', '2026-11-22 19:53:37.133553+00');
INSERT INTO public.django_migrations VALUES (9, 'auth', '0004_alter_user_username_opts', '2026-11-22 19:53:37.137981+00');
INSERT INTO public.django_migrations VALUES (10, 'auth', '0005_alter_user_last_login_null', '2026-11-22 19:53:37.142441+00');
INSERT INTO public.django_migrations VALUES (11, 'auth', '0006_require_contenttypes_0002', '2026-11-22 19:53:37.14293+00');
INSERT INTO public.django_migrations VALUES (12, 'auth', '0007_alter_validators_add_error_messages', '2026-11-22 19:53:37.146554+00');
INSERT INTO public.django_migrations VALUES (13, 'auth', '0008_alter_user_username_max_length', '2026-11-22 19:53:37.152893+00');
INSERT INTO public.django_migrations VALUES (14, 'auth', '0009_alter_user_last_name_max_length', '2026-11-22 19:53:37.157701+00');
INSERT INTO public.django_migrations VALUES (15, 'auth', '0010_alter_group_name_max_length', '2026-11-22 19:53:37.163993+00');
INSERT INTO public.django_migrations VALUES (16, 'auth', '0011_update_proxy_permissions', '2026-11-22 19:53:37.167438+00');
INSERT INTO public.django_migrations VALUES (17, 'auth', '0012_alter_user_first_name_max_length', '2026-11-22 19:53:37.171557+00');
INSERT INTO public.django_migrations VALUES (18, 'django_q', '0001_initial', '2026-11-22 19:53:37.181542+00');
INSERT INTO public.django_migrations VALUES (19, 'django_q', '0002_auto_20150630_1624', '2026-11-22 19:53:37.184945+00');
INSERT INTO public.django_migrations VALUES (20, 'django_q', '0003_auto_20150708_1326', '2026-11-22 19:53:37.192285+00');
INSERT INTO public.django_migrations VALUES (21, 'django_q', '0004_auto_20150710_1043', '2026-11-22 19:53:37.194351+00');
INSERT INTO public.django_migrations VALUES (22, 'django_q', '0005_auto_20150718_1506', '2026-11-22 19:53:37.197002+00');
INSERT INTO public.django_migrations VALUES (23, 'django_q', '0006_auto_20150805_1817', '2026-11-22 19:53:37.199218+00');
INSERT INTO public.django_migrations VALUES (24, 'django_q', '0007_ormq', '2026-11-22 19:53:37.204009+00');
INSERT INTO public.django_migrations VALUES (25, 'django_q', '0008_auto_20160224_1026', '2026-11-22 19:53:37.205279+00');
INSERT INTO public.django_migrations VALUES (26, 'django_q', '0009_auto_20171009_0915', '2026-11-22 19:53:37.209965+00');
INSERT INTO public.django_migrations VALUES (27, 'django_q', '0010_auto_20200610_0856', '2026-11-22 19:53:37.214913+00');
INSERT INTO public.django_migrations VALUES (28, 'django_q', '0011_auto_20200628_1055', '2026-11-22 19:53:37.217508+00');
INSERT INTO public.django_migrations VALUES (29, 'django_q', '0012_auto_20200702_1608', '2026-11-22 19:53:37.21867+00');
INSERT INTO public.django_migrations VALUES (30, 'django_q', '0013_task_attempt_count', '2026-11-22 19:53:37.221176+00');
INSERT INTO public.django_migrations VALUES (31, 'django_q', '0014_schedule_cluster', '2026-11-22 19:53:37.222878+00');
INSERT INTO public.django_migrations VALUES (32, 'django_q', '0015_alter_schedule_schedule_type', '2026-11-22 19:53:37.224716+00');
INSERT INTO public.django_migrations VALUES (33, 'django_q', '0016_schedule_intended_date_kwarg', '2026-11-22 19:53:37.226253+00');
INSERT INTO public.django_migrations VALUES (34, 'django_q', '0017_task_cluster_alter', '2026-11-22 19:53:37.23133+00');
INSERT INTO public.django_migrations VALUES (35, 'django_q', '0018_task_success_index', '2026-11-22 19:53:37.23466+00');
INSERT INTO public.django_migrations VALUES (36, 'django_q', '0019_alter_task_options_alter_ormq_key_alter_ormq_lock_and_more', '2026-11-22 19:53:37.264674+00');
INSERT INTO public.django_migrations VALUES (37, 'groups', '0001_initial', '2026-11-22 19:53:37.525063+00');
INSERT INTO public.django_migrations VALUES (38, 'groups', '0002_catalog_version', '2026-11-22 19:53:37.527818+00');
INSERT INTO public.django_migrations VALUES (39, 'groups', '0003_token_scopes', '2026-11-22 19:53:37.542142+00');
INSERT INTO public.django_migrations VALUES (40, 'groups', '0004_throttle', '2026-11-22 19:53:37.548819+00');
INSERT INTO public.django_migrations VALUES (41, 'groups', '0005_queue_limit', '2026-11-22 19:53:37.556563+00');
INSERT INTO public.django_migrations VALUES (42, 'groups', '0006_no_pattern_indexes', '2026-11-22 19:53:37.55967+00');
INSERT INTO public.django_migrations VALUES (43, 'groups', '0007_approval_profile', '2026-11-22 19:53:37.575323+00');
INSERT INTO public.django_migrations VALUES (44, 'groups', '0008_retention', '2026-11-22 19:53:37.581978+00');
INSERT INTO public.django_migrations VALUES (45, 'groups', '0009_member_roles', '2026-11-22 19:53:37.652803+00');
INSERT INTO public.django_migrations VALUES (46, 'groups', '0010_roles_of_members', '2026-11-22 19:53:37.683469+00');
INSERT INTO public.django_migrations VALUES (47, 'groups', '0011_seats', '2026-11-22 19:53:37.714391+00');
INSERT INTO public.django_migrations VALUES (48, 'groups', '0012_changes', '2026-11-22 19:53:37.736965+00');
INSERT INTO public.django_migrations VALUES (49, 'groups', '0013_not_known_yet', '2026-11-22 19:53:37.759749+00');
INSERT INTO public.django_migrations VALUES (50, 'memory', '0001_memory', '2026-11-22 19:53:38.222922+00');
INSERT INTO public.django_migrations VALUES (51, 'memory', '0002_memory_rules', '2026-11-22 19:53:38.23436+00');
INSERT INTO public.django_migrations VALUES (52, 'memory', '0003_context', '2026-11-22 19:53:38.476641+00');
INSERT INTO public.django_migrations VALUES (53, 'memory', '0004_embeddings', '2026-11-22 19:53:38.537197+00');
INSERT INTO public.django_migrations VALUES (54, 'memory', '0005_counted_exactly', '2026-11-22 19:53:38.555199+00');
INSERT INTO public.django_migrations VALUES (55, 'memory', '0006_no_pattern_indexes', '2026-11-22 19:53:38.560515+00');
INSERT INTO public.django_migrations VALUES (56, 'memory', '0007_remembered', '2026-11-22 19:53:38.562221+00');
INSERT INTO public.django_migrations VALUES (57, 'memory', '0008_search_on_the_server', '2026-11-22 19:53:38.565443+00');
INSERT INTO public.django_migrations VALUES (58, 'memory', '0009_weighed_by_length', '2026-11-22 19:53:38.585158+00');
INSERT INTO public.django_migrations VALUES (59, 'memory', '0010_text_vectors', '2026-11-22 19:53:38.592086+00');
INSERT INTO public.django_migrations VALUES (60, 'policy', '0001_initial', '2026-11-22 19:53:39.035805+00');
INSERT INTO public.django_migrations VALUES (61, 'policy', '0002_policy_version', '2026-11-22 19:53:39.037769+00');
INSERT INTO public.django_migrations VALUES (62, 'policy', '0003_tool_declaration', '2026-11-22 19:53:39.069954+00');
INSERT INTO public.django_migrations VALUES (63, 'policy', '0004_rule_deciders', '2026-11-22 19:53:39.086344+00');
INSERT INTO public.django_migrations VALUES (64, 'policy', '0005_in_use_stays', '2026-11-22 19:53:39.161175+00');
INSERT INTO public.django_migrations VALUES (65, 'policy', '0006_not_known_yet', '2026-11-22 19:53:39.196157+00');
INSERT INTO public.django_migrations VALUES (66, 'policy', '0007_outside_entity', '2026-11-22 19:53:39.228846+00');
INSERT INTO public.django_migrations VALUES (67, 'runs', '0001_initial', '2026-11-22 19:53:40.538282+00');
INSERT INTO public.django_migrations VALUES (68, 'runs', '0002_queuemessage', '2026-11-22 19:53:40.548104+00');
INSERT INTO public.django_migrations VALUES (69, 'runs', '0003_idempotency', '2026-11-22 19:53:40.647198+00');
INSERT INTO public.django_migrations VALUES (70, 'runs', '0004_approvalnotice', '2026-11-22 19:53:41.096435+00');
INSERT INTO public.django_migrations VALUES (71, 'runs', '0005_external_calls', '2026-11-22 19:53:41.263527+00');
INSERT INTO public.django_migrations VALUES (72, 'runs', '0006_queued_runs', '2026-11-22 19:53:41.300856+00');
INSERT INTO public.django_migrations VALUES (73, 'runs', '0007_idempotency_by_time', '2026-11-22 19:53:41.366141+00');
INSERT INTO public.django_migrations VALUES (74, 'runs', '0008_mcp_servers', '2026-11-22 19:53:42.083887+00');
INSERT INTO public.django_migrations VALUES (75, 'runs', '0009_operations', '2026-11-22 19:53:42.098165+00');
INSERT INTO public.django_migrations VALUES (76, 'runs', '0010_lean_log', '2026-11-22 19:53:42.400733+00');
INSERT INTO public.django_migrations VALUES (77, 'runs', '0011_webhooks', '2026-11-22 19:53:42.81664+00');
INSERT INTO public.django_migrations VALUES (78, 'runs', '0012_pruned', '2026-11-22 19:53:42.848616+00');
INSERT INTO public.django_migrations VALUES (79, 'runs', '0013_one_key_a_call', '2026-11-22 19:53:42.886665+00');
INSERT INTO public.django_migrations VALUES (80, 'runs', '0014_turns_and_notices', '2026-11-22 19:53:43.079539+00');
INSERT INTO public.django_migrations VALUES (81, 'runs', '0015_outbound', '2026-11-22 19:53:43.141542+00');
INSERT INTO public.django_migrations VALUES (82, 'runs', '0016_decisions_by_actors', '2026-11-22 19:53:43.806685+00');
INSERT INTO public.django_migrations VALUES (83, 'runs', '0017_seats', '2026-11-22 19:53:43.873869+00');
INSERT INTO public.django_migrations VALUES (84, 'runs', '0018_conversations', '2026-11-22 19:53:44.465753+00');
INSERT INTO public.django_migrations VALUES (85, 'runs', '0019_signal_waits', '2026-11-22 19:53:44.54223+00');
INSERT INTO public.django_migrations VALUES (86, 'runs', '0020_event_counts', '2026-11-22 19:53:44.664571+00');
INSERT INTO public.django_migrations VALUES (87, 'runs', '0021_webhook_sender', '2026-11-22 19:53:44.999815+00');
INSERT INTO public.django_migrations VALUES (88, 'runs', '0022_schedules', '2026-11-22 19:53:45.372643+00');
INSERT INTO public.django_migrations VALUES (89, 'runs', '0023_model_keys', '2026-11-22 19:53:45.746906+00');
INSERT INTO public.django_migrations VALUES (90, 'sessions', '0001_initial', '2026-11-22 19:53:45.754858+00');
INSERT INTO public.groups_agentinstance VALUES ('2026-11-22 19:53:45.875848+00', 'agt_01m82d4r4kf4sbtp2fa8ff8f19', 'lead', '{}', NULL, 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'rol_01m82d4r4fezeaj1f6wn42b5v7');
INSERT INTO public.groups_agentinstance VALUES ('2026-11-22 19:53:45.892282+00', 'agt_01m82d4r54e47b1t61ectv0660', 'mia''s agent', '{}', 1, 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'rol_01m82d4r50fnna3byk44579sn0');
INSERT INTO public.groups_change VALUES ('2026-11-22 19:53:45.849199+00', 'chg_01m82d4r3rfknth0s8sbhraw3f', '', 'system', '', 'added', 'groups.organization', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'Org0', '{}', '{"id": "org_01m82d4r3qecd9v5xp4ws9sfx7", "name": "Org0", "slug": "org0", "queue_limit": null, "retention_days": null}', 'org_01m82d4r3qecd9v5xp4ws9sfx7', NULL);
INSERT INTO public.groups_change VALUES ('2026-11-22 19:53:45.852077+00', 'chg_01m82d4r3vfhfakjs9wkbbyw2n', '', 'system', '', 'added', 'groups.project', 'prj_01m82d4r3te49atwh2zqdmgzj3', 'Project0', '{}', '{"id": "prj_01m82d4r3te49atwh2zqdmgzj3", "name": "Project0", "slug": "project0", "organization_id": "org_01m82d4r3qecd9v5xp4ws9sfx7", "review_deposits": false, "approval_profile": "off", "allow_self_approval": false}', 'org_01m82d4r3qecd9v5xp4ws9sfx7', NULL);
INSERT INTO public.groups_change VALUES ('2026-11-22 19:53:45.855828+00', 'chg_01m82d4r3zensvg2eenqsf72z1', '', 'system', '', 'added', 'auth.user', '1', 'mia', '{}', '{"id": 1, "email": "", "is_staff": false, "password": "", "username": "mia", "is_active": true, "last_name": "", "first_name": "", "is_superuser": false}', NULL, NULL);
INSERT INTO public.groups_change VALUES ('2026-11-22 19:53:45.858447+00', 'chg_01m82d4r42eaqram1q8wykg3rv', '', 'system', '', 'added', 'groups.membership', 'mbr_01m82d4r40eky8zsf4e4yzx36p', 'mia in Org0', '{}', '{"id": "mbr_01m82d4r40eky8zsf4e4yzx36p", "kind": "human", "role": "member", "active": true, "user_id": 1, "projects": null, "denied_tools": [], "allowed_tools": null, "not_known_yet": false, "custom_role_id": null, "organization_id": "org_01m82d4r3qecd9v5xp4ws9sfx7"}', 'org_01m82d4r3qecd9v5xp4ws9sfx7', NULL);
INSERT INTO public.groups_change VALUES ('2026-11-22 19:53:45.8609+00', 'chg_01m82d4r44et2ashft1ye2b228', '', 'system', '', 'added', 'auth.user', '2', 'ada', '{}', '{"id": 2, "email": "", "is_staff": false, "password": "", "username": "ada", "is_active": true, "last_name": "", "first_name": "", "is_superuser": false}', NULL, NULL);
INSERT INTO public.groups_change VALUES ('2026-11-22 19:53:45.86547+00', 'chg_01m82d4r49e4z9b9egjmtmjdhm', '', 'system', '', 'added', 'groups.membership', 'mbr_01m82d4r45en7tn1mcbefbdt89', 'ada in Org0', '{}', '{"id": "mbr_01m82d4r45en7tn1mcbefbdt89", "kind": "human", "role": "member", "active": true, "user_id": 2, "projects": null, "denied_tools": [], "allowed_tools": null, "not_known_yet": false, "custom_role_id": null, "organization_id": "org_01m82d4r3qecd9v5xp4ws9sfx7"}', 'org_01m82d4r3qecd9v5xp4ws9sfx7', NULL);
INSERT INTO public.groups_change VALUES ('2026-11-22 19:53:45.870907+00', 'chg_01m82d4r4ef18ba730mq5tgzge', '', 'system', '', 'added', 'groups.group', 'grp_01m82d4r4ae3k8fyvp1v7tjcev', 'group0', '{}', '{"id": "grp_01m82d4r4ae3k8fyvp1v7tjcev", "name": "group0", "active": true, "max_rounds": 1, "project_id": "prj_01m82d4r3te49atwh2zqdmgzj3", "description": "", "capabilities": [], "organization_id": "org_01m82d4r3qecd9v5xp4ws9sfx7"}', 'org_01m82d4r3qecd9v5xp4ws9sfx7', NULL);
INSERT INTO public.groups_change VALUES ('2026-11-22 19:53:45.874925+00', 'chg_01m82d4r4jf86bwg2fpk72qaw5', '', 'system', '', 'added', 'groups.role', 'rol_01m82d4r4fezeaj1f6wn42b5v7', 'lead', '{}', '{"id": "rol_01m82d4r4fezeaj1f6wn42b5v7", "name": "lead", "model": "", "description": "", "denied_tools": [], "allowed_tools": null, "not_known_yet": false, "system_prompt": "", "delegable_tools": null, "organization_id": "org_01m82d4r3qecd9v5xp4ws9sfx7"}', 'org_01m82d4r3qecd9v5xp4ws9sfx7', NULL);
INSERT INTO public.groups_change VALUES ('2026-11-22 19:53:45.877565+00', 'chg_01m82d4r4neka9j9c05vnsmdzx', '', 'system', '', 'added', 'groups.agentinstance', 'agt_01m82d4r4kf4sbtp2fa8ff8f19', 'lead', '{}', '{"id": "agt_01m82d4r4kf4sbtp2fa8ff8f19", "name": "lead", "role_id": "rol_01m82d4r4fezeaj1f6wn42b5v7", "user_id": null, "preferences": {}, "organization_id": "org_01m82d4r3qecd9v5xp4ws9sfx7"}', 'org_01m82d4r3qecd9v5xp4ws9sfx7', NULL);
INSERT INTO public.groups_change VALUES ('2026-11-22 19:53:45.881361+00', 'chg_01m82d4r4se2krennw818p9mym', '', 'system', '', 'added', 'groups.groupmember', 'gmb_01m82d4r4pe6jvtngwc3h5ks3t', 'lead of group0', '{}', '{"id": "gmb_01m82d4r4pe6jvtngwc3h5ks3t", "is_lead": true, "ordinal": 0, "role_id": "rol_01m82d4r4fezeaj1f6wn42b5v7", "group_id": "grp_01m82d4r4ae3k8fyvp1v7tjcev", "organization_id": "org_01m82d4r3qecd9v5xp4ws9sfx7", "agent_instance_id": "agt_01m82d4r4kf4sbtp2fa8ff8f19"}', 'org_01m82d4r3qecd9v5xp4ws9sfx7', NULL);
INSERT INTO public.groups_change VALUES ('2026-11-22 19:53:45.890538+00', 'chg_01m82d4r52ehc9fc4hwp7n08re', '', 'system', '', 'added', 'groups.role', 'rol_01m82d4r50fnna3byk44579sn0', 'Personal agent', '{}', '{"id": "rol_01m82d4r50fnna3byk44579sn0", "name": "Personal agent", "model": "", "description": "A person''s own agent", "denied_tools": [], "allowed_tools": null, "not_known_yet": false, "system_prompt": "", "delegable_tools": null, "organization_id": "org_01m82d4r3qecd9v5xp4ws9sfx7"}', 'org_01m82d4r3qecd9v5xp4ws9sfx7', NULL);
INSERT INTO public.groups_change VALUES ('2026-11-22 19:53:45.893434+00', 'chg_01m82d4r55edfv73j98vk2wwgk', '', 'system', '', 'added', 'groups.agentinstance', 'agt_01m82d4r54e47b1t61ectv0660', 'mia''s agent', '{}', '{"id": "agt_01m82d4r54e47b1t61ectv0660", "name": "mia''s agent", "role_id": "rol_01m82d4r50fnna3byk44579sn0", "user_id": 1, "preferences": {}, "organization_id": "org_01m82d4r3qecd9v5xp4ws9sfx7"}', 'org_01m82d4r3qecd9v5xp4ws9sfx7', NULL);
INSERT INTO public.groups_group VALUES ('2026-11-22 19:53:45.866546+00', 'grp_01m82d4r4ae3k8fyvp1v7tjcev', 'group0', '', '{}', 1, true, 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'prj_01m82d4r3te49atwh2zqdmgzj3');
INSERT INTO public.groups_groupmember VALUES ('gmb_01m82d4r4pe6jvtngwc3h5ks3t', 0, true, 'agt_01m82d4r4kf4sbtp2fa8ff8f19', 'grp_01m82d4r4ae3k8fyvp1v7tjcev', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'rol_01m82d4r4fezeaj1f6wn42b5v7');
INSERT INTO public.groups_membership VALUES ('2026-11-22 19:53:45.856676+00', 'mbr_01m82d4r40eky8zsf4e4yzx36p', 'human', true, NULL, NULL, '{}', 1, 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'member', NULL, false);
INSERT INTO public.groups_membership VALUES ('2026-11-22 19:53:45.861745+00', 'mbr_01m82d4r45en7tn1mcbefbdt89', 'human', true, NULL, NULL, '{}', 2, 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'member', NULL, false);
INSERT INTO public.groups_organization VALUES ('2026-11-22 19:53:45.847548+00', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'org0', 'Org0', NULL, NULL);
INSERT INTO public.groups_project VALUES ('2026-11-22 19:53:45.850339+00', 'prj_01m82d4r3te49atwh2zqdmgzj3', 'project0', 'Project0', false, false, 2, 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'off');
INSERT INTO public.groups_role VALUES ('2026-11-22 19:53:45.871837+00', 'rol_01m82d4r4fezeaj1f6wn42b5v7', 'lead', '', '', NULL, '{}', NULL, '', 'org_01m82d4r3qecd9v5xp4ws9sfx7', false);
INSERT INTO public.groups_role VALUES ('2026-11-22 19:53:45.889143+00', 'rol_01m82d4r50fnna3byk44579sn0', 'Personal agent', 'A person''s own agent', '', NULL, '{}', NULL, '', 'org_01m82d4r3qecd9v5xp4ws9sfx7', false);
INSERT INTO public.memory_memory VALUES ('2026-11-22 19:53:46.026523+00', 'mem_01m82d4r99ety9bjjz3kqfvmv1', 'episodic', 'Goal: brief
Outcome: DECISION: yes', '{"source": "run_outcome", "source_run_id": "run_01m82d4r69e07a9q51qt7wb25s"}', 0.5, 'active', 'run_01m82d4r69e07a9q51qt7wb25s', 'output', NULL, DEFAULT, '''brief'':1 ''decis'':1 ''goal'':1 ''outcom'':1 ''yes'':1', 5, NULL, NULL, 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'prj_01m82d4r3te49atwh2zqdmgzj3', NULL, 1);
INSERT INTO public.memory_pendingmemory VALUES ('mem_01m82d4r99ety9bjjz3kqfvmv1', 'fe6a1862-b344-176d-f594-ea07476d0819');
INSERT INTO public.policy_policyversion VALUES ('org_01m82d4r3qecd9v5xp4ws9sfx7', 2);
INSERT INTO public.runs_approval VALUES ('apr_01m82d4r8yexy9qwwstmrmqrn0', '', 'require_approval', 'risk_default', 'Tool ''send_email'' requires approval: its risk is high', 'b80b6fcaedfb28792adfa27058f6d9861191108fb12ddaa1cd169558700392d0', 'cap-approval-941b9b30c5025c12d1f0aacf3843bd2eb7435e76585ae0052567422f19d908c5', 'pending', '2026-11-22 19:53:46.012458+00', '2100-01-01 00:00:00+00', NULL, NULL, false, '', NULL, 1, 'fail_call', NULL, 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r8qe8eb03ysbctw90gz', 'tcl_01m82d4r8yet78cvdx79ybt3rc', '[]', NULL, NULL);
INSERT INTO public.runs_approval VALUES ('apr_01m82d4r9sfcqb4gt0qhavkr9z', '', 'require_approval', 'risk_default', 'Tool ''send_email'' requires approval: its risk is high', 'b80b6fcaedfb28792adfa27058f6d9861191108fb12ddaa1cd169558700392d0', 'cap-approval-50ed2951f9b5da763e9fe196db378a697517c75a05707f4faa921345341c3420', 'pending', '2026-11-22 19:53:46.039499+00', '2100-01-01 00:00:00+00', NULL, NULL, false, '', NULL, 1, 'fail_call', NULL, 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r9hegk8qf832bvc30jq', 'tcl_01m82d4r9sefftq5kkkmrcwwca', '[]', NULL, NULL);
INSERT INTO public.runs_run VALUES ('2026-11-22 19:53:45.957386+00', 'run_01m82d4r75fc1sv68d867h0pzw', 0, 'personal', 'internal', '', 'brief', 'grp_01m82d4r4ae3k8fyvp1v7tjcev', 'pending', NULL, NULL, NULL, NULL, '{"depth": 5, "steps": 25, "tokens": 200000, "children": 20}', '{}', '2100-01-01 00:00:00+00', 0, 0, NULL, 2, '129f85cbab78e7b6f7ecca618a0fb5a41f30e9135e414e2ceca45beb2ab3b371', '2026-11-22 19:53:45.957386+00', NULL, NULL, 'agt_01m82d4r54e47b1t61ectv0660', NULL, 'org_01m82d4r3qecd9v5xp4ws9sfx7', NULL, 'prj_01m82d4r3te49atwh2zqdmgzj3', 'rol_01m82d4r50fnna3byk44579sn0', 'run_01m82d4r75fc1sv68d867h0pzw', 1, NULL);
INSERT INTO public.runs_run VALUES ('2026-11-22 19:53:45.887001+00', 'run_01m82d4r57ekjsevbxfkkksmrq', 0, 'personal', 'internal', '', 'asks', 'grp_01m82d4r4ae3k8fyvp1v7tjcev', 'waiting', 'child', NULL, NULL, NULL, '{"depth": 5, "steps": 25, "tokens": 200000, "children": 20}', '{"steps": 1, "tokens": 15, "children": 0}', '2100-01-01 00:00:00+00', 1, 0, NULL, 7, 'ce888494b2e919047b8196fcea74f849ab7f380caca005ba0de7118aae008124', '2026-11-22 19:53:45.887001+00', '2026-11-22 19:53:45.959756+00', NULL, 'agt_01m82d4r54e47b1t61ectv0660', NULL, 'org_01m82d4r3qecd9v5xp4ws9sfx7', NULL, 'prj_01m82d4r3te49atwh2zqdmgzj3', 'rol_01m82d4r50fnna3byk44579sn0', 'run_01m82d4r57ekjsevbxfkkksmrq', 1, NULL);
INSERT INTO public.runs_run VALUES ('2026-11-22 19:53:45.984162+00', 'run_01m82d4r82egsb3wcr842rkf9z', 1, 'group', 'internal', '', 'asks', '', 'waiting', 'input', NULL, NULL, '{"denied_tools": [], "allowed_tools": null, "vouched_tools": []}', '{"depth": 5, "steps": 25, "tokens": 199985, "children": 20}', '{"steps": 1, "tokens": 15, "children": 0}', '2100-01-01 00:00:00+00', 1, 0, NULL, 7, '38fddf0b7f6c166c350e41ac06b7c76879d6be8e1bd6d43057758e710e66e20c', '2026-11-22 19:53:45.984162+00', '2026-11-22 19:53:45.984162+00', NULL, NULL, 'grp_01m82d4r4ae3k8fyvp1v7tjcev', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r57ekjsevbxfkkksmrq', 'prj_01m82d4r3te49atwh2zqdmgzj3', NULL, 'run_01m82d4r57ekjsevbxfkkksmrq', 1, NULL);
INSERT INTO public.runs_run VALUES ('2026-11-22 19:53:45.907306+00', 'run_01m82d4r5kfckt59hej3z68a4y', 0, 'personal', 'internal', '', 'mails', 'grp_01m82d4r4ae3k8fyvp1v7tjcev', 'waiting', 'child', NULL, NULL, NULL, '{"depth": 5, "steps": 25, "tokens": 200000, "children": 20}', '{"steps": 1, "tokens": 15, "children": 0}', '2100-01-01 00:00:00+00', 1, 0, NULL, 7, 'dadb14b5e9658bacaa0dab61fabf3e8ef4a2213026d2bcec9d7bdcaf60d839bf', '2026-11-22 19:53:45.907306+00', '2026-11-22 19:53:45.998768+00', NULL, 'agt_01m82d4r54e47b1t61ectv0660', NULL, 'org_01m82d4r3qecd9v5xp4ws9sfx7', NULL, 'prj_01m82d4r3te49atwh2zqdmgzj3', 'rol_01m82d4r50fnna3byk44579sn0', 'run_01m82d4r5kfckt59hej3z68a4y', 1, NULL);
INSERT INTO public.runs_run VALUES ('2026-11-22 19:53:46.005659+00', 'run_01m82d4r8qe8eb03ysbctw90gz', 1, 'group', 'internal', '', 'mails', '', 'waiting', 'approval', NULL, NULL, '{"denied_tools": [], "allowed_tools": null, "vouched_tools": []}', '{"depth": 5, "steps": 25, "tokens": 199985, "children": 20}', '{"steps": 1, "tokens": 15, "children": 0}', '2100-01-01 00:00:00+00', 1, 0, NULL, 6, 'c06f5fd9bb71751e45b1049c629b6794eab8c995c56911ec92dd55b43513c475', '2026-11-22 19:53:46.005659+00', '2026-11-22 19:53:46.005659+00', NULL, NULL, 'grp_01m82d4r4ae3k8fyvp1v7tjcev', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r5kfckt59hej3z68a4y', 'prj_01m82d4r3te49atwh2zqdmgzj3', NULL, 'run_01m82d4r5kfckt59hej3z68a4y', 1, NULL);
INSERT INTO public.runs_run VALUES ('2026-11-22 19:53:45.928211+00', 'run_01m82d4r69e07a9q51qt7wb25s', 0, 'personal', 'internal', '', 'brief', 'grp_01m82d4r4ae3k8fyvp1v7tjcev', 'completed', NULL, 'DECISION: yes', NULL, NULL, '{"depth": 5, "steps": 25, "tokens": 200000, "children": 20}', '{"steps": 1, "tokens": 15, "children": 0}', '2100-01-01 00:00:00+00', 1, 0, NULL, 5, 'a9d7dd39ff51fe3522f1831e7a249242a87592aad208d59c29e8f312c2f619cf', '2026-11-22 19:53:45.928211+00', '2026-11-22 19:53:46.018614+00', '2026-11-22 19:53:46.024746+00', 'agt_01m82d4r54e47b1t61ectv0660', NULL, 'org_01m82d4r3qecd9v5xp4ws9sfx7', NULL, 'prj_01m82d4r3te49atwh2zqdmgzj3', 'rol_01m82d4r50fnna3byk44579sn0', 'run_01m82d4r69e07a9q51qt7wb25s', 1, NULL);
INSERT INTO public.runs_run VALUES ('2026-11-22 19:53:45.935617+00', 'run_01m82d4r6ffp1920pje93cb960', 0, 'personal', 'internal', '', 'brief', 'grp_01m82d4r4ae3k8fyvp1v7tjcev', 'running', NULL, NULL, NULL, NULL, '{"depth": 5, "steps": 25, "tokens": 200000, "children": 20}', '{}', '2100-01-01 00:00:00+00', 1, 0, '2026-11-22 19:53:56.029194+00', 3, '139998770a8aedd592e373ee0fac7e21dbe8d02fc2c23a5daa5dea1260520d66', '2026-11-22 19:53:45.935617+00', '2026-11-22 19:53:46.029194+00', NULL, 'agt_01m82d4r54e47b1t61ectv0660', NULL, 'org_01m82d4r3qecd9v5xp4ws9sfx7', NULL, 'prj_01m82d4r3te49atwh2zqdmgzj3', 'rol_01m82d4r50fnna3byk44579sn0', 'run_01m82d4r6ffp1920pje93cb960', 1, NULL);
INSERT INTO public.runs_run VALUES ('2026-11-22 19:53:46.033005+00', 'run_01m82d4r9hegk8qf832bvc30jq', 0, 'personal', 'external', '', 'outside', 'grp_01m82d4r4ae3k8fyvp1v7tjcev', 'waiting', 'approval', NULL, NULL, NULL, '{"depth": 5, "steps": 25, "tokens": 200000, "children": 20}', '{"steps": 1, "tokens": 0, "children": 0}', '2100-01-01 00:00:00+00', 0, 0, NULL, 6, 'b0b575f8879391603a766d4a030e84d06d93216e81e0577de280213e36d7b5a0', '2026-11-22 19:53:46.033005+00', '2026-11-22 19:53:46.033005+00', NULL, 'agt_01m82d4r54e47b1t61ectv0660', NULL, 'org_01m82d4r3qecd9v5xp4ws9sfx7', NULL, 'prj_01m82d4r3te49atwh2zqdmgzj3', 'rol_01m82d4r50fnna3byk44579sn0', 'run_01m82d4r9hegk8qf832bvc30jq', 1, NULL);
INSERT INTO public.runs_runevent VALUES (1, 1, 'run.created', '', '{"v": 1, "goal": "asks", "kind": "personal", "model": "scripted:tests.upgrades.play", "driver": "internal", "budgets": {"depth": 5, "steps": 25, "tokens": 200000, "children": 20}, "context": "grp_01m82d4r4ae3k8fyvp1v7tjcev", "members": [{"role": "Personal agent", "agent": "agt_01m82d4r54e47b1t61ectv0660", "is_lead": false, "ordinal": 0, "role_id": "rol_01m82d4r50fnna3byk44579sn0"}], "max_rounds": 1}', '2026-11-22 19:53:45.887001+00', '8a9d29252d497999572cd22a81c9719be7522f8fe2eeeb537b0491c56c80cd53', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r57ekjsevbxfkkksmrq');
INSERT INTO public.runs_runevent VALUES (2, 2, 'message.created', '', '{"v": 1, "role": "user", "author": "mia", "content": "asks", "message_type": "TASK"}', '2026-11-22 19:53:45.887001+00', '124bd6d35b3ee20ff54d7bab03e6fb2d84fe87b2a365517263aede75d43f9001', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r57ekjsevbxfkkksmrq');
INSERT INTO public.runs_runevent VALUES (3, 1, 'run.created', '', '{"v": 1, "goal": "mails", "kind": "personal", "model": "scripted:tests.upgrades.play", "driver": "internal", "budgets": {"depth": 5, "steps": 25, "tokens": 200000, "children": 20}, "context": "grp_01m82d4r4ae3k8fyvp1v7tjcev", "members": [{"role": "Personal agent", "agent": "agt_01m82d4r54e47b1t61ectv0660", "is_lead": false, "ordinal": 0, "role_id": "rol_01m82d4r50fnna3byk44579sn0"}], "max_rounds": 1}', '2026-11-22 19:53:45.907306+00', '4395ec89dfb1108a57c94e308e7986d1d14d0886a862e8287c88294f599853bf', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r5kfckt59hej3z68a4y');
INSERT INTO public.runs_runevent VALUES (4, 2, 'message.created', '', '{"v": 1, "role": "user", "author": "mia", "content": "mails", "message_type": "TASK"}', '2026-11-22 19:53:45.907306+00', '933c72ba2a6eb8529206121959db9a0817c870e1fb9159f2be9e0bcbce7f509c', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r5kfckt59hej3z68a4y');
INSERT INTO public.runs_runevent VALUES (5, 1, 'run.created', '', '{"v": 1, "goal": "brief", "kind": "personal", "model": "scripted:tests.upgrades.play", "driver": "internal", "budgets": {"depth": 5, "steps": 25, "tokens": 200000, "children": 20}, "context": "grp_01m82d4r4ae3k8fyvp1v7tjcev", "members": [{"role": "Personal agent", "agent": "agt_01m82d4r54e47b1t61ectv0660", "is_lead": false, "ordinal": 0, "role_id": "rol_01m82d4r50fnna3byk44579sn0"}], "max_rounds": 1}', '2026-11-22 19:53:45.928211+00', '2adc0f4d9c79ee7341b6e597456de15031e56b3b1dcdecbefc9874d7c73c133a', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r69e07a9q51qt7wb25s');
INSERT INTO public.runs_runevent VALUES (6, 2, 'message.created', '', '{"v": 1, "role": "user", "author": "mia", "content": "brief", "message_type": "TASK"}', '2026-11-22 19:53:45.928211+00', '75ac96d73bc3503457a27e0bf4b7c819bed511388a6b9e198406b903000b340b', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r69e07a9q51qt7wb25s');
INSERT INTO public.runs_runevent VALUES (7, 1, 'run.created', '', '{"v": 1, "goal": "brief", "kind": "personal", "model": "scripted:tests.upgrades.play", "driver": "internal", "budgets": {"depth": 5, "steps": 25, "tokens": 200000, "children": 20}, "context": "grp_01m82d4r4ae3k8fyvp1v7tjcev", "members": [{"role": "Personal agent", "agent": "agt_01m82d4r54e47b1t61ectv0660", "is_lead": false, "ordinal": 0, "role_id": "rol_01m82d4r50fnna3byk44579sn0"}], "max_rounds": 1}', '2026-11-22 19:53:45.935617+00', '1a2fe7395d28d2a0b808b6b3082ae742a7fe1102f66e376165c322f8d43c3074', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r6ffp1920pje93cb960');
INSERT INTO public.runs_runevent VALUES (8, 2, 'message.created', '', '{"v": 1, "role": "user", "author": "mia", "content": "brief", "message_type": "TASK"}', '2026-11-22 19:53:45.935617+00', '413d47ed0f5192225305bb8584019483312ef4741ae58f8ea6e484a3ca6bd52c', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r6ffp1920pje93cb960');
INSERT INTO public.runs_runevent VALUES (9, 1, 'run.created', '', '{"v": 1, "goal": "brief", "kind": "personal", "model": "scripted:tests.upgrades.play", "driver": "internal", "budgets": {"depth": 5, "steps": 25, "tokens": 200000, "children": 20}, "context": "grp_01m82d4r4ae3k8fyvp1v7tjcev", "members": [{"role": "Personal agent", "agent": "agt_01m82d4r54e47b1t61ectv0660", "is_lead": false, "ordinal": 0, "role_id": "rol_01m82d4r50fnna3byk44579sn0"}], "max_rounds": 1}', '2026-11-22 19:53:45.957386+00', '6f7531d568e74a59793b99c1a3f04d8d8309229ef32762a63e85512ed2e7ed34', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r75fc1sv68d867h0pzw');
INSERT INTO public.runs_runevent VALUES (10, 2, 'message.created', '', '{"v": 1, "role": "user", "author": "mia", "content": "brief", "message_type": "TASK"}', '2026-11-22 19:53:45.957386+00', '129f85cbab78e7b6f7ecca618a0fb5a41f30e9135e414e2ceca45beb2ab3b371', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r75fc1sv68d867h0pzw');
INSERT INTO public.runs_runevent VALUES (11, 3, 'run.started', '', '{"v": 1, "attempt": 1}', '2026-11-22 19:53:45.959756+00', '6d01133b412cd8d36730736597835bfb6dafe0f493940d30c2bb1ab4506b0df5', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r57ekjsevbxfkkksmrq');
INSERT INTO public.runs_runevent VALUES (12, 1, 'run.created', '', '{"v": 1, "goal": "asks", "kind": "group", "group": "group0", "model": "scripted:tests.upgrades.play", "driver": "internal", "budgets": {"depth": 5, "steps": 25, "tokens": 199985, "children": 20}, "members": [{"role": "lead", "seat": "gmb_01m82d4r4pe6jvtngwc3h5ks3t", "agent": "agt_01m82d4r4kf4sbtp2fa8ff8f19", "is_lead": true, "ordinal": 0, "role_id": "rol_01m82d4r4fezeaj1f6wn42b5v7"}], "group_id": "grp_01m82d4r4ae3k8fyvp1v7tjcev", "inherited": [{"kind": "contents", "name": "User", "index": "usr-0", "parent": null, "position": 0, "description": "whom you work for"}, {"kind": "detail", "name": "Person", "index": "usr-1", "parent": "usr-0", "position": 0, "description": "mia"}, {"kind": "contents", "name": "Task", "index": "task-0", "parent": null, "position": 0, "description": "what is to be done"}, {"kind": "contents", "name": "asks", "index": "task-1", "parent": "task-0", "position": 0}, {"kind": "detail", "name": "Goal", "index": "task-2", "parent": "task-1", "position": 0, "description": "asks"}, {"kind": "detail", "name": "Context", "index": "task-3", "detail": "grp_01m82d4r4ae3k8fyvp1v7tjcev", "parent": "task-1", "position": 1}], "max_rounds": 1, "parent_run": "run_01m82d4r57ekjsevbxfkkksmrq", "delegated_permissions": {"denied_tools": [], "allowed_tools": null, "vouched_tools": []}}', '2026-11-22 19:53:45.984162+00', '20c284c1700a40952879eec5586999f59f85b5f2b1fec7268d5a52bde361f943', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r82egsb3wcr842rkf9z');
INSERT INTO public.runs_runevent VALUES (13, 2, 'message.created', '', '{"v": 1, "role": "user", "author": "Personal agent", "content": "asks", "message_type": "TASK"}', '2026-11-22 19:53:45.984162+00', '8f75b116a24473ae25cdab6ff2b570f4edc134a2e67d784658348ee0c38f7f7a', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r82egsb3wcr842rkf9z');
INSERT INTO public.runs_runevent VALUES (14, 3, 'run.started', '', '{"v": 1, "attempt": 1}', '2026-11-22 19:53:45.984162+00', '954cafad0516a4820e8f791279653595fa2752e121aa540019cf49b4a78f1f38', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r82egsb3wcr842rkf9z');
INSERT INTO public.runs_runevent VALUES (15, 4, 'message.created', 'agt_01m82d4r54e47b1t61ectv0660', '{"v": 1, "saw": 3, "role": "assistant", "model": "scripted", "round": 1, "usage": {"input_tokens": 10, "output_tokens": 5}, "author": "Personal agent", "content": "", "memories": [], "tool_calls": [{"name": "escalate_to_group", "arguments": {"goal": "asks", "group_id": "grp_01m82d4r4ae3k8fyvp1v7tjcev"}}], "message_type": "STATUS", "prompt_digest": "ff3575865a6a94bd316d51774d32f5130c254ad1d1fa98a966a770584a815959"}', '2026-11-22 19:53:45.984162+00', '34cc477e16dcda01552128c3ba4cb390cb015bc1cefb0a6e484ab037bfd1cd3e', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r57ekjsevbxfkkksmrq');
INSERT INTO public.runs_runevent VALUES (16, 5, 'tool.called', 'agt_01m82d4r54e47b1t61ectv0660', '{"v": 1, "tool": "escalate_to_group", "call_id": "4.0", "decision": {"effect": "allow", "policy": "9407b87f58e1e8735c1d4301aa3eb557595225052eb36e6dba61100e8cb0e029", "matched": ["risk.medium"], "reason_code": "risk_default"}, "arguments": {"goal": "asks", "group_id": "grp_01m82d4r4ae3k8fyvp1v7tjcev"}, "idempotency_key": "dd2e685fda55bdd2d5af31cda07c53f8773eba9897805540e729ec7f7da8143a"}', '2026-11-22 19:53:45.984162+00', '5b081a3cff5e2afe45b9eada099768f94cb41e436af329197db2fff6fb3d13c1', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r57ekjsevbxfkkksmrq');
INSERT INTO public.runs_runevent VALUES (17, 6, 'child.created', 'agt_01m82d4r54e47b1t61ectv0660', '{"v": 1, "goal": "asks", "group": "group0", "tokens": 199985, "call_id": "4.0", "routing": [], "group_id": "grp_01m82d4r4ae3k8fyvp1v7tjcev", "child_run": "run_01m82d4r82egsb3wcr842rkf9z", "timeout_ms": 300000, "correlation_key": "child-run_01m82d4r82egsb3wcr842rkf9z"}', '2026-11-22 19:53:45.984162+00', '53226921d48af688b6810a56bd703f88b1ae86602852fe7e9ce3bc32effdf7cd', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r57ekjsevbxfkkksmrq');
INSERT INTO public.runs_runevent VALUES (18, 7, 'run.waiting', '', '{"v": 1, "waits": [{"kind": "child", "call_id": "4.0", "correlation_key": "child-run_01m82d4r82egsb3wcr842rkf9z"}], "reason": "child"}', '2026-11-22 19:53:45.984162+00', 'ce888494b2e919047b8196fcea74f849ab7f380caca005ba0de7118aae008124', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r57ekjsevbxfkkksmrq');
INSERT INTO public.runs_runevent VALUES (19, 4, 'message.created', 'agt_01m82d4r4kf4sbtp2fa8ff8f19', '{"v": 1, "saw": 3, "role": "assistant", "model": "scripted", "round": 1, "usage": {"input_tokens": 10, "output_tokens": 5}, "author": "lead", "content": "", "memories": [], "tool_calls": [{"name": "ask_user", "arguments": {"question": "Which year?"}}], "message_type": "STATUS", "prompt_digest": "d8c416dc79c88fac90795d6f7aa6314810007bf40fd1b23b6032edc101c611fe"}', '2026-11-22 19:53:45.995786+00', 'a153f4a3459522b1fbd953902e88c780bf96d1c4fdd45d545400b8f27b98a265', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r82egsb3wcr842rkf9z');
INSERT INTO public.runs_runevent VALUES (20, 5, 'tool.called', 'agt_01m82d4r4kf4sbtp2fa8ff8f19', '{"v": 1, "tool": "ask_user", "call_id": "4.0", "decision": {"effect": "allow", "policy": "9407b87f58e1e8735c1d4301aa3eb557595225052eb36e6dba61100e8cb0e029", "matched": ["risk.low"], "reason_code": "risk_default"}, "arguments": {"question": "Which year?"}, "idempotency_key": "582c2bae4b8f528e4be8c039e2cc2056d832dfdf21bf7b48b3a6f950cd8193a6"}', '2026-11-22 19:53:45.995786+00', 'd46511e61d83852fb8db92b9ee0640efb06111547344d3b13231a055a94d09bc', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r82egsb3wcr842rkf9z');
INSERT INTO public.runs_runevent VALUES (21, 6, 'tool.waits', 'agt_01m82d4r4kf4sbtp2fa8ff8f19', '{"v": 1, "kind": "input", "tool": "ask_user", "call_id": "4.0", "question": "Which year?", "correlation_key": "input-4.0"}', '2026-11-22 19:53:45.995786+00', 'f9d7f28ebd919189c57ea8b5dbb4855a5988329bbd403531b0385478eb002342', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r82egsb3wcr842rkf9z');
INSERT INTO public.runs_runevent VALUES (22, 7, 'run.waiting', '', '{"v": 1, "waits": [{"kind": "input", "call_id": "4.0", "correlation_key": "input-4.0"}], "reason": "input"}', '2026-11-22 19:53:45.995786+00', '38fddf0b7f6c166c350e41ac06b7c76879d6be8e1bd6d43057758e710e66e20c', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r82egsb3wcr842rkf9z');
INSERT INTO public.runs_runevent VALUES (23, 3, 'run.started', '', '{"v": 1, "attempt": 1}', '2026-11-22 19:53:45.998768+00', 'e76951b37b01f0df4ec70d97797fd716a8a18b317adf2ba51bbecbad3df302c2', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r5kfckt59hej3z68a4y');
INSERT INTO public.runs_runevent VALUES (24, 1, 'run.created', '', '{"v": 1, "goal": "mails", "kind": "group", "group": "group0", "model": "scripted:tests.upgrades.play", "driver": "internal", "budgets": {"depth": 5, "steps": 25, "tokens": 199985, "children": 20}, "members": [{"role": "lead", "seat": "gmb_01m82d4r4pe6jvtngwc3h5ks3t", "agent": "agt_01m82d4r4kf4sbtp2fa8ff8f19", "is_lead": true, "ordinal": 0, "role_id": "rol_01m82d4r4fezeaj1f6wn42b5v7"}], "group_id": "grp_01m82d4r4ae3k8fyvp1v7tjcev", "inherited": [{"kind": "contents", "name": "User", "index": "usr-0", "parent": null, "position": 0, "description": "whom you work for"}, {"kind": "detail", "name": "Person", "index": "usr-1", "parent": "usr-0", "position": 0, "description": "mia"}, {"kind": "contents", "name": "Task", "index": "task-0", "parent": null, "position": 0, "description": "what is to be done"}, {"kind": "contents", "name": "mails", "index": "task-1", "parent": "task-0", "position": 0}, {"kind": "detail", "name": "Goal", "index": "task-2", "parent": "task-1", "position": 0, "description": "mails"}, {"kind": "detail", "name": "Context", "index": "task-3", "detail": "grp_01m82d4r4ae3k8fyvp1v7tjcev", "parent": "task-1", "position": 1}], "max_rounds": 1, "parent_run": "run_01m82d4r5kfckt59hej3z68a4y", "delegated_permissions": {"denied_tools": [], "allowed_tools": null, "vouched_tools": []}}', '2026-11-22 19:53:46.005659+00', 'ca23eb02fd1ab71c94763b628f420bdf12ca3d6b3822bf4e406386dc2d6f577a', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r8qe8eb03ysbctw90gz');
INSERT INTO public.runs_runevent VALUES (25, 2, 'message.created', '', '{"v": 1, "role": "user", "author": "Personal agent", "content": "mails", "message_type": "TASK"}', '2026-11-22 19:53:46.005659+00', '44cb58544ab275d342d1d842c458c0de2bb7bd842e34ce7f3c39f746470c2aa0', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r8qe8eb03ysbctw90gz');
INSERT INTO public.runs_runevent VALUES (26, 3, 'run.started', '', '{"v": 1, "attempt": 1}', '2026-11-22 19:53:46.005659+00', '4d700da80b1bf053275d48221b46c7a19aedea42f9b22926cf6e2d2493f2fc1d', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r8qe8eb03ysbctw90gz');
INSERT INTO public.runs_runevent VALUES (27, 4, 'message.created', 'agt_01m82d4r54e47b1t61ectv0660', '{"v": 1, "saw": 3, "role": "assistant", "model": "scripted", "round": 1, "usage": {"input_tokens": 10, "output_tokens": 5}, "author": "Personal agent", "content": "", "memories": [], "tool_calls": [{"name": "escalate_to_group", "arguments": {"goal": "mails", "group_id": "grp_01m82d4r4ae3k8fyvp1v7tjcev"}}], "message_type": "STATUS", "prompt_digest": "a7c6648bcd5311fd219edf3e0747693fb8ea3429b9a350ed5f2281590c3f6dd2"}', '2026-11-22 19:53:46.005659+00', 'ba5fbdcfc89b0086c3553ea8b1d29e5607b3f54b59f3024206fa1862a7d5013f', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r5kfckt59hej3z68a4y');
INSERT INTO public.runs_runevent VALUES (28, 5, 'tool.called', 'agt_01m82d4r54e47b1t61ectv0660', '{"v": 1, "tool": "escalate_to_group", "call_id": "4.0", "decision": {"effect": "allow", "policy": "9407b87f58e1e8735c1d4301aa3eb557595225052eb36e6dba61100e8cb0e029", "matched": ["risk.medium"], "reason_code": "risk_default"}, "arguments": {"goal": "mails", "group_id": "grp_01m82d4r4ae3k8fyvp1v7tjcev"}, "idempotency_key": "f561dd34598242645467606c8a5a67e387895dc5c09ea5dcb7bda84e148ef7a4"}', '2026-11-22 19:53:46.005659+00', '72c82a6a4fdc13ece31e2b5130cc416a8a8b89a1fa4bf9d3ccd007983eee3de4', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r5kfckt59hej3z68a4y');
INSERT INTO public.runs_runevent VALUES (29, 6, 'child.created', 'agt_01m82d4r54e47b1t61ectv0660', '{"v": 1, "goal": "mails", "group": "group0", "tokens": 199985, "call_id": "4.0", "routing": [], "group_id": "grp_01m82d4r4ae3k8fyvp1v7tjcev", "child_run": "run_01m82d4r8qe8eb03ysbctw90gz", "timeout_ms": 300000, "correlation_key": "child-run_01m82d4r8qe8eb03ysbctw90gz"}', '2026-11-22 19:53:46.005659+00', 'c5d7d816adc92a85006c2cc8091f35958f019cf3fbf1daab325a4a3ccfc0312d', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r5kfckt59hej3z68a4y');
INSERT INTO public.runs_runevent VALUES (30, 7, 'run.waiting', '', '{"v": 1, "waits": [{"kind": "child", "call_id": "4.0", "correlation_key": "child-run_01m82d4r8qe8eb03ysbctw90gz"}], "reason": "child"}', '2026-11-22 19:53:46.005659+00', 'dadb14b5e9658bacaa0dab61fabf3e8ef4a2213026d2bcec9d7bdcaf60d839bf', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r5kfckt59hej3z68a4y');
INSERT INTO public.runs_runevent VALUES (31, 4, 'message.created', 'agt_01m82d4r4kf4sbtp2fa8ff8f19', '{"v": 1, "saw": 3, "role": "assistant", "model": "scripted", "round": 1, "usage": {"input_tokens": 10, "output_tokens": 5}, "author": "lead", "content": "", "memories": [], "tool_calls": [{"name": "send_email", "arguments": {"to": ["ines@example.org"], "body": "Text", "subject": "Hello"}}], "message_type": "STATUS", "prompt_digest": "ee3c312a24a885165ae90cc760c4d09d53de8681bb26cd5d6c25d08b50ed0bff"}', '2026-11-22 19:53:46.012458+00', '8357d59fde2b261f53e20332f114c54ada1355f6f663db7782d1b1959707cb2d', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r8qe8eb03ysbctw90gz');
INSERT INTO public.runs_runevent VALUES (32, 5, 'tool.requires_approval', 'agt_01m82d4r4kf4sbtp2fa8ff8f19', '{"v": 1, "tool": "send_email", "effect": "require_approval", "call_id": "4.0", "message": "Tool ''send_email'' requires approval: its risk is high", "approval": "apr_01m82d4r8yexy9qwwstmrmqrn0", "decision": {"effect": "require_approval", "policy": "9407b87f58e1e8735c1d4301aa3eb557595225052eb36e6dba61100e8cb0e029", "matched": ["risk.high"], "reason_code": "risk_default"}, "arguments": {"to": ["ines@example.org"], "body": "Text", "subject": "Hello"}, "on_expiry": "fail_call", "expires_at": "2026-11-29T19:53:46.012458+00:00", "correlation_key": "cap-approval-941b9b30c5025c12d1f0aacf3843bd2eb7435e76585ae0052567422f19d908c5"}', '2026-11-22 19:53:46.012458+00', '3fa41c929f28fd3a6b51ca59491f5cf2bfb1c4c70fefdef87642d0481700dcbf', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r8qe8eb03ysbctw90gz');
INSERT INTO public.runs_runevent VALUES (33, 6, 'run.waiting', '', '{"v": 1, "waits": [{"kind": "approval", "call_id": "4.0", "correlation_key": "cap-approval-941b9b30c5025c12d1f0aacf3843bd2eb7435e76585ae0052567422f19d908c5"}], "reason": "approval"}', '2026-11-22 19:53:46.012458+00', 'c06f5fd9bb71751e45b1049c629b6794eab8c995c56911ec92dd55b43513c475', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r8qe8eb03ysbctw90gz');
INSERT INTO public.runs_runevent VALUES (34, 3, 'run.started', '', '{"v": 1, "attempt": 1}', '2026-11-22 19:53:46.018614+00', 'e510fa90bd09f584efe856823d8dbce976888d77d29886c6edab8cd2f047a550', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r69e07a9q51qt7wb25s');
INSERT INTO public.runs_runevent VALUES (35, 4, 'message.created', 'agt_01m82d4r54e47b1t61ectv0660', '{"v": 1, "saw": 3, "role": "assistant", "model": "scripted", "round": 1, "usage": {"input_tokens": 15, "output_tokens": 0}, "author": "Personal agent", "content": "DECISION: yes", "memories": [], "tool_calls": [], "message_type": "DECISION", "prompt_digest": "ba250724741aab029432c29833f21c524fe1c139c0b5ad445be19585f186a944"}', '2026-11-22 19:53:46.024746+00', '342fdf5f7b5073cd671c7e4178ce661b10bf369d2907c669d1e41582a88beb0e', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r69e07a9q51qt7wb25s');
INSERT INTO public.runs_runevent VALUES (36, 5, 'run.completed', '', '{"v": 1, "error": null, "output": "DECISION: yes"}', '2026-11-22 19:53:46.024746+00', 'a9d7dd39ff51fe3522f1831e7a249242a87592aad208d59c29e8f312c2f619cf', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r69e07a9q51qt7wb25s');
INSERT INTO public.runs_runevent VALUES (37, 3, 'run.started', '', '{"v": 1, "attempt": 1}', '2026-11-22 19:53:46.029194+00', '139998770a8aedd592e373ee0fac7e21dbe8d02fc2c23a5daa5dea1260520d66', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r6ffp1920pje93cb960');
INSERT INTO public.runs_runevent VALUES (38, 1, 'run.created', '', '{"v": 1, "goal": "outside", "kind": "personal", "model": "scripted:tests.upgrades.play", "driver": "external", "budgets": {"depth": 5, "steps": 25, "tokens": 200000, "children": 20}, "context": "grp_01m82d4r4ae3k8fyvp1v7tjcev", "members": [{"role": "Personal agent", "agent": "agt_01m82d4r54e47b1t61ectv0660", "is_lead": false, "ordinal": 0, "role_id": "rol_01m82d4r50fnna3byk44579sn0"}], "max_rounds": 1}', '2026-11-22 19:53:46.033005+00', 'a2a15c29f0014a5b66f7bbece18a01927db0f0cf354ff863e954f3f13627daf5', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r9hegk8qf832bvc30jq');
INSERT INTO public.runs_runevent VALUES (39, 2, 'message.created', '', '{"v": 1, "role": "user", "author": "mia", "content": "outside", "message_type": "TASK"}', '2026-11-22 19:53:46.033005+00', '01c94cd83ce8f34e1bf67267279a9ba99095d9356e50cd3e5eef46170d5f779d', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r9hegk8qf832bvc30jq');
INSERT INTO public.runs_runevent VALUES (40, 3, 'run.started', '', '{"v": 1}', '2026-11-22 19:53:46.033005+00', '6c81ddb31804d40aa1afe13f2fbb4e62241be1c5dc85426c912a0ab80ed14a36', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r9hegk8qf832bvc30jq');
INSERT INTO public.runs_runevent VALUES (41, 4, 'message.created', 'agt_01m82d4r54e47b1t61ectv0660', '{"v": 1, "role": "assistant", "author": "Personal agent", "content": "", "tool_calls": [{"name": "send_email", "call_id": "c1", "arguments": {"to": ["ines@example.org"], "body": "Text", "subject": "Hello"}}], "message_type": "STATUS"}', '2026-11-22 19:53:46.039499+00', '304aeda951243dd831eb49a2084ff50b39c2054c24c6f54321ec13719debd15f', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r9hegk8qf832bvc30jq');
INSERT INTO public.runs_runevent VALUES (42, 5, 'tool.requires_approval', 'agt_01m82d4r54e47b1t61ectv0660', '{"v": 1, "tool": "send_email", "effect": "require_approval", "call_id": "c1", "message": "Tool ''send_email'' requires approval: its risk is high", "approval": "apr_01m82d4r9sfcqb4gt0qhavkr9z", "decision": {"effect": "require_approval", "policy": "9407b87f58e1e8735c1d4301aa3eb557595225052eb36e6dba61100e8cb0e029", "matched": ["risk.high"], "reason_code": "risk_default"}, "arguments": {"to": ["ines@example.org"], "body": "Text", "subject": "Hello"}, "on_expiry": "fail_call", "expires_at": "2026-11-29T19:53:46.039499+00:00", "correlation_key": "cap-approval-50ed2951f9b5da763e9fe196db378a697517c75a05707f4faa921345341c3420"}', '2026-11-22 19:53:46.039499+00', '801455d89de5cae51ab8c0860ee59451e095366dbc568bf6d672dc620175f24d', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r9hegk8qf832bvc30jq');
INSERT INTO public.runs_runevent VALUES (43, 6, 'run.waiting', '', '{"v": 1, "waits": [{"kind": "approval", "call_id": "c1", "correlation_key": "cap-approval-50ed2951f9b5da763e9fe196db378a697517c75a05707f4faa921345341c3420"}], "reason": "approval"}', '2026-11-22 19:53:46.039499+00', 'b0b575f8879391603a766d4a030e84d06d93216e81e0577de280213e36d7b5a0', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r9hegk8qf832bvc30jq');
INSERT INTO public.runs_toolcall VALUES ('2026-11-22 19:53:45.984162+00', 'tcl_01m82d4r80fq9sqp4bssnfpxme', '4.0', 'agt_01m82d4r54e47b1t61ectv0660', 'escalate_to_group', '{"goal": "asks", "group_id": "grp_01m82d4r4ae3k8fyvp1v7tjcev"}', '{"goal": "asks", "group_id": "grp_01m82d4r4ae3k8fyvp1v7tjcev"}', '6886e2b2ddfb4d805050694548e99eb4c5a5e6f8d23410cb36a8967be2f37ac1', 'dd2e685fda55bdd2d5af31cda07c53f8773eba9897805540e729ec7f7da8143a', 'waiting', 1, NULL, NULL, NULL, NULL, 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r57ekjsevbxfkkksmrq', NULL, NULL, 'rol_01m82d4r50fnna3byk44579sn0', '');
INSERT INTO public.runs_toolcall VALUES ('2026-11-22 19:53:45.995786+00', 'tcl_01m82d4r8cek0bqksq7393bfjd', '4.0', 'agt_01m82d4r4kf4sbtp2fa8ff8f19', 'ask_user', '{"question": "Which year?"}', '{"question": "Which year?"}', 'dce83dc639999e175e5bf5d922e9f3e818822cc17f8e88c52dd4961fbdd3c279', '582c2bae4b8f528e4be8c039e2cc2056d832dfdf21bf7b48b3a6f950cd8193a6', 'waiting', 1, NULL, NULL, NULL, NULL, 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r82egsb3wcr842rkf9z', NULL, NULL, 'rol_01m82d4r4fezeaj1f6wn42b5v7', 'gmb_01m82d4r4pe6jvtngwc3h5ks3t');
INSERT INTO public.runs_toolcall VALUES ('2026-11-22 19:53:46.005659+00', 'tcl_01m82d4r8pe4bvwe7nv6kzv4r8', '4.0', 'agt_01m82d4r54e47b1t61ectv0660', 'escalate_to_group', '{"goal": "mails", "group_id": "grp_01m82d4r4ae3k8fyvp1v7tjcev"}', '{"goal": "mails", "group_id": "grp_01m82d4r4ae3k8fyvp1v7tjcev"}', '824b9eecf85a4692202ecc678abf54841788a2ee7be995c2ba54b9bf8828f171', 'f561dd34598242645467606c8a5a67e387895dc5c09ea5dcb7bda84e148ef7a4', 'waiting', 1, NULL, NULL, NULL, NULL, 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r5kfckt59hej3z68a4y', NULL, NULL, 'rol_01m82d4r50fnna3byk44579sn0', '');
INSERT INTO public.runs_toolcall VALUES ('2026-11-22 19:53:46.012458+00', 'tcl_01m82d4r8yet78cvdx79ybt3rc', '4.0', 'agt_01m82d4r4kf4sbtp2fa8ff8f19', 'send_email', '{"to": ["ines@example.org"], "body": "Text", "subject": "Hello"}', '{"to": ["ines@example.org"], "body": "Text", "subject": "Hello"}', 'b80b6fcaedfb28792adfa27058f6d9861191108fb12ddaa1cd169558700392d0', '941b9b30c5025c12d1f0aacf3843bd2eb7435e76585ae0052567422f19d908c5', 'waiting', 1, NULL, NULL, NULL, NULL, 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r8qe8eb03ysbctw90gz', NULL, NULL, 'rol_01m82d4r4fezeaj1f6wn42b5v7', 'gmb_01m82d4r4pe6jvtngwc3h5ks3t');
INSERT INTO public.runs_toolcall VALUES ('2026-11-22 19:53:46.039499+00', 'tcl_01m82d4r9sefftq5kkkmrcwwca', 'c1', 'agt_01m82d4r54e47b1t61ectv0660', 'send_email', '{"to": ["ines@example.org"], "body": "Text", "subject": "Hello"}', '{"to": ["ines@example.org"], "body": "Text", "subject": "Hello"}', 'b80b6fcaedfb28792adfa27058f6d9861191108fb12ddaa1cd169558700392d0', '50ed2951f9b5da763e9fe196db378a697517c75a05707f4faa921345341c3420', 'waiting', 0, NULL, NULL, NULL, NULL, 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r9hegk8qf832bvc30jq', NULL, NULL, 'rol_01m82d4r50fnna3byk44579sn0', '');
INSERT INTO public.runs_wait VALUES ('2026-11-22 19:53:45.984162+00', 'wai_01m82d4r82esfrs1xxxw9wqz4w', 'child', 'child-run_01m82d4r82egsb3wcr842rkf9z', '2026-11-22 19:58:45.984162+00', NULL, NULL, NULL, 'run_01m82d4r82egsb3wcr842rkf9z', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r57ekjsevbxfkkksmrq', 'tcl_01m82d4r80fq9sqp4bssnfpxme');
INSERT INTO public.runs_wait VALUES ('2026-11-22 19:53:45.995786+00', 'wai_01m82d4r8cev9rb2se8f2smgth', 'input', 'input-4.0', NULL, NULL, NULL, NULL, NULL, 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r82egsb3wcr842rkf9z', 'tcl_01m82d4r8cek0bqksq7393bfjd');
INSERT INTO public.runs_wait VALUES ('2026-11-22 19:53:46.005659+00', 'wai_01m82d4r8qew09gfmpt52s2230', 'child', 'child-run_01m82d4r8qe8eb03ysbctw90gz', '2026-11-22 19:58:46.005659+00', NULL, NULL, NULL, 'run_01m82d4r8qe8eb03ysbctw90gz', 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r5kfckt59hej3z68a4y', 'tcl_01m82d4r8pe4bvwe7nv6kzv4r8');
INSERT INTO public.runs_wait VALUES ('2026-11-22 19:53:46.04771+00', 'wai_01m82d4ra0e19rqkzgrn96mk0v', 'signal', 'early', NULL, '2026-11-22 19:53:46.04771+00', 'completed', '{"answer": 1}', NULL, 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r75fc1sv68d867h0pzw', NULL);
INSERT INTO public.runs_wait VALUES ('2026-11-22 19:53:46.012458+00', 'wai_01m82d4r90e24vqn6ybe21mmps', 'approval', 'cap-approval-941b9b30c5025c12d1f0aacf3843bd2eb7435e76585ae0052567422f19d908c5', '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r8qe8eb03ysbctw90gz', 'tcl_01m82d4r8yet78cvdx79ybt3rc');
INSERT INTO public.runs_wait VALUES ('2026-11-22 19:53:46.039499+00', 'wai_01m82d4r9teymb30he7eywkvef', 'approval', 'cap-approval-50ed2951f9b5da763e9fe196db378a697517c75a05707f4faa921345341c3420', '2100-01-01 00:00:00+00', NULL, NULL, NULL, NULL, 'org_01m82d4r3qecd9v5xp4ws9sfx7', 'run_01m82d4r9hegk8qf832bvc30jq', 'tcl_01m82d4r9sefftq5kkkmrcwwca');
SELECT pg_catalog.setval('public.auth_group_id_seq', 1, false);
SELECT pg_catalog.setval('public.auth_group_permissions_id_seq', 1, false);
SELECT pg_catalog.setval('public.auth_permission_id_seq', 284, true);
SELECT pg_catalog.setval('public.auth_user_groups_id_seq', 1, false);
SELECT pg_catalog.setval('public.auth_user_id_seq', 2, true);
SELECT pg_catalog.setval('public.auth_user_user_permissions_id_seq', 1, false);
SELECT pg_catalog.setval('public.django_admin_log_id_seq', 1, false);
SELECT pg_catalog.setval('public.django_content_type_id_seq', 70, true);
SELECT pg_catalog.setval('public.django_migrations_id_seq', 90, true);
SELECT pg_catalog.setval('public.django_q_ormq_id_seq', 1, false);
SELECT pg_catalog.setval('public.django_q_schedule_id_seq', 1, false);
SELECT pg_catalog.setval('public.memory_departedterms_id_seq', 1, false);
SELECT pg_catalog.setval('public.memory_memoryrevision_id_seq', 1, false);
SELECT pg_catalog.setval('public.policy_grantuse_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_approvaldecision_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_approvalnotice_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_conversation_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_idempotencyrecord_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_outboundcall_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_queuemessage_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_rating_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_runevent_id_seq', 43, true);
SELECT pg_catalog.setval('public.runs_tally_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_tallycursor_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_triedmodel_id_seq', 1, false);
ALTER TABLE ONLY public.auth_group
    ADD CONSTRAINT auth_group_name_key UNIQUE (name);
ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_group_id_permission_id_0cd325b0_uniq UNIQUE (group_id, permission_id);
ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.auth_group
    ADD CONSTRAINT auth_group_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.auth_permission
    ADD CONSTRAINT auth_permission_content_type_id_codename_01ab375a_uniq UNIQUE (content_type_id, codename);
ALTER TABLE ONLY public.auth_permission
    ADD CONSTRAINT auth_permission_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.auth_user_groups
    ADD CONSTRAINT auth_user_groups_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.auth_user_groups
    ADD CONSTRAINT auth_user_groups_user_id_group_id_94350c0c_uniq UNIQUE (user_id, group_id);
ALTER TABLE ONLY public.auth_user
    ADD CONSTRAINT auth_user_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permissions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permissions_user_id_permission_id_14a6b632_uniq UNIQUE (user_id, permission_id);
ALTER TABLE ONLY public.auth_user
    ADD CONSTRAINT auth_user_username_key UNIQUE (username);
ALTER TABLE ONLY public.policy_capability
    ADD CONSTRAINT capability_name UNIQUE (organization_id, name);
ALTER TABLE ONLY public.memory_page
    ADD CONSTRAINT context_page_index UNIQUE (view_id, index);
ALTER TABLE ONLY public.memory_segment
    ADD CONSTRAINT context_segment_unique UNIQUE (view_id, segment_id);
ALTER TABLE ONLY public.memory_contextview
    ADD CONSTRAINT context_view_unique UNIQUE (owner, project_id, session_key);
ALTER TABLE ONLY public.runs_conversation
    ADD CONSTRAINT conversation_unique UNIQUE (organization_id, user_id, project_id, key);
ALTER TABLE ONLY public.groups_customrole
    ADD CONSTRAINT custom_role_name UNIQUE (organization_id, name);
ALTER TABLE ONLY public.django_admin_log
    ADD CONSTRAINT django_admin_log_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.django_content_type
    ADD CONSTRAINT django_content_type_app_label_model_76bd3d3b_uniq UNIQUE (app_label, model);
ALTER TABLE ONLY public.django_content_type
    ADD CONSTRAINT django_content_type_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.django_migrations
    ADD CONSTRAINT django_migrations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.django_q_ormq
    ADD CONSTRAINT django_q_ormq_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.django_q_schedule
    ADD CONSTRAINT django_q_schedule_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.django_q_task
    ADD CONSTRAINT django_q_task_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.django_session
    ADD CONSTRAINT django_session_pkey PRIMARY KEY (session_key);
ALTER TABLE ONLY public.runs_eventcount
    ADD CONSTRAINT event_count_unique UNIQUE (name, labels);
ALTER TABLE ONLY public.policy_grantuse
    ADD CONSTRAINT grant_used_once_a_call UNIQUE (grant_id, idempotency_key);
ALTER TABLE ONLY public.groups_groupmember
    ADD CONSTRAINT group_member_agent UNIQUE (group_id, agent_instance_id);
ALTER TABLE ONLY public.groups_groupmember
    ADD CONSTRAINT group_member_ordinal UNIQUE (group_id, ordinal);
ALTER TABLE ONLY public.groups_group
    ADD CONSTRAINT group_name_unique UNIQUE (project_id, name);
ALTER TABLE ONLY public.groups_agentinstance
    ADD CONSTRAINT groups_agentinstance_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.groups_change
    ADD CONSTRAINT groups_change_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.groups_customrole
    ADD CONSTRAINT groups_customrole_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.groups_group
    ADD CONSTRAINT groups_group_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.groups_groupmember
    ADD CONSTRAINT groups_groupmember_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.groups_membership
    ADD CONSTRAINT groups_membership_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.groups_organization
    ADD CONSTRAINT groups_organization_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.groups_organization
    ADD CONSTRAINT groups_organization_slug_key UNIQUE (slug);
ALTER TABLE ONLY public.groups_project
    ADD CONSTRAINT groups_project_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.groups_role
    ADD CONSTRAINT groups_role_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.groups_routingexample
    ADD CONSTRAINT groups_routingexample_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.groups_throttle
    ADD CONSTRAINT groups_throttle_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.groups_token
    ADD CONSTRAINT groups_token_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.groups_token
    ADD CONSTRAINT groups_token_secret_hash_key UNIQUE (secret_hash);
ALTER TABLE ONLY public.runs_idempotencyrecord
    ADD CONSTRAINT idempotency_key_unique UNIQUE (organization_id, user_id, key);
ALTER TABLE ONLY public.runs_mcpserver
    ADD CONSTRAINT mcp_server_name UNIQUE (organization_id, name);
ALTER TABLE ONLY public.runs_mcptool
    ADD CONSTRAINT mcp_tool_name UNIQUE (server_id, name);
ALTER TABLE ONLY public.groups_membership
    ADD CONSTRAINT membership_unique UNIQUE (organization_id, user_id);
ALTER TABLE ONLY public.memory_contextview
    ADD CONSTRAINT memory_contextview_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.memory_departedterms
    ADD CONSTRAINT memory_departedterms_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.memory_embedding
    ADD CONSTRAINT memory_embedding_pkey PRIMARY KEY (memory_id);
ALTER TABLE ONLY public.memory_embeddingprogress
    ADD CONSTRAINT memory_embeddingprogress_pkey PRIMARY KEY (model);
ALTER TABLE ONLY public.memory_memory
    ADD CONSTRAINT memory_memory_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.memory_memoryrevision
    ADD CONSTRAINT memory_memoryrevision_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.memory_page
    ADD CONSTRAINT memory_page_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.memory_pendingmemory
    ADD CONSTRAINT memory_pendingmemory_pkey PRIMARY KEY (memory_id);
ALTER TABLE ONLY public.memory_scopesize
    ADD CONSTRAINT memory_scopesize_pkey PRIMARY KEY (scope_key);
ALTER TABLE ONLY public.memory_segment
    ADD CONSTRAINT memory_segment_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.memory_termcount
    ADD CONSTRAINT memory_termcount_pkey PRIMARY KEY (scope_key, term);
ALTER TABLE ONLY public.memory_textvector
    ADD CONSTRAINT memory_textvector_pkey PRIMARY KEY (model, digest);
ALTER TABLE ONLY public.runs_modelkey
    ADD CONSTRAINT model_key_unique UNIQUE (organization_id, provider);
ALTER TABLE ONLY public.runs_approvaldecision
    ADD CONSTRAINT one_decision_a_decider UNIQUE (approval_id, user_id, arguments_digest);
ALTER TABLE ONLY public.runs_approvalnotice
    ADD CONSTRAINT one_notice_a_person UNIQUE (approval_id, user_id);
ALTER TABLE ONLY public.runs_outboundcall
    ADD CONSTRAINT outbound_once UNIQUE (run_id, attempt, kind, call_id);
ALTER TABLE ONLY public.policy_outsideentity
    ADD CONSTRAINT outside_entity UNIQUE (organization_id, type, identifier);
ALTER TABLE ONLY public.policy_capability
    ADD CONSTRAINT policy_capability_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.policy_capabilityrule
    ADD CONSTRAINT policy_capabilityrule_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.policy_grant
    ADD CONSTRAINT policy_grant_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.policy_grantuse
    ADD CONSTRAINT policy_grantuse_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.policy_outsideentity
    ADD CONSTRAINT policy_outsideentity_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.policy_policyversion
    ADD CONSTRAINT policy_policyversion_pkey PRIMARY KEY (organization_id);
ALTER TABLE ONLY public.policy_toolbinding
    ADD CONSTRAINT policy_toolbinding_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.policy_tooldeclaration
    ADD CONSTRAINT policy_tooldeclaration_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.groups_project
    ADD CONSTRAINT project_organization_id UNIQUE (organization_id, id);
ALTER TABLE ONLY public.groups_project
    ADD CONSTRAINT project_slug_unique UNIQUE (organization_id, slug);
ALTER TABLE ONLY public.groups_role
    ADD CONSTRAINT role_name_unique UNIQUE (organization_id, name);
ALTER TABLE ONLY public.groups_routingexample
    ADD CONSTRAINT routing_example_unique UNIQUE (group_id, goal_hash);
ALTER TABLE ONLY public.runs_runevent
    ADD CONSTRAINT run_event_seq UNIQUE (run_id, seq);
ALTER TABLE ONLY public.runs_runevent REPLICA IDENTITY USING INDEX run_event_seq;
ALTER TABLE ONLY public.runs_approval
    ADD CONSTRAINT runs_approval_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_approvaldecision
    ADD CONSTRAINT runs_approvaldecision_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_approvalnotice
    ADD CONSTRAINT runs_approvalnotice_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_carrier
    ADD CONSTRAINT runs_carrier_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.runs_conversation
    ADD CONSTRAINT runs_conversation_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_follower
    ADD CONSTRAINT runs_follower_pkey PRIMARY KEY (root_id);
ALTER TABLE ONLY public.runs_idempotencyrecord
    ADD CONSTRAINT runs_idempotencyrecord_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_mcpserver
    ADD CONSTRAINT runs_mcpserver_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_mcptool
    ADD CONSTRAINT runs_mcptool_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_modelkey
    ADD CONSTRAINT runs_modelkey_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_outboundcall
    ADD CONSTRAINT runs_outboundcall_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_outboundtarget
    ADD CONSTRAINT runs_outboundtarget_pkey PRIMARY KEY (target);
ALTER TABLE ONLY public.runs_queuemessage
    ADD CONSTRAINT runs_queuemessage_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_rating
    ADD CONSTRAINT runs_rating_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_rating
    ADD CONSTRAINT runs_rating_run_id_key UNIQUE (run_id);
ALTER TABLE ONLY public.runs_run
    ADD CONSTRAINT runs_run_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_schedule
    ADD CONSTRAINT runs_schedule_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_scheduledrun
    ADD CONSTRAINT runs_scheduledrun_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_eventcount
    ADD CONSTRAINT runs_tally_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_eventcountcursor
    ADD CONSTRAINT runs_tallycursor_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_toolcall
    ADD CONSTRAINT runs_toolcall_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_triedmodel
    ADD CONSTRAINT runs_triedmodel_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_wait
    ADD CONSTRAINT runs_wait_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_webhookdelivery
    ADD CONSTRAINT runs_webhookdelivery_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_webhookendpoint
    ADD CONSTRAINT runs_webhookendpoint_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs_workergroup
    ADD CONSTRAINT runs_workergroup_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.runs_scheduledrun
    ADD CONSTRAINT scheduled_run_once UNIQUE (schedule_id, due_at);
ALTER TABLE ONLY public.policy_toolbinding
    ADD CONSTRAINT tool_binding UNIQUE (organization_id, pattern, capability_id);
ALTER TABLE ONLY public.runs_toolcall
    ADD CONSTRAINT tool_call_unique UNIQUE (run_id, call_id);
ALTER TABLE ONLY public.policy_tooldeclaration
    ADD CONSTRAINT tool_declaration UNIQUE (organization_id, tool);
ALTER TABLE ONLY public.runs_triedmodel
    ADD CONSTRAINT tried_model_unique UNIQUE (organization_id, model);
ALTER TABLE ONLY public.runs_wait
    ADD CONSTRAINT wait_correlation_key UNIQUE (run_id, correlation_key);
CREATE INDEX approval_by_status ON public.runs_approval USING btree (organization_id, status, id DESC);
CREATE INDEX approval_open_expiry ON public.runs_approval USING btree (expires_at) WHERE ((status)::text = 'pending'::text);
CREATE INDEX auth_group_name_a6ea08ec_like ON public.auth_group USING btree (name varchar_pattern_ops);
CREATE INDEX auth_group_permissions_group_id_b120cbf9 ON public.auth_group_permissions USING btree (group_id);
CREATE INDEX auth_group_permissions_permission_id_84c5c92e ON public.auth_group_permissions USING btree (permission_id);
CREATE INDEX auth_permission_content_type_id_2f476e4b ON public.auth_permission USING btree (content_type_id);
CREATE INDEX auth_user_groups_group_id_97559544 ON public.auth_user_groups USING btree (group_id);
CREATE INDEX auth_user_groups_user_id_6a12ed8b ON public.auth_user_groups USING btree (user_id);
CREATE INDEX auth_user_user_permissions_permission_id_1fbb5f2c ON public.auth_user_user_permissions USING btree (permission_id);
CREATE INDEX auth_user_user_permissions_user_id_a95ead1b ON public.auth_user_user_permissions USING btree (user_id);
CREATE INDEX auth_user_username_6821ab7c_like ON public.auth_user USING btree (username varchar_pattern_ops);
CREATE INDEX call_leased ON public.runs_toolcall USING btree (lease_expires_at) WHERE (lease_expires_at IS NOT NULL);
CREATE INDEX call_queued ON public.runs_toolcall USING btree (queued_at) WHERE (queued_at IS NOT NULL);
CREATE INDEX change_by_organization ON public.groups_change USING btree (organization_id, id DESC);
CREATE INDEX change_of_object ON public.groups_change USING btree (model, object_id);
CREATE UNIQUE INDEX context_page_one_root ON public.memory_page USING btree (segment_id) WHERE (parent_id IS NULL);
CREATE UNIQUE INDEX context_page_source ON public.memory_page USING btree (view_id, source) WHERE (NOT ((source)::text = ''::text));
CREATE INDEX django_admin_log_content_type_id_c4bce8eb ON public.django_admin_log USING btree (content_type_id);
CREATE INDEX django_admin_log_user_id_c564eba6 ON public.django_admin_log USING btree (user_id);
CREATE INDEX django_q_task_id_32882367_like ON public.django_q_task USING btree (id varchar_pattern_ops);
CREATE INDEX django_session_expire_date_a5c62663 ON public.django_session USING btree (expire_date);
CREATE INDEX django_session_session_key_c0390e0f_like ON public.django_session USING btree (session_key varchar_pattern_ops);
CREATE INDEX groups_agentinstance_id_45c94fd4_like ON public.groups_agentinstance USING btree (id varchar_pattern_ops);
CREATE INDEX groups_agentinstance_organization_id_d94c703a ON public.groups_agentinstance USING btree (organization_id);
CREATE INDEX groups_agentinstance_organization_id_d94c703a_like ON public.groups_agentinstance USING btree (organization_id varchar_pattern_ops);
CREATE INDEX groups_agentinstance_role_id_6439ab4a ON public.groups_agentinstance USING btree (role_id);
CREATE INDEX groups_agentinstance_role_id_6439ab4a_like ON public.groups_agentinstance USING btree (role_id varchar_pattern_ops);
CREATE INDEX groups_agentinstance_user_id_77332d06 ON public.groups_agentinstance USING btree (user_id);
CREATE INDEX groups_change_id_aa5cc442_like ON public.groups_change USING btree (id varchar_pattern_ops);
CREATE INDEX groups_change_organization_id_f8c27a43 ON public.groups_change USING btree (organization_id);
CREATE INDEX groups_change_organization_id_f8c27a43_like ON public.groups_change USING btree (organization_id varchar_pattern_ops);
CREATE INDEX groups_change_user_id_00ea050d ON public.groups_change USING btree (user_id);
CREATE INDEX groups_customrole_id_b6351bed_like ON public.groups_customrole USING btree (id varchar_pattern_ops);
CREATE INDEX groups_customrole_organization_id_828a2a75 ON public.groups_customrole USING btree (organization_id);
CREATE INDEX groups_customrole_organization_id_828a2a75_like ON public.groups_customrole USING btree (organization_id varchar_pattern_ops);
CREATE INDEX groups_group_id_6cf55f6b_like ON public.groups_group USING btree (id varchar_pattern_ops);
CREATE INDEX groups_group_organization_id_53708637 ON public.groups_group USING btree (organization_id);
CREATE INDEX groups_group_organization_id_53708637_like ON public.groups_group USING btree (organization_id varchar_pattern_ops);
CREATE INDEX groups_group_project_id_52259abb ON public.groups_group USING btree (project_id);
CREATE INDEX groups_group_project_id_52259abb_like ON public.groups_group USING btree (project_id varchar_pattern_ops);
CREATE INDEX groups_groupmember_agent_instance_id_6198ddf0 ON public.groups_groupmember USING btree (agent_instance_id);
CREATE INDEX groups_groupmember_agent_instance_id_6198ddf0_like ON public.groups_groupmember USING btree (agent_instance_id varchar_pattern_ops);
CREATE INDEX groups_groupmember_group_id_1c1b676d ON public.groups_groupmember USING btree (group_id);
CREATE INDEX groups_groupmember_group_id_1c1b676d_like ON public.groups_groupmember USING btree (group_id varchar_pattern_ops);
CREATE INDEX groups_groupmember_id_3139374f_like ON public.groups_groupmember USING btree (id varchar_pattern_ops);
CREATE INDEX groups_groupmember_organization_id_b25863d6 ON public.groups_groupmember USING btree (organization_id);
CREATE INDEX groups_groupmember_organization_id_b25863d6_like ON public.groups_groupmember USING btree (organization_id varchar_pattern_ops);
CREATE INDEX groups_groupmember_role_id_9ff06488 ON public.groups_groupmember USING btree (role_id);
CREATE INDEX groups_groupmember_role_id_9ff06488_like ON public.groups_groupmember USING btree (role_id varchar_pattern_ops);
CREATE INDEX groups_membership_custom_role_id_ab93c278 ON public.groups_membership USING btree (custom_role_id);
CREATE INDEX groups_membership_custom_role_id_ab93c278_like ON public.groups_membership USING btree (custom_role_id varchar_pattern_ops);
CREATE INDEX groups_membership_id_1d6415a3_like ON public.groups_membership USING btree (id varchar_pattern_ops);
CREATE INDEX groups_membership_organization_id_4f0587a7 ON public.groups_membership USING btree (organization_id);
CREATE INDEX groups_membership_organization_id_4f0587a7_like ON public.groups_membership USING btree (organization_id varchar_pattern_ops);
CREATE INDEX groups_membership_user_id_0a0fb8a9 ON public.groups_membership USING btree (user_id);
CREATE INDEX groups_organization_id_1ef3bbb8_like ON public.groups_organization USING btree (id varchar_pattern_ops);
CREATE INDEX groups_organization_slug_51408a50_like ON public.groups_organization USING btree (slug varchar_pattern_ops);
CREATE INDEX groups_project_id_14cce592_like ON public.groups_project USING btree (id varchar_pattern_ops);
CREATE INDEX groups_project_organization_id_f0e89ece ON public.groups_project USING btree (organization_id);
CREATE INDEX groups_project_organization_id_f0e89ece_like ON public.groups_project USING btree (organization_id varchar_pattern_ops);
CREATE INDEX groups_project_slug_5aef9fbf ON public.groups_project USING btree (slug);
CREATE INDEX groups_project_slug_5aef9fbf_like ON public.groups_project USING btree (slug varchar_pattern_ops);
CREATE INDEX groups_role_id_5fdd6652_like ON public.groups_role USING btree (id varchar_pattern_ops);
CREATE INDEX groups_role_organization_id_bfcb4966 ON public.groups_role USING btree (organization_id);
CREATE INDEX groups_role_organization_id_bfcb4966_like ON public.groups_role USING btree (organization_id varchar_pattern_ops);
CREATE INDEX groups_routingexample_corrected_by_id_37ede625 ON public.groups_routingexample USING btree (corrected_by_id);
CREATE INDEX groups_routingexample_group_id_1cb270a2 ON public.groups_routingexample USING btree (group_id);
CREATE INDEX groups_routingexample_organization_id_688c3c6f ON public.groups_routingexample USING btree (organization_id);
CREATE INDEX groups_token_id_7662e436_like ON public.groups_token USING btree (id varchar_pattern_ops);
CREATE INDEX groups_token_organization_id_88bbfb93 ON public.groups_token USING btree (organization_id);
CREATE INDEX groups_token_organization_id_88bbfb93_like ON public.groups_token USING btree (organization_id varchar_pattern_ops);
CREATE INDEX groups_token_secret_hash_f80be4eb_like ON public.groups_token USING btree (secret_hash varchar_pattern_ops);
CREATE INDEX groups_token_user_id_f7dbd912 ON public.groups_token USING btree (user_id);
CREATE INDEX idempotency_by_time ON public.runs_idempotencyrecord USING btree (created_at);
CREATE INDEX mcp_tool_by_organization ON public.runs_mcptool USING btree (organization_id, server_id);
CREATE INDEX memory_by_project ON public.memory_memory USING btree (organization_id, project_id, id DESC);
CREATE INDEX memory_by_run ON public.memory_memory USING btree (source_run_id) WHERE (source_run_id IS NOT NULL);
CREATE INDEX memory_by_source ON public.memory_memory USING gin (metadata) WHERE (metadata ? 'sources'::text);
CREATE INDEX memory_contextview_id_94aed741_like ON public.memory_contextview USING btree (id varchar_pattern_ops);
CREATE INDEX memory_contextview_organization_id_772d8e54 ON public.memory_contextview USING btree (organization_id);
CREATE INDEX memory_contextview_organization_id_772d8e54_like ON public.memory_contextview USING btree (organization_id varchar_pattern_ops);
CREATE INDEX memory_departedterms_scope_key_c460b928 ON public.memory_departedterms USING btree (scope_key);
CREATE UNIQUE INDEX memory_deposited_once ON public.memory_memory USING btree (source_run_id, original) WHERE (original IS NOT NULL);
CREATE INDEX memory_embedding_memory_id_5b8e8d3b_like ON public.memory_embedding USING btree (memory_id varchar_pattern_ops);
CREATE INDEX memory_embedding_scope ON public.memory_embedding USING btree (scope_key);
CREATE INDEX memory_embedding_stale ON public.memory_embedding USING btree (memory_id) WHERE ((model)::text = ''::text);
CREATE INDEX memory_embeddingprogress_model_436b5ccb_like ON public.memory_embeddingprogress USING btree (model varchar_pattern_ops);
CREATE INDEX memory_expiring ON public.memory_memory USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX memory_in_order ON public.memory_memory USING btree (scope_key, id) WHERE ((status)::text = 'active'::text);
CREATE INDEX memory_memory_superseded_by_id_24bf332f ON public.memory_memory USING btree (superseded_by_id);
CREATE INDEX memory_memoryrevision_by_id_1c8bdf28 ON public.memory_memoryrevision USING btree (by_id);
CREATE INDEX memory_memoryrevision_memory_id_175fe81c ON public.memory_memoryrevision USING btree (memory_id);
CREATE INDEX memory_memoryrevision_memory_id_175fe81c_like ON public.memory_memoryrevision USING btree (memory_id varchar_pattern_ops);
CREATE INDEX memory_of_group ON public.memory_memory USING btree (group_id) WHERE (group_id IS NOT NULL);
CREATE INDEX memory_of_user ON public.memory_memory USING btree (user_id) WHERE (user_id IS NOT NULL);
CREATE INDEX memory_page_parent_id_a0789783 ON public.memory_page USING btree (parent_id);
CREATE INDEX memory_pendingmemory_scope_key_d418b21c ON public.memory_pendingmemory USING btree (scope_key);
CREATE INDEX memory_search ON public.memory_memory USING gin (public.memory_keys(scope_key, search_vector)) WITH (gin_pending_list_limit='128') WHERE ((status)::text = 'active'::text);
CREATE INDEX notice_by_person ON public.runs_approvalnotice USING btree (user_id, organization_id, sent_at);
CREATE INDEX notice_open ON public.runs_approvalnotice USING btree (due_at) WHERE ((status)::text = ANY ((ARRAY['pending'::character varying, 'sending'::character varying])::text[]));
CREATE UNIQUE INDEX one_lead_at_most ON public.groups_groupmember USING btree (group_id) WHERE is_lead;
CREATE UNIQUE INDEX one_pending_approval_a_call ON public.runs_approval USING btree (tool_call_id) WHERE ((status)::text = 'pending'::text);
CREATE UNIQUE INDEX one_personal_agent_each ON public.groups_agentinstance USING btree (organization_id, user_id) WHERE (user_id IS NOT NULL);
CREATE INDEX outbound_answered ON public.runs_outboundcall USING btree (answered_at) WHERE (answered_at IS NOT NULL);
CREATE INDEX outbound_held ON public.runs_outboundcall USING btree (holder) WHERE ((NOT ((holder)::text = ''::text)) AND (answered_at IS NULL));
CREATE INDEX outbound_waiting ON public.runs_outboundcall USING btree (organization_id, target, rank, id) WHERE ((answered_at IS NULL) AND ((holder)::text = ''::text));
CREATE INDEX policy_capability_id_5d7df85a_like ON public.policy_capability USING btree (id varchar_pattern_ops);
CREATE INDEX policy_capability_name_62c060b0 ON public.policy_capability USING btree (name);
CREATE INDEX policy_capability_name_62c060b0_like ON public.policy_capability USING btree (name varchar_pattern_ops);
CREATE INDEX policy_capabilityrule_capability_id_8fdc3fec ON public.policy_capabilityrule USING btree (capability_id);
CREATE INDEX policy_capabilityrule_capability_id_8fdc3fec_like ON public.policy_capabilityrule USING btree (capability_id varchar_pattern_ops);
CREATE INDEX policy_capabilityrule_group_id_6a70c24d ON public.policy_capabilityrule USING btree (group_id);
CREATE INDEX policy_capabilityrule_group_id_6a70c24d_like ON public.policy_capabilityrule USING btree (group_id varchar_pattern_ops);
CREATE INDEX policy_capabilityrule_id_452ed28d_like ON public.policy_capabilityrule USING btree (id varchar_pattern_ops);
CREATE INDEX policy_capabilityrule_organization_id_70d057c2 ON public.policy_capabilityrule USING btree (organization_id);
CREATE INDEX policy_capabilityrule_organization_id_70d057c2_like ON public.policy_capabilityrule USING btree (organization_id varchar_pattern_ops);
CREATE INDEX policy_capabilityrule_project_id_36754b1e ON public.policy_capabilityrule USING btree (project_id);
CREATE INDEX policy_capabilityrule_project_id_36754b1e_like ON public.policy_capabilityrule USING btree (project_id varchar_pattern_ops);
CREATE INDEX policy_capabilityrule_role_id_44a166e6 ON public.policy_capabilityrule USING btree (role_id);
CREATE INDEX policy_capabilityrule_role_id_44a166e6_like ON public.policy_capabilityrule USING btree (role_id varchar_pattern_ops);
CREATE INDEX policy_grant_granted_by_id_86ea273f ON public.policy_grant USING btree (granted_by_id);
CREATE INDEX policy_grant_id_227e5535_like ON public.policy_grant USING btree (id varchar_pattern_ops);
CREATE INDEX policy_grant_organization_id_1d6ed7b7 ON public.policy_grant USING btree (organization_id);
CREATE INDEX policy_grant_organization_id_1d6ed7b7_like ON public.policy_grant USING btree (organization_id varchar_pattern_ops);
CREATE INDEX policy_grant_project_id_c3b09a50 ON public.policy_grant USING btree (project_id);
CREATE INDEX policy_grant_project_id_c3b09a50_like ON public.policy_grant USING btree (project_id varchar_pattern_ops);
CREATE INDEX policy_grantuse_grant_id_37c23d71 ON public.policy_grantuse USING btree (grant_id);
CREATE INDEX policy_grantuse_grant_id_37c23d71_like ON public.policy_grantuse USING btree (grant_id varchar_pattern_ops);
CREATE INDEX policy_outsideentity_id_13b2d3e5_like ON public.policy_outsideentity USING btree (id varchar_pattern_ops);
CREATE INDEX policy_policyversion_organization_id_fee235d0_like ON public.policy_policyversion USING btree (organization_id varchar_pattern_ops);
CREATE INDEX policy_toolbinding_capability_id_18d56e3f ON public.policy_toolbinding USING btree (capability_id);
CREATE INDEX policy_toolbinding_capability_id_18d56e3f_like ON public.policy_toolbinding USING btree (capability_id varchar_pattern_ops);
CREATE INDEX policy_toolbinding_id_98db80f8_like ON public.policy_toolbinding USING btree (id varchar_pattern_ops);
CREATE INDEX policy_tooldeclaration_id_91d0b6c0_like ON public.policy_tooldeclaration USING btree (id varchar_pattern_ops);
CREATE INDEX queue_in_turn ON public.runs_queuemessage USING btree (queue, priority, organization_id, due_at, id);
CREATE INDEX queue_later ON public.runs_queuemessage USING btree (queue, due_at) WHERE later;
CREATE INDEX run_by_project ON public.runs_run USING btree (organization_id, project_id, id DESC);
CREATE INDEX run_by_session ON public.runs_run USING btree (organization_id, user_id, project_id, session_key, id) WHERE (NOT ((session_key)::text = ''::text));
CREATE INDEX run_children ON public.runs_run USING btree (parent_run_id) WHERE (parent_run_id IS NOT NULL);
CREATE INDEX run_event_decisions ON public.runs_runevent USING btree (organization_id, created_at) WHERE ((type)::text = ANY ((ARRAY['tool.called'::character varying, 'tool.blocked'::character varying, 'tool.requires_approval'::character varying])::text[]));
CREATE INDEX run_event_id ON public.runs_runevent USING brin (id) WITH (autosummarize='on', pages_per_range='16');
CREATE INDEX run_external_deadline ON public.runs_run USING btree (deadline) WHERE (((driver)::text = 'external'::text) AND ((status)::text = ANY ((ARRAY['running'::character varying, 'waiting'::character varying])::text[])));
CREATE INDEX run_of_person ON public.runs_run USING btree (organization_id, user_id, id DESC) WHERE (depth = 0);
CREATE INDEX run_open ON public.runs_run USING btree (status, lease_expires_at) WHERE ((status)::text = ANY ((ARRAY['pending'::character varying, 'running'::character varying])::text[]));
CREATE INDEX run_queued ON public.runs_run USING btree (organization_id) WHERE ((status)::text = 'pending'::text);
CREATE INDEX runs_approval_decided_by_id_557f2038 ON public.runs_approval USING btree (decided_by_id);
CREATE INDEX runs_approval_run_id_6b409101 ON public.runs_approval USING btree (run_id);
CREATE INDEX runs_approval_tool_call_id_1c06c563 ON public.runs_approval USING btree (tool_call_id);
CREATE INDEX runs_approvaldecision_approval_id_b00a4d5a ON public.runs_approvaldecision USING btree (approval_id);
CREATE INDEX runs_approvaldecision_approval_id_b00a4d5a_like ON public.runs_approvaldecision USING btree (approval_id varchar_pattern_ops);
CREATE INDEX runs_approvaldecision_user_id_07ab2226 ON public.runs_approvaldecision USING btree (user_id);
CREATE INDEX runs_approvalnotice_approval_id_41d7e19c ON public.runs_approvalnotice USING btree (approval_id);
CREATE INDEX runs_approvalnotice_approval_id_41d7e19c_like ON public.runs_approvalnotice USING btree (approval_id varchar_pattern_ops);
CREATE INDEX runs_carrier_name_fde52822_like ON public.runs_carrier USING btree (name varchar_pattern_ops);
CREATE INDEX runs_follower_root_id_d22492ef_like ON public.runs_follower USING btree (root_id varchar_pattern_ops);
CREATE INDEX runs_mcpserver_id_3f0cd0f4_like ON public.runs_mcpserver USING btree (id varchar_pattern_ops);
CREATE INDEX runs_mcptool_id_bf5f660d_like ON public.runs_mcptool USING btree (id varchar_pattern_ops);
CREATE INDEX runs_modelkey_id_11abf71e_like ON public.runs_modelkey USING btree (id varchar_pattern_ops);
CREATE INDEX runs_outboundtarget_target_4e6044bd_like ON public.runs_outboundtarget USING btree (target varchar_pattern_ops);
CREATE INDEX runs_rating_run_id_fd01798f_like ON public.runs_rating USING btree (run_id varchar_pattern_ops);
CREATE INDEX runs_run_root_id_7bba9043 ON public.runs_run USING btree (root_id);
CREATE INDEX runs_schedule_id_bb1c40bc_like ON public.runs_schedule USING btree (id varchar_pattern_ops);
CREATE INDEX runs_schedule_project_id_afc7a172 ON public.runs_schedule USING btree (project_id);
CREATE INDEX runs_schedule_project_id_afc7a172_like ON public.runs_schedule USING btree (project_id varchar_pattern_ops);
CREATE INDEX runs_scheduledrun_id_3d906933_like ON public.runs_scheduledrun USING btree (id varchar_pattern_ops);
CREATE INDEX runs_scheduledrun_run_id_439b172b ON public.runs_scheduledrun USING btree (run_id);
CREATE INDEX runs_scheduledrun_run_id_439b172b_like ON public.runs_scheduledrun USING btree (run_id varchar_pattern_ops);
CREATE INDEX runs_webhookdelivery_id_2e591236_like ON public.runs_webhookdelivery USING btree (id varchar_pattern_ops);
CREATE INDEX runs_webhookendpoint_id_e91078aa_like ON public.runs_webhookendpoint USING btree (id varchar_pattern_ops);
CREATE INDEX runs_webhookendpoint_project_id_5c42a280 ON public.runs_webhookendpoint USING btree (project_id);
CREATE INDEX runs_webhookendpoint_project_id_5c42a280_like ON public.runs_webhookendpoint USING btree (project_id varchar_pattern_ops);
CREATE INDEX runs_workergroup_name_ef024c5b_like ON public.runs_workergroup USING btree (name varchar_pattern_ops);
CREATE INDEX schedule_due ON public.runs_schedule USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX schedule_of_person ON public.runs_schedule USING btree (organization_id, user_id, id DESC);
CREATE INDEX success_index ON public.django_q_task USING btree ("group", name, func) WHERE success;
CREATE INDEX wait_open_child ON public.runs_wait USING btree (child_run_id) WHERE (resolved_at IS NULL);
CREATE INDEX wait_open_expiry ON public.runs_wait USING btree (expires_at) WHERE (resolved_at IS NULL);
CREATE INDEX webhook_delivery_by_age ON public.runs_webhookdelivery USING btree (created_at);
CREATE INDEX webhook_delivery_due ON public.runs_webhookdelivery USING btree (next_attempt_at) WHERE ((status)::text = 'pending'::text);
CREATE INDEX webhook_delivery_log ON public.runs_webhookdelivery USING btree (endpoint_id, id DESC);
CREATE INDEX webhook_on ON public.runs_webhookendpoint USING btree (organization_id) WHERE enabled;
CREATE TRIGGER membership_stays BEFORE UPDATE ON public.groups_membership FOR EACH ROW WHEN ((((old.kind)::text IS DISTINCT FROM (new.kind)::text) OR (old.user_id IS DISTINCT FROM new.user_id) OR ((old.organization_id)::text IS DISTINCT FROM (new.organization_id)::text))) EXECUTE FUNCTION public.groups_membership_stays();
CREATE TRIGGER memory_changed AFTER UPDATE ON public.memory_memory FOR EACH ROW WHEN ((((new.status)::text <> (old.status)::text) OR (new.search_vector <> old.search_vector) OR (new.scope_key <> old.scope_key))) EXECUTE FUNCTION public.memory_count_again();
CREATE TRIGGER memory_deleted AFTER DELETE ON public.memory_memory FOR EACH ROW EXECUTE FUNCTION public.memory_count_again();
CREATE TRIGGER memory_edited AFTER UPDATE ON public.memory_memory FOR EACH ROW WHEN (((new.content <> old.content) OR (new.scope_key <> old.scope_key))) EXECUTE FUNCTION public.memory_embed_again();
CREATE TRIGGER memory_keep_lineage BEFORE UPDATE ON public.memory_memory FOR EACH ROW WHEN ((((new.organization_id)::text <> (old.organization_id)::text) OR ((new.source_run_id)::text IS DISTINCT FROM (old.source_run_id)::text) OR ((new.original)::text IS DISTINCT FROM (old.original)::text) OR ((new.metadata -> 'deposited_at'::text) IS DISTINCT FROM (old.metadata -> 'deposited_at'::text)))) EXECUTE FUNCTION public.memory_keep_lineage();
CREATE TRIGGER memory_written AFTER INSERT ON public.memory_memory FOR EACH ROW WHEN (((new.status)::text = 'active'::text)) EXECUTE FUNCTION public.memory_count_later();
CREATE TRIGGER touch_catalog AFTER INSERT OR DELETE OR UPDATE ON public.groups_group FOR EACH ROW EXECUTE FUNCTION public.groups_touch_catalog();
CREATE TRIGGER touch_catalog AFTER INSERT OR DELETE OR UPDATE ON public.groups_groupmember FOR EACH ROW EXECUTE FUNCTION public.groups_touch_catalog();
CREATE TRIGGER touch_catalog AFTER UPDATE ON public.groups_role FOR EACH ROW EXECUTE FUNCTION public.groups_touch_catalog();
CREATE TRIGGER touch_policy AFTER INSERT OR DELETE OR UPDATE ON public.groups_role FOR EACH ROW EXECUTE FUNCTION public.policy_touch_version();
CREATE TRIGGER touch_policy AFTER INSERT OR DELETE OR UPDATE ON public.policy_capability FOR EACH ROW EXECUTE FUNCTION public.policy_touch_version();
CREATE TRIGGER touch_policy AFTER INSERT OR DELETE OR UPDATE ON public.policy_capabilityrule FOR EACH ROW EXECUTE FUNCTION public.policy_touch_version();
CREATE TRIGGER touch_policy AFTER INSERT OR DELETE OR UPDATE ON public.policy_toolbinding FOR EACH ROW EXECUTE FUNCTION public.policy_touch_version();
CREATE TRIGGER touch_policy AFTER INSERT OR DELETE OR UPDATE ON public.policy_tooldeclaration FOR EACH ROW EXECUTE FUNCTION public.policy_touch_version();
CREATE TRIGGER touch_policy AFTER UPDATE OF name, enabled ON public.runs_mcpserver FOR EACH ROW WHEN ((((old.name)::text <> (new.name)::text) OR (old.enabled <> new.enabled))) EXECUTE FUNCTION public.policy_touch_version();
CREATE TRIGGER touch_policy AFTER INSERT OR DELETE OR UPDATE ON public.runs_mcptool FOR EACH ROW EXECUTE FUNCTION public.policy_touch_version();
ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissio_permission_id_84c5c92e_fk_auth_perm FOREIGN KEY (permission_id) REFERENCES public.auth_permission(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_group_id_b120cbf9_fk_auth_group_id FOREIGN KEY (group_id) REFERENCES public.auth_group(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.auth_permission
    ADD CONSTRAINT auth_permission_content_type_id_2f476e4b_fk_django_co FOREIGN KEY (content_type_id) REFERENCES public.django_content_type(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.auth_user_groups
    ADD CONSTRAINT auth_user_groups_group_id_97559544_fk_auth_group_id FOREIGN KEY (group_id) REFERENCES public.auth_group(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.auth_user_groups
    ADD CONSTRAINT auth_user_groups_user_id_6a12ed8b_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permi_permission_id_1fbb5f2c_fk_auth_perm FOREIGN KEY (permission_id) REFERENCES public.auth_permission(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permissions_user_id_a95ead1b_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.django_admin_log
    ADD CONSTRAINT django_admin_log_content_type_id_c4bce8eb_fk_django_co FOREIGN KEY (content_type_id) REFERENCES public.django_content_type(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.django_admin_log
    ADD CONSTRAINT django_admin_log_user_id_c564eba6_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_agentinstance
    ADD CONSTRAINT groups_agentinstance_organization_id_d94c703a_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_agentinstance
    ADD CONSTRAINT groups_agentinstance_role_id_6439ab4a_fk_groups_role_id FOREIGN KEY (role_id) REFERENCES public.groups_role(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_agentinstance
    ADD CONSTRAINT groups_agentinstance_user_id_77332d06_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_change
    ADD CONSTRAINT groups_change_user_id_00ea050d_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_customrole
    ADD CONSTRAINT groups_customrole_organization_id_828a2a75_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_group
    ADD CONSTRAINT groups_group_organization_id_53708637_fk_groups_organization_id FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_group
    ADD CONSTRAINT groups_group_project_id_52259abb_fk_groups_project_id FOREIGN KEY (project_id) REFERENCES public.groups_project(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_groupmember
    ADD CONSTRAINT groups_groupmember_agent_instance_id_6198ddf0_fk_groups_ag FOREIGN KEY (agent_instance_id) REFERENCES public.groups_agentinstance(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_groupmember
    ADD CONSTRAINT groups_groupmember_group_id_1c1b676d_fk_groups_group_id FOREIGN KEY (group_id) REFERENCES public.groups_group(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_groupmember
    ADD CONSTRAINT groups_groupmember_organization_id_b25863d6_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_groupmember
    ADD CONSTRAINT groups_groupmember_role_id_9ff06488_fk_groups_role_id FOREIGN KEY (role_id) REFERENCES public.groups_role(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_membership
    ADD CONSTRAINT groups_membership_custom_role_id_ab93c278_fk_groups_cu FOREIGN KEY (custom_role_id) REFERENCES public.groups_customrole(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_membership
    ADD CONSTRAINT groups_membership_organization_id_4f0587a7_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_membership
    ADD CONSTRAINT groups_membership_user_id_0a0fb8a9_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_project
    ADD CONSTRAINT groups_project_organization_id_f0e89ece_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_role
    ADD CONSTRAINT groups_role_organization_id_bfcb4966_fk_groups_organization_id FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_routingexample
    ADD CONSTRAINT groups_routingexampl_organization_id_688c3c6f_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_routingexample
    ADD CONSTRAINT groups_routingexample_corrected_by_id_37ede625_fk_auth_user_id FOREIGN KEY (corrected_by_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_routingexample
    ADD CONSTRAINT groups_routingexample_group_id_1cb270a2_fk_groups_group_id FOREIGN KEY (group_id) REFERENCES public.groups_group(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_token
    ADD CONSTRAINT groups_token_organization_id_88bbfb93_fk_groups_organization_id FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.groups_token
    ADD CONSTRAINT groups_token_user_id_f7dbd912_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.memory_contextview
    ADD CONSTRAINT memory_contextview_organization_id_772d8e54_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.memory_contextview
    ADD CONSTRAINT memory_contextview_project_id_7b5eab67_fk_groups_project_id FOREIGN KEY (project_id) REFERENCES public.groups_project(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.memory_embedding
    ADD CONSTRAINT memory_embedding_memory_id_5b8e8d3b_fk_memory_memory_id FOREIGN KEY (memory_id) REFERENCES public.memory_memory(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.memory_memory
    ADD CONSTRAINT memory_memory_agent_instance_id_88a659ac_fk_groups_ag FOREIGN KEY (agent_instance_id) REFERENCES public.groups_agentinstance(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.memory_memory
    ADD CONSTRAINT memory_memory_group_id_6ee0209d_fk_groups_group_id FOREIGN KEY (group_id) REFERENCES public.groups_group(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.memory_memory
    ADD CONSTRAINT memory_memory_organization_id_3556a860_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.memory_memory
    ADD CONSTRAINT memory_memory_superseded_by_id_24bf332f_fk_memory_memory_id FOREIGN KEY (superseded_by_id) REFERENCES public.memory_memory(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.memory_memory
    ADD CONSTRAINT memory_memory_user_id_1f05b3bb_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.memory_memoryrevision
    ADD CONSTRAINT memory_memoryrevision_by_id_1c8bdf28_fk_auth_user_id FOREIGN KEY (by_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.memory_memoryrevision
    ADD CONSTRAINT memory_memoryrevision_memory_id_175fe81c_fk_memory_memory_id FOREIGN KEY (memory_id) REFERENCES public.memory_memory(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.memory_page
    ADD CONSTRAINT memory_page_organization_id_de560152_fk_groups_organization_id FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.memory_page
    ADD CONSTRAINT memory_page_parent_id_a0789783_fk_memory_page_id FOREIGN KEY (parent_id) REFERENCES public.memory_page(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.memory_page
    ADD CONSTRAINT memory_page_segment_id_4e6c6131_fk_memory_segment_id FOREIGN KEY (segment_id) REFERENCES public.memory_segment(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.memory_page
    ADD CONSTRAINT memory_page_view_id_7dbe3136_fk_memory_contextview_id FOREIGN KEY (view_id) REFERENCES public.memory_contextview(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.memory_memory
    ADD CONSTRAINT memory_project_of_organization FOREIGN KEY (organization_id, project_id) REFERENCES public.groups_project(organization_id, id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.memory_segment
    ADD CONSTRAINT memory_segment_organization_id_4a366eea_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.memory_segment
    ADD CONSTRAINT memory_segment_view_id_fa1b02fd_fk_memory_contextview_id FOREIGN KEY (view_id) REFERENCES public.memory_contextview(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.policy_capability
    ADD CONSTRAINT policy_capability_organization_id_d5f24a92_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.policy_capabilityrule
    ADD CONSTRAINT policy_capabilityrul_capability_id_8fdc3fec_fk_policy_ca FOREIGN KEY (capability_id) REFERENCES public.policy_capability(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.policy_capabilityrule
    ADD CONSTRAINT policy_capabilityrul_organization_id_70d057c2_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.policy_capabilityrule
    ADD CONSTRAINT policy_capabilityrule_group_id_6a70c24d_fk_groups_group_id FOREIGN KEY (group_id) REFERENCES public.groups_group(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.policy_capabilityrule
    ADD CONSTRAINT policy_capabilityrule_project_id_36754b1e_fk_groups_project_id FOREIGN KEY (project_id) REFERENCES public.groups_project(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.policy_capabilityrule
    ADD CONSTRAINT policy_capabilityrule_role_id_44a166e6_fk_groups_role_id FOREIGN KEY (role_id) REFERENCES public.groups_role(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.policy_grant
    ADD CONSTRAINT policy_grant_granted_by_id_86ea273f_fk_auth_user_id FOREIGN KEY (granted_by_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.policy_grant
    ADD CONSTRAINT policy_grant_organization_id_1d6ed7b7_fk_groups_organization_id FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.policy_grant
    ADD CONSTRAINT policy_grant_project_id_c3b09a50_fk_groups_project_id FOREIGN KEY (project_id) REFERENCES public.groups_project(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.policy_grantuse
    ADD CONSTRAINT policy_grantuse_grant_id_37c23d71_fk_policy_grant_id FOREIGN KEY (grant_id) REFERENCES public.policy_grant(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.policy_grantuse
    ADD CONSTRAINT policy_grantuse_organization_id_e61a4596_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.policy_outsideentity
    ADD CONSTRAINT policy_outsideentity_organization_id_f08edfec_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.policy_policyversion
    ADD CONSTRAINT policy_policyversion_organization_id_fee235d0_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.policy_toolbinding
    ADD CONSTRAINT policy_toolbinding_capability_id_18d56e3f_fk_policy_ca FOREIGN KEY (capability_id) REFERENCES public.policy_capability(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.policy_toolbinding
    ADD CONSTRAINT policy_toolbinding_organization_id_fbda83e9_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.policy_tooldeclaration
    ADD CONSTRAINT policy_tooldeclarati_organization_id_2b78bf6d_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_approval
    ADD CONSTRAINT runs_approval_decided_by_id_557f2038_fk_auth_user_id FOREIGN KEY (decided_by_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_approval
    ADD CONSTRAINT runs_approval_organization_id_96b5f8de_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_approval
    ADD CONSTRAINT runs_approval_replaces_id_6478380c_fk_runs_approval_id FOREIGN KEY (replaces_id) REFERENCES public.runs_approval(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_approval
    ADD CONSTRAINT runs_approval_run_id_6b409101_fk_runs_run_id FOREIGN KEY (run_id) REFERENCES public.runs_run(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_approval
    ADD CONSTRAINT runs_approval_tool_call_id_1c06c563_fk_runs_toolcall_id FOREIGN KEY (tool_call_id) REFERENCES public.runs_toolcall(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_approvaldecision
    ADD CONSTRAINT runs_approvaldecisio_organization_id_dd293a65_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_approvaldecision
    ADD CONSTRAINT runs_approvaldecision_approval_id_b00a4d5a_fk_runs_approval_id FOREIGN KEY (approval_id) REFERENCES public.runs_approval(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_approvaldecision
    ADD CONSTRAINT runs_approvaldecision_user_id_07ab2226_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_approvalnotice
    ADD CONSTRAINT runs_approvalnotice_approval_id_41d7e19c_fk_runs_approval_id FOREIGN KEY (approval_id) REFERENCES public.runs_approval(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_approvalnotice
    ADD CONSTRAINT runs_approvalnotice_organization_id_0959b09e_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_approvalnotice
    ADD CONSTRAINT runs_approvalnotice_user_id_7f369923_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_conversation
    ADD CONSTRAINT runs_conversation_organization_id_a9c757d8_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_conversation
    ADD CONSTRAINT runs_conversation_project_id_247f258f_fk_groups_project_id FOREIGN KEY (project_id) REFERENCES public.groups_project(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_conversation
    ADD CONSTRAINT runs_conversation_user_id_78fdbf8a_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_idempotencyrecord
    ADD CONSTRAINT runs_idempotencyreco_organization_id_15041c33_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_idempotencyrecord
    ADD CONSTRAINT runs_idempotencyrecord_user_id_95aa816f_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_mcpserver
    ADD CONSTRAINT runs_mcpserver_organization_id_19f2454e_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_mcptool
    ADD CONSTRAINT runs_mcptool_accepted_by_id_6e088917_fk_auth_user_id FOREIGN KEY (accepted_by_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_mcptool
    ADD CONSTRAINT runs_mcptool_organization_id_151dc880_fk_groups_organization_id FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_mcptool
    ADD CONSTRAINT runs_mcptool_server_id_0f180be7_fk_runs_mcpserver_id FOREIGN KEY (server_id) REFERENCES public.runs_mcpserver(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_modelkey
    ADD CONSTRAINT runs_modelkey_organization_id_19e0f4ef_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_rating
    ADD CONSTRAINT runs_rating_organization_id_ad3deed5_fk_groups_organization_id FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_rating
    ADD CONSTRAINT runs_rating_run_id_fd01798f_fk_runs_run_id FOREIGN KEY (run_id) REFERENCES public.runs_run(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_rating
    ADD CONSTRAINT runs_rating_user_id_27cdabc5_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_run
    ADD CONSTRAINT runs_run_agent_instance_id_035fd6c8_fk_groups_agentinstance_id FOREIGN KEY (agent_instance_id) REFERENCES public.groups_agentinstance(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_run
    ADD CONSTRAINT runs_run_group_id_8ff1b68b_fk_groups_group_id FOREIGN KEY (group_id) REFERENCES public.groups_group(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_run
    ADD CONSTRAINT runs_run_organization_id_f8dd9ba6_fk_groups_organization_id FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_run
    ADD CONSTRAINT runs_run_parent_run_id_c4a76b50_fk_runs_run_id FOREIGN KEY (parent_run_id) REFERENCES public.runs_run(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_run
    ADD CONSTRAINT runs_run_project_id_f1a383ab_fk_groups_project_id FOREIGN KEY (project_id) REFERENCES public.groups_project(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_run
    ADD CONSTRAINT runs_run_role_id_f082f26d_fk_groups_role_id FOREIGN KEY (role_id) REFERENCES public.groups_role(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_run
    ADD CONSTRAINT runs_run_root_id_7bba9043_fk_runs_run_id FOREIGN KEY (root_id) REFERENCES public.runs_run(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_run
    ADD CONSTRAINT runs_run_user_id_da0ac57b_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_schedule
    ADD CONSTRAINT runs_schedule_organization_id_34b13f91_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_schedule
    ADD CONSTRAINT runs_schedule_project_id_afc7a172_fk_groups_project_id FOREIGN KEY (project_id) REFERENCES public.groups_project(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_schedule
    ADD CONSTRAINT runs_schedule_user_id_2e30e9cb_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_scheduledrun
    ADD CONSTRAINT runs_scheduledrun_organization_id_68d1345f_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_scheduledrun
    ADD CONSTRAINT runs_scheduledrun_run_id_439b172b_fk_runs_run_id FOREIGN KEY (run_id) REFERENCES public.runs_run(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_scheduledrun
    ADD CONSTRAINT runs_scheduledrun_schedule_id_7af110ea_fk_runs_schedule_id FOREIGN KEY (schedule_id) REFERENCES public.runs_schedule(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_toolcall
    ADD CONSTRAINT runs_toolcall_run_id_d2fbb3a3_fk_runs_run_id FOREIGN KEY (run_id) REFERENCES public.runs_run(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_triedmodel
    ADD CONSTRAINT runs_triedmodel_organization_id_05c82303_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_triedmodel
    ADD CONSTRAINT runs_triedmodel_tried_by_id_9c57355b_fk_auth_user_id FOREIGN KEY (tried_by_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_wait
    ADD CONSTRAINT runs_wait_child_run_id_5d9a0c6e_fk_runs_run_id FOREIGN KEY (child_run_id) REFERENCES public.runs_run(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_wait
    ADD CONSTRAINT runs_wait_run_id_1c89afcf_fk_runs_run_id FOREIGN KEY (run_id) REFERENCES public.runs_run(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_wait
    ADD CONSTRAINT runs_wait_tool_call_id_749f852f_fk_runs_toolcall_id FOREIGN KEY (tool_call_id) REFERENCES public.runs_toolcall(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_webhookdelivery
    ADD CONSTRAINT runs_webhookdelivery_endpoint_id_62a9c1fb_fk_runs_webh FOREIGN KEY (endpoint_id) REFERENCES public.runs_webhookendpoint(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_webhookdelivery
    ADD CONSTRAINT runs_webhookdelivery_organization_id_f176201e_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_webhookendpoint
    ADD CONSTRAINT runs_webhookendpoint_organization_id_965ce710_fk_groups_or FOREIGN KEY (organization_id) REFERENCES public.groups_organization(id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY public.runs_webhookendpoint
    ADD CONSTRAINT runs_webhookendpoint_project_id_5c42a280_fk_groups_project_id FOREIGN KEY (project_id) REFERENCES public.groups_project(id) DEFERRABLE INITIALLY DEFERRED;
