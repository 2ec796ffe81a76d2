from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0041_channel_kept_by")]

    operations = [
        migrations.AddField("workergroup", "level", models.PositiveSmallIntegerField(db_default=0)),
        migrations.AddField("carrier", "level", models.PositiveSmallIntegerField(db_default=0)),
    ]
