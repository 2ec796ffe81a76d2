"""Organizations, projects, groups, roles, members, tokens and the record of changes."""

import common.ids
import django.contrib.postgres.fields
import django.core.serializers.json
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import groups.known
from django.conf import settings
from django.db import migrations, models

from common.indexes import drop_pattern_indexes

# A project's catalog_version grows whenever one of its groups, their members or their roles changes: in the
# database, so that every writer counts, also a bulk update or a hand at psql.
CATALOG_VERSION = """
CREATE FUNCTION groups_touch_catalog() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER touch_catalog AFTER INSERT OR UPDATE OR DELETE ON groups_group
    FOR EACH ROW EXECUTE FUNCTION groups_touch_catalog();
CREATE TRIGGER touch_catalog AFTER INSERT OR UPDATE OR DELETE ON groups_groupmember
    FOR EACH ROW EXECUTE FUNCTION groups_touch_catalog();
CREATE TRIGGER touch_catalog AFTER UPDATE ON groups_role
    FOR EACH ROW EXECUTE FUNCTION groups_touch_catalog();
"""

# Who has asked how much of the API lately. Unlogged: a crash of the database forgets it, and that is fine.
THROTTLE = """
CREATE UNLOGGED TABLE groups_throttle (
    key text PRIMARY KEY,
    full_at timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON COLUMN groups_throttle.full_at IS 'when the allowance is whole again, if nothing more is asked';
"""

# A membership's kind, user and organization stay: every writer is held to it.
MEMBERSHIP_STAYS = """
CREATE FUNCTION groups_membership_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'The kind, user and organization of membership % stay as they were made.', OLD.id
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER membership_stays BEFORE UPDATE ON groups_membership FOR EACH ROW
    WHEN (OLD.kind IS DISTINCT FROM NEW.kind OR OLD.user_id IS DISTINCT FROM NEW.user_id
          OR OLD.organization_id IS DISTINCT FROM NEW.organization_id)
    EXECUTE FUNCTION groups_membership_stays();
"""


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ('groups', '0001_initial'),
        ('groups', '0002_catalog_version'),
        ('groups', '0003_token_scopes'),
        ('groups', '0004_throttle'),
        ('groups', '0005_queue_limit'),
        ('groups', '0006_no_pattern_indexes'),
        ('groups', '0007_approval_profile'),
        ('groups', '0008_retention'),
        ('groups', '0009_member_roles'),
        ('groups', '0010_roles_of_members'),
        ('groups', '0011_seats'),
        ('groups', '0012_changes'),
        ('groups', '0013_not_known_yet'),
    ]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Organization',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.organization_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('slug', models.SlugField(max_length=63, unique=True)),
                ('name', models.CharField(max_length=200)),
                ('queue_limit', models.PositiveIntegerField(blank=True, help_text="New runs are refused while so many wait for a worker; empty means the deployment's limit.", null=True, validators=[django.core.validators.MinValueValidator(1)])),
                ('retention_days', models.PositiveIntegerField(blank=True, help_text='After so many days what ended runs said is removed by manage.py prune. Empty: never.', null=True, validators=[django.core.validators.MinValueValidator(1)])),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='AgentInstance',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.agent_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('name', models.CharField(blank=True, max_length=100)),
                ('preferences', models.JSONField(blank=True, default=dict)),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='agents', to=settings.AUTH_USER_MODEL)),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='agents', to='groups.organization')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(condition=models.Q(('user__isnull', False)), fields=('organization', 'user'), name='one_personal_agent_each'),
                ],
            },
        ),
        migrations.CreateModel(
            name='CustomRole',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.custom_role_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=100)),
                ('permissions', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=120), blank=True, default=list, size=None)),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='custom_roles', to='groups.organization')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('organization', 'name'), name='custom_role_name'),
                ],
                'verbose_name': 'member role',
            },
        ),
        migrations.CreateModel(
            name='Change',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.change_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('by', models.CharField(blank=True, max_length=150)),
                ('via', models.CharField(choices=[('admin', "Deputy's pages"), ('api', 'The API'), ('system', 'Deputy itself, or a command on its machine')], max_length=10)),
                ('token', models.CharField(blank=True, max_length=31)),
                ('action', models.CharField(choices=[('added', 'Added'), ('changed', 'Changed'), ('removed', 'Removed')], max_length=10)),
                ('model', models.CharField(max_length=100)),
                ('object_id', models.CharField(max_length=64)),
                ('label', models.CharField(max_length=200)),
                ('before', models.JSONField(default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder)),
                ('after', models.JSONField(default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder)),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('organization', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='groups.organization')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['organization', '-id'], name='change_by_organization'),
                    models.Index(fields=['model', 'object_id'], name='change_of_object'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Project',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.project_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('slug', models.SlugField(max_length=63)),
                ('name', models.CharField(max_length=200)),
                ('review_deposits', models.BooleanField(default=False, help_text='What groups learn waits for a curator before any search sees it.')),
                ('allow_self_approval', models.BooleanField(default=False, help_text='A person may decide approvals that only people may decide on their own runs.')),
                ('approval_profile', models.CharField(choices=[('off', 'Off: lists, risk and rules alone'), ('careful', 'Careful: every side effect asks'), ('balanced', 'Balanced: what outsiders steer asks'), ('open', 'Open: only rules ask')], default='off', help_text='When calls ask, by where their values came from (docs/provenance.md).', max_length=10)),
                ('catalog_version', models.BigIntegerField(default=0, editable=False, help_text='Grows by trigger whenever a group, member or role changes.')),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='projects', to='groups.organization')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('organization', 'slug'), name='project_slug_unique'),
                    models.UniqueConstraint(fields=('organization', 'id'), name='project_organization_id'),
                    models.CheckConstraint(condition=models.Q(('approval_profile__in', ['off', 'careful', 'balanced', 'open'])), name='project_approval_profile'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Group',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.group_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=200)),
                ('description', models.TextField(blank=True)),
                ('capabilities', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=100), blank=True, default=list, size=None)),
                ('max_rounds', models.PositiveSmallIntegerField(default=3, validators=[django.core.validators.MinValueValidator(1)])),
                ('active', models.BooleanField(default=True)),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='groups', to='groups.organization')),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='groups', to='groups.project')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('project', 'name'), name='group_name_unique'),
                    models.CheckConstraint(condition=models.Q(('max_rounds__gte', 1)), name='group_max_rounds'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Role',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.role_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=100)),
                ('description', models.TextField(blank=True)),
                ('system_prompt', models.TextField(blank=True)),
                ('allowed_tools', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, null=True, size=None)),
                ('denied_tools', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                ('delegable_tools', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, null=True, size=None)),
                ('model', models.CharField(blank=True, help_text="Such as openai:gpt-5; empty means the deployment's DEPUTY_MODEL.", max_length=200)),
                ('not_known_yet', groups.known.NotKnownYet(default=False, help_text='Accept names that Deputy does not know yet. While it does not, that is a warning.', verbose_name='not known yet')),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='roles', to='groups.organization')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('organization', 'name'), name='role_name_unique'),
                ],
            },
        ),
        migrations.CreateModel(
            name='GroupMember',
            fields=[
                ('id', models.CharField(default=common.ids.member_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('ordinal', models.PositiveSmallIntegerField(default=0)),
                ('is_lead', models.BooleanField(default=False)),
                ('agent_instance', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='seats', to='groups.agentinstance')),
                ('group', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='members', to='groups.group')),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('role', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='seats', to='groups.role')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('group', 'ordinal'), name='group_member_ordinal'),
                    models.UniqueConstraint(fields=('group', 'agent_instance'), name='group_member_agent', violation_error_message='This agent sits in the group already: give the seat another one.'),
                    models.UniqueConstraint(condition=models.Q(('is_lead', True)), fields=('group',), name='one_lead_at_most'),
                ],
                'ordering': ['ordinal'],
            },
        ),
        migrations.AddField(
            model_name='agentinstance',
            name='role',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='agents', to='groups.role'),
        ),
        migrations.CreateModel(
            name='RoutingExample',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.example_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('goal', models.TextField()),
                ('goal_hash', models.CharField(editable=False, max_length=64)),
                ('kind', models.CharField(choices=[('fits', 'Belongs here'), ('misfit', 'Does not belong here')], default='fits', max_length=10)),
                ('source_run_id', models.CharField(blank=True, editable=False, max_length=31, null=True)),
                ('corrected_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('group', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='examples', to='groups.group')),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('group', 'goal_hash'), name='routing_example_unique'),
                    models.CheckConstraint(condition=models.Q(('kind__in', ['fits', 'misfit'])), name='routing_example_kind'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Token',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.token_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('name', models.CharField(blank=True, max_length=100)),
                ('prefix', models.CharField(editable=False, max_length=12)),
                ('secret_hash', models.CharField(editable=False, max_length=64, unique=True)),
                ('scopes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), blank=True, default=list, size=None)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tokens', to='groups.organization')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deputy_tokens', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.membership_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('human', 'Person'), ('service', 'Service account')], default='human', help_text='Stays as it is: what a person decided, and what a service did, must not be mixed up.', max_length=10)),
                ('role', models.CharField(choices=[('viewer', 'Viewer: looks at runs, groups and knowledge'), ('member', 'Member: also starts runs'), ('decider', 'Decider: also sees rules, decides approvals and cancels runs'), ('curator', 'Curator: a member who also curates knowledge and routing'), ('administrator', 'Administrator: everything in the organization')], default='member', help_text='What this member may do in the organization.', max_length=20)),
                ('active', models.BooleanField(default=True)),
                ('projects', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=31), blank=True, null=True, size=None)),
                ('allowed_tools', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, null=True, size=None)),
                ('denied_tools', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                ('not_known_yet', groups.known.NotKnownYet(default=False, help_text='Accept names that Deputy does not know yet. While it does not, that is a warning.', verbose_name='not known yet')),
                ('custom_role', models.ForeignKey(blank=True, help_text="A role of the organization's own, in place of the one above.", null=True, on_delete=django.db.models.deletion.PROTECT, related_name='memberships', to='groups.customrole')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='groups.organization')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('organization', 'user'), name='membership_unique'), models.CheckConstraint(condition=models.Q(('kind__in', ['human', 'service'])), name='membership_kind'), models.CheckConstraint(condition=models.Q(('role__in', ['viewer', 'member', 'decider', 'curator', 'administrator'])), name='membership_role')],
            },
        ),
        migrations.RunSQL(CATALOG_VERSION, "DROP FUNCTION groups_touch_catalog CASCADE"),
        migrations.RunSQL(THROTTLE, "DROP TABLE groups_throttle"),
        migrations.RunSQL(MEMBERSHIP_STAYS, "DROP FUNCTION groups_membership_stays CASCADE"),
        # what a completed run teaches routing is written in its last step
        drop_pattern_indexes("groups_routingexample"),
    ]
