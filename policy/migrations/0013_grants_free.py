from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('policy', '0012_names_of_grants'),
    ]

    operations = [
        migrations.AddField(
            model_name='grant',
            name='free',
            field=models.JSONField(editable=False, help_text='Which others there may be; none said: any. A decision says them.', null=True),
        ),
    ]
