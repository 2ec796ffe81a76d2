"""What an admin says of a tool's values, in place of what was inferred from its name and schema."""

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

from common import ids
from common.models import Created
from groups import known
from policy import tools


class OutputTrust(models.TextChoices):
    USER = "user", "The person's own words"
    ORGANIZATION = "organization", "The organization's data"
    OUTSIDE = "outside", "What outsiders may have written"


class ToolDeclaration(Created):
    """A correction: what is left empty stays as the tool declares it, or as it was inferred."""

    id = models.CharField(
        primary_key=True, max_length=ids.ID_LENGTH, default=ids.declaration_id, editable=False
    )
    organization = models.ForeignKey(
        "groups.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    tool = models.CharField(max_length=64)
    output_trust = models.CharField(
        max_length=12, choices=OutputTrust.choices, blank=True, help_text="Whose words its results are."
    )
    fields = models.JSONField(
        default=dict,
        blank=True,
        help_text='Fields that differ: {"body": "outside", "sender": "organization"}',
    )
    steering = ArrayField(
        models.CharField(max_length=64),
        null=True,
        blank=True,
        help_text="Arguments that decide where an effect goes.",
    )
    effect = models.BooleanField(null=True, blank=True, help_text="Whether it does more than read.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "tool"], name="tool_declaration"),
            models.CheckConstraint(
                condition=Q(output_trust__in=["", *OutputTrust.values]), name="tool_declaration_trust"
            ),
        ]

    def __str__(self) -> str:
        return self.tool

    def as_dict(self) -> dict[str, Any]:
        """What it changes."""
        return {
            "output_trust": self.output_trust or None,
            "fields": self.fields or None,
            "steering": self.steering,
            "effect": self.effect,
        }

    def unknown_names(self) -> dict[str, list[str]]:
        """By field, what is wrong with its names now."""
        return known.unknown_tools(self.organization_id, {"tool": [self.tool]})

    def clean(self) -> None:
        """Raises ValidationError: no such tool, arguments it does not have, fields worth nothing known."""
        self.tool = self.tool.strip()
        facts = tools.tools(self.organization_id).get(self.tool)
        errors: dict[str, list[str]] = {}
        if facts is None:
            errors["tool"] = [known.words(self.tool, tools.tools(self.organization_id))]
        elif strange := set(self.steering or ()) - set(facts.parameters.get("properties") or {}):
            errors["steering"] = [f"The tool has no argument '{name}'." for name in sorted(strange)]
        said = self.fields.values() if isinstance(self.fields, dict) else [None]
        if not all(trust in OutputTrust.values for trust in said):
            errors["fields"] = [f"Fields, each with one of: {', '.join(OutputTrust.values)}."]
        if errors:
            raise ValidationError(errors)
