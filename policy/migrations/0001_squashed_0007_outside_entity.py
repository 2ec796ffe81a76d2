"""Capabilities, rules, grants, and corrections of what tools declare."""

import common.ids
import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import groups.known
from django.conf import settings
from django.db import migrations, models

# Whatever decides by policy: a row written there makes the organization's policy version grow.
TABLES = (
    "policy_capabilityrule",
    "policy_capability",
    "policy_toolbinding",
    "policy_tooldeclaration",
    "groups_role",
)

# In the database, so that every writer counts and every process sees it with its next decision.
POLICY_VERSION = """
CREATE FUNCTION policy_touch_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO policy_policyversion (organization_id, version)
    SELECT id, 1 FROM groups_organization
    WHERE id = to_jsonb(COALESCE(NEW, OLD))->>'organization_id'
    ON CONFLICT (organization_id) DO UPDATE SET version = policy_policyversion.version + 1;
    RETURN NULL;
END $$;
""" + "".join(
    f"""
CREATE TRIGGER touch_policy AFTER INSERT OR UPDATE OR DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION policy_touch_version();
"""
    for table in TABLES
)


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ('policy', '0001_initial'),
        ('policy', '0002_policy_version'),
        ('policy', '0003_tool_declaration'),
        ('policy', '0004_rule_deciders'),
        ('policy', '0005_in_use_stays'),
        ('policy', '0006_not_known_yet'),
        ('policy', '0007_outside_entity'),
    ]

    dependencies = [
        ('groups', '0001_squashed_0013_not_known_yet'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='PolicyVersion',
            fields=[
                ('organization', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, serialize=False, to='groups.organization')),
                ('version', models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name='Capability',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.capability_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('name', models.SlugField(max_length=64)),
                ('description', models.TextField(blank=True)),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('organization', 'name'), name='capability_name'),
                ],
                'verbose_name_plural': 'capabilities',
            },
        ),
        migrations.CreateModel(
            name='CapabilityRule',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.rule_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('name', models.CharField(blank=True, max_length=200)),
                ('tool', models.CharField(blank=True, max_length=64)),
                ('effect', models.CharField(choices=[('allow', 'Allow'), ('require_approval', 'Ask for an approval'), ('require_human', 'Ask a person'), ('deny', 'Deny')], max_length=20)),
                ('condition', models.TextField(blank=True, help_text='On the arguments: amount <= 100 && currency == "EUR"')),
                ('timeout_seconds', models.PositiveIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1)])),
                ('on_expiry', models.CharField(choices=[('fail_call', 'The call fails as expired'), ('cancel_run', 'The run is cancelled')], default='fail_call', max_length=10)),
                ('deciders_needed', models.PositiveSmallIntegerField(default=1, validators=[django.core.validators.MinValueValidator(1)])),
                ('deciders', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=80), blank=True, default=list, help_text='Who may decide, where not everybody who decides approvals: run.user, role:…, member:…', size=None)),
                ('shadow', models.BooleanField(default=False, help_text='Recorded, not applied.')),
                ('active', models.BooleanField(default=True)),
                ('not_known_yet', groups.known.NotKnownYet(default=False, help_text='Accept names that Deputy does not know yet. While it does not, that is a warning.', verbose_name='not known yet')),
                ('capability', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='rules', to='policy.capability')),
                ('group', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='+', to='groups.group')),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('project', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.project')),
                ('role', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='+', to='groups.role')),
            ],
            options={
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('effect__in', ['allow', 'require_approval', 'require_human', 'deny'])), name='rule_effect'),
                    models.CheckConstraint(condition=models.Q(('on_expiry__in', ['fail_call', 'cancel_run'])), name='rule_on_expiry'),
                    models.CheckConstraint(condition=models.Q(models.Q(('capability__isnull', False), ('tool', '')), models.Q(('capability', None), models.Q(('tool', ''), _negated=True)), _connector='OR'), name='rule_capability_or_tool'),
                    models.CheckConstraint(condition=models.Q(('deciders_needed__gte', 1)), name='rule_deciders_needed'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Grant',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.grant_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('tool', models.CharField(max_length=64)),
                ('arguments', models.JSONField(blank=True, default=dict, help_text='The values these arguments must have, exactly; others are free.')),
                ('any_arguments', models.BooleanField(default=False, help_text='Whatever the arguments are.')),
                ('reason', models.TextField(blank=True)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('max_uses', models.PositiveIntegerField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('granted_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.project')),
            ],
            options={
                'constraints': [
                    models.CheckConstraint(condition=models.Q(models.Q(('any_arguments', True), ('arguments', {})), models.Q(('any_arguments', False), models.Q(('arguments', {}), _negated=True)), _connector='OR'), name='grant_names_arguments'),
                    models.CheckConstraint(condition=models.Q(('expires_at__isnull', False), ('max_uses__isnull', False), _connector='OR'), name='grant_ends'),
                ],
            },
        ),
        migrations.CreateModel(
            name='GrantUse',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('idempotency_key', models.CharField(max_length=64)),
                ('grant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='uses', to='policy.grant')),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('grant', 'idempotency_key'), name='grant_used_once_a_call'),
                ],
            },
        ),
        migrations.CreateModel(
            name='OutsideEntity',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.entity_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('type', models.CharField(help_text='As applications name it: record, customer, user.', max_length=64)),
                ('identifier', models.CharField(help_text='Its id in those applications.', max_length=200)),
                ('properties', models.JSONField(blank=True, default=dict, help_text='What conditions may read: {"status": "archived"}')),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('organization', 'type', 'identifier'), name='outside_entity'),
                ],
                'verbose_name_plural': 'outside entities',
            },
        ),
        migrations.CreateModel(
            name='ToolBinding',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.binding_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('pattern', models.CharField(help_text="A tool's name; * stands for any characters.", max_length=64)),
                ('not_known_yet', groups.known.NotKnownYet(default=False, help_text='Accept names that Deputy does not know yet. While it does not, that is a warning.', verbose_name='not known yet')),
                ('capability', models.ForeignKey(on_delete=django.db.models.deletion.RESTRICT, related_name='bindings', to='policy.capability')),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('organization', 'pattern', 'capability'), name='tool_binding'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ToolDeclaration',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.declaration_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('tool', models.CharField(max_length=64)),
                ('output_trust', models.CharField(blank=True, choices=[('user', "The person's own words"), ('organization', "The organization's data"), ('outside', 'What outsiders may have written')], help_text='Whose words its results are.', max_length=12)),
                ('fields', models.JSONField(blank=True, default=dict, help_text='Fields that differ: {"body": "outside", "sender": "organization"}')),
                ('steering', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, help_text='Arguments that decide where an effect goes.', null=True, size=None)),
                ('effect', models.BooleanField(blank=True, help_text='Whether it does more than read.', null=True)),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('organization', 'tool'), name='tool_declaration'),
                    models.CheckConstraint(condition=models.Q(('output_trust__in', ['', 'user', 'organization', 'outside'])), name='tool_declaration_trust'),
                ],
            },
        ),
        migrations.RunSQL(POLICY_VERSION, "DROP FUNCTION policy_touch_version CASCADE"),
    ]
