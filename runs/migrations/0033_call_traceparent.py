from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0032_model_prices")]

    operations = [
        migrations.AddField(
            "toolcall", "traceparent", models.CharField(blank=True, db_default="", max_length=55)
        ),
    ]
