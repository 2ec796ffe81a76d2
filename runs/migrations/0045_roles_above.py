from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0044_reaches")]

    operations = [migrations.AddField("run", "roles_above", models.JSONField(null=True))]
