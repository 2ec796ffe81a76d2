"""Whose turn a message is, and what became of a notice."""

import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


# No worker runs while a release is put in: what one had taken is free again.
WHOSE = """
UPDATE runs_queuemessage m SET holder = '', later = holder = '' AND due_at > now(),
    due_at = CASE WHEN holder = '' THEN due_at ELSE now() END,
    organization_id = COALESCE((SELECT r.organization_id FROM runs_run r WHERE r.id = m.run_id), '-'),
    priority = COALESCE((SELECT CASE WHEN r.kind = 'personal' AND r.depth = 0 THEN 0 ELSE 1 END
                         FROM runs_run r WHERE r.id = m.run_id), 1);
UPDATE runs_approvalnotice SET status = 'sent' WHERE sent_at IS NOT NULL;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('groups', '0008_retention'),
        ('runs', '0013_one_key_a_call'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='queuemessage',
            name='queue_in_order',
        ),
        migrations.AddField(
            model_name='approvalnotice',
            name='due_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
        ),
        migrations.AddField(
            model_name='approvalnotice',
            name='holder',
            field=models.CharField(db_default='', max_length=60),
        ),
        migrations.AddField(
            model_name='approvalnotice',
            name='status',
            field=models.CharField(choices=[('pending', 'Pending'), ('sending', 'Sending'), ('sent', 'Sent'), ('obsolete', 'Not needed any more')], db_default='pending', default='pending', max_length=10),
        ),
        migrations.AddField(
            model_name='queuemessage',
            name='deaths',
            field=models.PositiveSmallIntegerField(db_default=0),
        ),
        migrations.AddField(
            model_name='queuemessage',
            name='later',
            field=models.BooleanField(db_default=False),
        ),
        migrations.AddField(
            model_name='queuemessage',
            name='organization_id',
            field=models.CharField(db_default='-', max_length=31),
        ),
        migrations.AddField(
            model_name='queuemessage',
            name='priority',
            field=models.PositiveSmallIntegerField(db_default=1),
        ),
        migrations.RunSQL(WHOSE, migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name='approvalnotice',
            index=models.Index(condition=models.Q(('status__in', ('pending', 'sending'))), fields=['due_at'], name='notice_open'),
        ),
        migrations.AddIndex(
            model_name='queuemessage',
            index=models.Index(fields=['queue', 'priority', 'organization_id', 'due_at', 'id'], name='queue_in_turn'),
        ),
        migrations.AddIndex(
            model_name='queuemessage',
            index=models.Index(condition=models.Q(('later', True)), fields=['queue', 'due_at'], name='queue_later'),
        ),
        migrations.AddConstraint(
            model_name='approvalnotice',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'sending', 'sent', 'obsolete'])), name='runs_notice_status_check'),
        ),
    ]
