import common.ids
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('groups', '0025_record_days'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='KeptSignIn',
            fields=[
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('id', models.CharField(default=common.ids.kept_sign_in_id, editable=False, max_length=31, primary_key=True, serialize=False)),
                ('provider', models.CharField(max_length=31)),
                ('subject', models.CharField(max_length=255)),
                ('session', models.CharField(blank=True, max_length=255)),
                ('sealed_access', models.TextField()),
                ('sealed_refresh', models.TextField(blank=True)),
                ('expires_at', models.DateTimeField(null=True)),
                ('asked_as', models.CharField(max_length=64)),
                ('organization', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='groups.organization')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'kept sign-in',
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('provider', 'user'), name='kept_sign_in_once')],
            },
        ),
    ]
