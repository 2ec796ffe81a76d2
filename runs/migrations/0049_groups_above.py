from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0048_where_it_was_pressed")]

    operations = [
        migrations.AddField("run", "groups_above", models.JSONField(null=True)),
    ]
