from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0030_event_types_checked"),
    ]

    operations = [
        migrations.AddField(
            model_name="channel",
            name="language",
            field=models.CharField(
                blank=True,
                choices=[("en", "English"), ("zh-hans", "简体中文")],
                db_default="",
                default="",
                help_text="Of its messages; empty: the installation's.",
                max_length=10,
            ),
        ),
    ]
