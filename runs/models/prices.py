"""What models cost, as an organization has entered it."""

from typing import Any

from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q

from common.models import Created


def price(help_text: str) -> "models.DecimalField[Any, Any]":
    """An amount of money, to a millionth."""
    return models.DecimalField(
        max_digits=12, decimal_places=6, validators=[MinValueValidator(0)], help_text=help_text
    )


class ModelPrice(Created):
    """The price of a million tokens that a model is given, and of a million that it writes."""

    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    model = models.CharField(max_length=200, help_text="As roles name it, such as openai:gpt-5.")
    input_price = price("For a million tokens that it is given.")
    output_price = price("For a million tokens that it writes.")
    currency = models.CharField(
        max_length=3,
        default="USD",
        validators=[RegexValidator(r"^[A-Z]{3}\Z", "Three capital letters, such as USD.")],
        help_text="Three letters, such as USD or CNY.",
    )

    class Meta:
        verbose_name = "model price"
        constraints = [
            models.UniqueConstraint(fields=["organization", "model"], name="model_price_unique"),
            models.CheckConstraint(
                condition=Q(input_price__gte=0) & Q(output_price__gte=0), name="model_price_not_negative"
            ),
        ]

    def __str__(self) -> str:
        return self.model
