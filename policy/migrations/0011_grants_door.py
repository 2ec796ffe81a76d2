from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("policy", "0010_limited_rules")]

    operations = [
        migrations.AddField(
            model_name="grant",
            name="token_id",
            field=models.CharField(editable=False, max_length=31, null=True),
        ),
        migrations.AddField(
            model_name="grant",
            name="via",
            field=models.CharField(
                db_default="",
                default="",
                editable=False,
                help_text="By which door it came.",
                max_length=10,
            ),
        ),
    ]
