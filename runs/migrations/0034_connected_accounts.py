import common.ids
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


# Caches of an organization's tools learn with its policy version that whose authorization goes has changed.
TOUCH = """
DROP TRIGGER touch_policy ON runs_mcpserver;
CREATE TRIGGER touch_policy AFTER UPDATE OF {} ON runs_mcpserver
    FOR EACH ROW WHEN ({}) EXECUTE FUNCTION policy_touch_version();
"""
BEFORE = TOUCH.format("name, enabled", "OLD.name <> NEW.name OR OLD.enabled <> NEW.enabled")
NOW = TOUCH.format(
    "name, enabled, as_person",
    "OLD.name <> NEW.name OR OLD.enabled <> NEW.enabled OR OLD.as_person <> NEW.as_person",
)


class Migration(migrations.Migration):
    side_by_side = {
        "adding-foreign-key-constraint": "an organization has few MCP servers, and every new value is empty",
        "changes-data": "the trigger goes on as before, and fires for one column more",
    }

    dependencies = [
        ('groups', '0022_language_of_projects'),
        ('runs', '0033_call_traceparent'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='mcpserver',
            name='as_person',
            field=models.BooleanField(db_default=False, default=False, help_text='Calls go with the authorization of the person the run works for, and without the headers.', verbose_name='acts as the person'),
        ),
        migrations.AddField(
            model_name='mcpserver',
            name='authorization_endpoint',
            field=models.CharField(blank=True, db_default='', default='', max_length=2000),
        ),
        migrations.AddField(
            model_name='mcpserver',
            name='client_id',
            field=models.CharField(blank=True, db_default='', default='', max_length=300, verbose_name='client id'),
        ),
        migrations.AddField(
            model_name='mcpserver',
            name='issuer',
            field=models.CharField(blank=True, db_default='', default='', help_text='Of its authorization server. Empty, with the endpoints: Deputy asks the server.', max_length=500),
        ),
        migrations.AddField(
            model_name='mcpserver',
            name='listed_by',
            field=models.ForeignKey(db_index=False, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='mcpserver',
            name='names_issuer',
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.AddField(
            model_name='mcpserver',
            name='resource',
            field=models.CharField(blank=True, db_default='', default='', help_text="What tokens are for (RFC 8707). Empty: the server's address.", max_length=2000),
        ),
        migrations.AddField(
            model_name='mcpserver',
            name='revocation_endpoint',
            field=models.CharField(blank=True, db_default='', default='', max_length=2000),
        ),
        migrations.AddField(
            model_name='mcpserver',
            name='scopes',
            field=models.CharField(blank=True, db_default='', default='', help_text='What is asked for, separated by blanks. Empty: what the server asks for.', max_length=1000),
        ),
        migrations.AddField(
            model_name='mcpserver',
            name='sealed_secret',
            field=models.TextField(blank=True, db_default='', default='', editable=False),
        ),
        migrations.AddField(
            model_name='mcpserver',
            name='secret_in_body',
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.AddField(
            model_name='mcpserver',
            name='token_endpoint',
            field=models.CharField(blank=True, db_default='', default='', max_length=2000),
        ),
        migrations.CreateModel(
            name='ConnectedAccount',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.connected_account_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('sealed_access', models.TextField()),
                ('sealed_refresh', models.TextField(blank=True)),
                ('expires_at', models.DateTimeField(null=True)),
                ('scopes', models.CharField(blank=True, max_length=1000)),
                ('bound_to', models.CharField(max_length=64)),
                ('ended_at', models.DateTimeField(null=True)),
                ('organization', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('server', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='accounts', to='runs.mcpserver')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'connected account',
                'default_permissions': (),
                'indexes': [models.Index(fields=['organization', 'user'], name='connected_account_of')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('server', 'user'), name='connected_account_once')],
            },
        ),
        migrations.RunSQL(NOW, BEFORE),
    ]
