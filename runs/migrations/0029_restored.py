"""Which PostgreSQL the database is in, and the event that says a run comes from a backup."""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0028_a2a'),
    ]

    side_by_side = {"ban-drop-constraint": "the one that takes its place allows all that it allowed"}

    operations = [
        migrations.CreateModel(
            name='DatabaseLine',
            fields=[
                ('id', models.SmallIntegerField(primary_key=True, serialize=False)),
                ('system', models.CharField(max_length=20)),
                ('timeline', models.CharField(max_length=8)),
                ('noted_at', models.DateTimeField()),
            ],
        ),
        migrations.RemoveConstraint(
            model_name='runevent',
            name='run_event_type',
        ),
        migrations.AlterField(
            model_name='runevent',
            name='type',
            field=models.CharField(choices=[('run.created', 'Run Created'), ('run.started', 'Run Started'), ('run.waiting', 'Run Waiting'), ('run.resumed', 'Run Resumed'), ('run.completed', 'Run Completed'), ('run.failed', 'Run Failed'), ('run.cancelled', 'Run Cancelled'), ('run.restored', 'Run Restored'), ('message.created', 'Message Created'), ('model.retried', 'Model Retried'), ('tool.called', 'Tool Called'), ('tool.completed', 'Tool Completed'), ('tool.failed', 'Tool Failed'), ('tool.blocked', 'Tool Blocked'), ('tool.waits', 'Tool Waits'), ('tool.requires_approval', 'Tool Requires Approval'), ('tool.approved', 'Tool Approved'), ('approval.edited', 'Approval Edited'), ('approval.followed_up', 'Approval Followed Up'), ('tool.rejected', 'Tool Rejected'), ('tool.expired', 'Tool Expired'), ('tool.outcome_unknown', 'Tool Outcome Unknown'), ('wait.completed', 'Wait Completed'), ('child.created', 'Child Created'), ('memory.written', 'Memory Written'), ('memory.deposited', 'Memory Deposited'), ('context.changed', 'Context Changed')], max_length=30),
        ),
        AddConstraintNotValid(  # checked by the next one, which lets others write meanwhile
            model_name='runevent',
            constraint=models.CheckConstraint(condition=models.Q(('type__in', ['run.created', 'run.started', 'run.waiting', 'run.resumed', 'run.completed', 'run.failed', 'run.cancelled', 'run.restored', 'message.created', 'model.retried', 'tool.called', 'tool.completed', 'tool.failed', 'tool.blocked', 'tool.waits', 'tool.requires_approval', 'tool.approved', 'approval.edited', 'approval.followed_up', 'tool.rejected', 'tool.expired', 'tool.outcome_unknown', 'wait.completed', 'child.created', 'memory.written', 'memory.deposited', 'context.changed'])), name='run_event_type'),
        ),
    ]
