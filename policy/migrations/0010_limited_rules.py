from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("policy", "0009_versions_once")]

    operations = [
        migrations.AddField(
            model_name="capabilityrule",
            name="limited",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="Arranged by a member of some projects: it asks for no less than rules of all of "
                "them.",
            ),
        ),
    ]
