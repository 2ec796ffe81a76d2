from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0023_model_keys"),
    ]

    operations = [
        migrations.AddField(
            model_name="toolcall",
            name="told_at",
            field=models.DateTimeField(null=True),
        ),
    ]
