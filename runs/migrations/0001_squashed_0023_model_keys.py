"""Runs with their log, calls, approvals and waits; the queues; what leaves and enters the deployment."""

import common.ids
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from common.indexes import drop_pattern_indexes

# Rows come and go: without frequent vacuuming, finding the oldest takes longer and longer.
QUEUE_VACUUM = """
ALTER TABLE runs_queuemessage SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 10000)
"""

# Caches of an organization's tools learn with its policy version that they are old.
TOOLS_CHANGED = """
CREATE TRIGGER touch_policy AFTER INSERT OR UPDATE OR DELETE ON runs_mcptool
    FOR EACH ROW EXECUTE FUNCTION policy_touch_version();
CREATE TRIGGER touch_policy AFTER UPDATE OF name, enabled ON runs_mcpserver
    FOR EACH ROW WHEN (OLD.name <> NEW.name OR OLD.enabled <> NEW.enabled)
    EXECUTE FUNCTION policy_touch_version();
"""

# (run, seq) is what names an event; an index of the ids beside it was a tenth of what a step wrote.
NO_KEY = """
ALTER TABLE runs_runevent DROP CONSTRAINT runs_runevent_pkey;
ALTER TABLE runs_runevent REPLICA IDENTITY USING INDEX run_event_seq;
"""


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ('runs', '0001_initial'),
        ('runs', '0002_queuemessage'),
        ('runs', '0003_idempotency'),
        ('runs', '0004_approvalnotice'),
        ('runs', '0005_external_calls'),
        ('runs', '0006_queued_runs'),
        ('runs', '0007_idempotency_by_time'),
        ('runs', '0008_mcp_servers'),
        ('runs', '0009_operations'),
        ('runs', '0010_lean_log'),
        ('runs', '0011_webhooks'),
        ('runs', '0012_pruned'),
        ('runs', '0013_one_key_a_call'),
        ('runs', '0014_turns_and_notices'),
        ('runs', '0015_outbound'),
        ('runs', '0016_decisions_by_actors'),
        ('runs', '0017_seats'),
        ('runs', '0018_conversations'),
        ('runs', '0019_signal_waits'),
        ('runs', '0020_event_counts'),
        ('runs', '0021_webhook_sender'),
        ('runs', '0022_schedules'),
        ('runs', '0023_model_keys'),
    ]

    dependencies = [
        ('policy', '0001_squashed_0007_outside_entity'),
        ('groups', '0001_squashed_0013_not_known_yet'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Carrier',
            fields=[
                ('name', models.CharField(max_length=40, primary_key=True, serialize=False)),
                ('host', models.CharField(max_length=200)),
                ('in_flight', models.PositiveIntegerField(default=0)),
                ('started_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('seen_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('lease_expires_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='EventCountCursor',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('done', models.BigIntegerField()),
                ('next', models.BigIntegerField()),
                ('next_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='Follower',
            fields=[
                ('root_id', models.CharField(max_length=31, primary_key=True, serialize=False)),
                ('until', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='OutboundTarget',
            fields=[
                ('target', models.CharField(max_length=240, primary_key=True, serialize=False)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('reason', models.CharField(default='', max_length=300)),
                ('paused_until', models.DateTimeField(null=True)),
                ('changed_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name='WorkerGroup',
            fields=[
                ('name', models.CharField(max_length=40, primary_key=True, serialize=False)),
                ('host', models.CharField(max_length=200)),
                ('workers', models.PositiveSmallIntegerField()),
                ('busy', models.PositiveSmallIntegerField()),
                ('started_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('seen_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name='EventCount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=40)),
                ('labels', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('value', models.FloatField()),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('name', 'labels'), name='event_count_unique')],
            },
        ),
        migrations.CreateModel(
            name='McpServer',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.mcp_server_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('name', models.CharField(help_text="The first part of its tools' names: crm in crm.find_customer.", max_length=30, validators=[django.core.validators.RegexValidator('^[a-z][a-z0-9_-]*\\Z', 'Small letters, digits, _ and -.')])),
                ('url', models.CharField(help_text='The address of its streamable HTTP endpoint.', max_length=2000)),
                ('sealed_headers', models.TextField(blank=True, editable=False)),
                ('header_names', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=200), blank=True, default=list, editable=False, size=None)),
                ('timeout_seconds', models.PositiveSmallIntegerField(default=30, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(300)])),
                ('enabled', models.BooleanField(default=True)),
                ('checked_at', models.DateTimeField(editable=False, null=True)),
                ('problem', models.TextField(blank=True, editable=False)),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('organization', 'name'), name='mcp_server_name'),
                ],
                'verbose_name': 'MCP server',
                'permissions': [('refresh_mcpserver', "Can list an MCP server's tools again")],
            },
        ),
        migrations.CreateModel(
            name='McpTool',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.mcp_tool_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=128)),
                ('state', models.CharField(choices=[('new', 'New: to be looked at'), ('accepted', 'Accepted'), ('changed', 'Changed: suspended until somebody looks'), ('gone', 'No longer listed'), ('unusable', 'Cannot be used')], default='new', max_length=10)),
                ('definition', models.JSONField(default=dict)),
                ('digest', models.CharField(max_length=64)),
                ('problem', models.TextField(blank=True)),
                ('accepted', models.JSONField(null=True)),
                ('accepted_digest', models.CharField(blank=True, max_length=64)),
                ('accepted_at', models.DateTimeField(null=True)),
                ('changed_at', models.DateTimeField(null=True)),
                ('accepted_by', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('server', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='tools', to='runs.mcpserver')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('server', 'name'), name='mcp_tool_name'),
                    models.CheckConstraint(condition=models.Q(('state__in', ['new', 'accepted', 'changed', 'gone', 'unusable'])), name='mcp_tool_state'),
                ],
                'indexes': [
                    models.Index(fields=['organization', 'server'], name='mcp_tool_by_organization'),
                ],
                'verbose_name': 'MCP tool',
                'permissions': [('accept_mcptool', "Can accept an MCP server's tools")],
            },
        ),
        migrations.CreateModel(
            name='ModelKey',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.model_key_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('provider', models.CharField(choices=[('openai', 'OpenAI, or a server that speaks like it'), ('ollama', 'Ollama'), ('compatible', 'A compatible server'), ('anthropic', 'Anthropic'), ('google', 'Google')], max_length=20)),
                ('base_url', models.CharField(blank=True, help_text='Where its server is, such as https://models.example.org/v1. Empty: the usual place. With another address a new key has to be entered.', max_length=2000, verbose_name='address')),
                ('sealed_key', models.TextField(blank=True, editable=False)),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('organization', 'provider'), name='model_key_unique'),
                    models.CheckConstraint(condition=models.Q(('provider__in', ['openai', 'ollama', 'compatible', 'anthropic', 'google'])), name='model_key_provider'),
                ],
                'verbose_name': 'model key',
                'permissions': [('try_modelkey', 'Can try a model')],
            },
        ),
        migrations.CreateModel(
            name='QueueMessage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('queue', models.CharField(max_length=100)),
                ('payload', models.TextField()),
                ('run_id', models.CharField(max_length=31, null=True)),
                ('organization_id', models.CharField(db_default='-', max_length=31)),
                ('priority', models.PositiveSmallIntegerField(db_default=1)),
                ('later', models.BooleanField(db_default=False)),
                ('deaths', models.PositiveSmallIntegerField(db_default=0)),
                ('due_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('holder', models.CharField(db_default='', max_length=40)),
            ],
            options={
                'indexes': [models.Index(fields=['queue', 'priority', 'organization_id', 'due_at', 'id'], name='queue_in_turn'), models.Index(condition=models.Q(('later', True)), fields=['queue', 'due_at'], name='queue_later')],
            },
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.run_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('depth', models.PositiveSmallIntegerField(default=0)),
                ('kind', models.CharField(choices=[('personal', 'Personal agent'), ('group', 'Group')], max_length=10)),
                ('driver', models.CharField(choices=[('internal', 'Deputy'), ('external', 'An outside agent')], default='internal', max_length=10)),
                ('session_key', models.CharField(blank=True, default='', max_length=200)),
                ('goal', models.TextField()),
                ('context', models.TextField(blank=True, default='')),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('running', 'Running'), ('waiting', 'Waiting'), ('completed', 'Completed'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='pending', max_length=10)),
                ('waiting_reason', models.CharField(choices=[('child', "A group's result"), ('approval', 'A decision'), ('input', 'An answer'), ('review', 'Word on what happened'), ('timer', 'A point in time'), ('signal', 'A signal')], max_length=10, null=True)),
                ('output', models.TextField(null=True)),
                ('error', models.JSONField(null=True)),
                ('delegated_permissions', models.JSONField(null=True)),
                ('budgets', models.JSONField(default=dict)),
                ('usage', models.JSONField(default=dict)),
                ('deadline', models.DateTimeField(null=True)),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('crashes', models.PositiveSmallIntegerField(default=0)),
                ('lease_expires_at', models.DateTimeField(null=True)),
                ('last_seq', models.PositiveIntegerField(default=0)),
                ('last_digest', models.CharField(default='', max_length=64)),
                ('queued_at', models.DateTimeField(null=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('pruned_at', models.DateTimeField(help_text='When what it said was removed for its age.', null=True)),
                ('agent_instance', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='runs', to='groups.agentinstance')),
                ('group', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='runs', to='groups.group')),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('parent_run', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='children', to='runs.run')),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='groups.project')),
                ('role', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='groups.role')),
                ('root', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.run')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'running', 'waiting', 'completed', 'failed', 'cancelled'])), name='runs_status_check'),
                    models.CheckConstraint(condition=models.Q(('kind__in', ['personal', 'group'])), name='runs_kind_check'),
                    models.CheckConstraint(condition=models.Q(('driver__in', ['internal', 'external'])), name='runs_driver_check'),
                    models.CheckConstraint(condition=models.Q(models.Q(('status', 'waiting'), ('waiting_reason__in', ['child', 'approval', 'input', 'review', 'timer', 'signal'])), models.Q(models.Q(('status', 'waiting'), _negated=True), ('waiting_reason', None)), _connector='OR'), name='runs_waiting_reason_check'),
                    models.CheckConstraint(condition=models.Q(models.Q(('ended_at', None), ('status__in', ['pending', 'running', 'waiting'])), models.Q(models.Q(('status__in', ['pending', 'running', 'waiting']), _negated=True), ('ended_at__isnull', False)), _connector='OR'), name='runs_ended_check'),
                ],
                'indexes': [
                    models.Index(condition=models.Q(('parent_run__isnull', False)), fields=['parent_run'], name='run_children'),
                    models.Index(fields=['organization', 'project', '-id'], name='run_by_project'),
                    models.Index(condition=models.Q(('session_key', ''), _negated=True), fields=['organization', 'user', 'project', 'session_key', 'id'], name='run_by_session'),
                    models.Index(condition=models.Q(('depth', 0)), fields=['organization', 'user', '-id'], name='run_of_person'),
                    models.Index(condition=models.Q(('status__in', ['pending', 'running'])), fields=['status', 'lease_expires_at'], name='run_open'),
                    models.Index(condition=models.Q(('status', 'pending')), fields=['organization'], name='run_queued'),
                    models.Index(condition=models.Q(('driver', 'external'), ('status__in', ['running', 'waiting'])), fields=['deadline'], name='run_external_deadline'),
                ],
                'permissions': [('start_run', 'Can ask an agent'), ('cancel_run', 'Can cancel a run'), ('decide_approval', 'Can decide approvals'), ('resolve_review', 'Can say what became of an interrupted call')],
            },
        ),
        migrations.CreateModel(
            name='Rating',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('good', models.BooleanField()),
                ('note', models.TextField(blank=True, default='')),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('run', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='rating', to='runs.run')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='OutboundCall',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('root_id', models.CharField(max_length=31)),
                ('attempt', models.PositiveIntegerField()),
                ('kind', models.CharField(choices=[('model', 'Model'), ('tool', 'Tool')], max_length=10)),
                ('call_id', models.CharField(default='', max_length=64)),
                ('target', models.CharField(max_length=240)),
                ('host', models.CharField(default='', max_length=260)),
                ('rank', models.PositiveSmallIntegerField(default=1)),
                ('threaded', models.BooleanField(default=False)),
                ('most', models.PositiveIntegerField()),
                ('host_most', models.PositiveIntegerField()),
                ('request', models.TextField()),
                ('receipt', models.TextField(default='{}')),
                ('wake', models.TextField()),
                ('due_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('seconds', models.FloatField()),
                ('expires_at', models.DateTimeField(null=True)),
                ('holder', models.CharField(db_default='', max_length=40)),
                ('begun_at', models.DateTimeField(null=True)),
                ('answer', models.TextField(null=True)),
                ('answered_at', models.DateTimeField(null=True)),
                ('organization', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('run', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='outbound', to='runs.run')),
            ],
            options={
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('kind__in', ['model', 'tool'])), name='outbound_kind'),
                    models.UniqueConstraint(fields=('run', 'attempt', 'kind', 'call_id'), name='outbound_once'),
                ],
                'indexes': [
                    models.Index(condition=models.Q(('answered_at', None), ('holder', '')), fields=['organization', 'target', 'rank', 'id'], name='outbound_waiting'),
                    models.Index(condition=models.Q(models.Q(('holder', ''), _negated=True), ('answered_at', None)), fields=['holder'], name='outbound_held'),
                    models.Index(condition=models.Q(('answered_at__isnull', False)), fields=['answered_at'], name='outbound_answered'),
                ],
            },
        ),
        migrations.CreateModel(
            name='RunEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('seq', models.PositiveIntegerField()),
                ('type', models.CharField(choices=[('run.created', 'Run Created'), ('run.started', 'Run Started'), ('run.waiting', 'Run Waiting'), ('run.resumed', 'Run Resumed'), ('run.completed', 'Run Completed'), ('run.failed', 'Run Failed'), ('run.cancelled', 'Run Cancelled'), ('message.created', 'Message Created'), ('model.retried', 'Model Retried'), ('tool.called', 'Tool Called'), ('tool.completed', 'Tool Completed'), ('tool.failed', 'Tool Failed'), ('tool.blocked', 'Tool Blocked'), ('tool.waits', 'Tool Waits'), ('tool.requires_approval', 'Tool Requires Approval'), ('tool.approved', 'Tool Approved'), ('approval.edited', 'Approval Edited'), ('tool.rejected', 'Tool Rejected'), ('tool.expired', 'Tool Expired'), ('tool.outcome_unknown', 'Tool Outcome Unknown'), ('wait.completed', 'Wait Completed'), ('child.created', 'Child Created'), ('memory.written', 'Memory Written'), ('memory.deposited', 'Memory Deposited'), ('context.changed', 'Context Changed')], max_length=30)),
                ('agent', models.CharField(blank=True, default='', max_length=31)),
                ('payload', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField()),
                ('digest', models.CharField(max_length=64)),
                ('organization', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('run', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='events', to='runs.run')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('run', 'seq'), name='run_event_seq'),
                    models.CheckConstraint(condition=models.Q(('type__in', ['run.created', 'run.started', 'run.waiting', 'run.resumed', 'run.completed', 'run.failed', 'run.cancelled', 'message.created', 'model.retried', 'tool.called', 'tool.completed', 'tool.failed', 'tool.blocked', 'tool.waits', 'tool.requires_approval', 'tool.approved', 'approval.edited', 'tool.rejected', 'tool.expired', 'tool.outcome_unknown', 'wait.completed', 'child.created', 'memory.written', 'memory.deposited', 'context.changed'])), name='run_event_type'),
                ],
                'indexes': [
                    django.contrib.postgres.indexes.BrinIndex(autosummarize=True, fields=['id'], name='run_event_id', pages_per_range=16),
                    models.Index(condition=models.Q(('type__in', ('tool.called', 'tool.blocked', 'tool.requires_approval'))), fields=['organization', 'created_at'], name='run_event_decisions'),
                ],
                'ordering': ['run_id', 'seq'],
            },
        ),
        migrations.CreateModel(
            name='Schedule',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.schedule_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('title', models.CharField(max_length=200)),
                ('goal', models.TextField()),
                ('group_id', models.CharField(blank=True, default='', max_length=31)),
                ('at', models.DateTimeField(blank=True, null=True)),
                ('cron', models.CharField(blank=True, default='', max_length=100)),
                ('time_zone', models.CharField(default='UTC', max_length=64)),
                ('ends_at', models.DateTimeField(blank=True, null=True)),
                ('most_runs', models.PositiveIntegerField(blank=True, null=True)),
                ('on_missed', models.CharField(choices=[('skip', 'Leave it out'), ('once', 'Run once, late')], default='skip', max_length=10)),
                ('budgets', models.JSONField(blank=True, default=dict)),
                ('outside', models.BooleanField(default=False)),
                ('token', models.CharField(blank=True, default='', max_length=31)),
                ('paused', models.BooleanField(default=False)),
                ('stopped_because', models.CharField(blank=True, default='', max_length=500)),
                ('started', models.PositiveIntegerField(default=0, help_text='How many runs it has started.')),
                ('next_at', models.DateTimeField(blank=True, null=True)),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.project')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [
                    models.CheckConstraint(condition=models.Q(models.Q(('at', None), models.Q(('cron', ''), _negated=True)), models.Q(('at__isnull', False), ('cron', '')), _connector='OR'), name='schedule_at_or_cron'),
                    models.CheckConstraint(condition=models.Q(('paused', False), ('next_at', None), _connector='OR'), name='schedule_paused_check'),
                ],
                'indexes': [
                    models.Index(condition=models.Q(('next_at__isnull', False)), fields=['next_at'], name='schedule_due'),
                    models.Index(fields=['organization', 'user', '-id'], name='schedule_of_person'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ScheduledRun',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.scheduled_run_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('due_at', models.DateTimeField()),
                ('outcome', models.CharField(choices=[('started', 'Started'), ('missed', 'Missed'), ('overlapped', 'Left out: the last run was still going'), ('refused', 'Refused')], max_length=10)),
                ('times', models.PositiveIntegerField(default=1)),
                ('code', models.CharField(blank=True, default='', max_length=40)),
                ('reason', models.CharField(blank=True, default='', max_length=500)),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.run')),
                ('schedule', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='history', to='runs.schedule')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('schedule', 'due_at'), name='scheduled_run_once'),
                    models.CheckConstraint(condition=models.Q(('outcome__in', ['started', 'missed', 'overlapped', 'refused'])), name='scheduled_run_outcome'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ToolCall',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.call_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('call_id', models.CharField(max_length=64)),
                ('agent', models.CharField(blank=True, default='', max_length=31)),
                ('seat', models.CharField(blank=True, db_default='', max_length=31)),
                ('role_id', models.CharField(blank=True, db_default='', max_length=31)),
                ('tool', models.CharField(max_length=64)),
                ('arguments', models.JSONField(default=dict)),
                ('effective_arguments', models.JSONField(default=dict)),
                ('request_digest', models.CharField(max_length=64)),
                ('idempotency_key', models.CharField(max_length=64)),
                ('status', models.CharField(choices=[('requested', 'Requested'), ('waiting', 'Waiting'), ('running', 'Running'), ('succeeded', 'Succeeded'), ('failed', 'Failed'), ('denied', 'Denied'), ('rejected', 'Rejected'), ('expired', 'Expired'), ('cancelled', 'Cancelled'), ('unknown', 'Outcome unknown')], default='requested', max_length=10)),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('result', models.JSONField(null=True)),
                ('error', models.JSONField(null=True)),
                ('evidence', models.JSONField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('lease_expires_at', models.DateTimeField(null=True)),
                ('queued_at', models.DateTimeField(null=True)),
                ('organization', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='calls', to='runs.run')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('run', 'call_id'), name='tool_call_unique'),
                    models.CheckConstraint(condition=models.Q(('status__in', ['requested', 'waiting', 'running', 'succeeded', 'failed', 'denied', 'rejected', 'expired', 'cancelled', 'unknown'])), name='tool_call_status'),
                ],
                'indexes': [
                    models.Index(condition=models.Q(('lease_expires_at__isnull', False)), fields=['lease_expires_at'], name='call_leased'),
                    models.Index(condition=models.Q(('queued_at__isnull', False)), fields=['queued_at'], name='call_queued'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Approval',
            fields=[
                ('id', models.CharField(default=common.ids.approval_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('capability', models.CharField(blank=True, max_length=64)),
                ('effect', models.CharField(choices=[('require_approval', 'Needs an approval'), ('require_human', "Needs a person's approval")], max_length=20)),
                ('rule', models.CharField(blank=True, max_length=200)),
                ('explanation', models.TextField(blank=True)),
                ('arguments_digest', models.CharField(max_length=64)),
                ('correlation_key', models.CharField(max_length=200)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('approved', 'Approved'), ('rejected', 'Rejected'), ('expired', 'Expired'), ('cancelled', 'Cancelled'), ('superseded', 'Superseded')], default='pending', max_length=10)),
                ('requested_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField(null=True)),
                ('decided_at', models.DateTimeField(null=True)),
                ('consumed_at', models.DateTimeField(null=True)),
                ('decided_as_human', models.BooleanField(default=False)),
                ('reason', models.TextField(blank=True)),
                ('edited_arguments', models.JSONField(null=True)),
                ('replaced_arguments', models.JSONField(help_text='What would have run, where a decider changed it.', null=True)),
                ('deciders_needed', models.PositiveSmallIntegerField(default=1)),
                ('deciders', models.JSONField(default=list, help_text='Lists of names, each of which deciders must be on.')),
                ('on_expiry', models.CharField(default='fail_call', max_length=10)),
                ('decided_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='decisions', to=settings.AUTH_USER_MODEL)),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('replaces', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='replaced_by', to='runs.approval')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='approvals', to='runs.run')),
                ('tool_call', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='approvals', to='runs.toolcall')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(condition=models.Q(('status', 'pending')), fields=('tool_call',), name='one_pending_approval_a_call'),
                    models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'approved', 'rejected', 'expired', 'cancelled', 'superseded'])), name='approval_status'),
                    models.CheckConstraint(condition=models.Q(('effect__in', ['require_approval', 'require_human'])), name='approval_effect'),
                ],
                'indexes': [
                    models.Index(fields=['organization', 'status', '-id'], name='approval_by_status'),
                    models.Index(condition=models.Q(('status', 'pending')), fields=['expires_at'], name='approval_open_expiry'),
                ],
            },
        ),
        migrations.CreateModel(
            name='TriedModel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('model', models.CharField(max_length=200)),
                ('error', models.CharField(blank=True, max_length=40)),
                ('said', models.CharField(max_length=300)),
                ('milliseconds', models.PositiveIntegerField()),
                ('tried_at', models.DateTimeField()),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('tried_by', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('organization', 'model'), name='tried_model_unique'),
                ],
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Wait',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.wait_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('child', "A group's result"), ('approval', 'A decision'), ('input', 'An answer'), ('review', 'Word on what happened'), ('timer', 'A point in time'), ('signal', 'A signal')], max_length=10)),
                ('correlation_key', models.CharField(max_length=200)),
                ('expires_at', models.DateTimeField(null=True)),
                ('resolved_at', models.DateTimeField(null=True)),
                ('outcome', models.CharField(choices=[('completed', 'Completed'), ('approved', 'Approved'), ('rejected', 'Rejected'), ('failed', 'Failed'), ('cancelled', 'Cancelled'), ('expired', 'Expired'), ('superseded', 'Superseded')], max_length=10, null=True)),
                ('payload', models.JSONField(null=True)),
                ('child_run', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='waited_by', to='runs.run')),
                ('organization', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='waits', to='runs.run')),
                ('tool_call', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='waits', to='runs.toolcall')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('run', 'correlation_key'), name='wait_correlation_key'),
                    models.CheckConstraint(condition=models.Q(('kind__in', ['child', 'approval', 'input', 'review', 'timer', 'signal'])), name='wait_kind'),
                    models.CheckConstraint(condition=models.Q(models.Q(('outcome', None), ('resolved_at', None)), models.Q(('outcome__in', ['completed', 'approved', 'rejected', 'failed', 'cancelled', 'expired', 'superseded']), ('resolved_at__isnull', False)), _connector='OR'), name='wait_outcome'),
                ],
                'indexes': [
                    models.Index(condition=models.Q(('resolved_at', None)), fields=['expires_at'], name='wait_open_expiry'),
                    models.Index(condition=models.Q(('resolved_at', None)), fields=['child_run'], name='wait_open_child'),
                ],
            },
        ),
        migrations.CreateModel(
            name='WebhookEndpoint',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.webhook_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('url', models.CharField(max_length=2000)),
                ('description', models.CharField(blank=True, max_length=200)),
                ('events', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('approval.requested', 'A call waits for a decision'), ('approval.decided', 'It was approved, rejected, or expired'), ('run.completed', 'A run completed'), ('run.failed', 'A run failed'), ('memory.deposited', 'A group left knowledge behind')], max_length=40), size=None)),
                ('enabled', models.BooleanField(default=True)),
                ('sealed_secret', models.TextField(editable=False)),
                ('sealed_previous', models.TextField(blank=True, editable=False)),
                ('previous_until', models.DateTimeField(editable=False, null=True)),
                ('failing_since', models.DateTimeField(editable=False, null=True)),
                ('disabled_because', models.TextField(blank=True, editable=False)),
                ('sender', models.CharField(blank=True, db_default='', default='', editable=False, max_length=60)),
                ('sending_until', models.DateTimeField(editable=False, null=True)),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('project', models.ForeignKey(blank=True, help_text='Only what happens there; empty: in the whole organization.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.project')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('enabled', True)), fields=['organization'], name='webhook_on'),
                ],
                'verbose_name': 'webhook',
            },
        ),
        migrations.CreateModel(
            name='WebhookDelivery',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.message_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('event', models.CharField(max_length=40)),
                ('payload', models.JSONField()),
                ('status', models.CharField(choices=[('pending', 'To be sent'), ('delivered', 'Delivered'), ('failed', 'Given up')], default='pending', max_length=10)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('next_attempt_at', models.DateTimeField(null=True)),
                ('delivered_at', models.DateTimeField(null=True)),
                ('response_status', models.PositiveSmallIntegerField(null=True)),
                ('problem', models.CharField(blank=True, max_length=300)),
                ('history', models.JSONField(default=list)),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('endpoint', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='runs.webhookendpoint')),
            ],
            options={
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'delivered', 'failed'])), name='webhook_status'),
                ],
                'indexes': [
                    models.Index(fields=['endpoint', '-id'], name='webhook_delivery_log'),
                    models.Index(condition=models.Q(('status', 'pending')), fields=['next_attempt_at'], name='webhook_delivery_due'),
                    models.Index(fields=['created_at'], name='webhook_delivery_by_age'),
                ],
                'verbose_name': 'webhook delivery',
                'verbose_name_plural': 'webhook deliveries',
            },
        ),
        migrations.CreateModel(
            name='ApprovalDecision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('approved', models.BooleanField()),
                ('as_human', models.BooleanField()),
                ('reason', models.TextField(blank=True)),
                ('arguments_digest', models.CharField(max_length=64)),
                ('via', models.CharField(db_default='', default='', help_text='By which door it came.', max_length=10)),
                ('token_id', models.CharField(max_length=31, null=True)),
                ('approval', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='decisions', to='runs.approval')),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('approval', 'user', 'arguments_digest'), name='one_decision_a_decider')],
            },
        ),
        migrations.CreateModel(
            name='ApprovalNotice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('sending', 'Sending'), ('sent', 'Sent'), ('obsolete', 'Not needed any more')], db_default='pending', default='pending', max_length=10)),
                ('due_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('holder', models.CharField(db_default='', max_length=60)),
                ('sent_at', models.DateTimeField(null=True)),
                ('approval', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notices', to='runs.approval')),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['user', 'organization', 'sent_at'], name='notice_by_person'), models.Index(condition=models.Q(('status__in', ('pending', 'sending'))), fields=['due_at'], name='notice_open')],
                'constraints': [models.UniqueConstraint(fields=('approval', 'user'), name='one_notice_a_person'), models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'sending', 'sent', 'obsolete'])), name='runs_notice_status_check')],
            },
        ),
        migrations.CreateModel(
            name='Conversation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('key', models.CharField(max_length=200)),
                ('title', models.CharField(blank=True, default='', max_length=200)),
                ('seen_at', models.DateTimeField(help_text='When its person last looked at it.', null=True)),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.project')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('organization', 'user', 'project', 'key'), name='conversation_unique')],
            },
        ),
        migrations.CreateModel(
            name='IdempotencyRecord',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('key', models.CharField(max_length=255)),
                ('request_digest', models.CharField(max_length=64)),
                ('status', models.PositiveSmallIntegerField(null=True)),
                ('body', models.JSONField(null=True)),
                ('location', models.CharField(blank=True, default='', max_length=500)),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['created_at'], name='idempotency_by_time')],
                'constraints': [models.UniqueConstraint(fields=('organization', 'user', 'key'), name='idempotency_key_unique')],
            },
        ),
        migrations.RunSQL(QUEUE_VACUUM, migrations.RunSQL.noop),
        migrations.RunSQL(TOOLS_CHANGED, "DROP TRIGGER touch_policy ON runs_mcptool; DROP TRIGGER touch_policy ON runs_mcpserver"),
        migrations.RunSQL(NO_KEY, "ALTER TABLE runs_runevent ADD CONSTRAINT runs_runevent_pkey PRIMARY KEY (id)"),
        drop_pattern_indexes("runs_run", "runs_toolcall", "runs_wait", "runs_approval"),
    ]
