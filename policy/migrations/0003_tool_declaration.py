"""Corrections of what tools declare, or what was inferred of them; each makes the policy's version grow."""

import common.ids
import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('groups', '0007_approval_profile'),
        ('policy', '0002_policy_version'),
    ]

    operations = [
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
                'constraints': [models.UniqueConstraint(fields=('organization', 'tool'), name='tool_declaration'), models.CheckConstraint(condition=models.Q(('output_trust__in', ['', 'user', 'organization', 'outside'])), name='tool_declaration_trust')],
            },
        ),
        migrations.RunSQL(
            "CREATE TRIGGER touch_policy AFTER INSERT OR UPDATE OR DELETE ON policy_tooldeclaration "
            "FOR EACH ROW EXECUTE FUNCTION policy_touch_version();",
            "DROP TRIGGER touch_policy ON policy_tooldeclaration;",
        ),
    ]
