"""Fewer indexes and checks on the tables that every step of a run writes to."""

import django.contrib.postgres.indexes
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from common.indexes import drop_pattern_indexes

# (run, seq) is what names an event; an index of the ids beside it was a tenth of what a step wrote.
DROP_KEY = """
ALTER TABLE runs_runevent DROP CONSTRAINT runs_runevent_pkey;
ALTER TABLE runs_runevent REPLICA IDENTITY USING INDEX run_event_seq;
"""
PUT_BACK = """
ALTER TABLE runs_runevent REPLICA IDENTITY DEFAULT;
ALTER TABLE runs_runevent ADD CONSTRAINT runs_runevent_pkey PRIMARY KEY (id);
"""

class Migration(migrations.Migration):

    dependencies = [
        ('groups', '0002_catalog_version'),
        ('runs', '0009_operations'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name='run',
            name='parent_run',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='children', to='runs.run'),
        ),
        migrations.AlterField(
            model_name='runevent',
            name='organization',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization'),
        ),
        migrations.AlterField(
            model_name='runevent',
            name='run',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='events', to='runs.run'),
        ),
        migrations.AlterField(
            model_name='toolcall',
            name='organization',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization'),
        ),
        migrations.AlterField(
            model_name='wait',
            name='organization',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('parent_run__isnull', False)), fields=['parent_run'], name='run_children'),
        ),
        migrations.AddIndex(
            model_name='runevent',
            index=django.contrib.postgres.indexes.BrinIndex(autosummarize=True, fields=['id'], name='run_event_id', pages_per_range=16),
        ),
        migrations.RunSQL(DROP_KEY, PUT_BACK),
        drop_pattern_indexes("runs_run", "runs_toolcall", "runs_wait", "runs_approval"),
    ]
