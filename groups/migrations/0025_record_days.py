import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("groups", "0024_history_of_the_last_hour"),
    ]

    operations = [
        migrations.AddField(
            model_name="organization",
            name="record_days",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="After so many days manage.py prune may remove the whole log of pruned runs, by months: "
                "nothing proves then what happened. Empty: never.",
                null=True,
                validators=[django.core.validators.MinValueValidator(1)],
            ),
        ),
    ]
