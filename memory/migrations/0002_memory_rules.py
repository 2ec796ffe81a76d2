"""Rules of the memory table that Django has no words for."""

from django.db import migrations

# A project of another organization is refused by the database itself.
SAME_ORGANIZATION = """
    ALTER TABLE memory_memory ADD CONSTRAINT memory_project_of_organization
        FOREIGN KEY (organization_id, project_id) REFERENCES groups_project (organization_id, id)
        ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
"""

# Where a memory belongs and where it came from never changes: what is promoted or merged is a new row.
LINEAGE = """
    CREATE FUNCTION memory_keep_lineage() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'a memory''s organization and source run never change' USING ERRCODE = 'check_violation';
    END $$;
    CREATE TRIGGER memory_keep_lineage BEFORE UPDATE ON memory_memory FOR EACH ROW
        WHEN (NEW.organization_id <> OLD.organization_id
              OR NEW.source_run_id IS DISTINCT FROM OLD.source_run_id
              OR NEW.original IS DISTINCT FROM OLD.original
              OR NEW.metadata -> 'deposited_at' IS DISTINCT FROM OLD.metadata -> 'deposited_at')
        EXECUTE FUNCTION memory_keep_lineage();
"""

# What becomes active is to be counted, however it was written.
COUNTED_LATER = """
    CREATE FUNCTION memory_count_later() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO memory_pendingmemory (memory_id, scope_key) VALUES (NEW.id, NEW.scope_key)
            ON CONFLICT DO NOTHING;
        RETURN NULL;
    END $$;
    CREATE TRIGGER memory_written AFTER INSERT ON memory_memory FOR EACH ROW
        WHEN (NEW.status = 'active') EXECUTE FUNCTION memory_count_later();
    CREATE TRIGGER memory_approved AFTER UPDATE OF status ON memory_memory FOR EACH ROW
        WHEN (NEW.status = 'active' AND OLD.status = 'pending_review') EXECUTE FUNCTION memory_count_later();
"""

# The search index: one bigint for each term in its scope. A plain index over (scope, terms) reads a large
# scope's whole posting list beside each term's; here a term's list holds its own scope's memories alone.
# hashtextextended is what hash partitioning relies on, so that its values stay as they are. Whether the
# memory is really of that scope is asked of the row itself.
SEARCH_INDEX = """
    CREATE FUNCTION memory_key(scope_key uuid, term text) RETURNS bigint
        LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
        RETURN hashtextextended(term COLLATE "C", hashtextextended(scope_key::text COLLATE "C", 0));
    CREATE FUNCTION memory_keys(scope_key uuid, terms tsvector) RETURNS bigint[]
        LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
        RETURN (SELECT array_agg(hashtextextended(lexeme COLLATE "C", seed))
                FROM hashtextextended(scope_key::text COLLATE "C", 0) AS seed,
                     unnest(tsvector_to_array(terms)) AS lexeme);
    CREATE INDEX memory_search ON memory_memory USING gin (memory_keys(scope_key, search_vector))
        WITH (gin_pending_list_limit = 256) WHERE status = 'active';
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0001_memory"), ("groups", "0001_initial")]

    operations = [
        migrations.RunSQL(
            SAME_ORGANIZATION, "ALTER TABLE memory_memory DROP CONSTRAINT memory_project_of_organization"
        ),
        migrations.RunSQL(
            SEARCH_INDEX,
            "DROP INDEX memory_search; DROP FUNCTION memory_keys(uuid, tsvector);"
            " DROP FUNCTION memory_key(uuid, text)",
        ),
        migrations.RunSQL(
            LINEAGE,
            "DROP TRIGGER memory_keep_lineage ON memory_memory; DROP FUNCTION memory_keep_lineage()",
        ),
        migrations.RunSQL(
            COUNTED_LATER,
            "DROP TRIGGER memory_written ON memory_memory; DROP TRIGGER memory_approved ON memory_memory;"
            " DROP FUNCTION memory_count_later()",
        ),
    ]
