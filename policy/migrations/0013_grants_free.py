from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("policy", "0012_names_of_grants"),
    ]

    operations = [
        migrations.AlterField(
            model_name="grant",
            name="arguments",
            field=models.JSONField(
                blank=True,
                default=dict,
                help_text="The values these arguments must have, exactly. Others are free, unless it is said below which.",
            ),
        ),
        migrations.AddField(
            model_name="grant",
            name="free",
            field=models.JSONField(
                editable=False,
                help_text="Which others there may be; none said: any. A decision says them.",
                null=True,
            ),
        ),
    ]
