import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("groups", "0013_not_known_yet")]

    operations = [
        migrations.AddField(
            model_name="organization",
            name="calls_limit",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="At most so many calls of models and tools under way at once; never more than the "
                "deployment's.",
                null=True,
                validators=[django.core.validators.MinValueValidator(1)],
            ),
        ),
    ]
