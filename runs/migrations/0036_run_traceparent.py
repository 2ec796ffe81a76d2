from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0035_mcp_tasks")]

    operations = [
        migrations.AddField("run", "traceparent", models.CharField(blank=True, db_default="", max_length=55)),
    ]
