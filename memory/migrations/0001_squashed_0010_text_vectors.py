"""Memories, what is counted and indexed of them, their embeddings, and context views."""

import common.ids
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import memory.context.models
import memory.models.columns
import memory.models.embeddings
from django.conf import settings
from django.db import migrations, models

from common.indexes import drop_pattern_indexes
from memory.migrations._functions import CANDIDATES, COUNTED, FIND

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
        WITH (gin_pending_list_limit = 128) WHERE status = 'active';
"""

# Vectors neither compress nor are read with the rest of their row.
OUT_OF_LINE = "ALTER TABLE memory_embedding ALTER COLUMN vector SET STORAGE EXTERNAL"

# A text that has changed has no vector any more.
STALE = """
    CREATE FUNCTION memory_embed_again() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE memory_embedding SET scope_key = NEW.scope_key, model = '', vector = NULL
        WHERE memory_id = NEW.id;
        RETURN NULL;
    END $$;
    CREATE TRIGGER memory_edited AFTER UPDATE ON memory_memory FOR EACH ROW
        WHEN (NEW.content <> OLD.content OR NEW.scope_key <> OLD.scope_key)
        EXECUTE FUNCTION memory_embed_again();
"""

# What is counted and changes, or goes, is taken off again. Whether it is counted is said by its pending row:
# while the counting is at work on that, this waits for it and then knows.
COUNTED_AGAIN = """
    CREATE FUNCTION memory_count_again() RETURNS trigger LANGUAGE plpgsql AS $$
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
    CREATE TRIGGER memory_changed AFTER UPDATE ON memory_memory FOR EACH ROW
        WHEN (NEW.status <> OLD.status OR NEW.search_vector <> OLD.search_vector
              OR NEW.scope_key <> OLD.scope_key)
        EXECUTE FUNCTION memory_count_again();
    CREATE TRIGGER memory_deleted AFTER DELETE ON memory_memory FOR EACH ROW
        EXECUTE FUNCTION memory_count_again();
"""


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ('memory', '0001_memory'),
        ('memory', '0002_memory_rules'),
        ('memory', '0003_context'),
        ('memory', '0004_embeddings'),
        ('memory', '0005_counted_exactly'),
        ('memory', '0006_no_pattern_indexes'),
        ('memory', '0007_remembered'),
        ('memory', '0008_search_on_the_server'),
        ('memory', '0009_weighed_by_length'),
        ('memory', '0010_text_vectors'),
    ]

    dependencies = [
        ('groups', '0001_squashed_0013_not_known_yet'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='DepartedTerms',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('scope_key', models.UUIDField(db_index=True)),
                ('search_vector', django.contrib.postgres.search.SearchVectorField()),
                ('length', models.PositiveIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='Memory',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.memory_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('type', models.CharField(choices=[('core', 'Core'), ('episodic', 'Episodic'), ('archival', 'Archival')], max_length=10)),
                ('content', models.TextField()),
                ('metadata', models.JSONField(blank=True, default=dict)),
                ('importance', models.FloatField(default=0.5, help_text='0 to 1; decides between memories that match equally well.', validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1)])),
                ('status', models.CharField(choices=[('active', 'Active'), ('pending_review', 'Waits for review'), ('retracted', 'Retracted'), ('superseded', 'Superseded')], default='active', max_length=15)),
                ('source_run_id', models.CharField(blank=True, editable=False, max_length=31, null=True)),
                ('original', models.CharField(blank=True, editable=False, max_length=64, null=True)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('scope_key', models.GeneratedField(db_persist=True, expression=memory.models.columns.ScopeKey(), output_field=models.UUIDField())),
                ('search_vector', memory.models.columns.TermVectorField(editable=False)),
                ('length', memory.models.columns.LengthField(default=0, editable=False)),
                ('agent_instance', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.agentinstance')),
                ('group', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.group')),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('project', models.ForeignKey(blank=True, db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.project')),
                ('superseded_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='supersedes', to='memory.memory')),
                ('user', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('type__in', ['core', 'episodic', 'archival'])), name='memory_type'),
                    models.CheckConstraint(condition=models.Q(('status__in', ['active', 'pending_review', 'retracted', 'superseded'])), name='memory_status'),
                    models.CheckConstraint(condition=models.Q(('importance__gte', 0), ('importance__lte', 1)), name='memory_importance'),
                    models.CheckConstraint(condition=models.Q(('content', ''), _negated=True), name='memory_content'),
                    models.CheckConstraint(condition=models.Q(models.Q(('type', 'archival'), _negated=True), models.Q(('agent_instance', None), ('group', None), ('user', None)), _connector='OR'), name='memory_archival_is_shared'),
                    models.CheckConstraint(condition=models.Q(('group', None), models.Q(('agent_instance', None), ('project__isnull', False), ('user', None)), _connector='OR'), name='memory_group_scope'),
                    models.CheckConstraint(condition=models.Q(models.Q(('metadata__contains', {'pa_preference': True}), _negated=True), models.Q(('agent_instance__isnull', False), ('group', None), ('project', None), ('type', 'core'), ('user__isnull', False)), _connector='OR'), name='memory_preference_scope'),
                    models.UniqueConstraint(condition=models.Q(('original__isnull', False)), fields=('source_run_id', 'original'), name='memory_deposited_once'),
                ],
                'indexes': [
                    models.Index(fields=['organization', 'project', '-id'], name='memory_by_project'),
                    models.Index(condition=models.Q(('status', 'active')), fields=['scope_key', 'id'], name='memory_in_order'),
                    models.Index(condition=models.Q(('source_run_id__isnull', False)), fields=['source_run_id'], name='memory_by_run'),
                    models.Index(condition=models.Q(('expires_at__isnull', False)), fields=['expires_at'], name='memory_expiring'),
                    django.contrib.postgres.indexes.GinIndex(condition=models.Q(('metadata__has_key', 'sources')), fields=['metadata'], name='memory_by_source'),
                    models.Index(condition=models.Q(('user__isnull', False)), fields=['user'], name='memory_of_user'),
                    models.Index(condition=models.Q(('group__isnull', False)), fields=['group'], name='memory_of_group'),
                ],
                'verbose_name_plural': 'memories',
                'permissions': [('curate_memory', 'Can approve, retract, merge and promote knowledge')],
            },
        ),
        migrations.CreateModel(
            name='EmbeddingProgress',
            fields=[
                ('model', models.CharField(max_length=200, primary_key=True, serialize=False)),
                ('memory_id', models.CharField(default='', max_length=31)),
            ],
        ),
        migrations.CreateModel(
            name='PendingMemory',
            fields=[
                ('memory_id', models.CharField(max_length=31, primary_key=True, serialize=False)),
                ('scope_key', models.UUIDField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name='ScopeSize',
            fields=[
                ('scope_key', models.UUIDField(primary_key=True, serialize=False)),
                ('memories', models.PositiveIntegerField()),
                ('terms', models.PositiveBigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='TermCount',
            fields=[
                ('pk', models.CompositePrimaryKey('scope_key', 'term', blank=True, editable=False, primary_key=True, serialize=False)),
                ('scope_key', models.UUIDField()),
                ('term', models.CharField(max_length=64)),
                ('memories', models.PositiveIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='TextVector',
            fields=[
                ('pk', models.CompositePrimaryKey('model', 'digest', blank=True, editable=False, primary_key=True, serialize=False)),
                ('model', models.CharField(max_length=200)),
                ('digest', models.CharField(max_length=64)),
                ('vector', memory.models.embeddings.VectorField()),
            ],
        ),
        migrations.CreateModel(
            name='ContextView',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=memory.context.models.view_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('owner', models.CharField(max_length=31)),
                ('session_key', models.CharField(blank=True, default='', max_length=200)),
                ('version', models.PositiveIntegerField(default=0)),
                ('retired', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=32), blank=True, default=list, size=None)),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.project')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('owner', 'project', 'session_key'), name='context_view_unique'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Embedding',
            fields=[
                ('memory', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='memory.memory')),
                ('scope_key', models.UUIDField()),
                ('model', models.CharField(max_length=200)),
                ('vector', memory.models.embeddings.VectorField(null=True)),
            ],
            options={
                'indexes': [
                    models.Index(fields=['scope_key'], name='memory_embedding_scope'),
                    models.Index(condition=models.Q(('model', '')), fields=['memory'], name='memory_embedding_stale'),
                ],
            },
        ),
        migrations.CreateModel(
            name='DepositedKnowledge',
            fields=[
            ],
            options={
                'verbose_name': 'Deposited knowledge',
                'verbose_name_plural': 'Deposited knowledge',
                'proxy': True,
                'indexes': [],
                'constraints': [],
            },
            bases=('memory.memory',),
        ),
        migrations.CreateModel(
            name='Remembered',
            fields=[
            ],
            options={
                'verbose_name': 'memory',
                'verbose_name_plural': 'What agents remember',
                'proxy': True,
                'indexes': [],
                'constraints': [],
            },
            bases=('memory.memory',),
        ),
        migrations.CreateModel(
            name='MemoryRevision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('action', models.CharField(max_length=20)),
                ('before', models.JSONField(help_text='The fields that changed, as they were.')),
                ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('memory', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='memory.memory')),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='Segment',
            fields=[
                ('id', models.UUIDField(default=memory.context.models.row_id, editable=False, primary_key=True, serialize=False)),
                ('segment_id', models.CharField(max_length=32)),
                ('name', models.CharField(max_length=200)),
                ('description', models.TextField(blank=True)),
                ('type', models.CharField(choices=[('system', 'System'), ('user', 'User'), ('tool', 'Tool'), ('custom', 'Custom')], max_length=10)),
                ('permission', models.CharField(choices=[('read_only', 'Read only'), ('read_write', 'Read and write'), ('system_managed', 'Managed by the system')], max_length=20)),
                ('position', models.PositiveIntegerField(default=0)),
                ('next_index', models.PositiveIntegerField(default=1)),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('view', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='segments', to='memory.contextview')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('view', 'segment_id'), name='context_segment_unique'),
                    models.CheckConstraint(condition=models.Q(('type__in', ['system', 'user', 'tool', 'custom'])), name='context_segment_type'),
                    models.CheckConstraint(condition=models.Q(('permission__in', ['read_only', 'read_write', 'system_managed'])), name='context_segment_permission'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Page',
            fields=[
                ('id', models.UUIDField(default=memory.context.models.row_id, editable=False, primary_key=True, serialize=False)),
                ('index', models.CharField(max_length=44)),
                ('kind', models.CharField(choices=[('contents', 'Contents'), ('detail', 'Detail')], max_length=10)),
                ('position', models.PositiveIntegerField(default=0)),
                ('name', models.CharField(max_length=200)),
                ('description', models.TextField(blank=True)),
                ('detail', models.TextField(blank=True)),
                ('visibility', models.CharField(choices=[('expanded', 'Expanded'), ('hidden', 'Hidden')], default='expanded', max_length=10)),
                ('opened_at', models.PositiveIntegerField(default=0, help_text="The view's version when last opened.")),
                ('child_count', models.PositiveIntegerField(default=0)),
                ('source', models.CharField(blank=True, default='', max_length=200)),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('parent', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='children', to='memory.page')),
                ('view', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='pages', to='memory.contextview')),
                ('segment', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='pages', to='memory.segment')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('view', 'index'), name='context_page_index'),
                    models.UniqueConstraint(condition=models.Q(('parent', None)), fields=('segment',), name='context_page_one_root'),
                    models.UniqueConstraint(condition=models.Q(('source', ''), _negated=True), fields=('view', 'source'), name='context_page_source'),
                    models.CheckConstraint(condition=models.Q(('kind__in', ['contents', 'detail'])), name='context_page_kind'),
                    models.CheckConstraint(condition=models.Q(('visibility__in', ['expanded', 'hidden'])), name='context_page_visibility'),
                    models.CheckConstraint(condition=models.Q(models.Q(('child_count', 0), ('kind', 'detail'), ('parent__isnull', False)), models.Q(('detail', ''), ('kind', 'contents')), _connector='OR'), name='context_page_shape'),
                ],
            },
        ),
        migrations.RunSQL(SAME_ORGANIZATION, "ALTER TABLE memory_memory DROP CONSTRAINT memory_project_of_organization"),
        migrations.RunSQL(SEARCH_INDEX, "DROP FUNCTION memory_keys CASCADE; DROP FUNCTION memory_key"),
        migrations.RunSQL(LINEAGE, "DROP FUNCTION memory_keep_lineage CASCADE"),
        migrations.RunSQL(COUNTED_LATER, "DROP FUNCTION memory_count_later CASCADE"),
        migrations.RunSQL(COUNTED_AGAIN, "DROP FUNCTION memory_count_again CASCADE"),
        migrations.RunSQL(OUT_OF_LINE, migrations.RunSQL.noop),
        migrations.RunSQL(STALE, "DROP FUNCTION memory_embed_again CASCADE"),
        drop_pattern_indexes("memory_memory", "memory_pendingmemory"),
        migrations.RunSQL(COUNTED + CANDIDATES + FIND, "DROP FUNCTION memory_find; DROP FUNCTION memory_candidates; DROP FUNCTION memory_counted"),
    ]
