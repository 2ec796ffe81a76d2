import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = [("groups", "0001_initial")]
    operations = [
        migrations.CreateModel(
            name="Station",
            fields=[
                ("id", models.BigAutoField(primary_key=True)),
                ("city", models.CharField(max_length=80)),
                (
                    "organization",
                    models.ForeignKey("groups.Organization", on_delete=django.db.models.deletion.CASCADE),
                ),
            ],
        )
    ]
