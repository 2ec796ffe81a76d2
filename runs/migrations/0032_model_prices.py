import django.core.validators
import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [
        ("groups", "0021_reader"),
        ("runs", "0031_language_of_channels"),
    ]

    operations = [
        migrations.CreateModel(
            name="ModelPrice",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("created_at", models.DateTimeField(db_default=Now(), editable=False)),
                (
                    "model",
                    models.CharField(help_text="As roles name it, such as openai:gpt-5.", max_length=200),
                ),
                (
                    "input_price",
                    models.DecimalField(
                        decimal_places=6,
                        help_text="For a million tokens that it is given.",
                        max_digits=12,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                (
                    "output_price",
                    models.DecimalField(
                        decimal_places=6,
                        help_text="For a million tokens that it writes.",
                        max_digits=12,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                (
                    "currency",
                    models.CharField(
                        default="USD",
                        help_text="Three letters, such as USD or CNY.",
                        max_length=3,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Z]{3}\\Z", "Three capital letters, such as USD."
                            )
                        ],
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="groups.organization",
                    ),
                ),
            ],
            options={
                "verbose_name": "model price",
                "constraints": [
                    models.UniqueConstraint(fields=("organization", "model"), name="model_price_unique"),
                    models.CheckConstraint(
                        condition=models.Q(("input_price__gte", 0), ("output_price__gte", 0)),
                        name="model_price_not_negative",
                    ),
                ],
            },
        ),
    ]
