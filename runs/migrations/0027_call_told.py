from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0026_watch_what_waits"),
    ]

    operations = [
        migrations.AddField(
            model_name="toolcall",
            name="told_at",
            field=models.DateTimeField(null=True),
        ),
    ]
