from django.db import migrations, models


class Migration(migrations.Migration):
    """Proposals that are open keep no digest and are stale: they have to be proposed anew."""

    dependencies = [("groups", "0022_language_of_projects")]

    operations = [
        migrations.AddField(
            model_name="proposedchange",
            name="row_digest",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
    ]
